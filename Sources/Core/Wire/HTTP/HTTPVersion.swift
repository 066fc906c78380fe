internal import HTTPTypes

/// The protocol version: HTTP/1.0 or HTTP/1.1.
public struct HTTPVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The minor version number.
    public let minor: Int

    /// HTTP/1.0.
    public static let http10 = HTTPVersion(minor: 0)
    /// HTTP/1.1.
    public static let http11 = HTTPVersion(minor: 1)

    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool { left.minor < right.minor }

    public var description: String { "HTTP/1.\(minor)" }

    /// Returns whether a connection may be used again after a message (RFC 9112, 9.3).
    static func keepsAlive(_ version: HTTPVersion, _ fields: HTTPFields) -> Bool {
        if fields.isListed("close", in: .connection) { return false }
        return version >= .http11 || fields.isListed("keep-alive", in: .connection)
    }
}
