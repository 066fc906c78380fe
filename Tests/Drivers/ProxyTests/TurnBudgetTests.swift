import Impairment
import LinkModel
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Proxies on one event loop share its time.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(5))) struct TurnBudgetTests {
    /// Starts a proxy without a fast path, and a listening socket as its upstream.
    private static func start(
        on group: any EventLoopGroup, _ configure: (inout ProxyConfiguration) -> Void = { _ in }
    ) async throws -> (Proxy, TestSocket) {
        let (listener, port) = try TestSocket.listen()
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port))
        configuration.allowsFastPath = false
        configure(&configuration)
        return (try await Proxy.start(configuration, on: group), listener)
    }

    /// Small pieces take a system call each, so four sliced downloads are far more work than fifty round trips.
    @Test func slicedDownloadsDoNotDelayAnotherProxyOfTheEventLoop() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let slicer = Toxic(
            name: "slicer", stream: .down, effect: .slicer(averageSize: 8, sizeVariation: 0, delay: 0))
        let (sliced, slicedServer) = try await Self.start(on: group) { $0.toxics = [slicer] }
        let (echo, echoServer) = try await Self.start(on: group)
        let (client, server) = try await blocking {
            (try TestSocket.connect(port: echo.address.port), try echoServer.accept())
        }
        let size = 200_000
        let finished = NIOLockedValueBox(0)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for _ in 0..<4 {
                let (down, up) = try await blocking {
                    (try TestSocket.connect(port: sliced.address.port), try slicedServer.accept())
                }
                tasks.addTask { try await blocking { try up.send([UInt8](repeating: 5, count: size)) } }
                tasks.addTask {
                    let received = try await blocking { try down.receive(exactly: size) }
                    #expect(received.count == size)
                    finished.withLockedValue { $0 += 1 }
                }
            }
            try await eventually("the downloads have begun") { await sliced.status().link.bytesCarried.down > 20_000 }
            for _ in 0..<50 {
                try await blocking {
                    try client.send([1, 2, 3])
                    #expect(try server.receive(exactly: 3) == [1, 2, 3])
                }
            }
            #expect(finished.withLockedValue { $0 } == 0, "the round trips ended before the downloads")
            try await tasks.waitForAll()
        }
        await sliced.stop(grace: .zero)
        await echo.stop(grace: .zero)
        try await group.shutdownGracefully()
    }

    /// Some connections are closed per turn; calls return before all are closed.
    @Test func manyConnectionsAreClosedOverSeveralTurns() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let (proxy, listener) = try await Self.start(on: group)
        let pairs = try await blocking {
            try (0..<300).map { _ in (try TestSocket.connect(port: proxy.address.port), try listener.accept()) }
        }
        try await eventually("all connections are open") { await proxy.status().connectionsOpen == 300 }
        await proxy.abortConnections()
        try await eventually("all connections are closed") { await proxy.status().connectionsOpen == 0 }
        for (client, server) in pairs {
            try await blocking {
                #expect(client.receiveToFailure().code == ECONNRESET)
                #expect(server.receiveToFailure().code == ECONNRESET)
            }
        }
        await proxy.close()
        try await group.shutdownGracefully()
    }
}
