import Determinism
import ForwardProxy
import Foundation
import LinkModel
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Look-ups of a forward proxy at a name server on a real socket.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct NameServerTests {
    /// A name server on 127.0.0.1.
    private final class FakeServer: Sendable {
        typealias Answer = @Sendable (DNSQuery, [UInt8]) -> [UInt8]?

        private final class Handler: ChannelInboundHandler, Sendable {
            typealias InboundIn = AddressedEnvelope<ByteBuffer>
            let answer: Answer
            let queries: NIOLockedValueBox<[(query: DNSQuery, time: ContinuousClock.Instant, port: Int)]>

            init(
                _ answer: @escaping Answer,
                _ queries: NIOLockedValueBox<[(query: DNSQuery, time: ContinuousClock.Instant, port: Int)]>
            ) {
                (self.answer, self.queries) = (answer, queries)
            }

            func channelRead(context: ChannelHandlerContext, data: NIOAny) {
                let envelope = unwrapInboundIn(data)
                let bytes = Array(envelope.data.readableBytesView)
                guard let query = DNSQuery(bytes) else { return }
                queries.withLockedValue { $0.append((query, .now, envelope.remoteAddress.port ?? 0)) }
                guard let response = answer(query, bytes) else { return }
                let datagram = AddressedEnvelope(
                    remoteAddress: envelope.remoteAddress, data: ByteBuffer(bytes: response))
                context.channel.writeAndFlush(datagram, promise: nil)
            }
        }

        let channel: any Channel
        let queries = NIOLockedValueBox<[(query: DNSQuery, time: ContinuousClock.Instant, port: Int)]>([])

        init(_ answer: @escaping Answer) async throws {
            let queries = queries
            channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .channelInitializer { $0.pipeline.addHandler(Handler(answer, queries)) }
                .bind(host: "127.0.0.1", port: 0).get()
        }

        /// A server that has an IPv4 address for each name.
        static func answering(_ address: [UInt8] = [127, 0, 0, 1], timeToLive: UInt8 = 60) async throws -> FakeServer {
            try await FakeServer { query, _ in query.response(.addresses([address]), timeToLive: timeToLive) }
        }

        var port: Int { channel.localAddress?.port ?? 0 }
        var count: Int { queries.withLockedValue { $0.count } }
    }

    private static func withProxy(
        _ ports: [Int], _ conditions: Conditions = .clear, timeout: Nanoseconds = .seconds(5), search: [String] = [],
        attempts: Int = 2, address: [UInt8] = [127, 0, 0, 1],
        _ body: (Proxy, TestSocket, _ port: Int) async throws -> Void
    ) async throws {
        let (listener, port) = try TestSocket.listen()
        var resolver = ResolverConfiguration()
        let server = try #require(IPAddress(bytes: address))
        resolver.servers = ports.map { ResolverConfiguration.Server(address: server, port: $0) }
        (resolver.timeout, resolver.attempts) = (timeout, attempts)
        resolver.searchList = search
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: 0),
            conditions: conditions)
        configuration.forward = ForwardSettings()
        configuration.resolver = resolver
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        do {
            try await body(proxy, listener, port)
        } catch {
            await proxy.stop(grace: .zero)
            throw error
        }
        await proxy.stop(grace: .zero)
    }

    /// Returns the head of the response to CONNECT.
    private static func connect(_ proxy: Proxy, _ host: String) async throws -> String {
        let proxyPort = proxy.address.port
        return try await blocking {
            let client = try TestSocket.connect(port: proxyPort)
            try client.send(Array("CONNECT \(host) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
            return String(decoding: try ForwardProxyTests.Way.head(client), as: UTF8.self)
        }
    }

    private static func expectTunnel(_ proxy: Proxy, _ host: String) async throws {
        let head = try await connect(proxy, host)
        #expect(head.hasPrefix("HTTP/1.1 200"), "\(head)")
    }

    @Test func aNameIsAskedOnceForItsTimeToLive() async throws {
        for (timeToLive, queries) in [(UInt8(60), 2), (0, 4)] {
            let server = try await FakeServer.answering(timeToLive: timeToLive)
            try await Self.withProxy([server.port]) { proxy, _, port in
                for _ in 0..<2 {
                    try await Self.expectTunnel(proxy, "api.test:\(port)")
                }
            }
            #expect(server.count == queries)
            let seen = server.queries.withLockedValue { $0 }
            #expect(Set(seen.map(\.query.type)) == [.ipv4, .ipv6] && seen.allSatisfy { $0.query.name == "api.test" })
            #expect(Set(seen.map(\.port)).count == queries, "each query has a port of its own")
        }
    }

    @Test(arguments: [true, false]) func aLookupLeavesNoSocket(_ responds: Bool) async throws {
        let server = try await FakeServer { query, _ in
            responds ? query.response(.addresses([[127, 0, 0, 1]]), timeToLive: 60) : nil
        }
        // A response is not awaited in vain on a busy machine.
        try await Self.withProxy([server.port], timeout: .seconds(responds ? 60 : 1)) { proxy, _, _ in
            _ = await proxy.addresses(of: "api.test")
        }
        let ports = server.queries.withLockedValue { $0.map(\.port) }
        #expect(ports.count == (responds ? 2 : 4))
        for port in ports {
            try await eventually("the port is free") {
                TestSocket.isFreeForDatagrams(port)
            }
        }
    }

    #if os(Linux)
    /// A datagram socket cannot be connected to the broadcast address.
    @Test func aServerThatCannotBeReachedLeavesNoSocket() async throws {
        let files = { try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count }
        try await Self.withProxy([53], address: [255, 255, 255, 255]) { proxy, _, _ in
            let before = try files()
            for number in 0..<100 {
                let result = await proxy.addresses(of: "n\(number).test")
                if case .failure(.nameServerFailure) = result { continue }
                Issue.record("\(result)")
            }
            #expect(try files() < before + 100)
        }
    }
    #endif

    @Test func theQueryAndTheResponseCrossTheLink() async throws {
        let server = try await FakeServer.answering()
        let delay = DirectionConditions(delay: .milliseconds(100))
        let conditions = Conditions(up: delay, down: delay, dnsDelay: .milliseconds(300))
        try await Self.withProxy([server.port], conditions) { proxy, _, port in
            let start = ContinuousClock.now
            try await Self.expectTunnel(proxy, "api.test:\(port)")
            // The DNS delay and two round trips.
            #expect(ContinuousClock.now - start >= .milliseconds(700))
            let arrival = try #require(server.queries.withLockedValue { $0.first?.time })
            #expect(arrival - start >= .milliseconds(100))
        }
    }

    @Test func aLostQueryIsRepeated() async throws {
        let server = try await FakeServer.answering()
        let lossy = DirectionConditions(lostPackets: PacketNumbers([1...1]))
        try await Self.withProxy([server.port], Conditions(up: lossy, down: .clear), timeout: .seconds(1)) {
            proxy, _, port in
            let start = ContinuousClock.now
            try await Self.expectTunnel(proxy, "api.test:\(port)")
            #expect(ContinuousClock.now - start >= .seconds(1))
        }
        // On a busy machine the response to the other query may be late, and the query is repeated too.
        let types = server.queries.withLockedValue { $0.map(\.query.type) }
        #expect(types.first == .ipv6 && types.filter { $0 == .ipv4 }.count == 1, "\(types)")
    }

    @Test func aLookupDuringAnOutageWaitsForARepetition() async throws {
        let server = try await FakeServer.answering()
        try await Self.withProxy([server.port], timeout: .seconds(1), attempts: 4) { proxy, _, port in
            await proxy.setOutage(PerDirection(up: false, down: true))
            async let head = Self.connect(proxy, "api.test:\(port)")
            try await eventually("a query is repeated: the responses are lost") { server.count > 2 }
            await proxy.setOutage(PerDirection(up: false, down: false))
            #expect(try await head.hasPrefix("HTTP/1.1 200"))
        }
        #expect(server.count >= 4)
    }

    @Test(arguments: [
        (NameAnswer.noSuchName, "502", #"dns_error; rcode="NXDOMAIN""#), (.addresses([]), "502", "NXDOMAIN"),
        (.failure, "502", "SERVFAIL"), (.nothing, "504", "dns_timeout"),
    ])
    func aFailureOfTheNameServerIsTold(_ answer: NameAnswer, _ status: String, _ error: String) async throws {
        let server = try await FakeServer { query, _ in query.response(answer, timeToLive: 60) }
        try await Self.withProxy([server.port], timeout: .seconds(1)) { proxy, _, _ in
            let head = try await Self.connect(proxy, "api.test:80")
            #expect(head.hasPrefix("HTTP/1.1 \(status)") && head.contains(error), "\(head)")
        }
    }

    @Test func aServerThatDoesNotListenIsSkipped() async throws {
        let server = try await FakeServer.answering()
        let closed = try await FakeServer.answering()
        let unused = closed.port
        try await closed.channel.close()
        try await Self.withProxy([unused, server.port]) { proxy, _, port in
            try await Self.expectTunnel(proxy, "api.test:\(port)")
        }
        try await Self.withProxy([unused]) { proxy, _, _ in
            let head = try await Self.connect(proxy, "api.test:80")
            #expect(head.contains("SERVFAIL"))
        }
    }

    /// 192.0.2.0/24 is for documentation (RFC 5737).
    @Test func datagramsOfOthersAreIgnored() async throws {
        let wrong: [UInt8] = [192, 0, 2, 1]
        let other = try await FakeServer.answering(wrong)
        let isHonest = NIOLockedValueBox(false)
        let server = try await FakeServer { query, _ in
            let address = isHonest.withLockedValue { $0 } ? [127, 0, 0, 1] : wrong
            var response = query.response(.addresses([address]), timeToLive: 60)
            // A response with another identifier.
            if address == wrong { response?[0] ^= 0x55 }
            return response
        }
        try await Self.withProxy([server.port], timeout: .seconds(1)) { proxy, _, port in
            async let head = Self.connect(proxy, "api.test:\(port)")
            try await eventually("the queries have arrived") { server.count == 2 }
            // The right message from another port.
            for seen in server.queries.withLockedValue({ $0 }) {
                guard let message = seen.query.response(.addresses([wrong]), timeToLive: 60) else { continue }
                let peer = try SocketAddress(ipAddress: "127.0.0.1", port: seen.port)
                try await other.channel.writeAndFlush(
                    AddressedEnvelope(remoteAddress: peer, data: ByteBuffer(bytes: message)))
            }
            isHonest.withLockedValue { $0 = true }
            #expect(try await head.hasPrefix("HTTP/1.1 200"))
            #expect(try await proxy.addresses(of: "api.test").get().map(\.ipAddress) == ["127.0.0.1"])
        }
    }

    /// The resolver of a command in connect mode has extended its names already.
    @Test func theSearchListIsForNamesThatTheProxyLooksUp() async throws {
        let server = try await FakeServer { query, _ in query.response(.noSuchName, timeToLive: 60) }
        try await Self.withProxy([server.port], search: ["corp.test"]) { proxy, _, _ in
            let names = { Set(server.queries.withLockedValue { $0.map(\.query.name) }) }
            _ = await proxy.addresses(of: "api.test")
            #expect(names() == ["api.test"])
            _ = try await Self.connect(proxy, "api.test:80")
            #expect(names() == ["api.test", "api.test.corp.test"])
        }
    }

    @Test func concurrentLookupsOfANameAreShared() async throws {
        let server = try await FakeServer.answering([192, 0, 2, 1])
        try await Self.withProxy([server.port]) { proxy, _, _ in
            let found = await withTaskGroup(of: Bool.self) { group in
                for _ in 0..<50 {
                    group.addTask { if case .success = await proxy.addresses(of: "api.test") { true } else { false } }
                }
                return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
            }
            #expect(found == 50)
        }
        #expect(server.count == 2)
    }

    @Test func lookupsBeyondTheLimitFailAndAStopEndsTheOthers() async throws {
        let server = try await FakeServer { _, _ in nil }
        try await Self.withProxy([server.port]) { proxy, _, _ in
            let results = await withTaskGroup(of: Result<[SocketAddress], ConnectFailure>.self) { group in
                for number in 0...NameTable.lookupsMax {
                    group.addTask { await proxy.addresses(of: "n\(number).test") }
                }
                let first = await group.next()
                await proxy.stop(grace: .zero)
                var all = [first]
                for await result in group { all.append(result) }
                return all
            }
            #expect(results.count == NameTable.lookupsMax + 1)
            let failures = results.filter { if case .failure(.nameServerFailure) = $0 { true } else { false } }
            #expect(failures.count == results.count)
        }
    }

    @Test func theHostsFileNeedsNoNameServer() throws {
        let folder = try TemporaryFolder()
        let (configuration, hosts) = (folder.url.appending(path: "resolv.conf"), folder.url.appending(path: "hosts"))
        let files = ResolverFiles(
            configuration: configuration.path(), hosts: hosts.path(), checkInterval: .zero)
        #expect(files.configuration.servers.isEmpty && files.addresses(of: "api.test").isEmpty)
        try Data("nameserver 192.0.2.1\n".utf8).write(to: configuration)
        try Data("192.0.2.7 api.test\n".utf8).write(to: hosts)
        #if os(Linux)
        #expect(files.configuration.servers.count == 1)
        #expect(files.addresses(of: "api.test").map(\.description) == ["192.0.2.7"])
        // A hosts file that is too long is left to the system's resolver.
        try Data(count: 1 << 20 + 1).write(to: hosts)
        #expect(files.configuration.servers.isEmpty && files.addresses(of: "api.test").isEmpty)
        #endif
    }
}
