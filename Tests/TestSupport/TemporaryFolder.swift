public import Foundation

/// A folder that is gone with the value.
public final class TemporaryFolder: Sendable {
    /// Where it is.
    public let url = FileManager.default.temporaryDirectory.appendingPathComponent("slowlane-test-\(UUID())")

    /// Makes it.
    public init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit {
        try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: url.path)
        try? FileManager.default.removeItem(at: url)
    }

    /// The path of a file in it.
    public func path(_ name: String) -> String { url.appendingPathComponent(name).path }
}
