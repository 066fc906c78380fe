internal import NIOCore
internal import NIOPosix
internal import Proxy

/// A TCP server on the loopback interface that sends back every byte.
struct EchoServer {
    let address: Endpoint
    private let channel: any Channel

    static func start(on group: any EventLoopGroup) async throws -> EchoServer {
        let channel = try await ServerBootstrap(group: group)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(EchoHandler())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return EchoServer(address: Endpoint(host: "127.0.0.1", port: channel.localAddress?.port ?? 0), channel: channel)
    }

    func stop() async throws { try await channel.close() }

    private final class EchoHandler: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.write(wrapOutboundOut(unwrapInboundIn(data)), promise: nil)
        }

        func channelReadComplete(context: ChannelHandlerContext) { context.flush() }
    }
}
