internal import HTTPTypes
internal import Wire

/// What a request to the proxy is for, from its target (RFC 9112, 3.2).
enum RequestTarget: Hashable, Sendable {
    /// CONNECT: a tunnel.
    case tunnel(Destination)
    /// The absolute form: a request to forward with the target in origin form and the value of `Host`.
    case forward(Destination, target: String, host: String)
    /// The origin form: the page of the proxy, or another path.
    case local(path: String)

    private static let httpPort = 80

    /// Reads the target. Throws the response if the request cannot be forwarded.
    init(
        _ head: HTTPRequestHead, _ framing: HTTPBodyFraming, _ settings: NegotiationSettings
    ) throws(ProxyResponse) {
        let isHead = head.method == "HEAD"
        func refused(_ status: Int, _ text: String) -> ProxyResponse {
            ProxyResponse(status: status, text: text, omitsBody: isHead)
        }
        guard head.hosts.count <= 1 else {
            throw refused(400, "the request has \(head.hosts.count) Host fields; send one\n")
        }
        // HTTP/1.0 has no transfer codings; the framing of such a request is ambiguous (RFC 9112, 6.1).
        guard head.version >= .http11 || framing != .chunked else {
            throw refused(400, "an HTTP/1.0 request has no chunked body; send Content-Length, or use HTTP/1.1\n")
        }
        let target = head.target
        guard !target.unicodeScalars.contains("\u{FFFD}") else {
            throw refused(400, "the target of the request is not UTF-8; percent-encode it\n")
        }
        let bytes = Array(target.utf8)
        let scheme = head.method == "CONNECT" ? nil : Self.scheme(of: bytes)
        if let scheme, scheme != "http" {
            throw refused(
                scheme == "https" ? 400 : 501,
                "the proxy forwards http:// requests, not \(scheme)://\nopen a tunnel with CONNECT HOST:PORT, and send "
                    + "the request through it\n")
        }
        do throws(HostSyntaxError) {
            if head.method == "CONNECT" {
                guard framing == .none else { throw HostSyntaxError(problem: "a CONNECT request has no body") }
                self = .tunnel(try HostSyntax.destination(bytes[...], defaultPort: nil))
                return
            }
            if bytes.first == UInt8(ascii: "/") || bytes == Array("*".utf8) {
                self = .local(path: target)
                return
            }
            guard let scheme else {
                throw HostSyntaxError(problem: "the target is not an absolute URL; write http://HOST/PATH")
            }
            let authority = bytes.dropFirst(scheme.utf8.count + 3).prefix { !Self.authorityEnds.contains($0) }
            let destination = try HostSyntax.destination(authority, defaultPort: Self.httpPort)
            let path = Self.originForm(bytes[authority.endIndex...], method: head.method)
            // A phone that uses the proxy asks it for its own page in absolute form.
            self =
                settings.addresses.contains(destination)
                ? .local(path: path)
                : .forward(destination, target: path, host: String(decoding: authority, as: UTF8.self))
        } catch {
            throw refused(400, "the request names no destination: \(error.problem)\n")
        }
    }

    private static let authorityEnds = Array("/?#".utf8)

    /// Returns the scheme of a URL in lower case; `nil` without `://`.
    private static func scheme(of target: [UInt8]) -> String? {
        let scheme = target.prefix { $0 != UInt8(ascii: ":") }
        guard !scheme.isEmpty, target[scheme.endIndex...].starts(with: Array("://".utf8)),
            scheme.allSatisfy({ (65...90).contains($0) || (97...122).contains($0) })
        else { return nil }
        return String(decoding: scheme.map { $0 | 0x20 }, as: UTF8.self)
    }

    /// Returns the origin form of what follows the authority of a URL (RFC 9112, 3.2.1 and 3.2.4). A fragment is not
    /// part of it.
    private static func originForm(_ rest: ArraySlice<UInt8>, method: String) -> String {
        let rest = rest.prefix { $0 != UInt8(ascii: "#") }
        if rest.isEmpty { return method == "OPTIONS" ? "*" : "/" }
        let text = String(decoding: rest, as: UTF8.self)
        return rest.first == UInt8(ascii: "/") ? text : "/" + text
    }
}
