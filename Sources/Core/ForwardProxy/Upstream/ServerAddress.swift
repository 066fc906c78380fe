/// The address of an HTTP server as a user gives it: `HOST:PORT`, or a URL `http://HOST[:PORT]` or `https://HOST[:PORT]`.
public struct ServerAddress: Hashable, Sendable {
    /// The reason why a text is not the address of a server that can be reached.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        public let description: String
    }

    /// The host and the port.
    public let destination: Destination
    /// Whether the server has TLS.
    public let isSecure: Bool

    /// The schemes with their default ports.
    private static let ports = ["http": 80, "https": OriginAuthority.standardPort]
    /// The host of a port alone.
    private static let hostDefault = "127.0.0.1"
    /// The longest part of an address in an error, in characters.
    private static let shownMax = 80

    /// Parses an address.
    public init(_ text: String) throws(ParseError) {
        // A password must not be printed.
        guard !text.contains("@") else {
            throw ParseError(description: "the address has a user; remove it, and give user and password separately")
        }
        guard let separator = text.firstRange(of: "://") else {
            let isPort = !text.isEmpty && text.allSatisfy { $0.isASCII && $0.isNumber }
            let authority = isPort ? "\(Self.hostDefault):\(text)" : text.first == ":" ? Self.hostDefault + text : text
            guard let destination = Destination(authority: authority) else {
                throw Self.error(text, "expected HOST:PORT, http://HOST:PORT or https://HOST, such as 127.0.0.1:8000")
            }
            self.destination = destination
            isSecure = false
            return
        }
        let scheme = text[..<separator.lowerBound].lowercased()
        let rest = text[separator.upperBound...]
        let authority = rest.prefix { !"/?#".contains($0) }
        guard let portDefault = Self.ports[scheme] else {
            throw Self.error(
                text, "the scheme '\(Self.shown(scheme))' is not supported; give http://HOST:PORT or https://HOST:PORT")
        }
        let tail = rest[authority.endIndex...]
        guard tail.isEmpty || tail == "/" else {
            let part = tail.hasPrefix("?") ? "query" : tail.hasPrefix("#") ? "fragment" : "path"
            let column = text.distance(from: text.startIndex, to: tail.startIndex) + 1
            throw Self.error(
                text,
                "the \(part) '\(Self.shown(tail))' at column \(column) is not supported; "
                    + "give \(scheme)://HOST:PORT only")
        }
        guard authority.last != ":",
            let destination = Destination(authority: String(authority), defaultPort: portDefault)
        else { throw Self.error(text, "no valid host and port; give \(scheme)://HOST:PORT, such as 127.0.0.1:8000") }
        self.destination = destination
        isSecure = scheme == "https"
    }

    private static func error(_ text: String, _ reason: String) -> ParseError {
        ParseError(description: "'\(shown(text))': \(reason)")
    }

    /// Returns the beginning of a text without characters that control a terminal.
    private static func shown(_ text: some StringProtocol) -> String {
        var shown = ""
        for scalar in text.prefix(shownMax).unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: shown += " "
            default: shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}
