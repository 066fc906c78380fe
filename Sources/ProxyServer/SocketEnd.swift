internal import Impairment
internal import LinkModel
internal import NIOCore
internal import SystemSockets

/// The handler of one of a session's two sockets.
///
/// Reports what the socket says, gates its reads, and closes it in the three ways a socket can end: the sending side
/// after everything written (FIN), at once and hard (RST), or because the peer did either.
final class SocketEnd: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let side: Side
    /// Let go when the channel is inactive.
    private var session: Session?
    private var context: ChannelHandlerContext?
    private var isPaused = false
    private var readIsOwed = false
    private var inputHasClosed = false
    private var hasFailed = false
    private var outputIsClosing = false
    private var outputHasClosed = false
    private var isActive = false
    private var isClosing = false
    /// Our FIN had been sent before the socket came here: NIO does not know of it.
    private let hadFinished: Bool

    init(_ side: Side, of session: Session, hadFinished: Bool = false) {
        self.side = side
        self.session = session
        self.hadFinished = hadFinished
        outputIsClosing = hadFinished
        outputHasClosed = hadFinished
    }

    // MARK: From the socket

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive {
            becomeActive()
        } else if side == .server {
            session?.upstreamIsDialling(self)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        // A channel that could not be registered is never active, and inactive neither.
        if side == .client, !isActive, let session {
            self.session = nil
            session.close(tellsLoss: false)
        }
    }

    func channelActive(context: ChannelHandlerContext) { becomeActive() }

    private func becomeActive() {
        guard !isActive else { return }
        isActive = true
        switch side {
        case .client: session?.clientIsActive(self)
        case .server: session?.upstreamIsActive(self)
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        session?.report(.bytes(unwrapInboundIn(data), from: side))
    }

    func channelReadComplete(context: ChannelHandlerContext) { session?.readCycleIsOver() }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event {
            inputHasClosed = true
            session?.report(.inputClosed(side))
            session?.readCycleIsOver()
            if hadFinished { context.close(promise: nil) }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { hasFailed = true }

    func channelInactive(context: ChannelHandlerContext) {
        // NIO closes the channel when both sides have sent their FIN, and reports the second one only by this.
        let closedInOrder = !hasFailed && outputHasClosed
        if closedInOrder && !inputHasClosed {
            session?.report(.inputClosed(side))
        } else if !closedInOrder {
            session?.report(.gone(side))
        }
        let ending = session
        session = nil
        ending?.channelIsInactive(side)
    }

    func connect(context: ChannelHandlerContext, to address: SocketAddress, promise: EventLoopPromise<Void>?) {
        // A dial that the loop detector must record is bound to its port before it connects.
        if let port = context.channel.localAddress?.port, port > 0 { session?.upstreamWillConnect(from: port) }
        context.connect(to: address, promise: promise)
    }

    /// Reads are asked for by the channel after each read cycle; while paused they are kept for later.
    func read(context: ChannelHandlerContext) {
        if isPaused {
            readIsOwed = true
        } else if session?.isBehind == true {
            if !readIsOwed { session?.readLater(self) }
            readIsOwed = true
        } else {
            context.read()
        }
    }

    /// Reads on if a read was put off and nothing else stands against it.
    func readIfOwed() {
        if !isPaused && readIsOwed {
            readIsOwed = false
            context?.read()
        }
    }

    // MARK: To the socket

    func write(_ buffer: ByteBuffer) { context?.write(wrapOutboundOut(buffer), promise: nil) }

    func flush() { context?.flush() }

    /// Reports when everything written so far has been sent: an empty write comes after all of it.
    func awaitDrain() {
        guard let context else { return }
        let sent = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: sent)
        sent.futureResult.assumeIsolated().whenSuccess {
            self.session?.report(.drained(self.side))
            self.session?.readCycleIsOver()
        }
    }

    /// Bytes written and not sent.
    var bytesUnsent: Int {
        (try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    }

    func pauseReading() { isPaused = true }

    func resumeReading() {
        isPaused = false
        readIfOwed()
    }

    /// Sends a FIN after everything written. The close waits for the last write: NIO drops what is still pending when
    /// the peer has closed its side already and the close becomes a full one.
    func closeOutput() {
        guard let context, !outputIsClosing else { return }
        outputIsClosing = true
        if bytesUnsent == 0 {
            outputHasClosed = true
            return context.close(mode: .output, promise: nil)
        }
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        written.futureResult.assumeIsolated().whenSuccess {
            self.outputHasClosed = true
            self.context?.close(mode: .output, promise: nil)
        }
    }

    /// Closes both ways after everything written.
    func closeAfterWrites() {
        guard let context, !isClosing else { return }
        isClosing = true
        let written = context.eventLoop.makePromise(of: Void.self)
        context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: written)
        written.futureResult.assumeIsolated().whenComplete { _ in self.context?.close(promise: nil) }
    }

    /// Sends a RST.
    func reset() {
        guard let context else { return }
        context.flush()
        ResetOnClose.arm(context.channel)
        context.close(promise: nil)
    }

    /// Sends a RST behind everything written: once the peer's kernel has acknowledged it, or has not for ``resetDelayMax``. A RST
    /// at once would drop what the system has not sent.
    func resetAfterWrites() {
        guard let context else { return }
        isPaused = true
        context.flush()
        resetOnceSent(until: .now() + Self.resetDelayMax, checkingAfter: Self.firstSentCheck)
    }

    /// How long a socket has to send what was written before its RST. As long as TCP's own retransmissions need on a lossy
    /// network; a receiver that does not read is not waited for longer.
    static let resetDelayMax = TimeAmount.seconds(5)
    /// When it is first asked again whether it has; each time later than before.
    private static let firstSentCheck = TimeAmount.milliseconds(2)

    private func resetOnceSent(until deadline: NIODeadline, checkingAfter pause: TimeAmount) {
        guard let context else { return }
        if (bytesUnsent == 0 && bytesUnacknowledged == 0) || NIODeadline.now() >= deadline { return reset() }
        context.eventLoop.assumeIsolated().scheduleTask(in: pause) {
            self.resetOnceSent(until: deadline, checkingAfter: min(pause * 2, .milliseconds(500)))
        }
    }

    /// Bytes that the system has been given and the peer has not acknowledged.
    private var bytesUnacknowledged: Int {
        let count = try? context?.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            SystemSocket.unacknowledgedBytes(of: $0)
        }
        return count.flatMap { $0 } ?? 0
    }

    /// Closes both ways.
    func close() { context?.close(promise: nil) }

    /// Closes a socket that its session does not take.
    func discard() {
        session = nil
        close()
    }
}
