public import Foundation

/// A temporary folder that is removed with the value.
public final class TemporaryFolder: Sendable {
    /// The folder.
    public let url = FileManager.default.temporaryDirectory.appendingPathComponent("slowlane-test-\(UUID())")

    /// Creates the folder.
    public init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit {
        try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: url.path)
        try? FileManager.default.removeItem(at: url)
    }

    /// Returns the path of a file in the folder.
    public func path(_ name: String) -> String { url.appendingPathComponent(name).path }
}
