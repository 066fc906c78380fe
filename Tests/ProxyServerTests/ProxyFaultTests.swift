import Determinism
import Impairment
import LinkModel
import Logging
import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import ProxyServer

/// Fault rules of a running proxy.
@Suite(.timeLimit(.minutes(2))) struct ProxyFaultTests {
    private final class Messages: Sendable {
        private let lines = Mutex<[String]>([])

        var text: [String] { lines.withLock { $0 } }

        var logger: Logger { Logger(label: "test") { _ in Handler(messages: self) } }

        private struct Handler: LogHandler {
            let messages: Messages
            var logLevel = Logger.Level.info
            var metadata: Logger.Metadata = [:]

            init(messages: Messages) { self.messages = messages }

            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }

            func log(event: LogEvent) { messages.lines.withLock { $0.append("\(event.message)") } }
        }
    }

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

    @Test func aRuleAppliesToConnectionsOpenedAfterItAndClosesNone() async throws {
        try await withProxy(.clear, allowsFastPath: false) { proxy, listener in
            let stopped = Self.serve(listener)
            defer { stopped.set() }
            let port = proxy.address.port
            let old = HTTPPeer(port: port)
            #expect(try await blocking { try old.ask("GET", "/a").body } == "request 1")
            let number = try await proxy.addFaultRule(
                FaultRule(method: "GET", nth: 2, point: .queued, action: .reply(FaultReply(status: 503))))
            let status = await proxy.status()
            #expect(number == 0 && status.connectionsWithoutFaults == 1 && status.connectionsOpen == 1)
            for count in 2...4 {
                #expect(try await blocking { try old.ask("GET", "/a").body } == "request \(count)")
            }
            let new = HTTPPeer(port: port)
            #expect(try await blocking { try (0..<3).map { _ in try new.ask("GET", "/b").status } } == [200, 503, 200])
            let rule = try #require(await proxy.faultRules().first)
            #expect(rule.matched == 3 && rule.applied == 1 && rule.fired == 1)
            await proxy.removeFaultRules([number])
            #expect(await proxy.faultRules().isEmpty)
            #expect(try await blocking { try new.ask("GET", "/c").body } == "request 3")
            #expect(try await blocking { try old.ask("GET", "/a").body } == "request 5")
            #expect(await proxy.status().connectionsWithoutFaults == 0)
        }
    }

    /// A connection of the fast path moves to the link, which tracks it from then on.
    @Test(.enabled(if: Proxy.hasFastPath)) func aRuleAppliesToIdleConnectionsOfTheFastPath() async throws {
        try await withProxy(.clear) { proxy, listener in
            let stopped = Self.serve(listener)
            defer { stopped.set() }
            let peer = HTTPPeer(port: proxy.address.port)
            #expect(try await blocking { try peer.ask("GET", "/a").body } == "request 1")
            try await proxy.addFaultRule(
                FaultRule(nth: 2, point: .queued, action: .reply(FaultReply(status: 503))))
            #expect(await proxy.status().connectionsWithoutFaults == 0)
            #expect(try await blocking { try peer.ask("GET", "/a").body } == "request 2")
            #expect(try await blocking { try peer.ask("GET", "/a").status } == 503)
            #expect(try await blocking { try peer.ask("GET", "/a").body } == "request 3")
            #expect(await proxy.status().connectionsAccepted == 1)
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
            FaultRule(path: "/a*", times: 2...2, point: .queued, action: .reply(.portal)),
            FaultRule(nth: 0, action: .abort),
            FaultRule(method: "HEAD", point: .partlyAnswered, action: .abort),
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
                "fault fired: 'any /a* times 2 queued portal': GET /a?q=1 at queued after 0 B of the request (1 so far)",
                "fault fired: 'any /a* times 2 queued portal': GET /a?q=1 at queued after 0 B of the request (2 so far)",
            ])
    }

    @Test func aRuleThatCannotBeUsedIsRefused() async throws {
        try await withProxy(.clear) { proxy, _ in
            await #expect(throws: FaultRuleError(reason: "nth must be at least 1")) {
                try await proxy.addFaultRule(FaultRule(nth: 0, action: .abort))
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
}
