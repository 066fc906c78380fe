internal import ForwardProxy
public import HTTPSockets
internal import NIOCore

/// A host and a port: `127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`, `:8000`, `8000`.
public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name or a numeric address, without brackets.
    public let host: String
    /// The port, 0 to 65535.
    public let port: Int

    /// Creates an endpoint.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    init(_ address: SocketAddress) {
        self.init(host: address.ipAddress ?? "", port: address.port ?? 0)
    }

    /// Parses `HOST:PORT`, `:PORT` or `PORT`; the default host is 127.0.0.1. Returns `nil` for any other text.
    public init?(_ text: String) {
        let host: Substring
        let portText: Substring
        if text.hasPrefix("[") {
            guard let close = text.firstIndex(of: "]") else { return nil }
            host = text[text.index(after: text.startIndex)..<close]
            let rest = text[text.index(after: close)...]
            guard rest.hasPrefix(":"), !host.isEmpty else { return nil }
            portText = rest.dropFirst()
        } else if let colon = text.lastIndex(of: ":") {
            host = text[..<colon]
            portText = text[text.index(after: colon)...]
            if host.contains(":") { return nil }
        } else {
            host = ""
            portText = Substring(text)
        }
        guard !portText.isEmpty, portText.allSatisfy({ $0.isASCII && $0.isNumber }), let port = Int(portText),
            port <= 65535, !host.contains(where: { $0.isWhitespace || $0 == "/" || $0 == "\0" })
        else { return nil }
        self.init(host: host.isEmpty ? "127.0.0.1" : String(host), port: port)
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension UpstreamTLS {
    /// The host and the port of the upstream.
    public var endpoint: Endpoint { Endpoint(host: authority.destination.host, port: authority.destination.port) }
}
