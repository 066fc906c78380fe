import Determinism
import ForwardProxy
import LinkModel
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// A forward proxy on real sockets: clients name the destination of each connection.
@Suite(.tags(.gateways), .timeLimit(.minutes(5))) struct ForwardProxyTests {
    /// The ways in which a client names `127.0.0.1:PORT` or a name that stands for it.
    enum Way: String, CaseIterable, CustomTestStringConvertible {
        case connect, connectWithoutHost, socks5Address, socks5Name, socks4, socks4a

        var testDescription: String { rawValue }

        /// Opens a tunnel; returns the reply.
        func open(_ socket: TestSocket, port: Int) throws -> [UInt8] {
            let ports = [UInt8(port >> 8), UInt8(port & 0xFF)]
            let name = Array("api.test".utf8)
            switch self {
            case .connect:
                try socket.send(Array("CONNECT api.test:\(port) HTTP/1.1\r\nHost: api.test:\(port)\r\n\r\n".utf8))
                return try Self.head(socket)
            case .connectWithoutHost:
                try socket.send(Array("CONNECT 127.0.0.1:\(port) HTTP/1.0\r\n\r\n".utf8))
                return try Self.head(socket)
            case .socks5Address, .socks5Name:
                try socket.send([5, 1, 0])
                #expect(try socket.receive(exactly: 2) == [5, 0])
                let host: [UInt8] = self == .socks5Name ? [3, UInt8(name.count)] + name : [1, 127, 0, 0, 1]
                try socket.send([5, 1, 0] + host + ports)
                return try socket.receive(exactly: 10)
            case .socks4:
                try socket.send([4, 1] + ports + [127, 0, 0, 1, 0])
                return try socket.receive(exactly: 8)
            case .socks4a:
                try socket.send([4, 1] + ports + [0, 0, 0, 1, 0] + name + [0])
                return try socket.receive(exactly: 8)
            }
        }

        static func head(_ socket: TestSocket) throws -> [UInt8] {
            var head: [UInt8] = []
            while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
                let byte = try socket.receive(exactly: 1)
                if byte.isEmpty { break }
                head += byte
            }
            return head
        }

        func isSuccess(_ reply: [UInt8]) -> Bool {
            switch self {
            case .connect, .connectWithoutHost: reply.starts(with: Array("HTTP/1.1 200".utf8))
            case .socks5Address, .socks5Name: reply.starts(with: [5, 0])
            case .socks4, .socks4a: reply.starts(with: [0, 90])
            }
        }
    }

    static func withForwardProxy(
        _ conditions: Conditions = .clear, rules: [String] = [], named: [String: Conditions] = [:],
        redirections: RedirectedConnections? = nil, allowsFastPath: Bool = true, connectionsMax: Int? = nil,
        _ body: @escaping (Proxy, TestSocket, _ port: Int) async throws -> Void
    ) async throws {
        let (listener, port) = try TestSocket.listen()
        var settings = ForwardSettings()
        settings.rules = try HostRules(rules: rules, maps: ["api.test=127.0.0.1", "direct.test=127.0.0.1"])
        settings.conditions = named
        settings.redirections = redirections
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: 0),
            conditions: conditions)
        configuration.forward = settings
        configuration.allowsFastPath = allowsFastPath
        if let connectionsMax { configuration.connectionsMax = connectionsMax }
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        do {
            try await body(proxy, listener, port)
        } catch {
            await proxy.stop(grace: .zero)
            throw error
        }
        await proxy.stop(grace: .zero)
    }

    @Test(arguments: Way.allCases, [true, false])
    func aTunnelCarriesBothDirectionsAndTheirEnds(_ way: Way, _ allowsFastPath: Bool) async throws {
        try await Self.withForwardProxy(allowsFastPath: allowsFastPath) { proxy, listener, port in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let reply = try way.open(client, port: port)
                #expect(way.isSuccess(reply))
                let server = try listener.accept()
                let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                try client.send(bytes.prefix(70_000))
                #expect(try server.receive(exactly: 70_000) == Array(bytes.prefix(70_000)))
                client.finish()
                #expect(try server.receive().isEmpty)
                Sender(bytes, to: server).start()
                #expect(try client.receiveToEnd() == bytes)
            }
            let traffic = await proxy.hostTraffic()
            #expect(traffic.map(\.connections) == [1])
            try await eventually("all bytes are counted") {
                await proxy.hostTraffic().first?.bytes == PerDirection(up: 70_000, down: 300_000)
            }
        }
    }

    /// Sends bytes and a FIN from another thread.
    private final class Sender: Sendable {
        private let bytes: [UInt8]
        private let socket: TestSocket

        init(_ bytes: [UInt8], to socket: TestSocket) {
            self.bytes = bytes
            self.socket = socket
        }

        func start() {
            Task.detached { [self] in
                try await blocking { [self] in
                    try socket.send(bytes)
                    socket.finish()
                }
            }
        }
    }

    @Test func theReplyWaitsForTheModelledHandshake() async throws {
        let delay = DirectionConditions(delay: .milliseconds(150))
        try await Self.withForwardProxy(Conditions(up: delay, down: delay)) { proxy, listener, port in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let start = ContinuousClock.now
                #expect(Way.connect.isSuccess(try Way.connect.open(client, port: port)))
                #expect(ContinuousClock.now - start >= .milliseconds(300))
            }
        }
    }

    @Test func duringAnOutageThereIsNoReplyUntilItEnds() async throws {
        try await Self.withForwardProxy { proxy, _, port in
            await proxy.setOutage(PerDirection(up: true, down: true))
            let client = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(Array("CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: api.test\r\n\r\n".utf8))
                #expect(!client.isReadable(within: 300))
                return client
            }
            await proxy.setOutage(PerDirection(up: false, down: false))
            let reply = try await blocking { try Way.head(client) }
            #expect(Way.connect.isSuccess(reply))
        }
    }

    @Test func bytesThatFollowTheRequestAtOnceAreKept() async throws {
        for conditions in [
            Conditions.clear, Conditions(up: DirectionConditions(delay: .milliseconds(20)), down: .clear),
        ] {
            try await Self.withForwardProxy(conditions) { proxy, listener, port in
                try await blocking {
                    let client = try TestSocket.connect(port: proxy.address.port)
                    try client.send(Array("CONNECT api.test:\(port) HTTP/1.1\r\nHost: a\r\n\r\nearly".utf8))
                    #expect(try listener.accept().receive(exactly: 5) == Array("early".utf8))
                    #expect(Way.connect.isSuccess(try Way.head(client)))
                }
            }
        }
    }

    @Test func aServerThatSpeaksFirstIsHeardAfterTheReply() async throws {
        try await Self.withForwardProxy { proxy, listener, port in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                #expect(Way.socks5Address.isSuccess(try Way.socks5Address.open(client, port: port)))
                try listener.accept().send(Array("220 ready\r\n".utf8))
                #expect(try client.receive(exactly: 11) == Array("220 ready\r\n".utf8))
            }
        }
    }

    @Test(arguments: [
        ("refused", "502", "connection_refused"), ("missing", "502", "dns_error"), ("broken", "502", "dns_error"),
        ("rule", "502", "connection_refused"), ("offline", "502", "destination_ip_unroutable"),
        ("metadata", "403", "http_request_denied"),
    ])
    func aFailureIsTold(_ kind: String, _ status: String, _ error: String) async throws {
        let rules = ["missing.test=nxdomain", "broken.test=servfail", "rule.test=refuse"]
        let offline = Conditions(up: .clear, down: .clear, connectionPolicy: .offline)
        try await Self.withForwardProxy(kind == "offline" ? offline : .clear, rules: rules) { proxy, _, _ in
            let unused = try TestSocket.unusedPort()
            let host =
                ["refused": "api.test:\(unused)", "offline": "api.test:80", "metadata": "169.254.169.254:80"][kind]
                ?? "\(kind).test:80"
            let reply = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(Array("CONNECT \(host) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
                return String(decoding: try client.receiveToEnd(), as: UTF8.self)
            }
            #expect(reply.hasPrefix("HTTP/1.1 \(status)"))
            #expect(reply.contains("error=\(error)"))
            try await eventually("the failure is counted") {
                await proxy.hostTraffic().map(\.connectionsFailed) == [1]
            }
        }
    }

    @Test func theProxyItselfIsNoDestination() async throws {
        try await Self.withForwardProxy { proxy, _, _ in
            let reply = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                let own = "127.0.0.1:\(proxy.address.port)"
                try client.send(Array("CONNECT \(own) HTTP/1.1\r\nHost: \(own)\r\n\r\n".utf8))
                return String(decoding: try client.receiveToEnd(), as: UTF8.self)
            }
            #expect(reply.contains("proxy_loop_detected"))
        }
    }

    /// The connections are open, and end in another order.
    @Test(arguments: [true, false]) func destinationsAreListedInTheOrderInWhichClientsNameThem(
        _ allowsFastPath: Bool
    ) async throws {
        let origins = try (0..<6).map { _ in try TestSocket.listen() }
        try await Self.withForwardProxy(allowsFastPath: allowsFastPath) { proxy, _, _ in
            let connections = try await blocking {
                try origins.map { origin, port in
                    let client = try TestSocket.connect(port: proxy.address.port)
                    let host = "api.test:\(port)"
                    try client.send(Array("GET http://\(host)/ HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8))
                    let server = try origin.accept()
                    _ = try Way.head(server)
                    return (client, server)
                }
            }
            let ports = origins.map { UInt16($0.1) }
            #expect(await proxy.hostTraffic().map { $0.destination.map { UInt16($0.port) } } == ports)
            for (client, server) in connections.reversed() {
                client.finish()
                server.finish()
            }
            try await eventually("the connections are counted") {
                await proxy.hostTraffic().allSatisfy { $0.connections == 1 }
            }
            #expect(await proxy.hostTraffic().map { $0.destination.map { UInt16($0.port) } } == ports)
        }
    }

    @Test func requestsInAbsoluteFormReachTheirOrigins() async throws {
        let (other, otherPort) = try TestSocket.listen()
        try await Self.withForwardProxy { proxy, listener, port in
            try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                for (listener, port) in [(listener, port), (other, otherPort)] {
                    try client.send(
                        Array(
                            ("GET http://api.test:\(port)/notes?x=1 HTTP/1.1\r\nHost: api.test:\(port)\r\n"
                                + "Proxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n").utf8))
                    let origin = try listener.accept()
                    let request = String(decoding: try Way.head(origin), as: UTF8.self)
                    #expect(request.hasPrefix("GET /notes?x=1 HTTP/1.1\r\n"))
                    #expect(!request.lowercased().contains("proxy-connection"))
                    try origin.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody".utf8))
                    let head = String(decoding: try Way.head(client), as: UTF8.self)
                    #expect(head.hasPrefix("HTTP/1.1 200"))
                    #expect(try client.receive(exactly: 4) == Array("body".utf8))
                }
            }
            #expect(await proxy.hostTraffic().map(\.connections) == [1, 1])
        }
    }

    @Test func aRedirectedConnectionNeedsNoRequest() async throws {
        let redirections = RedirectedConnections()
        try await Self.withForwardProxy(redirections: redirections) { proxy, listener, port in
            try await blocking {
                let own = try TestSocket.unusedPort()
                redirections.record(Destination(host: "127.0.0.1", port: port), fromPort: own)
                let client = try TestSocket.connect(port: proxy.address.port, from: own)
                try client.send([1, 2, 3])
                let server = try listener.accept()
                #expect(try server.receive(exactly: 3) == [1, 2, 3])
                try server.send([4])
                #expect(try client.receive(exactly: 1) == [4])
            }
        }
    }

    @Test func aRuleGivesAHostALinkOfItsOwn() async throws {
        let dead = DirectionConditions(loss: .one)
        try await Self.withForwardProxy(
            Conditions(up: dead, down: dead), rules: ["direct.test=direct"]
        ) { proxy, listener, port in
            try await blocking {
                let blocked = try TestSocket.connect(port: proxy.address.port)
                try blocked.send(Array("CONNECT 127.0.0.1:\(port) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                let client = try TestSocket.connect(port: proxy.address.port)
                try client.send(Array("CONNECT direct.test:\(port) HTTP/1.1\r\nHost: a\r\n\r\n".utf8))
                #expect(Way.connect.isSuccess(try Way.head(client)))
                #expect(!blocked.isReadable(within: 100))
            }
        }
    }

    @Test func conditionsApplyToATunnelThatIsOpen() async throws {
        try await Self.withForwardProxy { proxy, listener, port in
            let (client, server) = try await blocking {
                let client = try TestSocket.connect(port: proxy.address.port)
                #expect(Way.connect.isSuccess(try Way.connect.open(client, port: port)))
                let server = try listener.accept()
                try client.send([1])
                #expect(try server.receive(exactly: 1) == [1])
                return (client, server)
            }
            await proxy.setOutage(PerDirection(up: true, down: true))
            try await blocking {
                try client.send([2])
                #expect(!server.isReadable(within: 200))
            }
            await proxy.setOutage(PerDirection(up: false, down: false))
            #expect(try await blocking { try server.receive(exactly: 1) } == [2])
            try await eventually("the bytes of both paths are counted") {
                await proxy.hostTraffic() == [
                    HostTraffic(
                        destination: Destination(host: "api.test", port: port), connections: 1,
                        bytes: PerDirection(up: 2, down: 0))
                ]
            }
        }
    }

    @Test func aStopClosesClientsThatHaveNotNamedADestination() async throws {
        try await Self.withForwardProxy { proxy, _, _ in
            let client = try await blocking { try TestSocket.connect(port: proxy.address.port) }
            try await eventually("the client is accepted") { await proxy.status().connectionsOpen == 1 }
            #expect(await proxy.stop(grace: .seconds(30)))
            #expect(try await blocking { try client.receive() }.isEmpty)
            #expect(await proxy.status().connectionsOpen == 0)
        }
    }

    @Test func aDestinationThatIsAnAddressHasTheNameOfTheClientOfTLS() async throws {
        let certificates = try TestCertificates()
        let server = try TLSServer(certificates)
        var configuration = ProxyConfiguration(
            listen: Endpoint("127.0.0.1:0")!, upstream: Endpoint(host: "127.0.0.1", port: 0),
            conditions: Conditions(
                up: DirectionConditions(delay: .milliseconds(1)), down: DirectionConditions(delay: .milliseconds(1))))
        configuration.forward = ForwardSettings()
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        let result = try await blocking {
            try runProgram(
                "curl",
                [
                    "-s", "--http1.1", "--max-time", "30", "--cacert", certificates.certificate("ca"), "-p", "-x",
                    "http://\(proxy.address)", "--connect-to", "api.test:443:127.0.0.1:\(server.port)",
                    "https://api.test/",
                ])
        }
        #expect(result.status == 0 && result.output.contains("sni=api.test"), "\(result)")
        let hosts = await proxy.hostTraffic()
        #expect(hosts.map(\.serverName) == ["api.test"])
        #expect(hosts.first?.destination == Destination(host: "127.0.0.1", port: server.port))
        await proxy.stop()
    }
}
