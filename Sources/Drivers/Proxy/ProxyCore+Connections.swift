internal import ForwardProxy
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Wire

/// Accepting clients, dialling the upstream, and the warnings about both.
extension ProxyCore {
    /// The error that closes the channel of a filler connection.
    private struct FillerConnectionError: Error {}

    /// The error that closes the channel of a connection that has passed through this proxy before.
    private struct LoopError: Error {}

    /// Creates the session of an accepted connection. An error closes the channel.
    func accept(_ channel: any Channel) throws {
        if listener?.isFiller(channel) == true { throw FillerConnectionError() }
        let passed = LoopDetector.shared.passed(from: channel.remoteAddress, to: channel.localAddress)
        if passed.contains(proxyNumber) {
            loopDetected()
            throw LoopError()
        }
        try setSocketOptions(of: channel, .client)
        if forward != nil {
            try acceptForward(channel, passed: passed)
        } else {
            let session = Session(channel, on: linkDriver, passed: passed) { [weak self] session in
                self?.dial(for: session)
            }
            session.onEnd = { [weak self, unowned session] in self?.sessionEnded(session) }
            try channel.pipeline.syncOperations.addHandler(SocketHandler(.client, of: session))
            sessions[ObjectIdentifier(session)] = session
        }
        slots.acquire()
        connectionsAccepted += 1
        updateReadSizes()
        if slots.isFull {
            updateAccepting()
            warnThatConnectionsWait()
        }
    }

    func sessionEnded(_ session: Session) {
        session.driver.ended(session)
        countEnded(session)
        let removed = sessions.removeValue(forKey: ObjectIdentifier(session))
        precondition(removed != nil, "a session ended twice")
        updateReadSizes()
        let wasFull = session.holdsSlot && slots.release()
        updateAccepting()
        if wasFull { fastPath?.slotReleased() }
        if sessions.isEmpty { allSessionsEnded?.succeed() }
    }

