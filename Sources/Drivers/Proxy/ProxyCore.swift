internal import ForwardProxy
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import Logging
internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOPosix

/// The state of a proxy on its event loop: the listener, the sessions, the link driver and the fast path.
///
/// This file holds the state, start, and changes of the link; extensions hold connections, the fast path, and shutdown.
final class ProxyCore {
    let configuration: ProxyConfiguration
    let eventLoop: any EventLoop
    let logger: Logger
    let linkDriver: LinkDriver
    var listener: Listener?
    var datagramPort: DatagramPort? { linkDriver.datagramPort }
    /// The datagrams of a forward proxy, from the first association on.
    var forwardDatagrams: ForwardDatagrams? { linkDriver.forwardDatagrams }
    var sessions: [ObjectIdentifier: Session] = [:]
    /// The slots of all connections, on the link and on the fast path.
    let slots: ConnectionSlots
    let numbers: ConnectionNumbers
    let upstream: UpstreamAddresses
    /// The identity of the proxy in this process, for the loop detector.
    let proxyNumber = LoopDetector.shared.newProxy()
    private var listeningPort: Int?

    /// The settings of a forward proxy; `nil` for a proxy of one upstream.
    var forward: ForwardSettings?
    /// Clients of a forward proxy whose connection no session has taken over.
    var forwardClients: [ObjectIdentifier: ForwardClient] = [:]
    let names: NameTable
    /// The admission of clients on the fast path, which reads it on its own threads; `nil` for a proxy of one upstream.
    let admission: NIOLockedValueBox<ForwardAdmission>?
    /// The tunnels that the fast path connects or carries.
    var relayed: [RelayToken: RelayedDestination] = [:]
    var hostTraffic = HostTrafficTable()
    var opaqueTLS = OpaqueTLS()
    /// The state of the interception of TLS; unused without it.
    var interception = InterceptionStatus()
    #if TLS
    let interceptionContexts: InterceptionContexts
    #endif
    /// The changes of messages of an upstream with TLS.
    var rewritings = RewritingCounts()

    var connectionsAccepted = 0
    var dialsFailed = 0
    let readSizeLimit = ReadBufferAllocator.Limit(ProxyCore.readBytesMax)
    private var slotCheckIsScheduled = false

    var fastPath: FastPath?
    /// Whether connections are being detached from the fast path.
    var isMovingConnections = false

    var isStopping = false
    var isClosed = false
    /// Succeeds when the last session has ended.
    var allSessionsEnded: EventLoopPromise<Void>?
    /// The result of ``stop(grace:)`` once it has been called.
    var stopResult: EventLoopFuture<Bool>?
    /// The end of the grace period of ``stop(grace:)``.
    var drainDeadline = NIODeadline.distantFuture

    /// Times of the last warnings, which are limited to one per second and kind.
    var lastDialWarning: NIODeadline?
    var lastLoopWarning: NIODeadline?
    var lastFullWarning: NIODeadline?
    var lastTLSWarning: NIODeadline?
    var lastInterceptionWarning: NIODeadline?
    var lastTimelineMessage: NIODeadline?

    /// The maximum number of bytes of one read. Reads start with 4 KiB and grow with the data that arrives.
    static let readBytesMax = 256 << 10
    /// The least number to which many connections reduce it.
    static let readBytesMin = 16 << 10
    /// The same while exchanges are tracked: 38 bytes are a stream of HTTP/2 and its end, the events of a whole cycle are
    /// handled before another socket is read, and no connection may make the others wait for long.
    static let trackedReadBytesMax = 32 << 10
    /// Reads of one socket per read cycle. A pause takes effect at the end of a cycle, so this bounds how far a
    /// connection can exceed its share of the buffers.
    static let readsPerCycle: UInt = 4
    /// The maximum number of bytes of one read, with one read per cycle, for connections that are opened under
    /// conditions.
    static let conditionedReadBytesMax = 64 << 10
    /// Kernel buffers of connections that are opened under conditions: small, so that the model and not the kernel
    /// determines back-pressure and memory.
    static let conditionedSocketBytes = 128 << 10

