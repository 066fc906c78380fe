internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The handler of a client of a forward proxy, in front of the session's ``SocketHandler``.
///
/// Passes the client's first bytes to the ``ForwardProxy/Negotiation``. A tunnel gets one session; when that is
/// established, the handler writes the reply and leaves the pipeline. Requests in absolute form stay with the handler: it
/// passes bytes between a ``ForwardProxy/RequestForwarder`` and one ``OriginSocket`` for each origin.
final class ForwardClient: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum State {
        /// Reading the request for a destination.
        case negotiating
        /// Looking up and connecting the destination of a tunnel.
        case connecting
        /// Forwarding requests in absolute form.
        case forwarding
        /// Keeping an association for datagrams open. Bytes have no meaning.
        case associated
        /// The last bytes are being written, or the connection is closed.
        case closing
    }

    /// The time limit of the negotiation, the client's share of it.
    static let negotiationTimeMax = TimeAmount.seconds(30)
    /// The time limit for reading the client's last bytes after a refusal, so that its reply is not lost to a RST.
    static let lingerTimeMax = TimeAmount.seconds(2)

    /// Released with the handler, at the end of the connection.
    private let core: ProxyCore
    private var state = State.negotiating
    private var negotiation: Negotiation
    private var forwarder: RequestForwarder
    private var origins: [RequestForwarder.Origin: OriginSocket] = [:]
    private var context: ChannelHandlerContext?
    private var negotiationTimer: Scheduled<Void>?
    private var inputIsClosed = false
    private var outputIsClosed = false
    private var hasFailed = false
    private var isPaused = false
    private var readIsPending = false
    private var isRunningActions = false
    /// Whether the forwarder accepts no more bytes of the client.
    private var forwarderIsFull = false
    private var isActive = false
    private let passed: [LoopDetector.ProxyNumber]
    /// The port of the client's datagrams.
    private var association: ForwardDatagrams.Port?
    /// The client's state when the handler is added.
    private var request: TunnelRequest

    /// - Parameter request: The client's state: that of a new client, or of one that the fast path has accepted.
    init(_ core: ProxyCore, passed: [LoopDetector.ProxyNumber], _ request: TunnelRequest) {
        self.core = core
        self.passed = passed
        self.request = request
        negotiation = request.negotiation
        forwarder = RequestForwarder(request.negotiation.settings)
    }

    private var redirected: Destination? { request.redirected }

    /// Whether the client is on this machine.
    private var isOnThisMachine: Bool {
        context?.channel.remoteAddress.map(Proxy.isOnThisMachine) ?? false
    }

    /// Whether a session carries the connection's traffic, or may.
    var hasSessions: Bool { state == .connecting || !origins.isEmpty }

    // MARK: Inbound

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { start() }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        // A channel whose registration fails gets neither channelActive nor channelInactive.
        endAssociation()
        if !isActive { core.forwardClientEnded(self, keepsSlot: false) }
    }

    func channelActive(context: ChannelHandlerContext) {
        start()
        context.fireChannelActive()
    }

    private func start() {
        guard !isActive else { return }
        isActive = true
        if let failure = request.failure {
            if let destination = request.destination { core.countFailed(destination) }
            state = .connecting
            return failed(failure)
        }
        if let destination = request.destination { return open(destination) }
        if let step = request.step { return execute(step) }
        negotiationTimer = core.eventLoop.assumeIsolated().scheduleTask(in: Self.negotiationTimeMax) {
            self.context?.close(promise: nil)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        switch state {
        case .negotiating:
            negotiation.received(bytes)
            negotiate()
        case .connecting:
            negotiation.received(bytes)
            if negotiation.bytesKept > Negotiation.bytesKeptMax { isPaused = true }
        case .forwarding:
            forwarder.receivedFromClient(bytes)
            runActions()
        case .associated, .closing: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        for origin in origins.values { origin.session?.readCompleted() }
        context.fireChannelReadComplete()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed = event else { return context.fireUserInboundEventTriggered(event) }
        inputIsClosed = true
        switch state {
        case .negotiating: context.close(promise: nil)
        case .connecting: break
        case .forwarding:
            forwarder.clientClosed()
            runActions()
        case .associated, .closing: context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        hasFailed = true
        context.fireErrorCaught(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        negotiationTimer?.cancel()
        let wasForwarding = state == .forwarding
        state = .closing
        if wasForwarding {
            // Once both FINs have been sent, NIO reports only the end of the channel.
            if outputIsClosed && !hasFailed { forwarder.clientClosed() } else { forwarder.clientGone() }
            runActions()
        }
        endAssociation()
        context.fireChannelInactive()
        core.forwardClientEnded(self, keepsSlot: hasTunnelSession)
    }

    func read(context: ChannelHandlerContext) {
        if isPaused { readIsPending = true } else { context.read() }
    }

    private func setPaused(_ paused: Bool) {
        isPaused = paused
        guard !paused, readIsPending else { return }
        readIsPending = false
        context?.read()
    }

    // MARK: Tunnels

    /// Whether the tunnel has a session, which has taken over the client's slot.
    private var hasTunnelSession = false

    private func negotiate() {
        while state == .negotiating, let step = negotiation.next() { execute(step) }
    }

    private func execute(_ step: Negotiation.Step) {
        switch step {
        case .reply(let bytes): write(bytes)
        case .open(let destination): open(destination)
        case .forwardRequests:
            negotiationTimer?.cancel()
            state = .forwarding
            forwarder.receivedFromClient(negotiation.takeRemainder())
            runActions()
        case .associate(let port): associate(port)
        case .refuse(let bytes): finish(with: bytes)
        }
    }

    private func open(_ destination: Destination) {
        negotiationTimer?.cancel()
        state = .connecting
        core.route(to: destination, isLocal: isOnThisMachine) { result in
            guard self.state == .connecting, let context = self.context else { return }
            switch result {
            case .failure(let failure):
                self.core.countFailed(destination)
                self.finish(with: self.failureReply(failure))
            case .success(let route):
                let session = self.core.session(of: context.channel, on: route, passed: self.passed)
                self.hasTunnelSession = true
                self.core.add(session, .takenOver)
                let handler = SocketHandler(.client, of: session, tunnel: self)
                do {
                    try context.channel.pipeline.syncOperations.addHandler(handler)
                } catch {
                    context.close(promise: nil)
                }
            }
        }
    }

    // MARK: Datagrams

    private func associate(_ clientPort: Int) {
        negotiationTimer?.cancel()
        state = .associated
        guard let context, let local = context.localAddress, let client = context.remoteAddress,
            let host = LoopDetector.host(local).flatMap({ IPAddress($0) }),
            let (association, port) = core.associate(at: local, client: client, port: clientPort)
        else { return finish(with: negotiation.failed(.tooManyConnections)) }
        self.association = association
        write(negotiation.associated(at: host, port: port))
    }

    private func endAssociation() {
        if let association { core.end(association) }
        association = nil
    }

    // MARK: Ends of the negotiation

    /// Handles that the tunnel is established: writes the reply and leaves the pipeline. The bytes that the client has sent
    /// early go over the link.
    func established() {
        guard state == .connecting, let context else { return }
        if redirected == nil { write(negotiation.established()) }
        core.forwardClientEnded(self, keepsSlot: true)
        state = .closing
        let early = negotiation.takeRemainder()
        if early.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(early)) }
        if inputIsClosed { context.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
        context.fireChannelReadComplete()
        setPaused(false)
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    /// Handles that the tunnel cannot be established.
    func failed(_ failure: ConnectFailure?) {
        guard state == .connecting else { return }
        finish(with: failureReply(failure ?? .unreachable))
    }

    private func failureReply(_ failure: ConnectFailure) -> ByteBuffer? {
        redirected == nil ? negotiation.failed(failure) : nil
    }

    /// Writes the last bytes and closes the connection: with a FIN and, so that unread bytes of the client do not turn it
    /// into a RST, a short wait for the client's own FIN. Without bytes, resets the connection.
    private func finish(with bytes: ByteBuffer?) {
        guard let context else { return }
        state = .closing
        negotiationTimer?.cancel()
        // The client's FIN must be read, and what precedes it is dropped.
        setPaused(false)
        guard let bytes else {
            ResetOnClose.arm(context.channel)
            return context.close(promise: nil)
        }
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(bytes), promise: written)
        written.futureResult.assumeIsolated().whenComplete { _ in
            guard let context = self.context else { return }
            if self.inputIsClosed { return context.close(promise: nil) }
            context.close(mode: .output, promise: nil)
            self.core.eventLoop.assumeIsolated().scheduleTask(in: Self.lingerTimeMax) {
                self.context?.close(promise: nil)
            }
        }
    }

    private func write(_ bytes: ByteBuffer) {
        guard bytes.readableBytes > 0, let context else { return }
        context.writeAndFlush(wrapOutboundOut(bytes), promise: nil)
    }

    /// Closes a connection that has no session, or aborts it.
    func close() { context?.close(promise: nil) }

    // MARK: Requests in absolute form

    private func runActions() {
        if isRunningActions { return }
        isRunningActions = true
        while let action = forwarder.takeAction() { execute(action) }
        isRunningActions = false
        context?.flush()
        if forwarder.isFinished, origins.isEmpty, state == .forwarding { finish(with: ByteBuffer()) }
    }

    private func execute(_ action: RequestForwarder.Action) {
        switch action {
        case .open(let origin, let destination): open(destination, as: origin)
        case .send(let bytes, let origin): origins[origin]?.send(bytes)
        case .finishSending(let origin): origins[origin]?.finishSending()
        case .closeOrigin(let origin): remove(origin, abortively: false)
        case .resetOrigin(let origin): remove(origin, abortively: true)
        case .reply(let bytes): context?.write(wrapOutboundOut(bytes), promise: nil)
        case .pauseClient:
            forwarderIsFull = true
            updatePaused()
        case .resumeClient:
            forwarderIsFull = false
            updatePaused()
        case .closeClient: context?.flush(); closeOutput()
        case .resetClient:
            guard let context else { return }
            context.flush()
            ResetOnClose.arm(context.channel)
            context.close(promise: nil)
        }
    }

    private func remove(_ origin: RequestForwarder.Origin, abortively: Bool) {
        origins.removeValue(forKey: origin)?.abandon(abortively: abortively)
        updatePaused()
    }

    private func closeOutput() {
        guard let context else { return }
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        written.futureResult.assumeIsolated().whenSuccess {
            self.outputIsClosed = true
            self.context?.close(mode: .output, promise: nil)
        }
    }

    private func open(_ destination: Destination, as origin: RequestForwarder.Origin) {
        let socket = OriginSocket(origin, of: self)
        origins[origin] = socket
        core.route(to: destination, isLocal: isOnThisMachine) { result in
            guard self.origins[origin] === socket, let context = self.context else { return }
            // The client's slot has room for one origin.
            let needsSlot = self.origins.count > 1
            switch result {
            case .failure(let failure):
                self.core.countFailed(destination)
                self.originFailed(origin, failure)
            case .success where needsSlot && self.core.slots.isFull: self.originFailed(origin, .tooManyConnections)
            case .success(let route):
                let session = self.core.session(
                    of: context.channel, on: route, passed: self.passed, ownsChannel: false)
                self.core.add(session, needsSlot ? .own : .shared)
                socket.connect(session)
            }
        }
    }

    // MARK: Events of origins

    func originEstablished(_ origin: RequestForwarder.Origin) {
        forwarder.established(origin)
        runActions()
    }

    func originFailed(_ origin: RequestForwarder.Origin, _ failure: ConnectFailure) {
        origins[origin] = nil
        forwarder.failed(origin, failure)
        runActions()
        context?.flush()
    }

    func received(_ bytes: ByteBuffer, from origin: RequestForwarder.Origin) {
        forwarder.received(bytes, from: origin)
        runActions()
    }

    func originFinished(_ origin: RequestForwarder.Origin) {
        forwarder.finished(origin)
        runActions()
    }

    func originReset(_ origin: RequestForwarder.Origin) {
        origins[origin] = nil
        updatePaused()
        forwarder.reset(origin)
        runActions()
    }

    /// Reads from the client unless the forwarder or an origin's session accepts no more bytes.
    func updatePaused() { setPaused(forwarderIsFull || origins.values.contains(where: \.isFull)) }

    func flush() { context?.flush() }

    /// Reports once all bytes written to the client so far have been sent.
    func whenSent(_ done: @escaping () -> Void) {
        guard let context else { return }
        let sent = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: sent)
        sent.futureResult.assumeIsolated().whenSuccess(done)
    }

    /// Bytes written to the client and not yet sent to the kernel.
    var bytesUnsent: Int { (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0 }
}
