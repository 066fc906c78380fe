import Impairment
import LinkModel
import NIOCore
import NIOPosix
import ProxyServer
import TestSupport

/// A proxy between two plain sockets; stopped at the end, whatever happens.
func withProxy(
    _ conditions: Conditions, silence: SilenceMethod? = nil, connectionsMax: Int = 100,
    buffers: BufferLimits = BufferLimits(), _ body: @escaping (Proxy, TestSocket) async throws -> Void
) async throws {
    let (listener, port) = try TestSocket.listen()
    var configuration = ProxyConfiguration(
        listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
        conditions: conditions, connectionsMax: connectionsMax, connectTimeout: .seconds(2), buffers: buffers)
    configuration.silence = silence
    let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
    do {
        try await body(proxy, listener)
    } catch {
        await proxy.stop(grace: .zero)
        throw error
    }
    await proxy.stop(grace: .zero)
}
