import Determinism
import LinkModel
import TestSupport
import Testing

@testable import Proxy

/// Clients of a forward proxy that its fast path accepts, and their move to the link at any moment.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct ForwardProxyFastPathTests {
    private typealias Way = ForwardProxyTests.Way

    private static let delayed = Conditions(up: DirectionConditions(delay: .milliseconds(5)), down: .clear)

    /// The client has sent half of its request when conditions apply, and sends the rest afterwards.
    @Test(arguments: [
        (["CONNECT api.test:PORT HTT", "P/1.1\r\nHost: a\r\n\r\n"], "HTTP/1.1 200"),
        (["GET http://api.test:PORT/a ", "HTTP/1.1\r\nHost: api.test:PORT\r\n\r\n"], "HTTP/1.1 204"),
        (["\u{5}\u{1}", "\0\u{5}\u{1}\0\u{3}\u{8}api.test"], "\u{5}\0\u{5}\0"),
    ])
    func aNegotiationContinuesOnTheLink(_ pieces: [String], _ reply: String) async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, listener, port in
            var pieces = pieces.map { Array($0.replacing("PORT", with: "\(port)").utf8) }
            if pieces[0][0] == 5 { pieces[1] += [UInt8(port >> 8), UInt8(port & 0xFF)] }
            let (first, last) = (pieces[0], pieces[1])
            let client = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(first)
                return client
            }
            try await eventually("the client is accepted") { await proxy.status().connectionsOpen == 1 }
            await proxy.setConditions(Self.delayed)
            try await blocking {
                try client.send(last)
                let server = try listener.accept()
                if reply.hasSuffix("204") {
                    _ = try ForwardProxyTests.Way.head(server)
                    try server.send(Array("HTTP/1.1 204 No Content\r\n\r\n".utf8))
                }
                #expect(try client.receive(exactly: reply.utf8.count) == Array(reply.utf8))
            }
            #expect(await proxy.status().connectionsAccepted == 1)
        }
    }

    /// Conditions come and go while clients open tunnels; each one is opened once and carries its bytes.
    @Test(arguments: 0..<6 as Range<UInt64>) func changesWhileTunnelsOpenLoseNone(_ seed: UInt64) async throws {
        try await ForwardProxyTests.withForwardProxy(connectionsMax: 200) { proxy, listener, port in
            let count = 120
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    try await blocking {
                        for _ in 0..<count {
                            let server = try listener.accept()
                            try server.send(try server.receive(exactly: 5))
                            server.finish()
                        }
                    }
                }
                group.addTask {
                    try await blocking {
                        for number in 0..<count {
                            let way = Way.allCases[number % Way.allCases.count]
                            let client = try TestSocket.connect(port: proxy.address.port)
                            #expect(way.isSuccess(try way.open(client, port: port)))
                            let bytes = Array("\(10_000 + number)".utf8)
                            try client.send(bytes)
                            #expect(try client.receiveToEnd() == bytes)
                        }
                    }
                }
                group.addTask {
                    var random = SeededGenerator(seed: seed)
                    // The waits choose the moments of the changes; nothing depends on their length.
                    for _ in 0..<20 {
                        await proxy.setConditions(Self.delayed)
                        try await Task.sleep(for: .microseconds(Int.random(in: 0...3_000, using: &random)))
                        await proxy.setConditions(.clear)
                        try await Task.sleep(for: .microseconds(Int.random(in: 0...6_000, using: &random)))
                    }
                }
                try await group.waitForAll()
            }
            try await eventually("all are closed") { await proxy.status().connectionsOpen == 0 }
            let hosts = await proxy.hostTraffic()
            #expect(hosts.map(\.connections).reduce(0, +) == count)
            #expect(hosts.map(\.connectionsFailed).reduce(0, +) == 0)
            let bytes = hosts.map(\.bytes).reduce(PerDirection(up: 0, down: 0)) {
                PerDirection(up: $0.up + $1.up, down: $0.down + $1.down)
            }
            #expect(bytes == PerDirection(up: 5 * count, down: 5 * count))
            #expect(await proxy.status().connectionsAccepted == count)
        }
    }

    /// A failed dial of the fast path is reported and counted once, and the next client is served.
    @Test func aFailedDialIsReportedAndCounted() async throws {
        try await ForwardProxyTests.withForwardProxy { proxy, listener, port in
            let closed = try TestSocket.unusedPort()
            for way in Way.allCases {
                let reply = try await blocking {
                    try way.open(try TestSocket.connect(port: proxy.address.port), port: closed)
                }
                #expect(!way.isSuccess(reply))
            }
            try await eventually("all are closed") { await proxy.status().connectionsOpen == 0 }
            #expect(await proxy.hostTraffic().map(\.connectionsFailed).reduce(0, +) == Way.allCases.count)
            #expect(await proxy.status().dialsFailed == Way.allCases.count)
            let client = try await blocking { try TestSocket.connect(port: proxy.address.port) }
            let reply = try await blocking { try Way.connect.open(client, port: port) }
            #expect(Way.connect.isSuccess(reply))
        }
    }

    /// Numbers select random streams: a client that leaves the fast path for the link of a rule takes one number.
    @Test(arguments: [true, false]) func aTunnelTakesOneNumberOnEitherPath(_ allowsFastPath: Bool) async throws {
        try await ForwardProxyTests.withForwardProxy(
            rules: ["api.test=slow"], named: ["slow": Self.delayed], allowsFastPath: allowsFastPath
        ) { proxy, _, port in
            var clients: [TestSocket] = []
            for way in [Way.connect, .socks5Address, .socks5Name] {
                clients.append(
                    try await blocking {
                        let client = try TestSocket.connect(port: proxy.address.port)
                        #expect(way.isSuccess(try way.open(client, port: port)))
                        return client
                    })
            }
            #expect(await proxy.connections().map(\.number) == [0, 1, 2])
            withExtendedLifetime(clients) {}
        }
    }
}
