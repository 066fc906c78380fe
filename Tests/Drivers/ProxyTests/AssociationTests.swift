#if os(Linux)
import Determinism
import ForwardProxy
import Impairment
import LinkModel
import TestSupport
import Testing

@testable import Proxy

private let slowLink = Conditions(
    up: DirectionConditions(delay: .milliseconds(40)), down: DirectionConditions(delay: .milliseconds(40)))

private func name(_ text: String) -> [UInt8] { [3, UInt8(text.utf8.count)] + text.utf8 }

/// Datagrams through a forward proxy: associations of SOCKS 5 and ports of destinations, over real sockets.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct AssociationTests {
    /// A client of SOCKS 5 with an association.
    private struct Client {
        let connection: TestSocket
        let socket: TestDatagramSocket
        /// The proxy's port for the client's datagrams.
        let port: Int

        init(_ proxy: Proxy, from announced: Int = 0) throws {
            connection = try TestSocket.connect(port: proxy.address.port)
            socket = try TestDatagramSocket()
            try connection.send([5, 1, 0])
            #expect(try connection.receive(exactly: 2) == [5, 0])
            try connection.send([5, 3, 0, 1, 0, 0, 0, 0, UInt8(announced >> 8), UInt8(announced & 0xFF)])
            let reply = try connection.receive(exactly: 10)
            #expect(reply.starts(with: [5, 0, 0, 1, 127, 0, 0, 1]), "\(reply)")
            port = Int(reply[8]) << 8 | Int(reply[9])
        }

        func send(_ payload: [UInt8], to host: [UInt8] = [1, 127, 0, 0, 1], _ destination: Int, fragment: UInt8 = 0)
            throws
        {
            try socket.send(Self.header(host, destination, fragment) + payload, to: port)
        }

        static func header(_ host: [UInt8], _ port: Int, _ fragment: UInt8 = 0) -> [UInt8] {
            [0, 0, fragment] + host + [UInt8(port >> 8), UInt8(port & 0xFF)]
        }
    }

    static let hosts: [[UInt8]] = [[1, 127, 0, 0, 1], name("api.test"), name("localhost")]

    @Test(arguments: [Conditions.clear, slowLink], hosts)
    func anAssociationExchangesDatagramsWithItsDestinations(_ conditions: Conditions, _ host: [UInt8]) async throws {
        try await ForwardProxyTests.withForwardProxy(conditions) { proxy, _, _ in
            let servers = [try TestDatagramSocket(), try TestDatagramSocket()]
            let start = ContinuousClock.now
            try await blocking {
                let client = try Client(proxy)
                for round in 0..<3 {
                    for server in servers {
                        try client.send([1, 2, UInt8(round)], to: host, server.port)
                        // The IPv6 address of a name has no server: the datagram that finds it out is lost.
                        var request = try server.receive(within: 1000)
                        if request == nil {
                            try client.send([1, 2, UInt8(round)], to: host, server.port)
                            request = try server.receive()
                        }
                        #expect(request?.bytes == [1, 2, UInt8(round)])
                        try server.send([7], to: try #require(request).port)
                        let response = try #require(try client.socket.receive())
                        #expect(response.bytes == Client.header([1, 127, 0, 0, 1], server.port) + [7])
                        #expect(response.port == client.port)
                    }
                }
            }
            if conditions == slowLink { #expect(ContinuousClock.now - start >= .milliseconds(6 * 80)) }
            let status = try #require(await proxy.status().datagrams)
            #expect(status.sessions == 0 || status.sessions == 2)
            #expect(status.counters.sessionsOpened == 2)
            let traffic = await proxy.hostTraffic()
            #expect(
                traffic.map(\.connections) == [1, 1] && traffic.allSatisfy { $0.bytes.up >= 9 && $0.bytes.down == 3 })
        }
    }

    @Test func anAssociationEndsWithItsConnection() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, _, _ in
            let server = try TestDatagramSocket()
            let port = try await blocking {
                let client = try Client(proxy)
                try client.send([1], server.port)
                #expect(try server.receive()?.bytes == [1])
                client.connection.finish()
                return client.port
            }
            try await eventually("the sessions end") { await proxy.status().datagrams?.sessions == 0 }
            let late = try TestDatagramSocket(connectedTo: port)
            try late.send([1])
            #expect(throws: TestSocket.Failure.self, "the port is closed") { try late.receive() }
        }
    }

    @Test func fragmentsAndDatagramsOfOthersAreDropped() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, _, _ in
            let server = try TestDatagramSocket()
            try await blocking {
                let client = try Client(proxy)
                try client.send([1], server.port, fragment: 1)
                try client.socket.send([0, 0], to: client.port)
                try client.send([2], server.port)
                #expect(
                    try server.receive()?.bytes == [2], "the fragment and the datagram without a header are dropped")
                let other = try TestDatagramSocket()
                try other.send(Client.header([1, 127, 0, 0, 1], server.port) + [3], to: client.port)
                try client.send([4], server.port)
                #expect(try server.receive()?.bytes == [4])
                // A client that has announced its port is known before its first datagram.
                let announced = try Client(proxy, from: other.port)
                try announced.send([5], server.port)
                try other.send(Client.header([1, 127, 0, 0, 1], server.port) + [6], to: announced.port)
                #expect(try server.receive()?.bytes == [6])
            }
        }
    }

    /// Names with rules, and addresses that no client may reach.
    static let refusedHosts: [[UInt8]] = [
        name("gone.test"), name("refused.test"), name("blocked.test"), [1, 169, 254, 169, 254], [1, 224, 0, 0, 1],
    ]

    @Test(arguments: refusedHosts) func rulesApplyToDatagrams(_ host: [UInt8]) async throws {
        let rules = ["gone.test=nxdomain", "refused.test=refuse", "blocked.test=block"]
        try await ForwardProxyTests.withForwardProxy(rules: rules) { proxy, _, _ in
            await proxy.changeForward { settings in
                settings.rules =
                    (try? HostRules(
                        rules: rules,
                        maps: ["gone.test=127.0.0.1", "refused.test=127.0.0.1", "blocked.test=127.0.0.1"]))
                    ?? settings.rules
            }
            let server = try TestDatagramSocket()
            try await blocking {
                let client = try Client(proxy)
                try client.send([1], to: host, server.port)
                try client.send([2], server.port)
                #expect(try server.receive()?.bytes == [2])
                #expect(try server.receive(within: 100) == nil)
            }
        }
    }

    @Test func aDestinationWithConditionsOfItsOwnHasALinkOfItsOwn() async throws {
        try await ForwardProxyTests.withForwardProxy(
            slowLink, rules: ["direct.test=direct"]
        ) { proxy, _, _ in
            let server = try TestDatagramSocket()
            try await blocking {
                let client = try Client(proxy)
                try client.send([1], server.port)
                try client.send([2], to: name("direct.test"), server.port)
                #expect(try server.receive()?.bytes == [2], "40 ms earlier")
                #expect(try server.receive()?.bytes == [1])
            }
        }
    }

    @Test func datagramsShareTheLinkWithConnections() async throws {
        // 1 Mbit/s: an upload of 60 kB takes half a second, and the datagram waits behind what is queued.
        let rate = DirectionConditions(rate: Rate(bitsPerSecond: 1_000_000), queue: .packets(100))
        try await ForwardProxyTests.withForwardProxy(Conditions(up: rate, down: .clear)) { proxy, listener, port in
            let server = try TestDatagramSocket()
            try await blocking {
                let tunnel = try TestSocket.connect(port: proxy.address.port)
                #expect(try ForwardProxyTests.Way.socks5Address.open(tunnel, port: port).starts(with: [5, 0]))
                let origin = try listener.accept()
                let client = try Client(proxy)
                try tunnel.send([UInt8](repeating: 1, count: 60_000))
                #expect(try origin.receive(exactly: 20_000).count == 20_000)
                let start = ContinuousClock.now
                try client.send([UInt8](repeating: 2, count: 1000), server.port)
                #expect(try server.receive()?.bytes.count == 1000)
                #expect(ContinuousClock.now - start >= .milliseconds(30), "behind several segments of 12 ms each")
            }
        }
    }

    // MARK: Ports of destinations

    @Test func aPortOfADestinationForwardsDatagramsAsTheyAre() async throws {
        try await ForwardProxyTests.withForwardProxy(slowLink) { proxy, _, _ in
            let server = try TestDatagramSocket()
            try await blocking {
                let destination = Destination(host: "127.0.0.1", port: server.port)
                let port = try #require(proxy.datagramPort(to: destination))
                #expect(proxy.datagramPort(to: destination) == port, "one port for each destination")
                let clients = [try TestDatagramSocket(connectedTo: port), try TestDatagramSocket(connectedTo: port)]
                let start = ContinuousClock.now
                for (number, client) in clients.enumerated() {
                    try client.send([UInt8(number)])
                    let request = try #require(try server.receive())
                    #expect(request.bytes == [UInt8(number)])
                    try server.send([9, UInt8(number)], to: request.port)
                    #expect(try client.receive()?.bytes == [9, UInt8(number)])
                }
                #expect(ContinuousClock.now - start >= .milliseconds(160))
            }
        }
    }

    @Test func aRedirectedClientGetsTheRefusalOfItsServerAndOfTheLink() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, _, _ in
            let unused = try TestDatagramSocket().port
            let server = try TestDatagramSocket()
            try await blocking {
                let port = try #require(proxy.datagramPort(to: Destination(host: "127.0.0.1", port: unused)))
                let client = try TestDatagramSocket(connectedTo: port)
                #expect(throws: TestSocket.Failure.self) {
                    // The server's refusal follows the first datagram; without CAP_NET_RAW, the port refuses the next one.
                    for _ in 0..<50 {
                        try client.send([1])
                        _ = try client.receive(within: 100)
                    }
                }
            }
            await proxy.setConditions(
                Conditions(up: .clear, down: .clear, datagrams: DatagramConditions(policy: .refuse)))
            try await blocking {
                let port = try #require(proxy.datagramPort(to: Destination(host: "127.0.0.1", port: server.port)))
                let client = try TestDatagramSocket(connectedTo: port)
                try client.send([1])
                #expect(throws: TestSocket.Failure.self) { try client.receive() }
            }
        }
    }

    @Test func aPortWhoseDestinationIsItselfDoesNotLoop() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, _, _ in
            let server = try TestDatagramSocket()
            let inner = try #require(
                try await blocking { proxy.datagramPort(to: Destination(host: "127.0.0.1", port: server.port)) })
            let outer = try #require(
                try await blocking { proxy.datagramPort(to: Destination(host: "127.0.0.1", port: inner)) })
            let client = try TestDatagramSocket(connectedTo: outer)
            try client.send([1])
            #expect(try await blocking { try server.receive(within: 300) } == nil)
            #expect(try #require(await proxy.status().datagrams).counters.sessionsOpened <= 2)
        }
    }
}
#endif