    init(
        _ configuration: ProxyConfiguration, upstream: UpstreamAddresses, on eventLoop: any EventLoop, logger: Logger
    ) {
        self.configuration = configuration
        self.upstream = upstream
        self.eventLoop = eventLoop
        self.logger = logger
        slots = ConnectionSlots(max: configuration.connectionsMax)
        numbers = ConnectionNumbers()
        forward = configuration.forward
        admission = configuration.forward.map { NIOLockedValueBox(ForwardAdmission($0, listening: nil)) }
        #if TLS
        interceptionContexts = InterceptionContexts(configuration.interception)
        #endif
        names = NameTable(within: configuration.connectTimeout, files: ResolverFiles(configuration.resolver))
        linkDriver = LinkDriver(configuration, numbers: numbers, on: eventLoop)
        fastPath = makeFastPath()
        if let tls = configuration.upstreamTLS, !tls.isVerified {
            logger.warning(
                "the certificate of \(tls.url) is NOT verified (--insecure): others may read and change the traffic")
        }
        linkDriver.onFault = { [logger] in logger.info("\(Self.text($0))") }
        linkDriver.onTLS = { [weak self] in self?.tlsSeen($0, of: $1) }
        linkDriver.onTimelineChange = { [weak self] in self?.logTimelineChange($0) }
    }

    // MARK: Listening

    /// Binds the listening socket. Returns its port.
    ///
    /// - Parameter onFailure: See ``Listener/onFailure``.
    func listen(on address: SocketAddress, onFailure: @escaping (String?) -> Void) -> EventLoopFuture<Int> {
        guard configuration.protocols.contains(.tcp) else { return bindDatagrams(on: address, port: address.port ?? 0) }
        let isBound = listenForConnections(on: address, onFailure: onFailure)
        guard configuration.protocols.contains(.udp) else { return isBound }
        return isBound.assumeIsolated().flatMap { self.bindDatagrams(on: address, port: $0) }.nonisolated()
    }

    /// Binds the socket of datagrams. Returns its port.
    private func bindDatagrams(on address: SocketAddress, port: Int) -> EventLoopFuture<Int> {
        eventLoop.makeCompletedFuture {
            var address = address
            address.port = port
            let datagrams = try DatagramPort(address, self)
            linkDriver.datagramPort = datagrams
            return datagrams.address.port ?? port
        }
    }

