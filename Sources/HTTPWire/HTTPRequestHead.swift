public import NIOCore

/// The head of a request.
public struct HTTPRequestHead: Hashable, Sendable {
    /// The method.
    public var method: String
    /// The request target as received, usually a path and a query.
    public var target: String
    /// The version.
    public var version: HTTPVersion
    /// The header fields.
    public var headers: HTTPHeaders

    /// Creates a head.
    public init(method: String, target: String, version: HTTPVersion = .http11, headers: HTTPHeaders = HTTPHeaders()) {
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
    }

    /// Whether the connection may be used again (RFC 9112, 9.3).
    public var keepsAlive: Bool { HTTPVersion.keepsAlive(version, headers) }

    /// Serialises the head. Throws if it contains characters that could change the framing.
    public func write(into buffer: inout ByteBuffer) throws(HTTPError) {
        guard HTTPSyntax.isToken(method) else { throw .unwritable("method") }
        guard !target.isEmpty, target.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .unwritable("target")
        }
        try headers.check()
        buffer.writeString("\(method) \(target) \(version)\r\n")
        headers.write(into: &buffer)
    }
}
