internal import LinkModel
internal import NIOCore
internal import NIOPosix
internal import ProxyServer

/// A server that sends back whatever it gets.
struct EchoServer {
    let address: Endpoint
    private let channel: any Channel

    static func start(on group: any EventLoopGroup) async throws -> EchoServer {
        let channel = try await ServerBootstrap(group: group)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return EchoServer(address: Endpoint(host: "127.0.0.1", port: channel.localAddress?.port ?? 0), channel: channel)
    }

    func stop() async throws { try await channel.close() }

    private final class Echo: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.write(wrapOutboundOut(unwrapInboundIn(data)), promise: nil)
        }

        func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
    }
}

/// A client that times one echo on a connection of its own.
enum EchoClient {
    /// From connect() to the last byte of the echo of `size` bytes.
    static func time(ofBytes size: Int, through address: Endpoint, on group: any EventLoopGroup) async throws
        -> Nanoseconds
    {
        let eventLoop = group.next()
        let done = eventLoop.makePromise(of: NIODeadline.self)
        let start = NIODeadline.now()
        do {
            let channel = try await ClientBootstrap(group: eventLoop)
                .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(Counter(size, done))
                    }
                }
                .connect(to: SocketAddress(ipAddress: address.host, port: address.port)).get()
            try await channel.writeAndFlush(ByteBuffer(repeating: UInt8(ascii: "."), count: size))
            let end = try await done.futureResult.get()
            channel.close(promise: nil)
            return Nanoseconds((end - start).nanoseconds)
        } catch {
            done.fail(error)
            throw error
        }
    }

    private final class Counter: ChannelInboundHandler {
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

        func channelInactive(context: ChannelHandlerContext) { done.fail(ChannelError.eof) }
    }
}
