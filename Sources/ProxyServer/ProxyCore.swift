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
    private let gate = AcceptGate()
    private var listener: (any Channel)?
    private var sessions: [ObjectIdentifier: Session] = [:]
    private var accepted = 0
    private var dialsFailed = 0
    private var isStopping = false
    private var allClosed: EventLoopPromise<Void>?
    /// When a failed dial was last told, so that a storm of clients makes one line a second.
    private var lastDialLine: NIODeadline?

    /// Clients that the kernel may keep waiting for us; capped by the system (`net.core.somaxconn`).
    static let backlog: CInt = 4096
    /// A socket's unsent bytes above which its conduit is told to wait, and below which it may go on.
    static let waterMarks = ChannelOptions.Types.WriteBufferWaterMark(low: 64 << 10, high: 256 << 10)
    /// Bytes of one read; grows from 4 KiB with what arrives.
    static let readBytesMax = 64 << 10
    /// Reads of one socket before others have their turn. A pause takes effect after them, so they bound by how much a
    /// connection may exceed its share.
    static let readsPerCycle: UInt = 4
    /// The same while conditions are in force at a connection's birth, with one read a cycle.
    static let conditionedReadBytesMax = 16 << 10
    /// Kernel buffers of a connection made while conditions are in force: small, so that back-pressure and memory are
    /// the model's and not the kernel's.
    static let conditionedSocketBytes = 128 << 10

    init(_ configuration: ProxyConfiguration, on eventLoop: any EventLoop, logger: Logger) {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.logger = logger
        linkLoop = LinkLoop(configuration.conditions, limits: configuration.buffers, on: eventLoop)
    }

    /// Binds the listening socket; gives its port.
    func listen() -> EventLoopFuture<Int> {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        return ServerBootstrap(group: eventLoop, childGroup: eventLoop)
            .serverChannelOption(.backlog, value: Self.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // One accept at a time, so that the limit on connections is met exactly.
            .serverChannelOption(.maxMessagesPerRead, value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(bound.value.gate)
                }
            }
            .childChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.accept(channel) }
            }
            .bind(host: configuration.listen.host, port: configuration.listen.port)
            .assumeIsolated()
            .map { channel in
                self.listener = channel
                return channel.localAddress?.port ?? self.configuration.listen.port
            }
            .nonisolated()
    }

    func status() -> ProxyStatus {
        ProxyStatus(
            connectionsOpen: sessions.count, connectionsAccepted: accepted,
            isFull: sessions.count >= configuration.connectionsMax, dialsFailed: dialsFailed, link: linkLoop.status())
    }

    // MARK: Connections

    private func accept(_ channel: any Channel) throws {
        let session = Session(on: linkLoop) { [weak self] session in self?.dial(for: session) }
        session.onEnd = { [weak self, unowned session] in self?.forget(session) }
        sessions[ObjectIdentifier(session)] = session
        accepted += 1
        if sessions.count == configuration.connectionsMax {
            gate.set(open: false)
            logger.warning(
                "\(configuration.connectionsMax) connections are open, the limit (--max-connections): new ones wait")
        }
        try prepare(channel)
        try channel.pipeline.syncOperations.addHandler(SocketEnd(.client, of: session))
    }

    private func dial(for session: Session) {
        let bound = NIOLoopBound((self, session), eventLoop: eventLoop)
        let bootstrap = ClientBootstrap(group: eventLoop)
            .connectTimeout(configuration.connectTimeout)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let (core, session) = bound.value
                    try core.prepare(channel)
                    try channel.pipeline.syncOperations.addHandler(SocketEnd(.server, of: session))
                }
            }
        let upstream = configuration.upstream
        // A name is looked up for every connection, as its address may change; that costs a thread's round trip.
        let connected =
            upstream.numericAddress.map { bootstrap.connect(to: $0) }
            ?? bootstrap.connect(host: upstream.host, port: upstream.port)
        connected.assumeIsolated().whenFailure { error in
            if session.upstreamFailed() {
                self.dialsFailed += 1
                self.tellDialFailed(error)
            }
        }
    }

    /// Sets a socket's options; they are settled at the connection's birth.
    private func prepare(_ channel: any Channel) throws {
        guard let options = channel.syncOptions else { return }
        try options.setOption(.allowRemoteHalfClosure, value: true)
        try options.setOption(.tcpOption(.tcp_nodelay), value: 1)
        try options.setOption(.writeBufferWaterMark, value: Self.waterMarks)
        let isConditioned = !linkLoop.conditions.isClear
        try options.setOption(
            .recvAllocator,
            value: AdaptiveRecvByteBufferAllocator(
                minimum: 1024, initial: 4096,
                maximum: isConditioned ? Self.conditionedReadBytesMax : Self.readBytesMax))
        try options.setOption(.maxMessagesPerRead, value: isConditioned ? UInt(1) : Self.readsPerCycle)
        if isConditioned {
            try options.setOption(.socketOption(.so_rcvbuf), value: Self.conditionedSocketBytes)
            try options.setOption(.socketOption(.so_sndbuf), value: Self.conditionedSocketBytes)
        }
    }

    private func forget(_ session: Session) {
        sessions[ObjectIdentifier(session)] = nil
        if sessions.count < configuration.connectionsMax && !isStopping { gate.set(open: true) }
        if sessions.isEmpty { allClosed?.succeed() }
    }

    private func tellDialFailed(_ error: any Error) {
        if isStopping { return }
        let now = NIODeadline.now()
        if let last = lastDialLine, now - last < .seconds(1) { return }
        lastDialLine = now
        logger.warning(
            "upstream \(configuration.upstream): \(SystemReason.of(error)); start it or change --upstream (\(dialsFailed) failed so far)"
        )
    }

    // MARK: The end

    /// Stops accepting and reading, waits for what is on its way, closes everything; gives whether all arrived.
    func stop(grace: TimeAmount) -> EventLoopFuture<Bool> {
        isStopping = true
        gate.set(open: false)
        listener?.close(promise: nil)
        let deadline = NIODeadline.now() + grace
        let promise = eventLoop.makePromise(of: Bool.self)
        drain(until: deadline, promise)
        return promise.futureResult
    }

    private func drain(until deadline: NIODeadline, _ promise: EventLoopPromise<Bool>) {
        let status = linkLoop.status()
        let hasArrived = status.bytesHeld == 0
        if hasArrived || NIODeadline.now() >= deadline || status.isStalled {
            closeAll().assumeIsolated().whenComplete { _ in promise.succeed(hasArrived) }
            return
        }
        for session in sessions.values { session.stopReading() }
        eventLoop.assumeIsolated().scheduleTask(in: .milliseconds(10)) { self.drain(until: deadline, promise) }
    }

    private func closeAll() -> EventLoopFuture<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        allClosed = promise
        if sessions.isEmpty { promise.succeed() }
        for session in sessions.values { session.close() }
        return promise.futureResult
    }
}
