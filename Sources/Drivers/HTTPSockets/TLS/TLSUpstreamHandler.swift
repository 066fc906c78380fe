#if TLS
package import ForwardProxy
package import NIOCore
package import NIOSSL
internal import NIOTLS

/// The handler between the TLS of a channel to a server and the handler of its plain bytes.
///
/// Reports the channel as active when the handshake is complete, and passes the plain bytes through an
/// ``ForwardProxy/UpstreamRewriter``, if there is one. A handshake that fails fails the dial with a
/// ``ForwardProxy/TLSFailure``.
package final class TLSUpstreamHandler: ChannelDuplexHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer
    package typealias OutboundIn = ByteBuffer
    package typealias OutboundOut = ByteBuffer

    private enum State {
        case connecting, handshaking, established
        /// The handshake has failed, or the upstream has refused the connection after it.
        case failed
        /// The channel is being closed.
        case closing
    }

    private let authority: OriginAuthority
    private let tls: NIOSSLClientHandler
    private let deadline: NIODeadline
    private let timeout: TimeAmount
    private var rewriter: UpstreamRewriter?
    private var state = State.connecting
    private var timer: Scheduled<Void>?
    private let handshake: EventLoopPromise<Void>
    /// Called if the upstream refuses the connection after the handshake (TLS 1.3: a missing or unknown certificate of
    /// the client) and before its first byte, with the bytes of the client so far. Returns whether the channel has been
    /// replaced.
    private let onRefusal: (TLSFailure, ByteBuffer) -> Bool
    private let onRewriting: (UpstreamRewriter.Action) -> Void
    /// The bytes of the client until the first byte of the upstream; `nil` if they are too many.
    private var sent: ByteBuffer? = ByteBuffer()
    private var upstreamHasSent = false
    /// Whether the upstream has ended its stream without close_notify.
    package private(set) var isTruncated = false
    /// The application protocol that the upstream has chosen.
    package private(set) var negotiatedProtocol: String?
    private var isAborting = false

    /// The most bytes of the client that are kept for ``onRefusal``.
    package static let sentBytesMax = 64 << 10

    package init(
        _ authority: OriginAuthority, _ tls: NIOSSLClientHandler, within timeout: TimeAmount,
        on eventLoop: any EventLoop, rewriter: UpstreamRewriter? = nil,
        onRefusal: @escaping (TLSFailure, ByteBuffer) -> Bool,
        onRewriting: @escaping (UpstreamRewriter.Action) -> Void = { _ in }
    ) {
        self.authority = authority
        self.tls = tls
        self.timeout = timeout
        deadline = .now() + timeout
        handshake = eventLoop.makePromise()
        self.onRefusal = onRefusal
        self.onRewriting = onRewriting
        self.rewriter = rewriter
    }

    /// The version of the connection, and the certificate of the upstream.
    package var version: TLSVersion? { tls.tlsVersion }
    package var peerCertificate: NIOSSLCertificate? { tls.peerCertificate }

    /// Succeeds when the handshake is complete.
    package var handshakeResult: EventLoopFuture<Void> { handshake.futureResult }

    // MARK: Handshake

    package func handlerAdded(context: ChannelHandlerContext) { if context.channel.isActive { begin(context) } }

    package func channelActive(context: ChannelHandlerContext) { begin(context) }

    private func begin(_ context: ChannelHandlerContext) {
        guard state == .connecting else { return }
        state = .handshaking
        let timeout = timeout
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) {
            self.fail(ChannelError.connectTimeout(timeout), context)
        }
    }

    private func complete(_ context: ChannelHandlerContext) {
        guard state == .handshaking else { return }
        state = .established
        timer?.cancel()
        context.fireChannelActive()
        handshake.succeed()
    }

    private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
        guard state == .connecting || state == .handshaking else { return }
        state = .failed
        timer?.cancel()
        handshake.fail(error)
        abort(context)
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        timer?.cancel()
        // The result of a channel that has never been active.
        if state == .connecting || state == .handshaking { handshake.fail(ChannelError.ioOnClosedChannel) }
        state = .failed
    }

    /// Closes the channel without close_notify.
    private func abort(_ context: ChannelHandlerContext) {
        isAborting = true
        close(context: context, mode: .all, promise: nil)
    }

    /// Prepares an abortive close: the upstream gets no close_notify.
    package func closesAbortively() { isAborting = true }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted(let name):
            negotiatedProtocol = name
            complete(context)
        case ChannelEvent.inputClosed where state == .established: finish(context)
        case is TLSUserEvent, ChannelEvent.inputClosed: break
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch (state, error) {
        case (.connecting, _), (.handshaking, _):
            fail(TLSFailure(error, tls.peerCertificate, upstream: authority), context)
        case (.established, NIOSSLError.uncleanShutdown): isTruncated = true
        case (.established, is BoringSSLError) where !upstreamHasSent:
            guard let sent, onRefusal(TLSFailure(error, nil, upstream: authority), sent) else {
                return context.fireErrorCaught(error)
            }
            state = .failed
        case (.failed, _): break
        default: context.fireErrorCaught(error)
        }
    }

    package func channelInactive(context: ChannelHandlerContext) {
        fail(TLSFailure.closed, context)
        if state == .failed { return }
        if isCutShort { context.fireErrorCaught(NIOSSLError.uncleanShutdown) }
        context.fireChannelInactive()
    }

    // MARK: The upstream's stream

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard state == .established else { return }
        upstreamHasSent = true
        sent = nil
        guard rewriter != nil else { return context.fireChannelRead(data) }
        rewriter?.receivedFromUpstream(unwrapInboundIn(data))
        // The response to an upgrade releases bytes of the client.
        if perform(context) { context.flush() }
    }

    /// Whether the upstream's stream has ended without close_notify inside a message.
    private var isCutShort: Bool { isTruncated && rewriter?.isBetweenResponses == false }

    /// Handles the end of the upstream's stream. Without close_notify it may be the work of an attacker, unless a message
    /// has just ended (RFC 9112, 9.8): the session sees an aborted connection then.
    private func finish(_ context: ChannelHandlerContext) {
        if isCutShort { return abort(context) }
        if rewriter != nil {
            isTruncated = false
            rewriter?.upstreamFinished()
            perform(context)
        }
        context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
    }

    // MARK: The client's stream

    package func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let bytes = unwrapOutboundIn(data)
        keep(bytes)
        if bytes.readableBytes == 0 || rewriter == nil { return context.write(data, promise: promise) }
        rewriter?.receivedFromClient(bytes)
        perform(context)
        // An empty write is complete when all earlier ones are.
        if let promise { context.write(wrapOutboundOut(ByteBuffer()), promise: promise) }
    }

    private func keep(_ bytes: ByteBuffer) {
        guard let count = sent?.readableBytes else { return }
        sent = count + bytes.readableBytes > Self.sentBytesMax ? nil : sent
        sent?.writeImmutableBuffer(bytes)
    }

    package func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if mode == .output {
            rewriter?.clientFinished()
            perform(context)
            return context.close(mode: mode, promise: promise)
        }
        if state == .established { state = .closing }
        if state == .connecting || state == .handshaking { fail(ChannelError.ioOnClosedChannel, context) }
        guard isAborting, let tls = try? context.pipeline.syncOperations.context(handler: tls) else {
            return context.close(mode: mode, promise: promise)
        }
        // The TLS handler would send close_notify and await the upstream's.
        tls.close(mode: mode, promise: promise)
    }

    /// Executes the actions of the rewriter. Returns whether bytes for the upstream are among them.
    @discardableResult
    private func perform(_ context: ChannelHandlerContext) -> Bool {
        var hasWritten = false
        while let action = rewriter?.takeAction() {
            switch action {
            case .send(let bytes):
                context.write(wrapOutboundOut(bytes), promise: nil)
                hasWritten = true
            case .reply(let bytes): context.fireChannelRead(wrapInboundOut(bytes))
            case .rewrote, .passesUnchanged: onRewriting(action)
            }
        }
        return hasWritten
    }
}
#endif
