#if TLS
internal import DequeModule
internal import NIOCore
internal import NIOEmbedded
internal import NIOSSL
internal import NIOTLS

/// The server's end of a client's TLS, without a socket: bytes of TLS go in and plain bytes come out, and back.
///
/// NIO's handler of TLS needs a channel. An embedded one has no clock and no thread, so that every call returns after its
/// effects. Used on one event loop only; ``close()`` releases the channel.
final class TLSTerminator {
    /// What the client has done.
    enum Event {
        /// The handshake is complete.
        case established
        case bytes(ByteBuffer)
        /// The client has sent close_notify.
        case finished
        case failed(any Error)
    }

    private let channel: EmbeddedChannel
    private let transport = Transport()
    private let application = Application()
    private var isClosed = false

    init(_ context: NIOSSLContext) throws {
        channel = EmbeddedChannel()
        channel.allowRemoteHalfClosure = true
        try channel.pipeline.syncOperations.addHandlers([
            transport, NIOSSLServerHandler(context: context), application,
        ])
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 443), promise: nil)
    }

    /// Processes bytes of TLS.
    func receive(_ bytes: ByteBuffer) {
        guard !isClosed, channel.isActive else { return }
        channel.pipeline.fireChannelRead(bytes)
        channel.pipeline.fireChannelReadComplete()
    }

    /// Encrypts bytes for the client; before the end of the handshake they wait.
    func send(_ bytes: ByteBuffer) {
        guard !isClosed, channel.isActive else { return }
        channel.pipeline.writeAndFlush(bytes, promise: nil)
    }

    /// Sends close_notify.
    func finish() {
        guard !isClosed, channel.isActive else { return }
        channel.pipeline.close(mode: .output, promise: nil)
    }

    func takeEvent() -> Event? { application.events.popFirst() }

    /// Returns the next bytes of TLS for the client.
    func takeBytes() -> ByteBuffer? { transport.bytes.popFirst() }

    /// Releases the channel, without close_notify.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        // The handler of TLS would await the client's close_notify.
        if channel.isActive { transport.context?.close(promise: nil) }
        // The handlers are removed in a later turn of the loop; the timers of TLS must not outlive it.
        channel.embeddedEventLoop.advanceTime(by: Self.timersMax)
        application.events = []
    }

    /// More than the longest timer of TLS.
    private static let timersMax = TimeAmount.hours(1)

    /// The end of the pipeline towards the client.
    private final class Transport: ChannelOutboundHandler {
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        var bytes = Deque<ByteBuffer>()
        private(set) var context: ChannelHandlerContext?

        func handlerAdded(context: ChannelHandlerContext) { self.context = context }

        func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

        func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
            let written = unwrapOutboundIn(data)
            if written.readableBytes > 0 { bytes.append(written) }
            promise?.succeed()
        }

        func flush(context: ChannelHandlerContext) {}

        func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
            // The embedded channel has no half-closed state.
            if mode == .output { promise?.succeed() } else { context.close(mode: mode, promise: promise) }
        }
    }

    /// The end of the pipeline towards the upstream.
    private final class Application: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        var events = Deque<Event>()

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { events.append(.bytes(unwrapInboundIn(data))) }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            switch event {
            case TLSUserEvent.handshakeCompleted: events.append(.established)
            case ChannelEvent.inputClosed: events.append(.finished)
            default: break
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { events.append(.failed(error)) }
    }
}
#endif
