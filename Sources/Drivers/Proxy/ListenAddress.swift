internal import NIOCore
internal import NIOPosix

/// Parsing of addresses in Toxiproxy's notation.
public enum ListenAddress {
    /// Resolves a listening address `host:port`. Both may be names; an empty host is the wildcard address, an empty
    /// port a free port.
    ///
    /// - Returns: The numeric address, IPv4 if the name has one.
    public static func resolve(_ text: String) async throws(ProxyError) -> Endpoint {
        let (host, service) = split(text)
        guard let host, let port = await port(service) else {
            throw ProxyError(
                code: .cannotBind, endpoint: Endpoint(host: text, port: 0), reason: "expected HOST:PORT")
        }
        if host.isEmpty { return Endpoint(host: Self.wildcardHost, port: port) }
        let endpoint = Endpoint(host: host, port: port)
        if (try? SocketAddress(ipAddress: host, port: port)) != nil { return endpoint }
        do {
            let addresses = try await NameResolver.shared.addresses(of: endpoint)
            let chosen = addresses.first { $0.protocol == .inet } ?? addresses[0]
            return Endpoint(host: chosen.ipAddress ?? host, port: port)
        } catch let error as ProxyError {
            throw ProxyError(code: .cannotBind, endpoint: endpoint, reason: error.reason)
        } catch {
            throw ProxyError(code: .cannotBind, endpoint: endpoint, reason: "\(error)")
        }
    }

    /// Parses an upstream address whose port is a number or a service name. Text that is neither becomes a host that
    /// cannot be resolved, so that dials fail instead of the call.
    public static func upstream(_ text: String) async -> Endpoint {
        if let endpoint = Endpoint(text), text.contains(":") { return endpoint }
        let (host, service) = split(text)
        guard let host, !host.isEmpty, let port = await port(service) else { return Endpoint(host: text, port: 0) }
        return Endpoint(host: host, port: port)
    }

    /// Splits a text at its last colon into the host, without brackets, and the service; the host is `nil` if there is
    /// no colon.
    private static func split(_ text: String) -> (host: String?, service: String) {
        if text.isEmpty { return ("", "0") }
        guard let colon = text.lastIndex(of: ":") else { return (nil, "") }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return (nil, "")
        }
        let service = text[text.index(after: colon)...]
        return (String(host), service.isEmpty ? "0" : String(service))
    }

    private static func port(_ service: String) async -> Int? {
        if service.allSatisfy({ $0.isASCII && $0.isNumber }) { return Int(service).flatMap { $0 <= 65535 ? $0 : nil } }
        return try? await NIOThreadPool.singleton.runIfActive { NameLookup.port(ofService: service) }
    }

    /// The wildcard address: `::`, which includes IPv4, if the system has IPv6.
    private static let wildcardHost =
        (try? PortHold(SocketAddress(ipAddress: "::", port: 0))) == nil ? "0.0.0.0" : "::"
}
