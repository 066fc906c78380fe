import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Connections that loop back to a proxy are reset after few rounds.
@Suite(.tags(.proxies), .serialized, .timeLimit(.minutes(2))) struct LoopDetectorTests {
    private static func start(
        _ listen: Endpoint, upstream: Endpoint, allowsFastPath: Bool, resolvesPerConnection: Bool = true
    ) async throws -> Proxy {
        var configuration = ProxyConfiguration(listen: listen, upstream: upstream)
        configuration.allowsFastPath = allowsFastPath
        configuration.resolvesPerConnection = resolvesPerConnection
        return try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
    }

    private static func freePort() throws -> Int { try TestSocket.unusedPort() }

    /// Opens a connection and expects a RST or FIN, and no open connection afterwards.
    private static func expectRefusal(_ proxies: [Proxy]) async throws {
        try await blocking {
            let client = try TestSocket.connect(port: proxies[0].address.port)
            #expect(client.receiveToFailure().bytes == 0)
        }
        for proxy in proxies {
            try await eventually("no connection is open") { await proxy.status().connectionsOpen == 0 }
            #expect(await proxy.status().connectionsAccepted < 20)
        }
        var failed = 0
        for proxy in proxies { failed += await proxy.status().dialsFailed }
        #expect(failed > 0)
    }

    @Test(arguments: [true, false], ["0.0.0.0", "::ffff:127.0.0.1", "127.0.0.1", "localhost"])
    func anUpstreamThatIsTheProxyItselfIsDetectedUnderAnyAddress(_ allowsFastPath: Bool, _ host: String) async throws {
        let port = try Self.freePort()
        let proxy = try await Self.start(
            Endpoint(host: "0.0.0.0", port: port), upstream: Endpoint(host: host, port: port),
            allowsFastPath: allowsFastPath)
        try await Self.expectRefusal([proxy])
        await proxy.stop(grace: .zero)
    }

    @Test(arguments: [true, false]) func anUpstreamThatIsTheProxyItselfIsDetectedUnderTheMachinesAddress(
        _ allowsFastPath: Bool
    ) async throws {
        let own = try System.enumerateDevices().compactMap { device -> String? in
            guard case .v4(let address)? = device.address, !address.host.hasPrefix("127.") else { return nil }
            return device.address?.ipAddress
        }.first { !$0.hasPrefix("127.") }
        guard let own else { return }
        let port = try Self.freePort()
        let proxy = try await Self.start(
            Endpoint(host: "0.0.0.0", port: port), upstream: Endpoint(host: own, port: port),
            allowsFastPath: allowsFastPath)
        try await Self.expectRefusal([proxy])
        await proxy.stop(grace: .zero)
    }

    @Test(arguments: [true, false], [true, false])
    func aLoopOfTwoProxiesIsReset(_ first: Bool, _ second: Bool) async throws {
        let ports = [try Self.freePort(), try Self.freePort()]
        let one = try await Self.start(
            Endpoint(host: "127.0.0.1", port: ports[0]), upstream: Endpoint(host: "127.0.0.1", port: ports[1]),
            allowsFastPath: first)
        let other = try await Self.start(
            Endpoint(host: "127.0.0.1", port: ports[1]), upstream: Endpoint(host: "127.0.0.1", port: ports[0]),
            allowsFastPath: second)
        try await Self.expectRefusal([one, other])
        await one.stop(grace: .zero)
        await other.stop(grace: .zero)
    }

    /// A chain that ends at a server is not a loop.
    @Test(arguments: [true, false]) func proxiesMayBeChained(_ allowsFastPath: Bool) async throws {
        let (listener, port) = try TestSocket.listen()
        let second = try await Self.start(
            Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: port),
            allowsFastPath: allowsFastPath)
        let first = try await Self.start(
            Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: second.address.port),
            allowsFastPath: allowsFastPath)
        for _ in 0..<20 {
            try await blocking {
                let client = try TestSocket.connect(port: first.address.port)
                let server = try listener.accept()
                try client.send([1, 2])
                #expect(try server.receive(exactly: 2) == [1, 2])
            }
        }
        await first.stop(grace: .zero)
        await second.stop(grace: .zero)
    }

    /// The local port of a removed dial has no record, so another client may use it.
    @Test func aRemovedDialLeavesNoRecord() throws {
        let detector = LoopDetector()
        let (one, two) = (detector.newProxy(), detector.newProxy())
        #expect(one != two && !detector.mustRecord(9000))
        detector.recordListening(9000)
        #expect(detector.mustRecord(9000))
        let here = try SocketAddress(ipAddress: "127.0.0.1", port: 9000)
        let peer = try SocketAddress(ipAddress: "::ffff:127.0.0.2", port: 4000)
        let far = try SocketAddress(ipAddress: "192.0.2.1", port: 4000)
        var dial: LoopDetector.Dial? = detector.recordDial(from: 4000, passed: [two], by: one)
        #expect(dial?.passed == [two, one])
        #expect(detector.passed(from: peer, to: here) == [two, one])
        let outside = try SocketAddress(ipAddress: "192.0.2.9", port: 9000)
        #expect(detector.passed(from: far, to: outside).isEmpty)
        // A redirected connection keeps the address of its sender.
        #expect(detector.passed(from: far, to: here) == [two, one])
        dial = nil
        #expect(detector.passed(from: peer, to: here).isEmpty)
        detector.recordClosed(9000)
        #expect(!detector.mustRecord(9000))
    }
}
