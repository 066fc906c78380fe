#if os(Linux)
internal import CRelay
internal import LinkModel
package import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The requests of other threads, made by ``Relay/perform(_:)`` and ``Relay/submit(on:_:)``. A port must be open
/// where it is used.
extension RelayLoop {
    /// Opens a port for a proxy's connections. With a listening socket, the relay also accepts them.
    package func open(
        _ token: RelayToken, _ configuration: RelayPortConfiguration, acceptor: Relay, listener: OwnedSocket?
    ) {
        precondition(ports[token] == nil, "a relay port was opened twice")
        let port = RelayPort(configuration, token: token, acceptor: acceptor, listener: listener)
        ports[token] = port
        guard let listener = port.listener else { return }
        // Accepted sockets inherit TCP_NODELAY from the listening socket.
        Self.setNoDelay(listener)
        if !register(listener, CRELAY_EPOLLIN, token) {
            configuration.onAcceptPaused(IOError(errnoCode: errno, reason: "epoll_ctl"))
        }
    }

    /// Stops accepting, and reading from the port's connections, until ``detach(from:upTo:)`` or
    /// ``close(_:_:connectionsMax:)`` removes them. Does nothing on a frozen port.
    package func freeze(_ token: RelayToken) {
        let port = openPort(token)
        if port.isFrozen { return }
        if let listener = port.listener { stopListening(listener) }
        port.detachQueue = port.connections.sorted {
            (connections[$0]?.lastActiveRound ?? 0) < (connections[$1]?.lastActiveRound ?? 0)
        }
    }

    /// Detaches connections of a frozen port, the most recently active first; removes the port with the last of
    /// them.
    package func detach(from token: RelayToken, upTo count: Int) -> RelayDetachment {
        let port = openPort(token)
        precondition(port.isFrozen, "connections are detached from a port that is not frozen")
        var detachment = RelayDetachment()
        while detachment.connections.count < count, let connection = nextToDetach(port) {
            if let detached = detach(connection) { detachment.connections.append(detached) }
        }
        if port.detachQueue == [] { detachment.finalTraffic = remove(port) }
        return detachment
    }

    /// Freezes the port and closes or detaches up to `connectionsMax` connections; removes the port with the last
    /// of them.
    package func close(_ token: RelayToken, _ mode: RelayCloseMode, connectionsMax: Int) -> RelayDetachment {
        freeze(token)
        let port = openPort(token)
        var detachment = RelayDetachment()
        let now = NIODeadline.now()
        var count = 0
        while count < connectionsMax, let connection = nextToDetach(port) {
            count += 1
            if case .drain(let idleTimeMin) = mode, !connection.isIdle(for: idleTimeMin, at: now) {
                if let detached = detach(connection) { detachment.connections.append(detached) }
            } else {
                close(connection)
            }
        }
        if port.detachQueue == [] { detachment.finalTraffic = remove(port) }
        return detachment
    }

    /// Detaches one connection; `nil` if it is gone, or is aborted because a peer is gone.
    package func detach(_ token: RelayToken) -> DetachedConnection? {
        connection(token).flatMap { detach($0) }
    }

    /// Aborts one connection (RST to both sockets); `false` if it is gone.
    package func abort(_ token: RelayToken) -> Bool {
        guard let connection = connection(token) else { return false }
        close(connection, resetting: [.client, .server])
        return true
    }

    /// Returns the tokens of a port's connections, without clients that have not named their destinations.
    package func connectionTokens(of token: RelayToken) -> [RelayToken] {
        openPort(token).connections.compactMap { connections[$0] }.filter { !$0.isNegotiating }.map(\.token)
    }

    /// Sets the random seed of later connections; the accepting relay restarts their numbers at 0.
    package func reseed(_ token: RelayToken, _ seed: UInt64) {
        let port = openPort(token)
        if port.listener != nil { port.configuration.numbers.restart() }
        port.seed = seed
    }

    /// Returns a port's counters.
    package func traffic(of token: RelayToken) -> RelayedTraffic { openPort(token).traffic(connections) }

    /// Returns the status of each of a port's connections, without clients that have not named their destinations.
    package func statuses(of token: RelayToken) -> [RelayedConnectionStatus] {
        openPort(token).connections.compactMap { connections[$0] }.filter { !$0.isNegotiating }.map(\.status)
    }

    /// Accepts waiting clients after a slot was released. Does nothing if the port is closed.
    package func slotReleased(_ token: RelayToken) {
        if let port = ports[token], port.isWaitingForSlot { accept(port) }
    }

    /// Dials the addresses that a connection has requested. Does nothing if it is gone or its port is frozen.
    package func dial(_ token: RelayToken, _ addresses: Result<[SocketAddress], any Error>) {
        guard let connection = activeConnection(token), connection.isDialling else { return }
        switch addresses {
        case .success(let addresses):
            if connection.tunnel != nil {
                let port = connection.port
                connection.connectDeadline = .now() + port.configuration.connectTimeout
                (connection.number, connection.seed) = (port.configuration.numbers.next(), port.seed)
            }
            dial(connection, addresses[...])
        case .failure(let error): dialFailed(connection, error)
        }
        startDialTimers()
    }

    private func openPort(_ token: RelayToken) -> RelayPort {
        guard let port = ports[token] else { preconditionFailure("a relay port is used that is not open") }
        return port
    }

    private func stopListening(_ listener: CInt) {
        // The listening socket has another descriptor elsewhere, so closing this one does not remove it from epoll.
        _ = crelay_epoll_remove(epoll, listener)
        SystemSocket.close(listener)
    }

    /// Takes a connection from the detach queue, skipping indices whose connection has closed since the freeze.
    private func nextToDetach(_ port: RelayPort) -> RelayedConnection? {
        while let index = port.detachQueue?.popLast() {
            if port.connections.contains(index), let connection = connections[index] { return connection }
        }
        return nil
    }

    private func remove(_ port: RelayPort) -> RelayedTraffic {
        precondition(port.connections.isEmpty, "a relay port was removed before its connections")
        ports[port.token] = nil
        return port.traffic
    }
}
#endif
