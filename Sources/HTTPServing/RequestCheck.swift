internal import HTTPTypes
internal import HTTPWire

/// A request's head as a handler gets it, or the status it is refused with (RFC 9112, 3.2 and 6).
struct CheckedHead {
    let request: HTTPRequest
    /// Whether the client takes chunks.
    let takesChunks: Bool
    /// Whether the client wants the connection kept.
    let keepsAlive: Bool
    /// Whether the client must be told that the connection is kept: HTTP/1.0 closes it otherwise.
    var saysKeepAlive: Bool { keepsAlive && !takesChunks }
    /// Whether the client waits for `100 Continue` before its body.
    let expectsContinue: Bool

    /// A refused head.
    struct Refusal: Error {
        let status: HTTPResponse.Status
    }

    init(_ head: HTTPRequestHead, _ framing: HTTPBodyFraming, nonASCIIBytesMax: Int) throws(Refusal) {
        let hosts = head.hosts
        guard hosts.count == 1 || hosts.isEmpty && head.version == .http10,
            hosts.allSatisfy({ $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } }),
            // HTTP/1.0 has no transfer codings; whoever has sent one through an old intermediary has lost the framing.
            head.version >= .http11 || framing != .chunked
        else { throw Refusal(status: .badRequest) }
        func isShort(_ text: String) -> Bool {
            text.utf8.count <= nonASCIIBytesMax || text.utf8.allSatisfy { $0 < 0x80 }
        }
        guard isShort(head.target), head.fields.allSatisfy({ isShort($0.value) }) else {
            throw Refusal(status: .badRequest)
        }
        let fields: HTTPFields = head.fields.filter { $0.name.canonicalName != "host" }
        let (authority, path) = Self.split(head.target)
        request = HTTPRequest(
            method: head.request.method, scheme: "http", authority: authority ?? hosts.first, path: path, headerFields: fields)
        takesChunks = head.version >= .http11
        keepsAlive = head.keepsAlive
        expectsContinue = takesChunks && head.fields.isListed("100-continue", in: .expect)
    }

    /// The authority and the path of a target; one in absolute form has both (RFC 9112, 3.2.2).
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

    /// The status of bytes that are not a request.
    static func status(of error: HTTPError) -> HTTPResponse.Status {
        switch error {
        case .unknownCoding: .notImplemented
        case .badVersion: .httpVersionNotSupported
        default: .badRequest
        }
    }
}
