internal import Determinism
internal import NIOCore
internal import NIOPosix
internal import Proxy

/// A client that times one echo on a new connection.
enum EchoClient {
    /// The echo did not arrive within the timeout.
    struct TimeoutError: Error {}

    /// Returns the time from connect() to the last byte of an echo of `size` bytes.
    static func time(
        ofBytes size: Int, through address: Endpoint, timeout: TimeAmount, on group: any EventLoopGroup
    ) async throws -> Nanoseconds {
        let eventLoop = group.next()
        let done = eventLoop.makePromise(of: NIODeadline.self)
        let start = NIODeadline.now()
        let timer = eventLoop.scheduleTask(in: timeout) { done.fail(TimeoutError()) }
        defer { timer.cancel() }
        do {
            let channel = try await ClientBootstrap(group: eventLoop)
                .connectTimeout(timeout)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(CountingHandler(size, done))
                    }
                }
                .connect(to: SocketAddress(ipAddress: address.host, port: address.port)).get()
            defer { channel.close(promise: nil) }
            try await channel.writeAndFlush(ByteBuffer(repeating: UInt8(ascii: "."), count: size))
            let end = try await done.futureResult.get()
            return Nanoseconds((end - start).nanoseconds)
        } catch {
            done.fail(error)
            throw error
        }
    }

    private final class CountingHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private var left: Int
        private let done: EventLoopPromise<NIODeadline>

        init(_ size: Int, _ done: EventLoopPromise<NIODeadline>) {
            left = size
            self.done = done
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            left -= unwrapInboundIn(data).readableBytes
            if left <= 0 { done.succeed(.now()) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            done.fail(error)
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { done.fail(ChannelError.eof) }
    }
}
