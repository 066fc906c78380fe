public import NIOCore

/// The head of a response.
public struct HTTPResponseHead: Hashable, Sendable {
    /// The version.
    public var version: HTTPVersion
    /// The status code, 100 to 999.
    public var status: Int
    /// The reason phrase.
    public var reason: String
    /// The header fields.
    public var headers: HTTPHeaders

    /// Creates a head.
    public init(
        version: HTTPVersion = .http11, status: Int, reason: String = "", headers: HTTPHeaders = HTTPHeaders()
    ) {
        self.version = version
        self.status = status
        self.reason = reason
        self.headers = headers
    }

    /// Whether the response allows the connection to be used again (RFC 9112, 9.3).
    public var keepsAlive: Bool { HTTPVersion.keepsAlive(version, headers) }

    /// Serialises the head. Throws if it contains characters that could change the framing.
    public func write(into buffer: inout ByteBuffer) throws(HTTPError) {
        guard (100...999).contains(status) else { throw .unwritable("status") }
        guard reason.utf8.allSatisfy({ HTTPSyntax.isText($0) }) else { throw .unwritable("reason") }
        try headers.check()
        buffer.writeString("\(version) \(status) \(reason)\r\n")
        headers.write(into: &buffer)
    }
}