    /// Sets the options of a socket. They are not changed later.
    func setSocketOptions(of channel: any Channel, _ side: Side) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.allowRemoteHalfClosure, value: true)
        // NIO sets TCP_NODELAY on sockets that it connects.
        if side == .client { try options.setOption(.tcpOption(.tcp_nodelay), value: 1) }
        let isConditioned = !linkDriver.conditions.isClear
        try options.setOption(
            .recvAllocator,
            value: ReadBufferAllocator(
                readSizeLimit, maximum: isConditioned ? Self.conditionedReadBytesMax : Self.readBytesMax))
        try options.setOption(.maxMessagesPerRead, value: isConditioned ? UInt(1) : Self.readsPerCycle)
        if isConditioned {
            try options.setOption(.socketOption(.so_rcvbuf), value: Self.conditionedSocketBytes)
            try options.setOption(.socketOption(.so_sndbuf), value: Self.conditionedSocketBytes)
        }
    }

    /// Limits reads in proportion to a connection's share of the buffers, since a pause takes effect only after a read
    /// cycle.
    func updateReadSizes() {
        let share = configuration.buffers.bytesMax(connections: sessions.count)
        let limit = max(Self.readBytesMin, share / Int(Self.readsPerCycle))
        readSizeLimit.value = linkDriver.tracksExchanges ? min(limit, Self.trackedReadBytesMax) : limit
    }

    // MARK: Dialling

    func dial(for session: Session) {
        addGate(to: session)
        let proxyNumber = proxyNumber
        session.recordDial = { [unowned session] port in
            LoopDetector.shared.recordDial(from: port, passed: session.passed, by: proxyNumber)
        }
        let start = NIODeadline.now()
        if let target = session.target {
            if target.addresses.isEmpty { return _ = session.upstreamFailed(.refusedByRule) }
            return dial(target.addresses, since: start, for: session)
        }
        guard configuration.resolvesPerConnection else {
            return dial(upstream.current(on: eventLoop), since: start, for: session)
        }
        upstream.fresh(within: configuration.connectTimeout, on: eventLoop).whenComplete { result in
            switch result {
            case .success(let addresses): self.dial(addresses, since: start, for: session)
            case .failure(let error): self.dialFailed(error, for: session)
            }
        }
    }

    private func dial(_ addresses: [SocketAddress], since start: NIODeadline, for session: Session) {
        // A dial to the proxy's own address would loop until no file descriptor is left.
        let others = addresses.filter { !isOwnAddress($0) }
        if others.isEmpty, !addresses.isEmpty { loopDetected() }
        if others.isEmpty || !session.needsUpstream {
            _ = session.upstreamFailed()
            return
        }
        let dial = UpstreamDial(
            others, within: configuration.connectTimeout, since: start, on: eventLoop,
            connect: { address, timeout in self.connect(session, to: address, within: timeout) },
            isNeeded: { session.needsUpstream },
            onFailure: { error in self.dialFailed(error, for: session) })
        dial.start()
    }

    private func connect(
        _ session: Session, to address: SocketAddress, within timeout: TimeAmount
    ) -> EventLoopFuture<any Channel> {
        let bound = NIOLoopBound((self, session), eventLoop: eventLoop)
        let isTLS = configuration.upstreamTLS != nil
        var bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(timeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let (core, session) = bound.value
                    try core.setSocketOptions(of: channel, .server)
                    core.configuration.keepAlive.apply(to: channel)
                    let tls = try core.addTLS(to: channel, of: session, within: timeout)
                    try channel.pipeline.syncOperations.addHandler(SocketHandler(.server, of: session, tls: tls))
                }
            }
        // Only a dial that stays on this machine, or that the firewall redirects, can reach a proxy of this process.
        let mayReturn =
            forward?.isTransparent == true
            || (Proxy.isOnThisMachine(address) && LoopDetector.shared.mustRecord(address.port))
        if mayReturn, let any = address.wildcard {
            bootstrap = bootstrap.bind(to: any)
        }
        let connected = bootstrap.connect(to: address)
        return isTLS ? whenTLSIsEstablished(on: connected, of: session) : connected
    }

    private func dialFailed(_ error: any Error, for session: Session) {
        if let failure = session.tlsFailure {
            tlsFailed(failure, for: session)
        } else if session.upstreamFailed(ConnectFailure(dialError: error)) {
            dialFailed(error)
        }
    }

    /// Records a connection whose dials have failed.
    func dialFailed(_ error: any Error) {
        if forward != nil {
            // The client learns the reason.
            dialsFailed += 1
            return
        }
        if upstream.immediate?.allSatisfy(isOwnAddress) == true { return loopDetected() }
        dialsFailed += 1
        warnThatDialFailed(error)
    }

    /// Records a connection that has looped back to this proxy.
    func loopDetected() {
        dialsFailed += 1
        guard !isStopping, warningIsDue(&lastLoopWarning) else { return }
        if forward != nil {
            return logger.warning(
                """
                a connection of this proxy came back to it; connection reset; if the firewall redirects it, exclude the \
                proxy's user from the rule ('meta skuid')
                """)
        }
        logger.warning(
            "upstream \(configuration.upstreamText) loops back to this proxy; connection reset; change the proxy's upstream"
        )
    }

    /// Returns whether a dial to `address` reaches this proxy.
    func isOwnAddress(_ address: SocketAddress) -> Bool {
        listener?.address.map { Proxy.reaches($0, from: address) } ?? false
    }

    // MARK: Warnings

    /// Warns that new connections wait: because of an error of `accept()`, or because no slot is free (`nil`).
    func acceptPaused(_ error: IOError?) {
        guard let error else { return warnThatConnectionsWait() }
        if warningIsDue(&lastFullWarning) {
            logger.warning("cannot accept a connection: \(SystemErrorDescription(error)); retrying")
        }
    }

    private func warnThatConnectionsWait() {
        guard warningIsDue(&lastFullWarning) else { return }
        if slots.availability == .processLimit {
            let count = FileBudget.shared.connectionsMax
            return logger.warning(
                "\(count) connections are open in all proxies (the limit); new ones wait; raise 'ulimit -n'")
        }
        logger.warning(
            "\(configuration.connectionsMax) connections are open (limit: --max-connections); new ones wait")
    }

    private func warnThatDialFailed(_ error: any Error) {
        guard !isStopping, warningIsDue(&lastDialWarning) else { return }
        let cause = SystemErrorDescription(error)
        let advice =
            (error as? TLSFailure)?.text.remedy
            ?? (SystemErrorDescription.isFileLimit(error)
                ? "raise 'ulimit -n'" : "start it, or change the proxy's upstream")
        let upstream = configuration.upstreamText
        logger.warning("cannot connect to the upstream \(upstream): \(cause); \(advice) (\(dialsFailed) failed so far)")
    }

    /// Counts a connection with TLS that faults of requests would apply to, and warns.
    func tlsSeen(_ hello: ClientHello, of session: Session?) {
        guard linkDriver.link.hasRequestFaultRules else { return }
        if let session, interceptedDestination(hello, of: session) != nil { return }
        opaqueTLS.count(hello.serverName)
        guard !isStopping, warningIsDue(&lastTLSWarning), let text = opaqueTLS.text else { return }
        logger.warning(
            """
            \(Self.printable(text)); add --intercept \(Self.printable(hello.serverName ?? "HOST")), or, with \
            --upstream https://HOST, clients speak HTTP to the proxy
            """)
    }

    /// Returns whether the last warning of a kind was at least a second ago; if so, records a warning now.
    func warningIsDue(_ last: inout NIODeadline?) -> Bool {
        let now = NIODeadline.now()
        if let last, now - last < .seconds(1) { return false }
        last = now
        return true
    }
}
