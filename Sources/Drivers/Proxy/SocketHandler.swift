internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The channel handler of one of a session's two sockets.
///
/// Reports the socket's events to the session, gates reads for back-pressure, and closes the socket: the output after
/// all pending writes (FIN), or both directions at once (FIN or RST).
final class SocketHandler: ChannelDuplexHandler, SessionSocket, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let side: Side
    /// Released when the channel becomes inactive, which breaks the reference cycle.
    private var session: Session?
    private var context: ChannelHandlerContext?
    private var isPaused = false
    private var readIsPending = false
    private var inputIsClosed = false
    private var hasFailed = false
    private var outputIsClosing = false
    private var outputIsClosed = false
    private var isActive = false
    private var isClosing = false
    private var isResetting = false
    /// Whether the fast path had sent the FIN before the socket was wrapped in a channel. NIO does not know of that
    /// FIN.
    private let finWasSent: Bool
    /// The negotiation of a forward proxy that awaits the connection, and replies for it.
    private var tunnel: ForwardClient?
    /// The TLS of the upstream's channel, if it has any.
    private weak var tls: TLSUpstreamHandler?

    init(
        _ side: Side, of session: Session, finWasSent: Bool = false, tunnel: ForwardClient? = nil,
        tls: TLSUpstreamHandler? = nil
    ) {
        self.tunnel = tunnel
        self.tls = tls
        self.side = side
        self.session = session
        self.finWasSent = finWasSent
        outputIsClosing = finWasSent
        outputIsClosed = finWasSent
    }

    // MARK: Inbound

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive {
            becomeActive()
        } else if side == .server {
            session?.upstreamDialStarted(self)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        // A channel whose registration fails gets neither channelActive nor channelInactive.
        if side == .client, !isActive, let session {
            self.session = nil
            session.close(abortively: false)
        }
    }

    func channelActive(context: ChannelHandlerContext) { becomeActive() }

    private func becomeActive() {
        guard !isActive else { return }
        isActive = true
        switch side {
        case .client: session?.clientConnected(self)
        case .server: session?.upstreamConnected(self)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        session?.receive(.bytes(unwrapInboundIn(data), from: side))
    }

    func channelReadComplete(context: ChannelHandlerContext) { session?.readCompleted() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event {
            inputIsClosed = true
            session?.receive(.inputClosed(side))
            session?.readCompleted()
            if finWasSent { context.close(promise: nil) }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { hasFailed = true }

    func channelInactive(context: ChannelHandlerContext) {
        // NIO closes the channel once both FINs have been sent; channelInactive is its only event for the second one.
        let closedInOrder = !hasFailed && outputIsClosed
        if closedInOrder && !inputIsClosed {
            session?.receive(.inputClosed(side))
        } else if !closedInOrder {
            session?.receive(.gone(side))
        }
        let session = session
        self.session = nil
        tunnel = nil
        session?.channelClosed(side)
    }

    func connect(context: ChannelHandlerContext, to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        // A dial that the loop detector records is bound to its local port before it connects.
        if let port = context.channel.localAddress?.port, port > 0 { session?.upstreamWillConnect(from: port) }
        context.connect(to: address, promise: promise)
    }

    /// Handles the channel's automatic read after each read cycle; defers it while reading is paused or the proxy has a
    /// backlog.
    func read(context: ChannelHandlerContext) {
        if isPaused {
            readIsPending = true
        } else if session?.hasBacklog == true {
            if !readIsPending { session?.deferRead(of: self) }
            readIsPending = true
        } else {
            context.read()
        }
    }

    /// Issues a deferred read, unless reading is paused.
    func readIfPending() {
        if !isPaused && readIsPending {
            readIsPending = false
            context?.read()
        }
    }

    // MARK: Outbound

    func write(_ buffer: ByteBuffer) { context?.write(wrapOutboundOut(buffer), promise: nil) }

    func flush() { context?.flush() }

    /// Reports `.drained` once all writes so far have been sent. The promise of an empty write succeeds after all
    /// earlier writes; it fails after the FIN, before which they have been sent.
    func awaitDrain() {
        guard let context else { return }
        let sent = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: sent)
        sent.futureResult.assumeIsolated().whenComplete { result in
            if case .failure = result, !self.outputIsClosed { return }
            self.session?.receive(.drained(self.side))
            self.session?.readCompleted()
        }
    }

    /// Bytes written to the channel and not yet sent to the kernel.
    var bytesUnsent: Int {
        (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    func established() {
        tunnel?.established()
        tunnel = nil
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        isPaused = false
        readIfPending()
    }

    /// Sends a FIN after all pending writes.
    ///
    /// The close waits for the last write: if the peer has sent its FIN, closing the output closes the whole channel,
    /// and NIO then drops pending writes.
    func closeOutput() {
        guard let context, !outputIsClosing else { return }
        outputIsClosing = true
        if bytesUnsent == 0 {
            outputIsClosed = true
            return context.close(mode: .output, promise: nil)
        }
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        written.futureResult.assumeIsolated().whenSuccess {
            self.outputIsClosed = true
            self.context?.close(mode: .output, promise: nil)
        }
    }

    /// Closes both directions after all pending writes.
    func closeAfterWrites() {
        guard let context, !isClosing else { return }
        isClosing = true
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        written.futureResult.assumeIsolated().whenComplete { _ in self.context?.close(promise: nil) }
    }

    /// Aborts the connection (RST). A client that awaits a connection gets the reply that it has failed.
    func reset() {
        guard let context else { return }
        if let tunnel {
            self.tunnel = nil
            return tunnel.failed(session?.connectFailure)
        }
        context.flush()
        ResetOnClose.arm(context.channel)
        tls?.closesAbortively()
        context.close(promise: nil)
    }

    /// Aborts the connection (RST) once the peer's kernel has acknowledged all written bytes, and after
    /// ``resetDelayMax`` at the latest. An immediate RST would drop what the kernel has not sent yet.
    func resetAfterWrites() {
        guard let context else { return }
        if tunnel != nil { return reset() }
        isPaused = true
        isResetting = true
        context.flush()
        resetOnceAcknowledged(until: .now() + Self.resetDelayMax, checkingAfter: Self.acknowledgmentCheckInterval)
    }

    /// The longest time between a write and the RST that follows it: long enough for TCP's retransmissions on a lossy
    /// network, and a bound for a receiver that does not read.
    static let resetDelayMax = TimeAmount.seconds(5)
    /// Time until the first check for acknowledgments; doubles with each check.
    private static let acknowledgmentCheckInterval = TimeAmount.milliseconds(2)

    private func resetOnceAcknowledged(until deadline: NIODeadline, checkingAfter interval: TimeAmount) {
        guard let context else { return }
        if (bytesUnsent == 0 && bytesUnacknowledged == 0) || NIODeadline.now() >= deadline { return reset() }
        context.eventLoop.assumeIsolated().scheduleTask(in: interval) {
            self.resetOnceAcknowledged(until: deadline, checkingAfter: min(interval * 2, .milliseconds(500)))
        }
    }

    /// Bytes in the kernel's send buffer that the peer has not acknowledged.
    private var bytesUnacknowledged: Int { withDescriptor { SystemSocket.unacknowledgedBytes(of: $0) } ?? 0 }

    /// Whether bytes of the peer have arrived that have not been read.
    var hasUnreadBytes: Bool { withDescriptor { SystemSocket.hasUnreadBytes($0) } ?? false }

    private func withDescriptor<Value>(_ body: (NIOBSDSocket.Handle) -> Value) -> Value? {
        try? context?.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { body($0) }
    }

    /// Closes both directions: with a FIN, or with the RST that is due.
    func close() {
        if isResetting { reset() } else { context?.close(promise: nil) }
    }

    /// Detaches the socket from its session, which does not see its end, and leaves the pipeline. Returns the channel; `nil`
    /// if it is closed.
    func leave() -> (any Channel)? {
        session = nil
        guard let context else { return nil }
        let channel = context.channel
        // A read that has been deferred is not lost.
        if readIsPending { context.read() }
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
        return channel.isActive ? channel : nil
    }

    /// Detaches the socket from its session and closes it.
    func discard() {
        session = nil
        close()
    }
}
