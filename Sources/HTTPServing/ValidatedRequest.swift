internal import HTTPTypes
internal import HTTPWire

/// A request head that has passed validation (RFC 9112, 3.2 and 6).
struct ValidatedRequest {
    let request: HTTPRequest
    /// Whether the client understands chunked transfer coding.
    let acceptsChunked: Bool
    /// Whether the client keeps the connection open.
    let keepsAlive: Bool
    /// Whether the response needs `Connection: keep-alive`. An HTTP/1.0 client closes the connection without it.
    var needsKeepAlive: Bool { keepsAlive && !acceptsChunked }
    /// Whether the client waits for `100 Continue` before it sends the body.
    let expectsContinue: Bool

    /// The rejection of a request head.
    struct ValidationError: Error {
        let status: HTTPResponse.Status
    }

    init(_ head: HTTPRequestHead, _ framing: HTTPBodyFraming, nonASCIIBytesMax: Int) throws(ValidationError) {
        let hosts = head.hosts
        guard hosts.count == 1 || hosts.isEmpty && head.version == .http10,
            hosts.allSatisfy({ $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } }),
            // HTTP/1.0 has no transfer codings; the framing of such a request is ambiguous (RFC 9112, 6.1).
            head.version >= .http11 || framing != .chunked
        else { throw ValidationError(status: .badRequest) }
        func isShort(_ text: String) -> Bool {
            text.utf8.count <= nonASCIIBytesMax || text.utf8.allSatisfy { $0 < 0x80 }
        }
        guard isShort(head.target), head.fields.allSatisfy({ isShort($0.value) }) else {
            throw ValidationError(status: .badRequest)
        }
        let fields: HTTPFields = head.fields.filter { $0.name.canonicalName != "host" }
        let (authority, path) = Self.split(head.target)
        request = HTTPRequest(
            method: head.request.method, scheme: "http", authority: authority ?? hosts.first, path: path,
            headerFields: fields)
        acceptsChunked = head.version >= .http11
        keepsAlive = head.keepsAlive
        expectsContinue = acceptsChunked && head.fields.isListed("100-continue", in: .expect)
    }

    /// Returns the authority and the path of a request target; only the absolute form has an authority (RFC 9112,
    /// 3.2.2).
    private static func split(_ target: String) -> (authority: String?, path: String) {
        let scheme = Array("http://".utf8)
        guard target.utf8.prefix(scheme.count).map({ (65...90).contains($0) ? $0 | 0x20 : $0 }) == scheme else {
            return (nil, target)
        }
        let rest = target.utf8.dropFirst(scheme.count)
        let end = rest.firstIndex { [UInt8(ascii: "/"), UInt8(ascii: "?")].contains($0) } ?? rest.endIndex
        let path = String(Substring(rest[end...]))
        return (String(Substring(rest[..<end])), path.utf8.first == UInt8(ascii: "/") ? path : "/" + path)
    }

    /// Returns the status for bytes that are not an HTTP request.
    static func status(of error: HTTPError) -> HTTPResponse.Status {
        switch error {
        case .unknownCoding: .notImplemented
        case .badVersion: .httpVersionNotSupported
        default: .badRequest
        }
    }
}
