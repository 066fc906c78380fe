import Impairment
import LinkModel
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Runs `body` with a proxy in front of a listening socket, and stops the proxy afterwards.
func withProxy(
    _ conditions: Conditions, synDropMethod: SYNDropMethod? = nil, connectionsMax: Int = 100,
    buffers: BufferLimits = BufferLimits(), allowsFastPath: Bool = true,
    _ configure: (inout ProxyConfiguration) -> Void = { _ in },
    _ body: @escaping (Proxy, TestSocket) async throws -> Void
) async throws {
    let (listener, port) = try TestSocket.listen()
    var configuration = ProxyConfiguration(
        listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
        conditions: conditions, connectionsMax: connectionsMax, connectTimeout: .seconds(2), buffers: buffers)
    configuration.synDropMethod = synDropMethod
    configuration.allowsFastPath = allowsFastPath
    configure(&configuration)
    let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
    do {
        try await body(proxy, listener)
    } catch {
        await proxy.stop(grace: .zero)
        throw error
    }
    await proxy.stop(grace: .zero)
}

/// Waits, for at most a minute, until a condition of another thread is true.
func eventually(_ condition: String, _ isTrue: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while try await !isTrue() {
        if ContinuousClock.now > deadline {
            Issue.record("not true within a minute: \(condition)")
            return
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
