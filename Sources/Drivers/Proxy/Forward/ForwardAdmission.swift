internal import ForwardProxy
internal import NIOCore

/// The admission of a forward proxy's clients. Its methods may be called on any thread.
struct ForwardAdmission: Sendable {
    private let settings: ForwardSettings
    /// The address at which the proxy listens.
    private let listening: SocketAddress?
    let negotiation: NegotiationSettings

    init(_ settings: ForwardSettings, listening: SocketAddress?) {
        self.settings = settings
        self.listening = listening
        let own = listening.map { Destination(host: LoopDetector.host($0) ?? "127.0.0.1", port: $0.port ?? 0) }
        let addresses = settings.addresses.map { address in
            Destination(host: address.host, port: address.port == 0 ? own?.port ?? 0 : address.port)
        }
        negotiation = NegotiationSettings(
            addresses: addresses.isEmpty ? own.map { [$0] } ?? [] : addresses, credentials: settings.credentials,
            associates: ForwardDatagrams.isAvailable)
    }

    /// Whether a dial to any address may come back to the proxy, because the firewall redirects it.
    var dialsMayReturn: Bool { settings.isTransparent }

    /// Returns the state of an accepted socket's client; `nil` if its address is not allowed.
    func request(of client: CInt) -> TunnelRequest? {
        guard mayConnect(client) else { return nil }
        let redirected =
            settings.redirections.flatMap { table in
                (try? SystemSocket.remoteAddress(of: client)).flatMap(table.take(from:))
            } ?? (settings.isTransparent ? originalDestination(of: client) : nil)
        return TunnelRequest(Negotiation(negotiation), redirected: redirected)
    }

    /// Returns the destination of a connection that the firewall has redirected; `nil` for a client that has connected to
    /// the proxy itself.
    private func originalDestination(of client: CInt) -> Destination? {
        guard let address = OriginalDestination.address(of: client), let host = LoopDetector.host(address),
            let port = address.port, listening.map({ Proxy.reaches($0, from: address) }) != true,
            let local = try? SystemSocket.localAddress(of: client),
            port != local.port || host != LoopDetector.host(local)
        else { return nil }
        return Destination(host: host, port: port)
    }

    private func mayConnect(_ client: CInt) -> Bool {
        guard !settings.clientsAllowed.isEmpty else { return true }
        guard let address = try? SystemSocket.remoteAddress(of: client), let host = LoopDetector.host(address) else {
            return false
        }
        // Only connections of this machine reach its loopback addresses, redirected ones under the sender's own address.
        if let local = (try? SystemSocket.localAddress(of: client)).flatMap(LoopDetector.host),
            LoopDetector.isLoopback(local)
        {
            return true
        }
        let peer = Destination(host: host, port: address.port ?? 0)
        return LoopDetector.isLoopback(host) || settings.clientsAllowed.contains { $0.matches(peer) }
    }
}
