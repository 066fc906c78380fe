internal import HTTPTypes

/// The protocol version: HTTP/1.0, HTTP/1.1, or HTTP/2.
public struct HTTPVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The major version number.
    public let major: Int
    /// The minor version number.
    public let minor: Int

    /// HTTP/1.0.
    public static let http10 = HTTPVersion(major: 1, minor: 0)
    /// HTTP/1.1.
    public static let http11 = HTTPVersion(major: 1, minor: 1)
    /// HTTP/2.
    public static let http2 = HTTPVersion(major: 2, minor: 0)

    public static func < (left: HTTPVersion, right: HTTPVersion) -> Bool {
        (left.major, left.minor) < (right.major, right.minor)
    }

    public var description: String { major == 1 ? "HTTP/1.\(minor)" : "HTTP/\(major)" }

    /// Returns whether a connection may be used again after a message (RFC 9112, 9.3).
    static func keepsAlive(_ version: HTTPVersion, _ fields: HTTPFields) -> Bool {
        if fields.isListed("close", in: .connection) { return false }
        return version >= .http11 || fields.isListed("keep-alive", in: .connection)
    }
}