    private func listenForConnections(
        on address: SocketAddress, onFailure: @escaping (String?) -> Void
    ) -> EventLoopFuture<Int> {
        let bound = NIOLoopBound(self, eventLoop: eventLoop)
        let bootstrap = ServerBootstrap(group: eventLoop, childGroup: eventLoop)
            .serverChannelOption(.backlog, value: Listener.backlog)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            // One accept per read, so that the limit on connections is exact.
            .serverChannelOption(.maxMessagesPerRead, value: 1)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    bound.value.configuration.keepAlive.apply(to: channel)
                    let handler = AcceptErrorHandler { [weak core = bound.value] in core?.acceptPaused($0) }
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try bound.value.accept(channel) }
            }
        let listener = Listener(
            address, bootstrap, configuration.synDropMethod ?? .best, on: eventLoop, logger: logger)
        self.listener = listener
        listener.onFailure = onFailure
        // The clients of a forward proxy connect to a port of this machine; the link applies to what they open through it.
        if forward == nil { linkDriver.onSYNTreatmentChange = { [weak listener] in _ = listener?.set($0) } }
        listener.onReady = { [weak self] in self?.openFastPath() }
        listener.onSocketClosed = { [weak self] in
            // The fast path has a duplicate of the closed socket; an empty change detaches its connections.
            self?.change(impairs: true) { _ in }.whenFailure { _ in }
        }
        do {
            let port = try listener.open()
            return listener.set(.open).assumeIsolated()
                .map { _ in port > 0 ? port : listener.port ?? 0 }
                .flatMap { port in
                    self.listeningPort = port
                    LoopDetector.shared.recordListening(port)
                    return listener.set(self.synTreatment).assumeIsolated().map { _ in
                        self.openFastPath()
                        return port
                    }.nonisolated()
                }
                .nonisolated()
        } catch {
            return eventLoop.makeFailedFuture(error)
        }
    }

    /// Closes the listener and breaks the reference cycle between its channels and the proxy.
    func closeListener() {
        recordPortClosed()
        listener?.close()
        listener = nil
    }

    func recordPortClosed() {
        if let listeningPort { LoopDetector.shared.recordClosed(listeningPort) }
        listeningPort = nil
    }

    /// The treatment of the clients' SYNs.
    private var synTreatment: SYNTreatment { forward == nil ? linkDriver.synTreatment : .open }

    /// Returns a future that succeeds when the listener treats new connections as the link requires.
    private func applySYNTreatment() -> EventLoopFuture<Void> {
        guard let listener, !isStopping else { return eventLoop.makeSucceededVoidFuture() }
        return listener.set(synTreatment)
    }

    /// Accepts new connections if a slot is free; otherwise they wait in the kernel's backlog.
    func updateAccepting() {
        if isStopping { return }
        let availability = slots.availability
        listener?.setAccepting(availability == .available)
        guard availability == .processLimit, !slotCheckIsScheduled else { return }
        slotCheckIsScheduled = true
        eventLoop.assumeIsolated().scheduleTask(in: Self.slotCheckInterval) {
            self.slotCheckIsScheduled = false
            self.updateAccepting()
        }
    }

    /// Time between checks for slots that other proxies of the process have released.
    private static let slotCheckInterval = TimeAmount.milliseconds(100)

    // MARK: Changes

    /// Changes the link. The future succeeds when the change is in effect, also for new connections.
    ///
    /// - Parameter impairs: Whether the change may impair connections that are not impaired now. Connections leave the
    ///   fast path before such a change.
    func change(impairs: Bool, _ body: @escaping (LinkDriver) -> Void) -> EventLoopFuture<Void> {
        let isReady = impairs ? fastPath?.freeze() : nil
        return (isReady ?? eventLoop.makeSucceededVoidFuture()).assumeIsolated().flatMap {
            // An earlier change may have opened the fast path again.
            if impairs && self.fastPath?.isOpen == true { return self.change(impairs: true, body) }
            self.updateAccepting()
            body(self.linkDriver)
            // With a policy that does not accept connections, those on the fast path are aborted; otherwise they move
            // to the link.
            let areAborted =
                (self.linkDriver.conditions.connectionPolicy == .open ? nil : self.fastPath?.abortAll())
                ?? self.eventLoop.makeSucceededVoidFuture()
            areAborted.assumeIsolated().whenComplete { _ in self.moveConnectionsToLink() }
            let isExecuted = self.withTimeout(
                TurnBudget.waitMax, areAborted.and(self.linkDriver.whenCaughtUp()).map { _ in })
            return self.applySYNTreatment().and(isExecuted).assumeIsolated().map { _ in
                self.updateAccepting()
                self.openFastPath()
            }.nonisolated()
        }.nonisolated()
    }

    /// Sets the random seed; the next connection is number 0.
    func reseed(_ seed: UInt64) -> EventLoopFuture<Void> {
        linkDriver.reseed(seed)
        if let fastPath, fastPath.isOpen {
            // The relay that accepts connections sets both, so that no connection combines an old number with the new
            // seed.
            return fastPath.reseed(seed)
        }
        // A relay may accept connections until it is frozen.
        let isFrozen = fastPath?.freeze() ?? eventLoop.makeSucceededVoidFuture()
        return isFrozen.assumeIsolated().map { self.numbers.restart() }.nonisolated()
    }

    /// Returns a future that succeeds when `future` completes, and after `time` at the latest.
    func withTimeout(_ time: TimeAmount, _ future: EventLoopFuture<Void>) -> EventLoopFuture<Void> {
        let promise = eventLoop.makePromise(of: Void.self)
        let timer = eventLoop.assumeIsolated().scheduleTask(in: time) { promise.succeed() }
        future.assumeIsolated().whenComplete { _ in
            timer.cancel()
            promise.succeed()
        }
        return promise.futureResult
    }

    // MARK: Status

    func status() -> EventLoopFuture<ProxyStatus> {
        guard let fastPath else { return eventLoop.makeSucceededFuture(status(adding: RelayedTraffic())) }
        let isMoving = linkDriver.hasFaultRules && fastPath.isDraining
        return fastPath.traffic().flatMap { traffic in
            guard isMoving else { return self.eventLoop.makeSucceededFuture(self.status(adding: traffic)) }
            return fastPath.midStreamConnectionCount().assumeIsolated()
                .map { self.status(adding: traffic, midStream: $0) }.nonisolated()
        }.nonisolated()
    }

    /// - Parameter midStream: The number of connections that have forwarded bytes and are moving to the link.
    private func status(adding relayed: RelayedTraffic, midStream: Int = 0) -> ProxyStatus {
        var link = linkDriver.status()
        link.add(relayed)
        var status = ProxyStatus(
            connectionsOpen: slots.count, connectionsAccepted: connectionsAccepted + relayed.accepted,
            isFull: slots.isFull, dialsFailed: dialsFailed, synDropMethod: listener?.activeSYNDropMethod, link: link)
        if linkDriver.hasFaultRules {
            status.faultRules = linkDriver.faultRules
            status.connectionsWithoutFaults = linkDriver.untrackedConnectionCount + midStream
            status.opaqueTLS = opaqueTLS
        }
        if configuration.interception != nil { status.interception = interception }
        status.datagrams = datagramPort?.status ?? forwardDatagramStatus
        if let tls = configuration.upstreamTLS {
            status.upstreamTLS = UpstreamTLSStatus(isVerified: tls.isVerified, rewritings: rewritings)
        }
        return status
    }
}
