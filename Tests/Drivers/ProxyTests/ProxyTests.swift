import Determinism
import Impairment
import LinkModel
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import TCPModel
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

/// Conditions with a delay that tests can measure.
let delayed = Conditions(
    up: DirectionConditions(rate: .kilobits(8_000), delay: .milliseconds(30)),
    down: DirectionConditions(rate: .kilobits(8_000), delay: .milliseconds(20)))
/// The path of a connection's bytes.
enum Path: CaseIterable {
    /// The fast path.
    case fast
    /// SwiftNIO, without conditions.
    case swiftNIO
    /// The modelled link, with a delay.
    case link

    var conditions: Conditions { self == .link ? delayed : .clear }
    var allowsFastPath: Bool { self == .fast }
}

private let dead = Conditions(up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one))
private let message = Array("GET / HTTP/1.1\r\n\r\n".utf8)

@Suite(.tags(.proxies), .timeLimit(.minutes(10))) struct ProxyTests {
    @Test(arguments: Path.allCases) func carriesBytesBothWays(_ path: Path) async throws {
        try await withProxy(path.conditions, allowsFastPath: path.allowsFastPath) { proxy, listener in
            let start = ContinuousClock.now
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(message)
                let server = try listener.accept()
                #expect(try server.receive(exactly: message.count) == message)
                try server.send(Array("result".utf8))
                #expect(try client.receive(exactly: 6) == Array("result".utf8))
            }
            // At least two round trips of 50 ms.
            if path == .link { #expect(ContinuousClock.now - start >= .milliseconds(100)) }
        }
    }

    @Test(arguments: Path.allCases)
    func aHalfClosedClientReceivesTheResponse(_ path: Path) async throws {
        try await withProxy(path.conditions, allowsFastPath: path.allowsFastPath) { proxy, listener in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(message)
                client.finish()
                let server = try listener.accept()
                #expect(try server.receiveToEnd() == message)
                let response = [UInt8](repeating: 42, count: 300_000)
                try server.send(response)
                server.finish()
                #expect(try client.receiveToEnd() == response)
            }
            try await eventually("the session has ended") { await proxy.status().connectionsOpen == 0 }
        }
    }

    @Test(arguments: Path.allCases)
    func aHalfClosedServerReceivesTheRequest(_ path: Path) async throws {
        try await withProxy(path.conditions, allowsFastPath: path.allowsFastPath) { proxy, listener in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let server = try listener.accept()
                try server.send(message)
                server.finish()
                #expect(try client.receiveToEnd() == message)
                try client.send(message)
                client.finish()
                #expect(try server.receiveToEnd() == message)
            }
            try await eventually("the session has ended") { await proxy.status().connectionsOpen == 0 }
        }
    }

    @Test(arguments: Path.allCases) func aClientsResetReachesTheServer(_ path: Path) async throws {
        try await withProxy(path.conditions, allowsFastPath: path.allowsFastPath) { proxy, listener in
            try await blocking {
                var client: TestSocket? = try TestSocket.connect(port: proxy.address.port)
                try client?.send(message)
                let server = try listener.accept()
                #expect(try server.receive(exactly: message.count) == message)
                client?.resetOnClose()
                client = nil
                #expect(throws: TestSocket.Failure(call: "recv", code: ECONNRESET)) { try server.receive() }
            }
            try await eventually("the session has ended") { await proxy.status().connectionsOpen == 0 }
        }
    }

    @Test(arguments: Path.allCases) func aServersResetReachesTheClient(_ path: Path) async throws {
        try await withProxy(path.conditions, allowsFastPath: path.allowsFastPath) { proxy, listener in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(message)
                var server: TestSocket? = try listener.accept()
                #expect(try server?.receive(exactly: message.count) == message)
                server?.resetOnClose()
                server = nil
                #expect(throws: TestSocket.Failure(call: "recv", code: ECONNRESET)) { try client.receive() }
            }
            try await eventually("the session has ended") { await proxy.status().connectionsOpen == 0 }
        }
    }

    /// Bytes in flight at the reset: less than the initial window of ten segments, and most of the initial send buffer.
    @Test(arguments: [8 * 1448, 80_000]) func aResetDoesNotOvertakeTheDataBeforeIt(flight: Int) async throws {
        try await withProxy(delayed) { proxy, listener in
            let (client, server) = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let server = try listener.accept()
                try client.send(message)
                #expect(server.isReadable(within: 5000))
                try client.send([UInt8](repeating: 1, count: flight))
                return (client, server)
            }
            try await eventually("the proxy has read everything") {
                let link = await proxy.status().link
                return link.bytesHeld + link.bytesCarried.up == message.count + flight
            }
            client.reset()
            let end = try await blocking { server.receiveToFailure() }
            #expect(end.code == ECONNRESET)
            #expect(end.bytes == message.count + flight)
        }
    }

    @Test func aClientThatClosesWithDataInFlightHasItDelivered() async throws {
        try await withProxy(delayed) { proxy, listener in
            try await blocking {
                let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
                var client: TestSocket? = try TestSocket.connect(port: proxy.address.port)
                let server = try listener.accept()
                try client?.send(bytes)
                client = nil
                #expect(try server.receiveToEnd() == bytes)
            }
        }
    }

    @Test func at100PercentLossNothingArrivesUntilTheOutageEnds() async throws {
        try await withProxy(delayed) { proxy, listener in
            let (client, server) = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let server = try listener.accept()
                try client.send(message)
                #expect(try server.receive(exactly: message.count) == message)
                return (client, server)
            }
            await proxy.setConditions(dead)
            #expect(await proxy.status().link.hasAnyOutage)
            try await blocking {
                try client.send(message)
                try server.send(message)
                #expect(!server.isReadable(within: 300) && !client.isReadable(within: 1))
            }
            await proxy.setConditions(delayed)
            try await blocking { () throws -> Void in
                #expect(try server.receive(exactly: message.count) == message)
                #expect(try client.receive(exactly: message.count) == message)
            }
        }
    }

    @Test func theSameSeedLosesTheSamePackets() async throws {
        /// Returns the fates of a connection's first packets upstream.
        func fates(_ seed: UInt64) async throws -> [PacketRecord.Fate] {
            let (listener, port) = try TestSocket.listen()
            var configuration = ProxyConfiguration(
                listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
                conditions: Conditions(
                    up: DirectionConditions(delay: .milliseconds(1), loss: Probability(partsPerMillion: 200_000)!),
                    down: .clear))
            configuration.seed = seed
            let seen = NIOLockedValueBox<[PacketRecord.Fate]>([])
            configuration.onPacket = { packet in
                if packet.record.direction == .up { seen.withLockedValue { $0.append(packet.record.fate) } }
            }
            let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send([UInt8](repeating: 1, count: 60_000))
                _ = try listener.accept().receive(exactly: 60_000)
            }
            await proxy.stop()
            // The packets depend on when the sockets were read; the random draws do not.
            return Array(seen.withLockedValue { $0 }.prefix(40))
        }
        let first = try await fates(7)
        #expect(first.count == 40 && first.contains(.lost) && first.contains(.arrives))
        #expect(try await fates(7) == first)
        #expect(try await fates(8) != first)
    }

    /// Runs `body` with a proxy whose upstream refuses.
    private func withRefusingUpstream(
        _ path: Path, _ unreachableUpstream: UnreachableUpstream, _ body: (Proxy) async throws -> Void
    ) async throws {
        let port = try TestSocket.unusedPort()  // no listener
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
            conditions: path.conditions)
        configuration.allowsFastPath = path.allowsFastPath
        configuration.unreachableUpstream = unreachableUpstream
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        do {
            try await body(proxy)
        } catch {
            await proxy.stop()
            throw error
        }
        await proxy.stop()
    }

    @Test(arguments: Path.allCases) func aRefusedUpstreamResetsTheClient(_ path: Path) async throws {
        try await withRefusingUpstream(path, .reset) { proxy in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                #expect(throws: TestSocket.Failure(call: "recv", code: ECONNRESET)) { try client.receive() }
            }
            try await eventually("the session has ended") { await proxy.status().connectionsOpen == 0 }
            #expect(await proxy.status().dialsFailed == 1)
        }
    }

    /// A RST can arrive before the client's `connect()` returns; `connect()` succeeds before a FIN.
    @Test(arguments: Path.allCases) func aRefusedUpstreamClosesTheClientWithAFINIfConfigured(_ path: Path) async throws
    {
        let count = path == .link ? 20 : 200
        try await withRefusingUpstream(path, .close) { proxy in
            try await blocking {
                for _ in 0..<count {
                    let client = try TestSocket.connect(port: proxy.address.port)
                    #expect(try client.receive().isEmpty)
                }
            }
            try await eventually("all sessions have ended") { await proxy.status().connectionsOpen == 0 }
            #expect(await proxy.status().dialsFailed == count)
        }
    }

    @Test(arguments: Path.allCases)
    func aClientThatDoesNotReadPausesItsServerOnly(_ path: Path) async throws {
        let buffers = BufferLimits(bytesMaxTotal: 400_000, bytesMaxPerDirection: 100_000, bytesMinPerDirection: 50_000)
        try await withProxy(path.conditions, buffers: buffers, allowsFastPath: path.allowsFastPath) { proxy, listener in
            let (client, server) = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                client.shrinkReceiveBuffer()
                return (client, try listener.accept())
            }
            // The server sends until the proxy stops reading; the thread ends when the socket is closed.
            let sending = Task {
                try? await blocking { while true { try server.send([UInt8](repeating: 9, count: 100_000)) } }
            }
            var carried = -1
            try await eventually("the server is paused") {
                let now = await proxy.status().link.bytesCarried.down
                defer { carried = now }
                try await Task.sleep(for: .milliseconds(200))
                return now > 0 && now == carried
            }
            // The share, and one read cycle before the pause takes effect.
            let readCycle = path != .link ? 4 * 65_536 : 16_384
            #expect(await proxy.status().link.bytesHeld <= 100_000 + readCycle)
            try await blocking {
                let other = try TestSocket.connect(port: proxy.address.port)
                let otherServer = try listener.accept()
                try other.send(message)
                #expect(try otherServer.receive(exactly: message.count) == message)
                // The transfer continues when the client reads.
                client.growReceiveBuffer()
                #expect(try client.receive(exactly: 150_000).allSatisfy { $0 == 9 })
            }
            await proxy.stop(grace: .zero)
            _ = await sending.value
        }
    }

    @Test func atTheLimitNewConnectionsWaitForASlot() async throws {
        try await withProxy(.clear, connectionsMax: 2) { proxy, listener in
            try await blocking {
                var first: TestSocket? = try TestSocket.connect(port: proxy.address.port)
                let second = try TestSocket.connect(port: proxy.address.port)
                let third = try TestSocket.connect(port: proxy.address.port)
                let servers = [try listener.accept(), try listener.accept()]
                try third.send(message)
                #expect(!listener.isReadable(within: 200), "the third waits")
                first = nil
                // One of the two servers receives the FIN.
                for _ in 0..<1000 {
                    guard let left = servers.first(where: { $0.isReadable(within: 10) }) else { continue }
                    left.finish()
                    break
                }
                _ = first
                let server = try listener.accept()
                #expect(try server.receive(exactly: message.count) == message)
                _ = second
            }
            #expect(await proxy.status().connectionsAccepted == 3)
        }
    }

    @Test func aChangeIsInEffectWhenTheCallReturns() async throws {
        try await withProxy(.clear) { proxy, listener in
            let (client, server) = try await blocking {
                (try TestSocket.connect(port: proxy.address.port), try listener.accept())
            }
            for _ in 0..<3 {
                let slow = Conditions(
                    up: DirectionConditions(delay: .milliseconds(60)),
                    down: DirectionConditions(delay: .milliseconds(60)))
                await proxy.setConditions(slow)
                let took = try await blocking {
                    try ContinuousClock().measure {
                        try client.send(message)
                        #expect(try server.receive(exactly: message.count) == message)
                    }
                }
                #expect(took >= .milliseconds(60))
                await proxy.setConditions(.clear)
            }
        }
    }

    @Test func stoppingDeliversBytesInFlightAndClosesAllConnections() async throws {
        // Not HTTP: no response is outstanding.
        let bytes: [UInt8] = [1, 2, 3]
        let veryDelayed = Conditions(up: DirectionConditions(delay: .seconds(1)), down: .clear)
        try await withProxy(veryDelayed) { proxy, listener in
            let (client, server) = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let server = try listener.accept()
                try client.send(bytes)
                return (client, server)
            }
            try await eventually("the proxy has read it") { await proxy.status().link.bytesHeld > 0 }
            let allArrived = await proxy.stop(grace: .seconds(30))
            #expect(allArrived)
            try await blocking { () throws -> Void in
                #expect(try server.receiveToEnd() == bytes)
                #expect(try client.receiveToEnd().isEmpty)
                #expect(throws: TestSocket.Failure(call: "connect", code: ECONNREFUSED)) {
                    try TestSocket.connect(port: proxy.address.port)
                }
            }
            #expect(await proxy.status().connectionsOpen == 0)
        }
    }

    @Test func stoppingDoesNotWaitForADialInProgress() async throws {
        // A listener that does not accept and whose backlog fills: further SYNs are dropped.
        let (listener, port) = try TestSocket.listen(backlog: 0)
        let proxy = try await Proxy.start(
            ProxyConfiguration(
                listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
                connectTimeout: .hours(1)),
            on: MultiThreadedEventLoopGroup.singleton)
        let clients = try await blocking { try (0..<6).map { _ in try TestSocket.connect(port: proxy.address.port) } }
        try await eventually("all are accepted") { await proxy.status().connectionsOpen == 6 }
        await proxy.stop(grace: .zero)
        #expect(await proxy.status().connectionsOpen == 0)
        #expect(await proxy.status().dialsFailed == 0, "cancelled dials are not failures")
        _ = (listener, clients)
    }

    @Test func startingThrowsErrorsWithCauseAndAdvice() async throws {
        let (listener, port) = try TestSocket.listen()
        let group = MultiThreadedEventLoopGroup.singleton
        let taken = await #expect(throws: ProxyError.self) {
            try await Proxy.start(
                ProxyConfiguration(
                    listen: Endpoint(host: "127.0.0.1", port: port), upstream: Endpoint(host: "127.0.0.1", port: 1)),
                on: group)
        }
        #expect(
            taken?.description.contains("cannot bind 127.0.0.1:\(port): address already in use (EADDRINUSE)") == true)
        let unknown = await #expect(throws: ProxyError.self) {
            try await Proxy.start(
                ProxyConfiguration(
                    listen: Endpoint(host: "127.0.0.1", port: 0),
                    upstream: Endpoint(host: "no.such.host.invalid", port: 1)),
                on: group)
        }
        #expect(unknown?.code == .cannotResolve)
        for upstream in ["127.0.0.1", "localhost"] {
            let itself = await #expect(throws: ProxyError.self) {
                try await Proxy.start(
                    ProxyConfiguration(
                        listen: Endpoint(host: "0.0.0.0", port: 59_999),
                        upstream: Endpoint(host: upstream, port: 59_999)),
                    on: group)
            }
            #expect(itself?.code == .upstreamIsProxy)
        }
        _ = listener
    }

    /// Connections end while others begin, on a link with conditions: a reused flow index must not carry bytes from one
    /// connection to another.
    @Test func aReusedFlowIndexDoesNotMixConnections() async throws {
        let brief = Conditions(
            up: DirectionConditions(delay: .microseconds(300)), down: DirectionConditions(delay: .microseconds(200)))
        try await withProxy(brief) { proxy, listener in
            let clients = 8
            let rounds = 60
            try await withThrowingTaskGroup(of: Void.self) { group in
                for worker in 0..<clients {
                    group.addTask {
                        try await blocking {
                            for _ in 0..<rounds {
                                let server = try listener.accept()
                                try server.send(try server.receiveToEnd())
                            }
                        }
                    }
                    group.addTask {
                        try await blocking { () throws -> Void in
                            for round in 0..<rounds {
                                let bytes = Array("worker \(worker) round \(round)".utf8)
                                let client = try TestSocket.connect(port: proxy.address.port)
                                try client.send(bytes)
                                client.finish()
                                #expect(try client.receiveToEnd() == bytes)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            try await eventually("no session is left") { await proxy.status().connectionsOpen == 0 }
            #expect(await proxy.status().link.bytesHeld == 0)
        }
    }

    @Test func stoppingResetsConnectionsWithUndeliveredBytes() async throws {
        try await withProxy(delayed) { proxy, listener in
            let (client, server) = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let server = try listener.accept()
                try client.send(message)
                #expect(try server.receive(exactly: message.count) == message)
                return (client, server)
            }
            await proxy.setConditions(dead)
            try await blocking { try client.send(message) }
            try await eventually("the proxy holds it") { await proxy.status().link.bytesHeld > 0 }
            let allArrived = await proxy.stop(grace: .seconds(5))
            #expect(!allArrived)
            try await blocking { #expect(server.receiveToFailure().code == ECONNRESET) }
        }
    }

    @Test func manyShortConnectionsLeaveNoSessions() async throws {
        try await withProxy(.clear) { proxy, listener in
            // Ends when accept fails: the listener is closed, or its time limit has passed.
            let serving = Task<Void, any Error> {
                try await blocking { () throws -> Void in
                    for _ in 0..<500 {
                        let server = try listener.accept()
                        let bytes = try server.receiveToEnd()
                        try server.send(bytes)
                    }
                }
            }
            try await blocking { () throws -> Void in
                for count in 1...500 {
                    let client = try TestSocket.connect(port: proxy.address.port)
                    try client.send([UInt8](repeating: 1, count: count))
                    client.finish()
                    #expect(try client.receiveToEnd().count == count)
                }
            }
            try await serving.value
            try await eventually("no session is left") { await proxy.status().connectionsOpen == 0 }
            #expect(await proxy.status().link.bytesHeld == 0)
        }
    }
}

@Suite struct EndpointTests {
    @Test(arguments: [
        ("127.0.0.1:80", "127.0.0.1", 80), ("localhost:8000", "localhost", 8000), (":9", "127.0.0.1", 9),
        ("8000", "127.0.0.1", 8000), ("[::1]:0", "::1", 0), ("0.0.0.0:65535", "0.0.0.0", 65535),
    ]) func parses(_ text: String, _ host: String, _ port: Int) {
        #expect(Endpoint(text) == Endpoint(host: host, port: port))
    }

    @Test(arguments: ["", "a:", "a:b", "a:65536", "::1:80", "[::1]", "[]:1", "a b:1", "http://x:1/", "1:-1", "x:٣"])
    func rejects(_ text: String) {
        #expect(Endpoint(text) == nil)
    }
}
