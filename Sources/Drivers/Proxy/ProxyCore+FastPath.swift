internal import HTTPSockets
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix

/// The fast path: the relays carry connections while no conditions apply. Before a change the connections move to the
/// link.
extension ProxyCore {
    /// Creates the fast path; returns `nil` if the system has none or the link is observed.
    func makeFastPath() -> FastPath? {
        guard configuration.allowsFastPath, configuration.isUnobserved, configuration.protocols.contains(.tcp) else {
            return nil
        }
        return FastPath(on: eventLoop, slots: slots) { [unowned self] in
            let bound = NIOLoopBound(self, eventLoop: eventLoop)
            let eventLoop = eventLoop
            let tunnels = TunnelCallbacks(
                resolve: { tunnel in eventLoop.execute { bound.value.resolve(tunnel) } },
                onEstablished: { token in eventLoop.execute { bound.value.tunnelEstablished(token) } },
                takeOver: { client in eventLoop.execute { bound.value.takeOver(client) } })
            let tunnelClosed: @Sendable (RelayToken, PerDirection<Int>) -> Void = { token, bytes in
                eventLoop.execute { bound.value.tunnelClosed(token, bytes) }
            }
            return RelayPortConfiguration(
                configuration, proxy: proxyNumber,
                addresses: forward == nil ? upstream.immediate.map { $0.filter { !isOwnAddress($0) } } : nil,
                slots: slots, numbers: numbers, seed: linkDriver.seed,
                admission: admission, tunnels: admission == nil ? nil : tunnels,
                resolveUpstream: { connection in eventLoop.execute { bound.value.resolveUpstream(for: connection) } },
                onLoop: { eventLoop.execute { bound.value.loopDetected() } },
                onDialFailed: { error in eventLoop.execute { bound.value.dialFailed(error) } },
                onAcceptPaused: { error in eventLoop.execute { bound.value.acceptPaused(error) } },
                onClosed: forward == nil ? nil : tunnelClosed)
        }
    }

    /// Opens the fast path for new connections if no conditions apply.
    func openFastPath() {
        guard let fastPath, let listener, !fastPath.isDraining, !isStopping, linkDriver.isPassThrough else {
            return
        }
        updateAdmission()
        fastPath.open(listener)
    }

    /// Moves the connections of the frozen fast path to the link, a limited number per turn.
    func moveConnectionsToLink() {
        guard let fastPath, fastPath.isDraining, !isMovingConnections else { return }
        isMovingConnections = true
        fastPath.detach(upTo: TurnBudget.connectionsMax).whenSuccess { connections in
            self.isMovingConnections = false
            // The sockets of connections without a session are closed by their owners.
            if self.isClosed { return connections.forEach { _ in self.slots.release() } }
            for connection in connections { self.resume(connection) }
            self.updateReadSizes()
            self.updateAccepting()
            if fastPath.isDraining {
                self.linkDriver.runLater { _ in self.moveConnectionsToLink() }
            } else {
                self.openFastPath()
            }
        }
    }

    /// Continues a connection of the fast path on the link.
    func resume(_ detached: DetachedConnection) {
        if detached.tunnel != nil { return takeOver(detached) }
        let session = Session(resuming: detached, on: linkDriver) { [weak self] session in self?.dial(for: session) }
        session.relayedDestination = relayed.removeValue(forKey: detached.status.token)?.destination
        session.onEnd = { [weak self, unowned session] in self?.sessionEnded(session) }
        sessions[ObjectIdentifier(session)] = session
        session.resume()
        openChannels(of: session)
    }

    private func openChannels(of session: Session) {
        session.attach { handler, side, descriptor in
            openChannel(descriptor, side, handler) {
                if let flow = session.flow { _ = self.linkDriver.closeConnection(flow, abortively: true) }
                session.close(abortively: true)
            }
        }
    }

    /// Opens the channel of a socket from the fast path.
    func openChannel(
        _ descriptor: CInt, _ side: Side, _ handler: any ChannelHandler, onFailure: @escaping () -> Void
    ) {
        let bound = NIOLoopBound((self, handler), eventLoop: eventLoop)
        ClientBootstrap(group: eventLoop)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let (core, handler) = bound.value
                    try core.setSocketOptions(of: channel, side)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .withConnectedSocket(descriptor).assumeIsolated().whenFailure { error in
                let cause = SystemErrorDescription(error)
                self.logger.error("cannot move a connection off the fast path: \(cause); connection reset")
                onFailure()
            }
    }

    /// Passes the upstream's addresses to a relay.
    private func resolveUpstream(for connection: RelayToken) {
        guard configuration.resolvesPerConnection else {
            fastPath?.dial(connection, .success(upstream.current(on: eventLoop).filter { !isOwnAddress($0) }))
            return
        }
        upstream.fresh(within: configuration.connectTimeout, on: eventLoop).whenComplete { result in
            self.fastPath?.dial(connection, result.map { $0.filter { !self.isOwnAddress($0) } })
        }
    }

    // MARK: Connections of either path

    /// Returns the open connections in accept order.
    func connections() -> EventLoopFuture<[ConnectionStatus]> {
        let relayed = fastPath?.connections() ?? eventLoop.makeSucceededFuture([])
        // Connections that are moving to the link have reached it when the relays' reply arrives.
        return relayed.assumeIsolated().map { relayed in
            (self.linkDriver.connections() + relayed + (self.datagramPort?.connections ?? [])).sorted {
                $0.number < $1.number
            }
        }.nonisolated()
    }

    /// Closes one connection. Returns `false` if it is closed already.
    func closeConnection(_ id: ConnectionID, abortively: Bool) -> EventLoopFuture<Bool> {
        switch id.carrier {
        case .link(let flow, let number):
            let driver = linkDriver.links.first { $0.number == number }
            return eventLoop.makeSucceededFuture(driver?.closeConnection(flow, abortively: abortively) ?? false)
        case .datagrams(let flow): return eventLoop.makeSucceededFuture(datagramPort?.end(flow) ?? false)
        case .relay(let token):
            guard let fastPath else { return eventLoop.makeSucceededFuture(false) }
            if abortively {
                return fastPath.abort(token).assumeIsolated().map { wasReset in
                    self.updateAccepting()
                    return wasReset || self.closeMovedConnection(id, abortively: true)
                }.nonisolated()
            }
            return fastPath.detach(token).assumeIsolated().map { detached in
                if let detached {
                    if detached.tunnel != nil {
                        self.drop(detached)
                        return true
                    }
                    self.resume(detached)
                }
                return self.closeMovedConnection(id, abortively: false)
            }.nonisolated()
        }
    }

    /// Closes a connection that has moved from the fast path to the link.
    private func closeMovedConnection(_ id: ConnectionID, abortively: Bool) -> Bool {
        let flow = sessions.values.first { $0.relayID == id }?.flow
        return flow.map { linkDriver.closeConnection($0, abortively: abortively) } ?? false
    }

    /// Aborts all connections.
    func abortConnections() -> EventLoopFuture<Void> {
        linkDriver.abortConnections()
        guard let fastPath else { return withTimeout(TurnBudget.waitMax, linkDriver.whenCaughtUp()) }
        let areReset = fastPath.abortAll().assumeIsolated().flatMap {
            // Connections that were moving to the link have reached it.
            self.linkDriver.abortConnections()
            self.updateAccepting()
            return self.linkDriver.whenCaughtUp()
        }.nonisolated()
        return withTimeout(TurnBudget.waitMax, areReset)
    }
}
