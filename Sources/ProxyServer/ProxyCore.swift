internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import SpliceRelay
internal import SystemSockets

/// A proxy's state on its event loop: the listener, the sessions, the link loop.
final class ProxyCore {
    let linkLoop: LinkLoop
    private let configuration: ProxyConfiguration
    private let eventLoop: any EventLoop
    private let logger: Logger
    private var listener: Listener?
    private var sessions: [ObjectIdentifier: Session] = [:]
    private let places: ConnectionSlots
    private var straightPath: FastPath?
    private var isTakingArrivals = false
    private var isAskingAgain = false
    private var accepted = 0
    private var dialsFailed = 0
    private var isStopping = false
    private var isClosed = false
    private var allClosed: EventLoopPromise<Void>?
    private var stopped: EventLoopFuture<Bool>?
    private let upstream: UpstreamAddresses
    private let numbers: ConnectionNumbers
    /// Names the proxy among those of the process, to find connections that come back to it.
    private let number = LoopDetector.shared.newProxy()
    private var listeningPort: Int?
    /// When a line was last told, so that a storm of clients makes one a second.
    private var lastDialLine: NIODeadline?
    private var lastLoopLine: NIODeadline?
    private var lastFullLine: NIODeadline?

    /// Bytes of one read; grows from 4 KiB with what arrives.
    static let readBytesMax = 256 << 10
    private let readCeiling = ReadSizes.Ceiling(ProxyCore.readBytesMax)
    /// Reads of one socket before others have their turn. A pause takes effect after them, so they bound by how much a
    /// connection may exceed its share.
    static let readsPerCycle: UInt = 4
    /// The same while conditions are in force at a connection's birth, with one read a cycle.
    static let conditionedReadBytesMax = 16 << 10
    /// Kernel buffers of a connection made while conditions are in force: small, so that back-pressure and memory are
    /// the model's and not the kernel's.
    static let conditionedSocketBytes = 128 << 10

    init(
        _ configuration: ProxyConfiguration, upstream: UpstreamAddresses, on eventLoop: any EventLoop, logger: Logger
    ) {
        self.configuration = configuration
        self.upstream = upstream
        self.eventLoop = eventLoop
        self.logger = logger
        places = ConnectionSlots(max: configuration.connectionsMax)
        numbers = ConnectionNumbers()
        linkLoop = LinkLoop(configuration, numbers: numbers, on: eventLoop)
        guard configuration.mayGoStraight, configuration.isUnwatched else { return }
        straightPath = FastPath(on: eventLoop) { [unowned self] in
            let bound = NIOLoopBound(self, eventLoop: eventLoop)
            let eventLoop = eventLoop
            return RelayPortConfiguration(
                configuration, proxy: number, addresses: upstream.immediate.map { $0.filter { !isOwn($0) } },
                slots: places, numbers: numbers, seed: linkLoop.seed,
                resolveUpstream: { connection in eventLoop.execute { bound.value.lookUp(connection) } },
                onLoop: { eventLoop.execute { bound.value.recordLoop() } },
                onDialFailed: { error in eventLoop.execute { bound.value.dialHasFailed(error) } },
                onAcceptPaused: { error in eventLoop.execute { bound.value.clientsWait(error) } })
        }
    }

