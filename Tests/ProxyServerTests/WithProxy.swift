import Impairment
import LinkModel
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import ProxyServer

/// A proxy between two plain sockets; stopped at the end, whatever happens.
func withProxy(
    _ conditions: Conditions, silence: SilenceMethod? = nil, connectionsMax: Int = 100,
    buffers: BufferLimits = BufferLimits(), mayGoStraight: Bool = true,
    _ change: (inout ProxyConfiguration) -> Void = { _ in },
    _ body: @escaping (Proxy, TestSocket) async throws -> Void
) async throws {
    let (listener, port) = try TestSocket.listen()
    var configuration = ProxyConfiguration(
        listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
        conditions: conditions, connectionsMax: connectionsMax, connectTimeout: .seconds(2), buffers: buffers)
    configuration.silence = silence
    configuration.mayGoStraight = mayGoStraight
    change(&configuration)
    let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
    do {
        try await body(proxy, listener)
    } catch {
        await proxy.stop(grace: .zero)
        throw error
    }
    await proxy.stop(grace: .zero)
}

/// Waits, as long as a minute, for something that becomes true on another thread.
func eventually(_ what: String, _ isTrue: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while try await !isTrue() {
        if ContinuousClock.now > deadline {
            Issue.record("not within a minute: \(what)")
            return
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}
