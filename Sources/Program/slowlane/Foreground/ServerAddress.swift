internal import CommandSupport
internal import Proxy

/// The address of an HTTP server on the command line: `HOST:PORT`, or a URL `http://HOST[:PORT]` or `https://HOST[:PORT]`.
enum ServerAddress {
    /// The reason why a text is not the address of a server that can be reached.
    struct ParseError: Error, Hashable, CustomStringConvertible {
        let description: String
    }

    /// The schemes with their default ports.
    private static let ports = ["http": 80, "https": 443]
    /// The longest part of an address in an error, in characters.
    private static let shownMax = 80

    /// Parses an address; returns the endpoint, and whether the server has TLS.
    static func parse(_ text: String) throws(ParseError) -> (endpoint: Endpoint, isSecure: Bool) {
        // A password must not be printed.
        guard !text.contains("@") else {
            throw ParseError(description: "the address has a user; remove it, and give --user NAME:PASSWORD")
        }
        guard let separator = text.firstRange(of: "://") else {
            guard let endpoint = Endpoint(text), endpoint.port > 0 else {
                throw error(text, "expected HOST:PORT, http://HOST:PORT or https://HOST, such as 127.0.0.1:8000")
            }
            return (endpoint, false)
        }
        let scheme = text[..<separator.lowerBound].lowercased()
        let rest = text[separator.upperBound...]
        let authority = rest.prefix { !"/?#".contains($0) }
        guard let portDefault = ports[scheme] else {
            throw error(
                text, "the scheme '\(shown(scheme))' is not supported; give http://HOST:PORT or https://HOST:PORT")
        }
        let tail = rest[authority.endIndex...]
        guard tail.isEmpty || tail == "/" else {
            let part = tail.hasPrefix("?") ? "query" : tail.hasPrefix("#") ? "fragment" : "path"
            let column = text.distance(from: text.startIndex, to: tail.startIndex) + 1
            throw error(
                text,
                "the \(part) '\(shown(tail))' at column \(column) is not supported; give \(scheme)://HOST:PORT only")
        }
        let hasPort = authority.lastIndex(of: ":").map { !authority[$0...].contains("]") } ?? false
        guard !authority.isEmpty, authority.first != ":",
            let endpoint = Endpoint(hasPort ? String(authority) : "\(authority):\(portDefault)"), endpoint.port > 0
        else { throw error(text, "no valid host and port; give \(scheme)://HOST:PORT, such as 127.0.0.1:8000") }
        return (endpoint, scheme == "https")
    }

    private static func error(_ text: String, _ reason: String) -> ParseError {
        ParseError(description: "'\(shown(text))': \(reason)")
    }

    private static func shown(_ text: some StringProtocol) -> String {
        TextTable.singleLine(String(text.prefix(shownMax)))
    }
}
