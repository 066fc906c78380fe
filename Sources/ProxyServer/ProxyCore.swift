internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOCore
internal import NIOPosix

/// A proxy's state on its event loop: the listener, the sessions, the link loop.
final class ProxyCore {
    let linkLoop: LinkLoop
    private let configuration: ProxyConfiguration
    private let eventLoop: any EventLoop
    private let logger: Logger
    private var listener: Listener?
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var accepted = 0
    private var dialsFailed = 0
    private var isStopping = false
    private var allClosed: EventLoopPromise<Void>?
    private var stopped: EventLoopFuture<Bool>?
    private let upstream: UpstreamAddresses
    /// When a line was last told, so that a storm of clients makes one a second.
    private var lastDialLine: NIODeadline?
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
        linkLoop = LinkLoop(configuration, on: eventLoop)
    }

    /// Binds the listening socket; gives its port.
    func listen(on address: SocketAddress) -> EventLoopFuture<Int> {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        let bootstrap = ServerBootstrap(group: eventLoop, childGroup: eventLoop)
            .serverChannelOption(.backlog, value: Listener.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // One accept at a time, so that the limit on connections is met exactly.
            .serverChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.accept(channel) }
            }
        let listener = Listener(
            address, bootstrap, configuration.silence ?? .best, on: eventLoop, logger: logger)
        self.listener = listener
        linkLoop.onReachability = { [weak listener] in _ = listener?.set($0) }
        do {
            let port = try listener.open()
            return listener.set(.open).assumeIsolated()
                .map { _ in port > 0 ? port : listener.port ?? 0 }
                .flatMap { port in
                    listener.set(self.linkLoop.currentReachability).assumeIsolated().map { _ in port }.nonisolated()
                }
                .nonisolated()
        } catch {
            return eventLoop.makeFailedFuture(error)
        }
    }

    /// Listens no more. The listener's channels know the proxy, which must not know the listener for ever.
    func forgetListener() {
        listener?.close()
        listener = nil
    }

    /// Says when the listening socket treats clients as the link wants them treated.
    func listenerIsSettled() -> EventLoopFuture<Void> {
        guard let listener, !isStopping else { return eventLoop.makeSucceededVoidFuture() }
        return listener.set(linkLoop.currentReachability)
    }

    private var hasRoom: Bool { sessions.count < configuration.connectionsMax && !isStopping }

    func status() -> ProxyStatus {
        ProxyStatus(
            connectionsOpen: sessions.count, connectionsAccepted: accepted,
            isFull: sessions.count >= configuration.connectionsMax, dialsFailed: dialsFailed,
            silence: listener?.silence, link: linkLoop.status())
    }

    // MARK: Connections

    /// A connection of our own, made to fill the accept queue.
    private struct IsFiller: Error {}

    private func accept(_ channel: any Channel) throws {
        if listener?.isFiller(channel) == true { throw IsFiller() }
        let session = Session(channel, on: linkLoop) { [weak self] session in self?.dial(for: session) }
        session.onEnd = { [weak self, unowned session] in self?.forget(session) }
        try prepare(channel, .client)
        try channel.pipeline.syncOperations.addHandler(SocketEnd(.client, of: session))
        sessions[ObjectIdentifier(session)] = session
        accepted += 1
        limitReads()
        if sessions.count == configuration.connectionsMax {
            listener?.setAccepting(false)
            if isTime(&lastFullLine) {
                logger.warning(
                    "\(configuration.connectionsMax) connections are open, the limit (--max-connections): new ones wait"
                )
            }
        }
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
        let bound = NIOLoopBound((self, session), eventLoop: eventLoop)
        let bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(configuration.connectTimeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let (core, session) = bound.value
                    try core.prepare(channel, .server)
                    try channel.pipeline.syncOperations.addHandler(SocketEnd(.server, of: session))
                }
            }
        guard configuration.resolvesEachTime else {
            return dial(bootstrap, upstream.current(on: eventLoop)[...], for: session)
        }
        upstream.fresh(on: eventLoop).whenComplete { result in
            switch result {
            case .success(let addresses) where addresses.contains(where: self.isOwn):
                // It would call itself until no file is left.
                _ = session.upstreamFailed()
            case .success(let addresses) where session.awaitsUpstream:
                self.dial(bootstrap, addresses[...], for: session)
            case .success: _ = session.upstreamFailed()
            case .failure(let error):
                if session.upstreamFailed() {
                    self.dialsFailed += 1
                    self.tellDialFailed(error)
                }
            }
        }
    }

    /// Whether a dial would end at this proxy.
    private func isOwn(_ address: SocketAddress) -> Bool {
        listener?.address.map { Proxy.wouldReach($0, from: address) } ?? false
    }

    /// Tries the upstream's addresses one after the other.
    private func dial(_ bootstrap: ClientBootstrap, _ addresses: ArraySlice<SocketAddress>, for session: Session) {
        guard let address = addresses.first else { return }
        bootstrap.connect(to: address).assumeIsolated().whenFailure { error in
            if addresses.count > 1 && session.awaitsUpstream {
                self.dial(bootstrap, addresses.dropFirst(), for: session)
            } else if session.upstreamFailed() {
                self.dialsFailed += 1
                self.tellDialFailed(error)
            }
        }
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
        if hasRoom { listener?.setAccepting(true) }
        if sessions.isEmpty { allClosed?.succeed() }
    }

    private func tellDialFailed(_ error: any Error) {
        guard !isStopping, isTime(&lastDialLine) else { return }
        logger.warning(
            "upstream \(configuration.upstream): \(SystemReason.of(error)); start it or change --upstream (\(dialsFailed) failed so far)"
        )
    }

    // MARK: The end

    /// Stops accepting and reading, waits for what is on its way, closes everything; gives whether all arrived.
    func stop(grace: TimeAmount) -> EventLoopFuture<Bool> {
        if let stopped { return stopped }
        isStopping = true
        forgetListener()
        let deadline = NIODeadline.now() + grace
        let promise = eventLoop.makePromise(of: Bool.self)
        stopped = promise.futureResult
        drain(until: deadline, promise)
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

    /// Closes the port and every connection with a FIN, at once.
    func close() -> EventLoopFuture<Void> {
        isStopping = true
        let listenerIsClosed = listener?.close() ?? eventLoop.makeSucceededVoidFuture()
        listener = nil
        // What closing would make the link do is nobody's business any more.
        linkLoop.shutDown()
        let closed = closeAll(tellsLoss: false)
        return closed.and(listenerIsClosed).map { _ in }
    }

    private func closeAll(tellsLoss: Bool = true) -> EventLoopFuture<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        allClosed = promise
        if sessions.isEmpty { promise.succeed() }
        for session in sessions.values { session.close(tellsLoss: tellsLoss) }
        return promise.futureResult
    }
}