    /// Binds the listening socket; gives its port.
    ///
    /// - Parameter onFailure: See ``Listener/onFailure``.
    func listen(on address: SocketAddress, onFailure: @escaping (String?) -> Void) -> EventLoopFuture<Int> {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        let bootstrap = ServerBootstrap(group: eventLoop, childGroup: eventLoop)
            .serverChannelOption(.backlog, value: Listener.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // One accept at a time, so that the limit on connections is met exactly.
            .serverChannelOption(.maxMessagesPerRead, value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    bound.value.configuration.keepAlive.apply(to: channel)
                    let failures = AcceptFailures { [weak core = bound.value] in core?.clientsWait($0) }
                    try channel.pipeline.syncOperations.addHandler(failures)
                }
            }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.accept(channel) }
            }
        let listener = Listener(
            address, bootstrap, configuration.silence ?? .best, on: eventLoop, logger: logger)
        self.listener = listener
        listener.onFailure = onFailure
        linkLoop.onReachability = { [weak listener] in _ = listener?.set($0) }
        listener.onReady = { [weak self] in self?.goStraight() }
        listener.onLoss = { [weak self] in
            // The relay has the same socket. Nothing is in force because of it.
            self?.change(isImpairing: true) { _ in }.whenFailure { _ in }
        }
        do {
            let port = try listener.open()
            return listener.set(.open).assumeIsolated()
                .map { _ in port > 0 ? port : listener.port ?? 0 }
                .flatMap { port in
                    self.listeningPort = port
                    LoopDetector.shared.recordListening(port)
                    return listener.set(self.linkLoop.currentReachability).assumeIsolated().map { _ in
                        self.goStraight()
                        return port
                    }.nonisolated()
                }
                .nonisolated()
        } catch {
            return eventLoop.makeFailedFuture(error)
        }
    }

    /// Listens no more. The listener's channels know the proxy, which must not know the listener for ever.
    func forgetListener() {
        recordPortClosed()
        listener?.close()
        listener = nil
    }

    private func recordPortClosed() {
        if let listeningPort { LoopDetector.shared.recordClosed(listeningPort) }
        listeningPort = nil
    }

    /// Says when the listening socket treats clients as the link wants them treated.
    func listenerIsSettled() -> EventLoopFuture<Void> {
        guard let listener, !isStopping else { return eventLoop.makeSucceededVoidFuture() }
        return listener.set(linkLoop.currentReachability)
    }

    func status() -> EventLoopFuture<ProxyStatus> {
        guard let straightPath else { return eventLoop.makeSucceededFuture(status(with: RelayedTraffic())) }
        return straightPath.traffic().map { self.status(with: $0) }.nonisolated()
    }

    private func status(with straight: RelayedTraffic) -> ProxyStatus {
        var link = linkLoop.status()
        link.add(straight)
        return ProxyStatus(
            connectionsOpen: places.count, connectionsAccepted: accepted + straight.accepted, isFull: places.isFull,
            dialsFailed: dialsFailed, silence: listener?.silence, link: link)
    }

    // MARK: The straight path

    /// Lets the relay have new connections, if nothing is in force.
    private func goStraight() {
        guard let straightPath, let listener, !straightPath.isDraining, !isStopping, linkLoop.isTransparent else {
            return
        }
        straightPath.open(listener)
    }

    /// Brings back the connections that the relay reads no more.
    private func takeArrivals() {
        guard let straightPath, straightPath.isDraining, !isTakingArrivals else { return }
        isTakingArrivals = true
        straightPath.detach(upTo: TurnBudget.connectionsMax).whenSuccess { connections in
            self.isTakingArrivals = false
            // Without an owner their sockets close by themselves.
            if self.isClosed { return connections.forEach { _ in self.places.release() } }
            for past in connections { self.goOn(from: past) }
            self.limitReads()
            self.letIn()
            if straightPath.isDraining {
                self.linkLoop.runLater { _ in self.takeArrivals() }
            } else {
                self.goStraight()
            }
        }
    }

    /// Goes on with a connection that the relay has carried.
    private func goOn(from past: DetachedConnection) {
        let session = Session(goingOnFrom: past, on: linkLoop) { [weak self] session in self?.dial(for: session) }
        session.onEnd = { [weak self, unowned session] in self?.forget(session) }
        sessions[ObjectIdentifier(session)] = session
        session.goOn()
        attach(session)
    }

    private func attach(_ session: Session) {
        session.attach { end, side, descriptor in
            let bound = NIOLoopBound((self, end), eventLoop: eventLoop)
            ClientBootstrap(group: eventLoop)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let (core, end) = bound.value
                        try core.prepare(channel, side)
                        try channel.pipeline.syncOperations.addHandler(end)
                    }
                }
                .withConnectedSocket(descriptor).assumeIsolated().whenFailure { error in
                    self.logger.error("a connection is lost on its way to the link: \(SystemReason.of(error))")
                    if let flow = session.flow { _ = self.linkLoop.cut(flow, byReset: true) }
                    session.close()
                }
        }
    }

    /// Changes something of the link; new connections too are treated accordingly when this is done.
    ///
    /// - Parameter isImpairing: Whether something may be in force afterwards that was not.
    func change(isImpairing: Bool, _ body: @escaping (LinkLoop) -> Void) -> EventLoopFuture<Void> {
        let isReady = isImpairing ? straightPath?.freeze() : nil
        return (isReady ?? eventLoop.makeSucceededVoidFuture()).assumeIsolated().flatMap {
            // It may have been opened again by a change that had been waiting longer.
            if isImpairing && self.straightPath?.isOpen == true { return self.change(isImpairing: true, body) }
            self.letIn()
            body(self.linkLoop)
            // Connections accepted before a policy that accepts none are aborted; the others come back to the link.
            let isCut =
                (self.linkLoop.conditions.connectionPolicy == .open ? nil : self.straightPath?.resetAll())
                ?? self.eventLoop.makeSucceededVoidFuture()
            isCut.assumeIsolated().whenComplete { _ in self.takeArrivals() }
            let isCarriedOut = self.atMost(TurnBudget.waitMax, isCut.and(self.linkLoop.whenCaughtUp()).map { _ in })
            return self.listenerIsSettled().and(isCarriedOut).assumeIsolated().map { _ in
                self.letIn()
                self.goStraight()
            }.nonisolated()
        }.nonisolated()
    }

    /// Aborts every connection.
    func reset() -> EventLoopFuture<Void> {
        linkLoop.reset()
        guard let straightPath else { return atMost(TurnBudget.waitMax, linkLoop.whenCaughtUp()) }
        let isReset = straightPath.abortAll().assumeIsolated().flatMap {
            // Those that were on their way from the one to the other are here by now.
            self.linkLoop.reset()
            self.letIn()
            return self.linkLoop.whenCaughtUp()
        }.nonisolated()
        return atMost(TurnBudget.waitMax, isReset)
    }

    /// Succeeds when `future` completes, and after `time` at the latest.
    private func atMost(_ time: TimeAmount, _ future: EventLoopFuture<Void>) -> EventLoopFuture<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        let timer = eventLoop.assumeIsolated().scheduleTask(in: time) { promise.succeed() }
        future.assumeIsolated().whenComplete { _ in
            timer.cancel()
            promise.succeed()
        }
        return promise.futureResult
    }

    /// Accepts clients, or lets them wait, as there are places.
    private func letIn() {
        if isStopping { return }
        let room = places.availability
        listener?.setAccepting(room == .available)
        guard room == .processLimit, !isAskingAgain else { return }
        isAskingAgain = true
        eventLoop.assumeIsolated().scheduleTask(in: Self.placeCheckInterval) {
            self.isAskingAgain = false
            self.letIn()
        }
    }

    /// How often a proxy that waits for files of other proxies looks whether there are some.
    private static let placeCheckInterval = TimeAmount.milliseconds(100)

    /// Draws from another seed; the next connection is number 0.
    func reseed(_ seed: UInt64) -> EventLoopFuture<Void> {
        linkLoop.reseed(seed)
        if let straightPath, straightPath.isOpen {
            // Where connections begin, so that none has the one's number and the other's seed.
            return straightPath.reseed(seed)
        }
        // Nor while connections are on their way back: until it is frozen a relay may still let somebody in.
        let isFrozen = straightPath?.freeze() ?? eventLoop.makeSucceededVoidFuture()
        return isFrozen.assumeIsolated().map { self.numbers.restart() }.nonisolated()
    }

    /// The connections there are.
    func connections() -> EventLoopFuture<[ConnectionStatus]> {
        guard let straightPath else { return eventLoop.makeSucceededFuture(linkLoop.connections()) }
        // Those that come back meanwhile are on the link by the time the others are known.
        return straightPath.connections().assumeIsolated().map { straight in
            (self.linkLoop.connections() + straight).sorted { $0.number < $1.number }
        }.nonisolated()
    }

    /// Cuts one connection; `false` if it is no more.
    func cut(_ id: ConnectionID, byReset: Bool) -> EventLoopFuture<Bool> {
        switch id.place {
        case .link(let flow): return eventLoop.makeSucceededFuture(linkLoop.cut(flow, byReset: byReset))
        case .relay(let token):
            guard let straightPath else { return eventLoop.makeSucceededFuture(false) }
            if byReset {
                return straightPath.abort(token).assumeIsolated().map { isCut in
                    self.letIn()
                    return isCut || self.cutOnLink(id, byReset: true)
                }.nonisolated()
            }
            return straightPath.detach(token).assumeIsolated().map { past in
                if let past { self.goOn(from: past) }
                return self.cutOnLink(id, byReset: false)
            }.nonisolated()
        }
    }

    /// Cuts a connection that has come from the relay.
    private func cutOnLink(_ id: ConnectionID, byReset: Bool) -> Bool {
        let flow = sessions.values.first { $0.formerID == id }?.flow
        return flow.map { linkLoop.cut($0, byReset: byReset) } ?? false
    }

    /// Where a connection of the relay goes.
    private func lookUp(_ connection: RelayToken) {
        guard configuration.resolvesEachTime else {
            straightPath?.dial(connection, .success(upstream.current(on: eventLoop).filter { !isOwn($0) }))
            return
        }
        upstream.fresh(within: configuration.connectTimeout, on: eventLoop).whenComplete { result in
            self.straightPath?.dial(connection, result.map { $0.filter { !self.isOwn($0) } })
        }
    }

    private func clientsWait(_ error: IOError?) {
        guard let error else { return tellFull() }
        if isTime(&lastFullLine) {
            logger.warning("cannot accept a connection: \(SystemReason.of(error)); trying again")
        }
    }

    private func dialHasFailed(_ error: any Error) {
        if upstream.immediate?.allSatisfy(isOwn) == true { return recordLoop() }
        dialsFailed += 1
        tellDialFailed(error)
    }

    // MARK: Connections

    /// A connection of our own, made to fill the accept queue.
    private struct IsFiller: Error {}

    /// A connection that has passed this proxy before.
    private struct ComesBack: Error {}

    private func recordLoop() {
        dialsFailed += 1
        guard !isStopping, isTime(&lastLoopLine) else { return }
        logger.warning(
            "upstream \(configuration.upstream) leads back to this proxy; connection refused; change --upstream")
    }

    private func accept(_ channel: any Channel) throws {
        if listener?.isFiller(channel) == true { throw IsFiller() }
        let passed = LoopDetector.shared.passed(from: channel.remoteAddress, to: channel.localAddress)
        if passed.contains(number) {
            recordLoop()
            throw ComesBack()
        }
        let session = Session(channel, on: linkLoop, passed: passed) { [weak self] session in self?.dial(for: session) }
        session.onEnd = { [weak self, unowned session] in self?.forget(session) }
        try prepare(channel, .client)
        try channel.pipeline.syncOperations.addHandler(SocketEnd(.client, of: session))
        sessions[ObjectIdentifier(session)] = session
        places.acquire()
        accepted += 1
        limitReads()
        if places.isFull {
            letIn()
            tellFull()
        }
    }

    private func tellFull() {
        guard isTime(&lastFullLine) else { return }
        if places.availability == .processLimit {
            let count = FileBudget.shared.connectionsMax
            return logger.warning(
                "all proxies together have \(count) connections, the limit for 'ulimit -n': new ones wait; raise it")
        }
        logger.warning(
            "\(configuration.connectionsMax) connections are open, the limit (--max-connections): new ones wait")
    }

    /// A pause comes into force after a read cycle: what that may exceed the share by stays in proportion to it.
    private func limitReads() {
        let share = configuration.buffers.bytesMax(connections: sessions.count)
        readCeiling.value = max(Self.conditionedReadBytesMax, share / Int(Self.readsPerCycle))
    }

    /// Whether the last line of its kind is a second ago; then it is now.
    private func isTime(_ last: inout NIODeadline?) -> Bool {
        let now = NIODeadline.now()
        if let last, now - last < .seconds(1) { return false }
        last = now
        return true
    }

    private func dial(for session: Session) {
        let number = number
        session.recordDial = { [unowned session] port in
            LoopDetector.shared.recordDial(from: port, passed: session.passed, by: number)
        }
        let start = NIODeadline.now()
        guard configuration.resolvesEachTime else {
            return dial(upstream.current(on: eventLoop), since: start, for: session)
        }
        upstream.fresh(within: configuration.connectTimeout, on: eventLoop).whenComplete { result in
            switch result {
            case .success(let addresses): self.dial(addresses, since: start, for: session)
            case .failure(let error): self.dialFailed(error, for: session)
            }
        }
    }

    private func dialFailed(_ error: any Error, for session: Session) {
        if session.upstreamFailed() { dialHasFailed(error) }
    }

    private func dial(_ addresses: [SocketAddress], since start: NIODeadline, for session: Session) {
        // It would connect to itself until no file is left.
        let others = addresses.filter { !isOwn($0) }
        if others.isEmpty, !addresses.isEmpty { recordLoop() }
        if others.isEmpty || !session.awaitsUpstream {
            _ = session.upstreamFailed()
            return
        }
        let dial = UpstreamDial(
            others, within: configuration.connectTimeout, since: start, on: eventLoop,
            connect: { address, timeout in self.connect(session, to: address, within: timeout) },
            isAwaited: { session.awaitsUpstream },
            onFailure: { error in self.dialFailed(error, for: session) })
        dial.start()
    }

    private func connect(
        _ session: Session, to address: SocketAddress, within timeout: TimeAmount
    ) -> EventLoopFuture<any Channel> {
        let bound = NIOLoopBound((self, session), eventLoop: eventLoop)
        var bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(timeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let (core, session) = bound.value
                    try core.prepare(channel, .server)
                    core.configuration.keepAlive.apply(to: channel)
                    try channel.pipeline.syncOperations.addHandler(SocketEnd(.server, of: session))
                }
            }
        // Only a dial that stays on this machine can come back to it.
        if Proxy.isOnThisMachine(address), LoopDetector.shared.mustRecord(address.port), let any = address.wildcard {
            bootstrap = bootstrap.bind(to: any)
        }
        return bootstrap.connect(to: address)
    }

    /// Whether a dial would end at this proxy.
    private func isOwn(_ address: SocketAddress) -> Bool {
        listener?.address.map { Proxy.wouldReach($0, from: address) } ?? false
    }

    /// Sets a socket's options; they are settled at the connection's birth.
    private func prepare(_ channel: any Channel, _ side: Side) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.allowRemoteHalfClosure, value: true)
        // NIO has set it on sockets that dial.
        if side == .client { try options.setOption(.tcpOption(.tcp_nodelay), value: 1) }
        let isConditioned = !linkLoop.conditions.isClear
        try options.setOption(
            .recvAllocator,
            value: ReadSizes(
                readCeiling, maximum: isConditioned ? Self.conditionedReadBytesMax : Self.readBytesMax))
        try options.setOption(.maxMessagesPerRead, value: isConditioned ? UInt(1) : Self.readsPerCycle)
        if isConditioned {
            try options.setOption(.socketOption(.so_rcvbuf), value: Self.conditionedSocketBytes)
            try options.setOption(.socketOption(.so_sndbuf), value: Self.conditionedSocketBytes)
        }
    }

    private func forget(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        limitReads()
        let wasFull = places.release()
        letIn()
        if wasFull { straightPath?.slotReleased() }
        if sessions.isEmpty { allClosed?.succeed() }
    }

    private func tellDialFailed(_ error: any Error) {
        guard !isStopping, isTime(&lastDialLine) else { return }
        let advice = SystemReason.isLackOfFiles(error) ? "raise ulimit -n" : "start it or change --upstream"
        logger.warning(
            "upstream \(configuration.upstream): \(SystemReason.of(error)); \(advice) (\(dialsFailed) failed so far)")
    }

    // MARK: The end

    private func closeStraightPath(_ ending: RelayCloseMode) -> EventLoopFuture<Void>.Isolated {
        let left = straightPath?.close(ending) ?? eventLoop.makeSucceededFuture([]).assumeIsolated()
        return left.map { connections in for past in connections { self.goOn(from: past) } }
    }

    /// Stops accepting and reading, waits for what is on its way, closes everything; gives whether all arrived.
    func stop(grace: TimeAmount) -> EventLoopFuture<Bool> {
        if let stopped { return stopped }
        isStopping = true
        let deadline = NIODeadline.now() + grace
        let promise = eventLoop.makePromise(of: Bool.self)
        stopped = promise.futureResult
        closeStraightPath(.drain).whenSuccess { _ in
            self.forgetListener()
            self.drain(until: deadline, promise)
        }
        return promise.futureResult
    }

    private func drain(until deadline: NIODeadline, _ promise: EventLoopPromise<Bool>) {
        let status = linkLoop.status()
        let isSent = sessions.values.allSatisfy { $0.bytesUnsent == 0 }
        if (linkLoop.isQuiet && isSent) || NIODeadline.now() >= deadline {
            let hasArrived = status.bytesHeld == 0 && isSent
            closeAll().assumeIsolated().whenComplete { _ in
                self.linkLoop.shutDown()
                promise.succeed(hasArrived)
            }
            return
        }
        for session in sessions.values { session.stopReading() }
        eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(10)) { self.drain(until: deadline, promise) }
    }

    /// Closes the port, and every connection with a FIN, some at a time.
    func close() -> EventLoopFuture<Void> {
        isStopping = true
        isClosed = true
        let isFrozen = straightPath?.freeze() ?? eventLoop.makeSucceededVoidFuture()
        return isFrozen.assumeIsolated().flatMap {
            self.recordPortClosed()
            let listenerIsClosed = self.listener?.close() ?? self.eventLoop.makeSucceededVoidFuture()
            self.listener = nil
            // What closing would make the link do is nobody's business any more.
            self.linkLoop.shutDown()
            let relayed = self.closeStraightPath(.discard).nonisolated()
            let closed = self.atMost(TurnBudget.waitMax, self.closeAll(tellsLoss: false).and(relayed).map { _ in })
            return closed.and(listenerIsClosed).map { _ in }
        }.nonisolated()
    }

    private func closeAll(tellsLoss: Bool = true) -> EventLoopFuture<Void> {
        let promise = allClosed ?? eventLoop.makePromise(of: Void.self)
        allClosed = promise
        if sessions.isEmpty { promise.succeed() }
        close(Array(sessions.values)[...], tellsLoss: tellsLoss)
        return promise.futureResult
    }

    private func close(_ left: ArraySlice<Session>, tellsLoss: Bool) {
        for session in left.prefix(TurnBudget.connectionsMax) { session.close(tellsLoss: tellsLoss) }
        let rest = left.dropFirst(TurnBudget.connectionsMax)
        if rest.isEmpty { return }
        linkLoop.runLater { _ in self.close(rest, tellsLoss: tellsLoss) }
    }
}
