internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The tunnels of a forward proxy on the fast path.
extension ProxyCore {
    /// The destination of a tunnel that the fast path connects or carries.
    struct RelayedDestination {
        let destination: Destination
        var isEstablished = false
    }

    /// Passes the addresses of a tunnel's destination to its relay. A tunnel to which conditions apply, or for which there
    /// are no addresses, leaves the fast path.
    func resolve(_ tunnel: RelayedTunnel) {
        // A frozen fast path passes all its connections to the link.
        guard let fastPath, fastPath.isOpen else { return }
        let treatment = forward?.rules.treatment(of: tunnel.destination)?.treatment
        guard treatment == nil, linkDriver.conditions.connectionPolicy == .open else {
            return takeOver(tunnel.token)
        }
        route(to: tunnel.destination, isLocal: tunnel.client.map(Proxy.isOnThisMachine) ?? false) { result in
            switch result {
            case .failure(let failure): self.takeOver(tunnel.token, failure)
            case .success(let route):
                self.relayed[tunnel.key] = RelayedDestination(destination: tunnel.destination)
                fastPath.dial(tunnel.token, .success(route.target.addresses))
            }
        }
    }

    /// Handles that the fast path has established a tunnel.
    func tunnelEstablished(_ key: ConnectionKey) {
        guard let destination = relayed[key]?.destination else { return }
        relayed[key]?.isEstablished = true
        hostTraffic.change(destination) { $0.connections += 1 }
    }

    /// Handles that the fast path has closed a connection of a client.
    func tunnelClosed(_ key: ConnectionKey, _ bytes: PerDirection<Int>) {
        updateAccepting()
        guard let tunnel = relayed.removeValue(forKey: key) else { return }
        hostTraffic.change(tunnel.destination) { row in
            if !tunnel.isEstablished { row.connectionsFailed += 1 }
            for direction in Direction.allCases { row.bytes[direction] += bytes[direction] }
        }
    }

    private func takeOver(_ token: RelayToken, _ failure: ConnectFailure? = nil) {
        fastPath?.detach(token).assumeIsolated().whenSuccess { detached in
            guard var detached else { return }
            detached.tunnel?.failure = failure
            self.openClient(detached)
        }
    }

    /// Continues a client of the fast path whose tunnel is not established.
    func takeOver(_ detached: DetachedConnection) {
        let tunnel = relayed.removeValue(forKey: detached.status.key)
        if let tunnel, detached.tunnel?.failure != nil {
            hostTraffic.change(tunnel.destination) { $0.connectionsFailed += 1 }
        }
        openClient(detached)
    }

    private func openClient(_ detached: DetachedConnection) {
        guard let request = detached.tunnel else { return resume(detached) }
        // The socket of a client without a handler is closed by its owner.
        if isClosed { return _ = slots.release() }
        let client = ForwardClient(self, passed: detached.proxiesPassed, request)
        forwardClients[ObjectIdentifier(client)] = client
        openChannel(detached.client.take(), .client, client) { self.forwardClientEnded(client, keepsSlot: false) }
    }
}
