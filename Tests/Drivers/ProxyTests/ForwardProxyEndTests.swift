import Determinism
import ForwardProxy
import Impairment
import LinkModel
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Ends, limits and links of a forward proxy on real sockets.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct ForwardProxyEndTests {
    private typealias Way = ForwardProxyTests.Way

    private static func connect(_ proxy: Proxy, _ host: String) throws -> TestSocket {
        let client = try TestSocket.connect(port: proxy.address.port)
        try client.send(Array("CONNECT \(host) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
        return client
    }

    private static func get(_ client: TestSocket, _ url: String, _ fields: String = "") throws {
        try client.send(Array("GET \(url) HTTP/1.1\r\nHost: api.test\r\n\(fields)\r\n".utf8))
    }

    // MARK: Names

    @Test func clientsThatConnectThemselvesGetAddresses() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, _, _ in
            let found = try await proxy.addresses(of: "localhost").get()
            #expect(found.contains { $0.ipAddress == "127.0.0.1" })
            let metadata = await proxy.addresses(of: "metadata.google.internal")
            #expect(metadata == .failure(.notAllowed))
        }
    }

    // MARK: Ends

    @Test func afterAnUpgradeBothEndsReachTheOtherPeer() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, listener, port in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try Self.get(client, "http://api.test:\(port)/", "Connection: upgrade\r\nUpgrade: echo\r\n")
                let origin = try listener.accept()
                _ = try Way.head(origin)
                try origin.send(
                    Array("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nbye".utf8))
                origin.finish()
                _ = try Way.head(client)
                #expect(try client.receiveToEnd() == Array("bye".utf8))
                try client.send(Array("last".utf8))
                client.finish()
                #expect(try origin.receive(exactly: 4) == Array("last".utf8))
                #expect(origin.receiveToFailure() == (0, 0))
            }
        }
    }

    @Test func aResponseReachesAClientThatStillSends() async throws {
        let slow = DirectionConditions(delay: .milliseconds(100))
        let unused = try TestSocket.unusedPort()
        try await ForwardProxyTests.withForwardProxy(Conditions(up: slow, down: slow)) { proxy, _, _ in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(
                    Array(
                        ("POST http://api.test:\(unused)/ HTTP/1.1\r\nHost: a\r\n"
                            + "Content-Length: 4000000\r\n\r\n").utf8))
                try client.send([UInt8](repeating: 7, count: 4_000_000))
                #expect(try client.receiveToEnd().starts(with: Array("HTTP/1.1 502".utf8)))
            }
        }
    }

    @Test func aStopDoesNotWaitForLookups() async throws {
        try await ForwardProxyTests.withForwardProxy(rules: ["slow.test=dns-timeout"]) { proxy, _, _ in
            let client = try await blocking { try Self.connect(proxy, "slow.test:80") }
            try await eventually("the client is accepted") { await proxy.status().connectionsOpen == 1 }
            let start = ContinuousClock.now
            await proxy.stop(grace: .milliseconds(20))
            #expect(ContinuousClock.now - start < .seconds(5))
            _ = client.receiveToFailure()
        }
    }

    @Test func aStopWhileTheFastPathOpensTunnels() async throws {
        for delay in 0..<40 {
            try await ForwardProxyTests.withForwardProxy { proxy, _, port in
                let clients = try await blocking {
                    try (0..<20).map { _ in try Self.connect(proxy, "api.test:\(port)") }
                }
                // Another moment of the opening each time; nothing depends on the length of the wait.
                try await Task.sleep(for: .microseconds(delay * 100))
                await proxy.stop(grace: .zero)
                for client in clients { _ = client.receiveToFailure() }
                #expect(await proxy.status().connectionsOpen == 0)
            }
        }
    }

    // MARK: Limits

    @Test func aClosedTunnelMakesRoomForTheNextClient() async throws {
        try await ForwardProxyTests.withForwardProxy(connectionsMax: 1) { proxy, listener, port in
            try await blocking {
                for _ in 0..<100 {
                    let client = try Self.connect(proxy, "api.test:\(port)")
                    #expect(Way.connect.isSuccess(try Way.head(client)))
                    let server = try listener.accept()
                    try client.send([1])
                    #expect(try server.receive(exactly: 1) == [1])
                }
            }
        }
    }

    @Test func originsOfOneClientTakeSlots() async throws {
        let (second, secondPort) = try TestSocket.listen()
        try await ForwardProxyTests.withForwardProxy(connectionsMax: 2) { proxy, first, port in
            let unused = try TestSocket.unusedPort()
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                var origins: [TestSocket] = []
                for (listener, port) in [(first, port), (second, secondPort)] {
                    try Self.get(client, "http://api.test:\(port)/")
                    let origin = try listener.accept()
                    _ = try Way.head(origin)
                    try origin.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8))
                    #expect(try Way.head(client).starts(with: Array("HTTP/1.1 200".utf8)))
                    origins.append(origin)
                }
                try Self.get(client, "http://api.test:\(unused)/")
                let head = String(decoding: try Way.head(client), as: UTF8.self)
                #expect(head.hasPrefix("HTTP/1.1 503") && head.contains("connection_limit_reached"))
            }
            try await eventually("all slots are free") { await proxy.status().connectionsOpen == 0 }
        }
    }

    // MARK: Links of rules

    private static let clearRule = (rules: ["api.test=plain"], named: ["plain": Conditions.clear])

    /// Opens a tunnel to `api.test`, on the link of the rule.
    private static func tunnel(
        _ proxy: Proxy, _ listener: TestSocket, _ port: Int, host: String = "api.test"
    ) async throws -> (client: TestSocket, server: TestSocket) {
        try await blocking {
            let client = try Self.connect(proxy, "\(host):\(port)")
            #expect(Way.connect.isSuccess(try Way.head(client)))
            let server = try listener.accept()
            try client.send([1])
            #expect(try server.receive(exactly: 1) == [1])
            return (client, server)
        }
    }

    @Test func anOutageOfTheDeviceAppliesToLinksOfRules() async throws {
        let rules = Self.clearRule.rules + ["direct.test=direct"]
        try await ForwardProxyTests.withForwardProxy(
            rules: rules, named: Self.clearRule.named
        ) { proxy, listener, port in
            let (client, server) = try await Self.tunnel(proxy, listener, port)
            let direct = try await Self.tunnel(proxy, listener, port, host: "direct.test")
            await proxy.setOutage(PerDirection(up: true, down: true))
            try await blocking {
                try client.send([2])
                #expect(!server.isReadable(within: 200))
                try direct.client.send([3])
                #expect(try direct.server.receive(exactly: 1) == [3])
            }
            await proxy.setOutage(PerDirection(up: false, down: false))
            #expect(try await blocking { try server.receive(exactly: 1) } == [2])
        }
    }

    @Test func aLinkThatIsOpenedDuringAnOutageIsOut() async throws {
        try await ForwardProxyTests.withForwardProxy(
            rules: Self.clearRule.rules, named: Self.clearRule.named
        ) { proxy, listener, port in
            await proxy.setOutage(PerDirection(up: true, down: true))
            let client = try await blocking { try Self.connect(proxy, "api.test:\(port)") }
            #expect(!client.isReadable(within: 200))
            await proxy.setOutage(PerDirection(up: false, down: false))
            let head = try await blocking { try Way.head(client) }
            #expect(Way.connect.isSuccess(head))
        }
    }

    @Test func connectionsOnLinksOfRulesAreListedAndClosed() async throws {
        try await ForwardProxyTests.withForwardProxy(
            rules: Self.clearRule.rules, named: Self.clearRule.named, allowsFastPath: false
        ) { proxy, listener, port in
            let device = try await Self.tunnel(proxy, listener, port, host: "127.0.0.1")
            let (client, server) = try await Self.tunnel(proxy, listener, port)
            let connections = await proxy.connections()
            #expect(connections.map(\.number) == [0, 1])
            #expect(await proxy.status().link.bytesRead.up == 2)
            #expect(await proxy.closeConnection(connections[1].id, abortively: true))
            #expect(client.receiveToFailure().code != 0)
            #expect(server.receiveToFailure().code != 0)
            #expect(!device.client.isReadable(within: 50))
            await proxy.abortConnections()
            #expect(device.client.receiveToFailure().code != 0)
        }
    }

    @Test func faultsApplyOnLinksOfRules() async throws {
        try await ForwardProxyTests.withForwardProxy(
            rules: Self.clearRule.rules, named: Self.clearRule.named
        ) { proxy, listener, port in
            for isOpen in [false, true] {
                // The first rule is added before the link of the rule exists, the second one later.
                let number = try await proxy.addFaultRule(
                    FaultRule(
                        path: isOpen ? "/b" : "/a", point: .beforeRequest,
                        action: .respond(FaultResponse(status: 503))))
                try await blocking {
                    let client = try TestSocket.connect(port: proxy.address.port)
                    try Self.get(client, "http://api.test:\(port)/\(isOpen ? "b" : "a")")
                    #expect(try Way.head(client).starts(with: Array("HTTP/1.1 503".utf8)))
                }
                try await eventually("the fault is counted") { await proxy.faultRules().last?.fired == 1 }
                await proxy.removeFaultRules([number])
            }
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try Self.get(client, "http://api.test:\(port)/b")
                _ = try Way.head(try listener.accept())
            }
        }
    }

    @Test func changedConditionsOfARuleApplyToItsLink() async throws {
        try await ForwardProxyTests.withForwardProxy(
            rules: Self.clearRule.rules, named: Self.clearRule.named
        ) { proxy, listener, port in
            let (client, server) = try await Self.tunnel(proxy, listener, port)
            let dead = DirectionConditions(loss: .one)
            for (conditions, passes) in [(Conditions(up: dead, down: dead), false), (.clear, true)] {
                var settings = ForwardSettings()
                settings.rules = try HostRules(rules: Self.clearRule.rules, maps: ["api.test=127.0.0.1"])
                settings.conditions = ["plain": conditions]
                let changed = settings
                await proxy.changeForward { $0 = changed }
                try await blocking {
                    if !passes { try client.send([2]) }
                    #expect(server.isReadable(within: passes ? 10_000 : 200) == passes)
                }
            }
        }
    }

    @Test func observersGetTheDestinationsOfConnections() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, listener, port in
            let early = try await Self.tunnel(proxy, listener, port)
            let observation = await proxy.observe([.exchanges, .connections])
            let late = try await Self.tunnel(proxy, listener, port)
            withExtendedLifetime(early) { late.client.finish() }
            late.server.finish()
            var found: [Endpoint?] = []
            for await case .connection(let event) in observation.events {
                found.append(event.destination)
                if event.end != nil { break }
            }
            let destination = Endpoint(host: "api.test", port: port)
            #expect(found == [destination, destination, destination])
        }
    }

    @Test func aNewSeedRestartsTheNumbers() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, listener, port in
            let first = try await Self.tunnel(proxy, listener, port)
            await proxy.reseed(7)
            let second = try await Self.tunnel(proxy, listener, port)
            #expect(await proxy.connections().map(\.number) == [0, 0])
            // Both are on the fast path, and the end of one concerns its own counters only.
            withExtendedLifetime(second) { first.client.finish() }
            first.server.finish()
            try await eventually("one is closed") { await proxy.connections().count == 1 }
            #expect(await proxy.hostTraffic().map(\.bytes) == [PerDirection(up: 1, down: 0)])
        }
    }
}
