public import HTTPTypes
public import NIOCore

/// The head of a request: a request of swift-http-types with the version of HTTP/1.
///
/// The head is the message as received: `request.path` is the request target in any form, `Host` is one of the header
/// fields, and scheme and authority are not set. Names keep their case, values keep their bytes.
public struct HTTPRequestHead: Hashable, Sendable {
    /// The method, the target and the header fields.
    public let request: HTTPRequest
    /// The version.
    public let version: HTTPVersion

    /// Creates a head from its parts. Throws if a part contains characters that could change the framing.
    public init(
        method: String, target: String, version: HTTPVersion = .http11, fields: [(name: String, value: String)] = []
    ) throws(HTTPError) {
        guard let method = HTTPRequest.Method(method) else { throw .unwritable("method") }
        guard !target.isEmpty, target.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .unwritable("target")
        }
        self.init(method: method, target: target, version: version, fields: try HTTPFields(checking: fields))
    }

    /// Returns the head with another target, without spaces and control characters, and other header fields.
    public func with(target: String, _ fields: HTTPFields) -> HTTPRequestHead {
        HTTPRequestHead(method: request.method, target: target, version: version, fields: fields)
    }

    init(method: HTTPRequest.Method, target: String, version: HTTPVersion, fields: HTTPFields) {
        request = HTTPRequest(method: method, scheme: nil, authority: nil, path: target, headerFields: fields)
        self.version = version
    }

    /// The method.
    public var method: String { request.method.rawValue }

    /// The request target as received, usually a path and a query.
    public var target: String { request.path ?? "" }

    /// The header fields, in order.
    public var fields: HTTPFields { request.headerFields }

    /// The values of the `Host` fields, in order.
    public var hosts: [String] { fields[values: .hostOfHTTP1] }

    /// Returns the first value of a header field; `nil` if there is none.
    public func value(of name: String) -> String? { fields.first { HTTPSyntax.isSame($0.name.rawName, name) }?.value }

    /// Whether the connection may be used again (RFC 9112, 9.3).
    public var keepsAlive: Bool { HTTPVersion.keepsAlive(version, fields) }

    /// Serialises the head.
    public func write(into buffer: inout ByteBuffer) {
        for part in [method, " ", target, " ", version.description, "\r\n"] { buffer.writeString(part) }
        fields.write(into: &buffer)
    }
}
