internal import NIOCore
internal import NIOPosix

/// Addresses as Toxiproxy's users write them.
public enum ListenAddress {
    /// Looks up `host:port`, in which either may be a name or missing: no host is every interface, no port any free one.
    ///
    /// - Returns: The numeric address, IPv4 if there is a choice.
    public static func resolve(_ text: String) async throws(ProxyError) -> Endpoint {
        let (host, service) = split(text)
        guard let host, let port = await port(service) else {
            throw ProxyError(
                code: .cannotListen, endpoint: Endpoint(host: text, port: 0), reason: "expected HOST:PORT")
        }
        if host.isEmpty { return Endpoint(host: Self.everywhere, port: port) }
        let endpoint = Endpoint(host: host, port: port)
        if (try? SocketAddress(ipAddress: host, port: port)) != nil { return endpoint }
        do {
            let addresses = try await NameResolver.shared.addresses(of: endpoint)
            let chosen = addresses.first { $0.protocol == .inet } ?? addresses[0]
            return Endpoint(host: chosen.ipAddress ?? host, port: port)
        } catch let error as ProxyError {
            throw ProxyError(code: .cannotListen, endpoint: endpoint, reason: error.reason)
        } catch {
            throw ProxyError(code: .cannotListen, endpoint: endpoint, reason: "\(error)")
        }
    }

    /// The host and port that a text means, the port by its number or by the name of a service; what cannot be understood is a
    /// host without an address.
    public static func upstream(_ text: String) async -> Endpoint {
        if let endpoint = Endpoint(text), text.contains(":") { return endpoint }
        let (host, service) = split(text)
        guard let host, !host.isEmpty, let port = await port(service) else { return Endpoint(host: text, port: 0) }
        return Endpoint(host: host, port: port)
    }

    /// The host without brackets, and what stands behind the last colon; no host if there is no colon.
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

    /// Every interface, of both families where the system has both.
    private static let everywhere =
        (try? PortHold(SocketAddress(ipAddress: "::", port: 0))) == nil ? "0.0.0.0" : "::"
}
