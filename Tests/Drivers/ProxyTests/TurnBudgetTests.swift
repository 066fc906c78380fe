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

    /// Streams of HTTP/2 that are reset at once (CVE-2023-44487) are much work in few bytes.
    @Test func resetStreamsDoNotStopAnotherConnection() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let rule = FaultRule(method: "POST", path: "/never", point: .beforeRequest, action: .reset)
        let (proxy, listener) = try await Self.start(on: group)
        _ = try await proxy.addFaultRule(rule)
        func connect() async throws -> (TestSocket, TestSocket) {
            try await blocking { (try TestSocket.connect(port: proxy.address.port), try listener.accept()) }
        }
        var attack = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
        for stream in stride(from: UInt32(1), to: 120_000, by: 2) {
            let identifier = (0..<4).map { UInt8(truncatingIfNeeded: stream >> (24 - 8 * UInt32($0))) }
            // HEADERS with END_STREAM and END_HEADERS: GET http /; RST_STREAM with CANCEL.
            attack += [0, 0, 3, 1, 5] + identifier + [0x82, 0x86, 0x84]
            attack += [0, 0, 4, 3, 0] + identifier + [0, 0, 0, 8]
        }
        let (client, server) = try await connect()
        let (attacker, victim) = try await connect()
        let (bytes, isOver) = (attack, NIOLockedValueBox(false))
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await blocking { try attacker.send(bytes) } }
            tasks.addTask {
                try await blocking {
                    try victim.send([0, 0, 0, 4, 0, 0, 0, 0, 0])
                    _ = try victim.receive(exactly: bytes.count)
                }
                isOver.withLockedValue { $0 = true }
            }
            let start = ContinuousClock.now
            var longest = Duration.zero
            while !isOver.withLockedValue({ $0 }) {
                let sent = ContinuousClock.now
                try await blocking {
                    try client.send([1, 2, 3])
                    #expect(try server.receive(exactly: 3) == [1, 2, 3])
                }
                longest = max(longest, ContinuousClock.now - sent)
            }
            let total = ContinuousClock.now - start
            try await tasks.waitForAll()
            #expect(longest * 2 < total, "one of the round trips during \(total) took \(longest)")
        }
        await proxy.stop(grace: .zero)
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
