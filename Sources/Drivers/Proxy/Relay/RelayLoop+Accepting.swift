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
            guard let proxiesPassed = configuration.admit(descriptor) else { return client.reset() }
            configuration.slots.acquire()
            port.traffic.accepted += 1
            // The accepting relay dials even if another relay forwards the connection, so that upstream connections
            // open in accept order.
            let accepted = AcceptedConnection(
                client: client, number: configuration.numbers.next(), seed: port.seed, startedAt: .now(),
                proxiesPassed: proxiesPassed,
                dial: configuration.addresses.map {
                    Self.startDial($0[...], proxiesPassed: proxiesPassed, configuration)
                })
            let assigned = relay.assignConnection(allowOthers: accepted.dial != nil)
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

        /// Takes over an established connection that the link has carried, on this relay or on one with fewer connections.
        package func adopt(_ accepted: AcceptedConnection, on token: RelayToken) {
            // The proxy hands over before it freezes the port.
            guard let port = ports[token] else {
                preconditionFailure("a connection was handed to a relay where its port is not open")
            }
            let assigned = relay.assignConnection(allowOthers: true)
            if assigned === relay { return add(accepted, port) }
            assigned.perform { loop in
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
                if accepted.isEstablished { connection.isDialling = false }
            } else {
                port.configuration.resolveUpstream(token)
            }
            // The dial may have failed already.
            guard connections[index] === connection else { return }
            if !register(connection.sockets.up.descriptor, Self.socketEvents, token) { close(connection) }
        }
    }
#endif
