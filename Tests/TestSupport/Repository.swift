public import Foundation

/// The repository that contains the tests.
public enum Repository {
    /// Its folder.
    public static let root = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL
}
