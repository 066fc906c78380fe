import Determinism
import Impairment
import LinkModel
import Logging
import NIOCore
import NIOPosix
import TestSupport
import Testing

@testable import Proxy

/// Fault rules of a running proxy.
@Suite(.tags(.proxies), .timeLimit(.minutes(2))) struct ProxyFaultTests {
    /// Responds to each request of each connection with 200 and the number of the request.
    private static func serve(_ listener: TestSocket) -> Flag {
        let stopped = Flag()
        Task.detached {
            try await blocking {
                while !stopped.isSet {
                    guard let socket = try? listener.accept() else { continue }
                    Task.detached { try await blocking { try Self.respond(socket) } }
                }
            }
        }
        return stopped
    }

    private static func respond(_ socket: TestSocket) throws {
        var received: [UInt8] = []
        var number = 0
        while true {
            let bytes = try socket.receive()
            if bytes.isEmpty { return }
            received += bytes
            while let end = received.firstRange(of: Array("\r\n\r\n".utf8)) {
                received.removeSubrange(..<end.upperBound)
                number += 1
                let body = "request \(number)"
                try socket.send(Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8))
            }
        }
    }

    @Test(arguments: [Conditions.clear, Conditions(up: .init(delay: .milliseconds(1)), down: .init())])
    func aRuleAppliesToTheNextRequestOfEachOpenConnectionOfTheLink(_ conditions: Conditions) async throws {
        try await withProxy(conditions, allowsFastPath: false) { proxy, listener in
            let stopped = Self.serve(listener)
            defer { stopped.set() }
            let port = proxy.address.port
            let old = HTTPPeer(port: port)
            #expect(try await blocking { try old.ask("GET", "/a").body } == "request 1")
            let rule = FaultRule(method: "GET", point: .beforeRequest, action: .respond(FaultResponse(status: 503)))
            let number = try await proxy.addFaultRule(rule)
            #expect(await proxy.status().connectionsWithoutFaults == 0)
            #expect(try await blocking { try (0..<2).map { _ in try old.ask("GET", "/a").status } } == [503, 200])
            let count = try #require(await proxy.faultRules().first)
            #expect(count.matched == 2 && count.applied == 1 && count.fired == 1)
            await proxy.removeFaultRules([number])
            #expect(await proxy.faultRules().isEmpty)
            #expect(try await blocking { try old.ask("GET", "/a").body } == "request 3")
            // The rules come and go; the connection stays tracked.
            try await proxy.addFaultRule(rule)
            #expect(try await blocking { try (0..<2).map { _ in try old.ask("GET", "/a").status } } == [503, 200])
            let status = await proxy.status()
            #expect(status.connectionsAccepted == 1 && status.connectionsWithoutFaults == 0)
        }
    }

    /// The start of the next request is unknown on a connection of which the fast path has forwarded bytes.
    @Test(.enabled(if: Proxy.hasFastPath), arguments: [false, true])
    func aRuleDoesNotApplyToConnectionsThatTheFastPathHasForwarded(_ isObserved: Bool) async throws {
        try await withProxy(.clear) { proxy, listener in
            let stopped = Self.serve(listener)
            defer { stopped.set() }
            let port = proxy.address.port
            let old = HTTPPeer(port: port)
            #expect(try await blocking { try old.ask("GET", "/a").body } == "request 1")
            // A connection without a byte so far.
            let fresh = try await blocking { try TestSocket.connect(port: port) }
            try await eventually("both are open") { await proxy.status().connectionsOpen == 2 }
            let observation = isObserved ? await proxy.observe(.exchanges) : nil
            try await proxy.addFaultRule(
                FaultRule(times: 2...2, point: .beforeRequest, action: .respond(FaultResponse(status: 503))))
            #expect(await proxy.status().connectionsWithoutFaults == 1)
            #expect(try await blocking { try old.ask("GET", "/a").body } == "request 2")
            let head = try await blocking {
                try fresh.send(Array("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
                return String(decoding: try fresh.receive(exactly: 12), as: UTF8.self)
            }
            #expect(head == "HTTP/1.1 503")
            #expect(try await blocking { try HTTPPeer(port: port).ask("GET", "/a").status } == 503)
            #expect(await proxy.status().connectionsWithoutFaults == 1)
            withExtendedLifetime(observation) {}
        }
    }

    /// The response that is under way when the rule is added has no request on the link.
    @Test(.enabled(if: Proxy.hasFastPath)) func aConnectionWithAPendingResponseIsCountedAsOneWithoutFaults()
        async throws
    {
        try await withProxy(.clear) { proxy, listener in
            let port = proxy.address.port
            let client = try await blocking { try TestSocket.connect(port: port) }
            let request = Array("GET /a HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
            let server = try await blocking {
                try client.send(request)
                let server = try listener.accept()
                _ = try server.receive(exactly: request.count)
                return server
            }
            try await proxy.addFaultRule(FaultRule(point: .beforeRequest, action: .respond(FaultResponse(status: 503))))
            #expect(await proxy.status().connectionsWithoutFaults == 1)
            let response = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8)
            let received = try await blocking {
                try server.send(response)
                let first = try client.receive(exactly: response.count)
                try client.send(request)
                _ = try server.receive(exactly: request.count)
                try server.send(response)
                return first + (try client.receive(exactly: response.count))
            }
            #expect(received == response + response)
            #expect(await proxy.status().connectionsWithoutFaults == 1)
        }
    }

    @Test func initialRulesApplyToTheFirstConnectionAndAreLogged() async throws {
        let messages = Messages()
        let (listener, upstream) = try TestSocket.listen()
        let stopped = Self.serve(listener)
        defer { stopped.set() }
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: upstream))
        configuration.faultRules = [
            FaultRule(path: "/a*", times: 2...2, point: .beforeRequest, action: .respond(.portal)),
            FaultRule(nth: 0, action: .reset),
            FaultRule(method: "HEAD", point: .midResponse, action: .reset),
        ]
        let proxy = try await Proxy.start(
            configuration, on: MultiThreadedEventLoopGroup.singleton, logger: messages.logger)
        let peer = HTTPPeer(port: proxy.address.port)
        let bodies = try await blocking { try (0..<3).map { _ in try peer.ask("GET", "/a?q=1").body } }
        #expect(bodies[0].contains("Sign in") && bodies[1] == bodies[0] && bodies[2] == "request 1")
        let counts = await proxy.faultRules().map(\.fired)
        #expect(counts == [2, 0])
        await proxy.stop(grace: .zero)
        #expect(await proxy.faultRules().map(\.fired) == [2, 0])
        #expect(
            messages.text.filter { $0.hasPrefix("fault") } == [
                "fault fired: 'any /a* times 2 before-request portal': GET /a?q=1 at before-request after 0 B of the request (1 so far)",
                "fault fired: 'any /a* times 2 before-request portal': GET /a?q=1 at before-request after 0 B of the request (2 so far)",
            ])
    }

    @Test func aRuleThatCannotBeUsedIsRefused() async throws {
        try await withProxy(.clear) { proxy, _ in
            await #expect(throws: FaultRuleError(reason: "nth must be at least 1")) {
                try await proxy.addFaultRule(FaultRule(nth: 0, action: .reset))
            }
            #expect(await proxy.faultRules().isEmpty)
        }
    }

    @Test func aChangeOfATimelineIsLogged() async throws {
        let messages = Messages()
        let (listener, upstream) = try TestSocket.listen()
        var configuration = ProxyConfiguration(
            listen: Endpoint(host: "127.0.0.1", port: 0), upstream: Endpoint(host: "127.0.0.1", port: upstream))
        let slow = Conditions(up: DirectionConditions(delay: .milliseconds(5)), down: .clear)
        configuration.timeline = try Timeline([
            .init(at: .zero, .hold(.init("first", slow))), .init(at: .milliseconds(50), .hold(.init("second", .clear))),
            .init(at: .seconds(3600), .hold(.init("third", slow))),
        ])
        let proxy = try await Proxy.start(
            configuration, on: MultiThreadedEventLoopGroup.singleton, logger: messages.logger)
        try await eventually("the change is logged") { !messages.text.isEmpty }
        #expect(messages.text.first?.hasPrefix("timeline at 0.1 s: second, third in 3") == true, "\(messages.text)")
        let position = try #require(await proxy.status().link.timeline)
        #expect(position.name == "second" && position.nextName == "third" && position.time >= .milliseconds(50))
        await proxy.stop(grace: .zero)
        withExtendedLifetime(listener) {}
    }

    @Test func rulesAboutRequestsSayThatTheyCannotSeeInsideTLS() async throws {
        let certificates = try TestCertificates()
        let server = try TLSServer(certificates)
        let messages = Messages()
        var configuration = ProxyConfiguration(
            listen: Endpoint("127.0.0.1:0")!, upstream: Endpoint(host: "127.0.0.1", port: server.port))
        configuration.faultRules = [FaultRule(times: 1...Int.max, action: .reset)]
        let proxy = try await Proxy.start(
            configuration, on: MultiThreadedEventLoopGroup.singleton, logger: messages.logger)
        let url = "https://api.test:\(proxy.address.port)/"
        let output = try await blocking {
            try runProgram(
                "curl",
                [
                    "-s", "--http1.1", "--max-time", "20", "--cacert", certificates.certificate("ca"), "--resolve",
                    "api.test:\(proxy.address.port):127.0.0.1", url, url,
                ])
        }
        #expect(output.output.contains("sni=api.test") && output.status == 0, "\(output.errors)")
        let status = await proxy.status()
        #expect(status.opaqueTLS.connections >= 1 && status.opaqueTLS.serverNames == ["api.test"])
        #expect(status.faultRules.first?.matched == 0)
        #expect(messages.text.contains { $0.contains("TLS (api.test): faults of requests cannot see inside") })
        await proxy.stop()
    }

    @Test func anOpenConnectionHasTheNameOfTheClientOfTLS() async throws {
        try await withProxy(.clear, allowsFastPath: false) { proxy, listener in
            let server = Task {
                try await blocking {
                    let socket = try listener.accept()
                    _ = try socket.receive(exactly: 60)
                    return socket
                }
            }
            let name = Array("api.test".utf8)
            let names: [UInt8] =
                [0, 0, 0, UInt8(name.count + 5), 0, UInt8(name.count + 3), 0, 0, UInt8(name.count)] + name
            let body: [UInt8] =
                [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0x13, 1, 1, 0, 0, UInt8(names.count)] + names
            let client = try TestSocket.connect(port: proxy.address.port)
            try client.send([22, 3, 1, 0, UInt8(body.count + 4), 1, 0, 0, UInt8(body.count)] + body)
            let peer = try await server.value
            let connections = await proxy.connections()
            #expect(connections.map(\.serverName) == ["api.test"])
            withExtendedLifetime((client, peer)) {}
        }
    }

    /// The exit status of curl for each fault of the handshake: 28 for its time limit, 35 for a failed handshake, 52 for no
    /// byte of a response (its record is incomplete).
    @Test(arguments: [
        ("after-client-hello", FaultAction.stall, CInt(28)), ("after-server-hello", .reset, 35),
        ("mid-server-hello", .close, 35), ("mid-stream", .close, 52),
    ]) func aFaultOfAHandshakeReachesTheClient(_ point: String, action: FaultAction, status: CInt) async throws {
        let certificates = try TestCertificates()
        let server = try TLSServer(certificates, version: "TLSv1_2")
        let messages = Messages()
        var configuration = ProxyConfiguration(
            listen: Endpoint("127.0.0.1:0")!, upstream: Endpoint(host: "127.0.0.1", port: server.port))
        let handshake = try #require(HandshakePoint(rawValue: point))
        configuration.faultRules = [
            // After the handshake of TLS 1.2, whose messages of the server have less than 2 kB.
            FaultRule(
                handshake: handshake, serverName: "api.*", bytes: handshake == .midStream ? 2_500 : nil, action: action)
        ]
        let proxy = try await Proxy.start(
            configuration, on: MultiThreadedEventLoopGroup.singleton, logger: messages.logger)
        let arguments = [
            "-s", "--http1.1", "--max-time", action == .stall ? "3" : "30", "--cacert", certificates.certificate("ca"),
            "--resolve",
            "api.test:\(proxy.address.port):127.0.0.1", "--data-binary", String(repeating: "x", count: 9_000),
            "https://api.test:\(proxy.address.port)/echo",
        ]
        let result = try await blocking { try runProgram("curl", arguments) }
        #expect(result.status == status, "\(result)")
        #expect(await proxy.faultRules().first?.fired == 1)
        #expect(messages.text.contains { $0.contains("TLS for api.test at \(point) after ") }, "\(messages.text)")
        // The rule has been used up.
        let second = try await blocking { try runProgram("curl", arguments) }
        #expect(second.status == 0, "\(second)")
        await proxy.stop(grace: .zero)
    }
}
