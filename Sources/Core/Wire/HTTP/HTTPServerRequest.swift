public import HTTPTypes

/// A request whose head has passed validation (RFC 9112, 3.2 and 6).
public struct HTTPServerRequest: Sendable {
    /// The method, the target, the authority and the header fields except `Host`.
    public let request: HTTPRequest
    /// The declared length of the body: 0 without a body, `nil` with chunked transfer coding.
    public let declaredBodyBytes: Int?
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
        declaredBodyBytes =
            switch framing {
            case .length(let length): Int(clamping: length)
            case .chunked: nil
            case .none, .untilClose: 0
            }
        acceptsChunked = head.version >= .http11
        keepsAlive = head.keepsAlive
        expectsContinue = acceptsChunked && head.fields.isListed("100-continue", in: .expect)
    }

    /// Returns the result of reading the body if the head determines it: there is no body, or its declared length
    /// exceeds the limit.
    ///
    /// - Parameter bytesMax: A limit below ``HTTPServerLimits/bodyBytesMax``.
    public func bodyKnownFromHead(
        bytesMax: Int?, _ limits: HTTPServerLimits
    ) -> Result<[UInt8], HTTPServerBodyError>? {
        guard let declaredBodyBytes else { return nil }
        if declaredBodyBytes == 0 { return .success([]) }
        return declaredBodyBytes > limits.bodyBytesMax(atMost: bytesMax) ? .failure(.tooLarge) : nil
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
}

extension HTTPServerLimits {
    /// Returns the limit on a body whose handler may have set a lower one.
    func bodyBytesMax(atMost bytesMax: Int?) -> Int { min(bytesMax ?? bodyBytesMax, bodyBytesMax) }
}
