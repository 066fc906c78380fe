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
        let treatment = forward?.rules.rule(for: tunnel.destination)?.treatment
        guard treatment == nil, linkDriver.conditions.connectionPolicy == .open else {
            return fastPath.passToProxy(tunnel.token)
        }
        relayed[tunnel.token] = RelayedDestination(destination: tunnel.destination)
        route(to: tunnel.destination, isLocal: tunnel.client.map(Proxy.isOnThisMachine) ?? false) { result in
            // The client may be gone, or may have left the fast path.
            guard self.relayed[tunnel.token] != nil else { return }
            switch result {
            case .failure(let failure): fastPath.passToProxy(tunnel.token, failure)
            case .success(let route): fastPath.dial(tunnel.token, .success(route.target.addresses))
            }
        }
    }

    /// Handles that the fast path has established a tunnel.
    func tunnelEstablished(_ token: RelayToken) {
        guard let destination = relayed[token]?.destination else { return }
        relayed[token]?.isEstablished = true
        hostTraffic.change(destination) { $0.connections += 1 }
    }

    /// Handles that the fast path has closed a connection of a client.
    func tunnelClosed(_ token: RelayToken, _ bytes: PerDirection<Int>) {
        updateAccepting()
        guard let tunnel = relayed.removeValue(forKey: token) else { return }
        hostTraffic.change(tunnel.destination) { row in
            if !tunnel.isEstablished { row.connectionsFailed += 1 }
            for direction in Direction.allCases { row.bytes[direction] += bytes[direction] }
        }
    }

    /// Continues a client of the fast path whose tunnel is not established.
    func takeOver(_ detached: DetachedConnection) {
        relayed[detached.status.token] = nil
        guard let request = detached.tunnel else { return resume(detached) }
        // The socket of a client without a handler is closed by its owner.
        if isClosed { return _ = slots.release() }
        let client = ForwardClient(self, passed: detached.proxiesPassed, request)
        forwardClients[ObjectIdentifier(client)] = client
        openChannel(detached.client.take(), .client, client) { self.forwardClientEnded(client, keepsSlot: false) }
    }

    /// Closes a client of the fast path whose tunnel is not established.
    func drop(_ detached: DetachedConnection) {
        tunnelClosed(detached.status.token, PerDirection(up: 0, down: 0))
        let wasFull = slots.release()
        updateAccepting()
        if wasFull { fastPath?.slotReleased() }
    }

    /// Counts a connection that could not be established.
    func countFailed(_ destination: Destination) {
        hostTraffic.change(destination) { $0.connectionsFailed += 1 }
    }
}
