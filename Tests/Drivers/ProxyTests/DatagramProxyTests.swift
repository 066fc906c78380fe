#if os(Linux)
import Determinism
import Impairment
import LinkModel
import NIOCore
import NIOPosix
import TCPModel
import TestSupport
import Testing

@testable import Proxy

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

private let slowLink = Conditions(
    up: DirectionConditions(delay: .milliseconds(40)), down: DirectionConditions(delay: .milliseconds(40)))

private func with(_ datagrams: DatagramConditions) -> Conditions {
    Conditions(up: .clear, down: .clear, datagrams: datagrams)
}

/// Datagrams through a live proxy, over real sockets.
@Suite(.tags(.proxies), .timeLimit(.minutes(10))) struct DatagramProxyTests {
    private static func withDatagrams(
        _ conditions: Conditions = .clear, protocols: ForwardedProtocols = .udp,
        _ configure: (inout ProxyConfiguration) -> Void = { _ in },
        _ body: (Proxy, TestDatagramSocket) async throws -> Void
    ) async throws {
        let server = try TestDatagramSocket()
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: server.port),
            conditions: conditions)
        configuration.protocols = protocols
        configure(&configuration)
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        do {
            try await body(proxy, server)
        } catch {
            await proxy.stop(grace: .zero)
            throw error
        }
        await proxy.stop(grace: .zero)
    }

    private static func status(_ proxy: Proxy) async throws -> DatagramStatus {
        try #require(await proxy.status().datagrams)
    }

    /// Sends a datagram to the server and back. Returns the port at which the server has seen the client.
    @discardableResult
    private static func exchange(_ client: TestDatagramSocket, _ server: TestDatagramSocket) throws -> Int {
        try client.send([1, 2, 3])
        let request = try #require(try server.receive())
        #expect(request.bytes == [1, 2, 3])
        try server.send([4, 5], to: request.port)
        #expect(try #require(try client.receive()).bytes == [4, 5])
        return request.port
    }

    /// Returns a port that no datagram socket has; those of `TestSocket.unusedPort()` are free for TCP only.
    private static func unusedPort() throws -> Int { try TestDatagramSocket().port }

    // MARK: Forwarding

    @Test(arguments: [Conditions.clear, slowLink]) func eachClientHasASessionOfItsOwn(_ conditions: Conditions)
        async throws
    {
        try await Self.withDatagrams(conditions) { proxy, server in
            let clients = try (0..<5).map { _ in try TestDatagramSocket(connectedTo: proxy.address.port) }
            var ports: Set<Int> = []
            for client in clients { ports.insert(try Self.exchange(client, server)) }
            for client in clients { #expect(ports.contains(try Self.exchange(client, server))) }
            #expect(ports.count == 5)
            let status = try await Self.status(proxy)
            #expect(status.sessions == 5 && status.counters.sessionsOpened == 5)
            #expect(status.counters.received.up == 10 && status.counters.sent.down == 10)
            let link = await proxy.status().link
            #expect(link.bytesRead.up == 30 && link.bytesCarried.down == 20)
            let connections = await proxy.connections()
            #expect(connections.map(\.number) == [0, 1, 2, 3, 4] && connections.allSatisfy(\.isDatagrams))
            #expect(Set(connections.compactMap(\.client?.port)) == Set(clients.map(\.port)))
        }
    }

    @Test(arguments: [Conditions.clear, slowLink])
    func datagramsOfAllLengthsArriveUnchangedAndInOrder(_ conditions: Conditions) async throws {
        try await Self.withDatagrams(conditions) { proxy, server in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            // Runs of equal length, of falling and of rising length, empty ones, and the longest.
            let lengths = [1200, 1200, 1200, 7, 0, 0, 3, 1200, 1300, 1200, 65_507, 1, 65_507, 1472, 1473]
            var generator = SeededGenerator(seed: 1)
            let sent = lengths.map { length in
                (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            }
            for (position, bytes) in sent.enumerated() {
                try client.send(bytes)
                // Most of the rest arrives as another batch of the socket.
                if position == 9 { try await Task.sleep(for: .milliseconds(20)) }
            }
            var port = 0
            for bytes in sent {
                let received = try #require(try server.receive())
                #expect(received.bytes == bytes, "\(bytes.count) bytes")
                port = received.port
            }
            for bytes in sent { try server.send(bytes, to: port) }
            for bytes in sent { #expect(try #require(try client.receive()).bytes == bytes, "\(bytes.count) bytes") }
        }
    }

    @Test func conditionsApplyToDatagrams() async throws {
        try await Self.withDatagrams(slowLink) { proxy, server in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            let start = ContinuousClock.now
            try Self.exchange(client, server)
            #expect(ContinuousClock.now - start >= .milliseconds(80))

            let numbers = PacketNumbers([3...4])
            await proxy.setConditions(Conditions(up: DirectionConditions(lostPackets: numbers), down: .clear))
            for number in 2...5 { try client.send([UInt8(number)]) }
            #expect(try server.receive()?.bytes == [2])
            #expect(try server.receive()?.bytes == [5])
            #expect(await proxy.status().link.counters.up.packetsLost == 2)

            await proxy.setConditions(.clear)
            await proxy.setOutage(PerDirection(up: true, down: false))
            try client.send([6])
            try await eventually("the datagram is lost") { await proxy.status().link.counters.up.packetsLost == 3 }
            await proxy.setOutage(PerDirection(up: false, down: false))
            try client.send([7])
            #expect(try server.receive()?.bytes == [7])
        }
    }

    @Test func connectionsAndDatagramsShareOnePort() async throws {
        let (listener, port) = try TestSocket.listen()
        let server = try TestDatagramSocket(port: port)
        try await Self.withDatagrams(protocols: [.tcp, .udp]) {
            $0.upstream = Endpoint(host: "127.0.0.1", port: port)
        } _: { proxy, _ in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            try Self.exchange(client, server)
            let connection = try TestSocket.connect(port: proxy.address.port)
            try connection.send([9])
            #expect(try listener.accept().receive(exactly: 1) == [9])
            #expect(await proxy.connections().map(\.isDatagrams) == [true, false])
        }
    }

    @Test func aPortOfAllAddressesRepliesFromTheAddressOfTheRequest() async throws {
        for conditions in [Conditions.clear, slowLink] {
            try await Self.withDatagrams(conditions) {
                $0.listen = Endpoint(host: "0.0.0.0", port: 0)
            } _: { proxy, server in
                for host in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
                    try Self.exchange(try TestDatagramSocket(connectedTo: proxy.address.port, host: host), server)
                }
            }
        }
    }

    @Test func theUpstreamMayHaveOneOfTheAddressesOfItsName() async throws {
        // 'localhost' is 127.0.0.1 and ::1; nothing listens on the first.
        let port = try Self.unusedPort()
        try await Self.withDatagrams {
            $0.upstream = Endpoint(host: "localhost", port: port)
        } _: { proxy, _ in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            try client.send([1])
            try await eventually("the second address is used") {
                try? client.send([1])
                return await proxy.status().dialsFailed > 0
            }
            #expect(try await Self.status(proxy).counters.unreachable > 0)
        }
    }

    // MARK: Sessions

    @Test func sessionsEndWhenTheyAreIdleAndMakeRoomForOthers() async throws {
        try await Self.withDatagrams(with(DatagramConditions(idle: .milliseconds(100)))) { proxy, server in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            let first = try Self.exchange(client, server)
            try await eventually("the session has ended") { try await Self.status(proxy).sessions == 0 }
            #expect(try Self.exchange(client, server) != first)
        }
        try await Self.withDatagrams {
            $0.datagrams.sessionsMax = 2
        } _: { proxy, server in
            let clients = try (0..<3).map { _ in try TestDatagramSocket(connectedTo: proxy.address.port) }
            let ports = try clients.map { try Self.exchange($0, server) }
            let status = try await Self.status(proxy)
            #expect(status.sessions == 2 && status.counters.sessionsEvicted == 1)
            #expect(try Self.exchange(clients[2], server) == ports[2])
            #expect(try Self.exchange(clients[0], server) != ports[0])
        }
    }

    @Test func theServerSeesAnotherPortAfterARebindOrADisconnect() async throws {
        try await Self.withDatagrams(with(DatagramConditions(rebind: .milliseconds(50)))) { proxy, server in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            let first = try Self.exchange(client, server)
            try await Task.sleep(for: .milliseconds(60))
            let second = try Self.exchange(client, server)
            #expect(second != first)
            await proxy.setConditions(.clear)
            await proxy.abortConnections()
            #expect(try Self.exchange(client, server) != second)
            let id = try #require(await proxy.connections().first).id
            #expect(await proxy.closeConnection(id, abortively: true))
            #expect(await !proxy.closeConnection(id, abortively: true))
            #expect(await proxy.connections().isEmpty)
        }
    }

    // MARK: Refusal

    /// Waits until a client's datagram is refused (ICMP port unreachable).
    private static func expectRefusal(_ client: TestDatagramSocket) async throws {
        try await eventually("the client's datagram is refused") {
            do {
                try client.send([1])
                return try client.receive(within: 20) != nil
            } catch let failure as TestSocket.Failure {
                return failure.code == ECONNREFUSED
            }
        }
    }

    @Test func aRefusalOfTheConditionsIsOneOfTheKernelAndEnds() async throws {
        let offline = Conditions(up: .clear, down: .clear, connectionPolicy: .offline)
        for conditions in [with(DatagramConditions(policy: .refuse)), offline] {
            try await Self.withDatagrams { proxy, server in
                let client = try TestDatagramSocket(connectedTo: proxy.address.port)
                let port = try Self.exchange(client, server)
                await proxy.setConditions(conditions)
                #expect(try await Self.status(proxy).isRefusing)
                try client.send([1])
                #expect(throws: TestSocket.Failure(call: "recv", code: ECONNREFUSED)) { try client.receive() }
                #expect(try server.receive(within: 20) == nil)
                await proxy.setConditions(.clear)
                #expect(try Self.exchange(client, server) == port)
            }
        }
    }

    @Test func aBlackholeLosesDatagramsSilently() async throws {
        try await Self.withDatagrams(with(DatagramConditions(policy: .blackhole))) { proxy, server in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            for _ in 0..<3 { try client.send([1]) }
            try await eventually("all are lost") { try await Self.status(proxy).counters.blackholed == 3 }
            #expect(try server.receive(within: 20) == nil && client.receive(within: 20) == nil)
            #expect(await proxy.status().link.counters.up.packetsLost == 3)
        }
    }

    @Test(arguments: [Conditions.clear, slowLink])
    func aServerThatIsNotThereIsRefusedAndMayStartLater(_ conditions: Conditions) async throws {
        let port = try Self.unusedPort()
        try await Self.withDatagrams(conditions) {
            $0.upstream = Endpoint(host: "127.0.0.1", port: port)
        } _: { proxy, _ in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            let start = ContinuousClock.now
            try await Self.expectRefusal(client)
            if conditions != .clear { #expect(ContinuousClock.now - start >= .milliseconds(80)) }
            #expect(try await Self.status(proxy).counters.unreachable > 0)
            #expect(await proxy.status().dialsFailed > 0)

            let server = try TestDatagramSocket(port: port)
            try await eventually("the server gets a datagram") {
                try? client.send([1, 2, 3])
                return try server.receive(within: 100) != nil
            }
        }
    }

    @Test func aNameThatDoesNotResolveIsRefused() async throws {
        try await Self.withDatagrams {
            $0.upstream = Endpoint(host: "no-such-host.invalid", port: 9)
            $0.resolvesPerConnection = true
        } _: { proxy, _ in
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            try await Self.expectRefusal(client)
            #expect(await proxy.status().dialsFailed > 0)
        }
    }

    @Test func datagramsThatComeBackToTheProxyAreDropped() async throws {
        let port = try Self.unusedPort()
        try await Self.withDatagrams {
            $0.upstream = Endpoint(host: "127.0.0.1", port: port)
        } _: { first, _ in
            try await Self.withDatagrams {
                $0.listen = Endpoint(host: "127.0.0.1", port: port)
                $0.upstream = Endpoint(host: "127.0.0.1", port: first.address.port)
            } _: { second, _ in
                let client = try TestDatagramSocket(connectedTo: first.address.port)
                for _ in 0..<10 { try client.send([1]) }
                try await eventually("the loop is detected") { await first.status().dialsFailed > 0 }
                // Datagrams that still circulate would be counted in this time.
                try await Task.sleep(for: .milliseconds(50))
                #expect(try await Self.status(first).counters.received.up <= 40)
                #expect(try await Self.status(second).counters.received.up <= 20)
            }
        }
    }

    // MARK: Load

    @Test func aFloodOfClientsKeepsTheSessionsWithinTheirLimit() async throws {
        try await Self.withDatagrams {
            $0.datagrams.sessionsMax = 50
        } _: { proxy, server in
            let known = try TestDatagramSocket(connectedTo: proxy.address.port)
            for round in 0..<40 {
                for _ in 0..<50 { try TestDatagramSocket(connectedTo: proxy.address.port).send([9]) }
                // The kernel has a limit of its own.
                while try server.receive(within: round % 10 == 9 ? 50 : 1) != nil {}
            }
            #expect(try await Self.status(proxy).sessions <= 50)
            try await eventually("the client is served") {
                while try server.receive(within: 1) != nil {}
                try known.send([1, 2, 3])
                return try server.receive(within: 1000)?.bytes == [1, 2, 3]
            }
        }
    }

    @Test func eachResponseReachesItsClientAlsoIfSessionsMakeRoomAllTheTime() async throws {
        try await Self.withDatagrams {
            $0.datagrams.sessionsMax = 3
        } _: { proxy, server in
            let clients = try (0..<10).map { _ in try TestDatagramSocket(connectedTo: proxy.address.port) }
            var served = 0
            for _ in 0..<20 {
                for (number, client) in clients.enumerated() { try client.send([UInt8(number)]) }
                while let request = try server.receive(within: 20) { try server.send(request.bytes, to: request.port) }
                for (number, client) in clients.enumerated() {
                    while let response = try client.receive(within: 1) {
                        #expect(response.bytes == [UInt8(number)])
                        served += 1
                    }
                }
            }
            #expect(served > 0)
        }
    }

    @Test func datagramsInFlightArriveBeforeTheProxyStops() async throws {
        let slow = Conditions(up: DirectionConditions(delay: .milliseconds(300)), down: .clear)
        let server = try TestDatagramSocket()
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: server.port),
            conditions: slow)
        configuration.protocols = .udp
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        let client = try TestDatagramSocket(connectedTo: proxy.address.port)
        try client.send([1])
        try await eventually("the proxy has read it") { try await Self.status(proxy).counters.received.up == 1 }
        #expect(await proxy.stop(grace: .seconds(5)))
        #expect(try server.receive(within: 100)?.bytes == [1])
        try client.send([2])
        #expect(throws: TestSocket.Failure(call: "recv", code: ECONNREFUSED)) { try client.receive() }
    }

    @Test func observersSeeSessionsAndPackets() async throws {
        try await Self.withDatagrams(slowLink) { proxy, server in
            let observation = await proxy.observe([.connections, .packets])
            let client = try TestDatagramSocket(connectedTo: proxy.address.port)
            try Self.exchange(client, server)
            await proxy.abortConnections()
            var packets: [PacketEvent] = []
            var sessions: [ConnectionEvent] = []
            for await event in observation.events {
                switch event {
                case .packet(let packet): packets.append(packet)
                case .connection(let session): sessions.append(session)
                default: break
                }
                if sessions.last?.end != nil { break }
            }
            #expect(packets.map(\.record.kind) == [.datagram, .datagram])
            #expect(packets.map(\.record.bytes) == [31, 30] && packets.map(\.record.direction) == [.up, .down])
            #expect(packets.allSatisfy { Int($0.ports.up) == client.port && Int($0.ports.down) == server.port })
            #expect(packets.map { $0.payload.map { Array($0.readableBytesView) } } == [[1, 2, 3], [4, 5]])
            #expect(sessions.count == 2 && sessions.allSatisfy { $0.isDatagrams && $0.client?.port == client.port })
            #expect(sessions.last?.end?.reason == .proxy)
            #expect(sessions.last?.end?.bytesRead == PerDirection(up: 3, down: 2))
        }
    }
}
#endif
