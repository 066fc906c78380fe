#if os(Linux)
internal import CRelay
internal import HeapModule
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension RelayLoop {
    /// The maximum number of clients of one port that are accepted in one turn.
    private static let acceptsPerTurn = 16
    /// The time for which accepting pauses after it failed for lack of a resource.
    private static let acceptPause = TimeAmount.milliseconds(100)

    /// Accepts clients while there are slots.
    func accept(_ port: RelayPort) {
        guard let listener = port.listener, !port.isFrozen, !port.isAcceptPaused else { return }
        port.isWaitingForSlot = false
        for _ in 0..<Self.acceptsPerTurn {
            let availability = port.configuration.slots.availability
            if availability != .available {
                port.isWaitingForSlot = true
                if availability == .processLimit { pauseAccepting(port) }
                return port.configuration.onAcceptPaused(nil)
            }
            let client = crelay_accept(listener)
            if client >= 0 {
                admit(client, port)
                continue
            }
            switch errno {
            case EAGAIN: return
            // This client is gone; the backlog may contain others.
            case ECONNABORTED, EINTR, EPROTO: continue
            // EMFILE, ENFILE, ENOBUFS, ENOMEM and others.
            default:
                port.configuration.onAcceptPaused(IOError(errnoCode: errno, reason: "accept"))
                return pauseAccepting(port)
            }
        }
        yielded.append(port.token)
    }

    private func pauseAccepting(_ port: RelayPort) {
        port.isAcceptPaused = true
        timers.insert(Timer(deadline: .now() + Self.acceptPause, token: port.token))
    }

    private func admit(_ descriptor: CInt, _ port: RelayPort) {
        let client = OwnedSocket(descriptor)
        let configuration = port.configuration
        guard let admission = configuration.admit(descriptor) else { return client.reset() }
        configuration.slots.acquire()
        port.traffic.accepted += 1
        // The accepting relay dials even if another relay forwards the connection, so that upstream connections
        // open in accept order.
        let accepted = AcceptedConnection(
            client: client, number: admission.tunnel == nil ? configuration.numbers.next() : -1, seed: port.seed,
            startedAt: .now(), proxiesPassed: admission.proxiesPassed,
            dial: configuration.addresses.map {
                Self.startDial($0[...], proxiesPassed: admission.proxiesPassed, configuration)
            },
            tunnel: admission.tunnel)
        let assigned = relay.assignConnection(allowOthers: accepted.dial != nil || accepted.tunnel != nil)
        if assigned === relay { return add(accepted, port) }
        let token = port.token
        assigned.perform { loop in
            // The port is open here: the accepting relay opens it after the other relays and closes it before them.
            guard let port = loop.ports[token] else {
                preconditionFailure("a connection was handed to a relay where its port is not open")
            }
            loop.add(accepted, port)
        }
    }

    /// Starts to forward a connection, or to wait for its upstream.
    private func add(_ accepted: AcceptedConnection, _ port: RelayPort) {
        let index = freeIndices.popLast() ?? connections.count
        if index == connections.count { connections.append(nil) }
        generation &+= 1
        let token = RelayToken(.client, relay: relay.index, index: index, generation: generation)
        let connection = RelayedConnection(accepted, token: token, port: port)
        connections[index] = connection
        port.connections.insert(index)
        if let dial = accepted.dial {
            dialStarted(connection, dial)
        } else if connection.tunnel != nil {
            startNegotiating(connection)
        } else {
            port.configuration.resolveUpstream(token)
        }
        // The dial may have failed already.
        guard connections[index] === connection else { return }
        if !register(connection.sockets.up.descriptor, Self.socketEvents, token) { close(connection) }
    }
}
#endif
