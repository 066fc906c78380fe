import Determinism
import LinkModel
import TestSupport
import Testing

@testable import Impairment

/// Replies of faults and of the captive portal after which the connection is closed (RFC 9112, 9.3 and 9.6).
@Suite struct ClosingReplyTests {
    /// The reply to a request, and what the client's socket gets.
    private struct Outcome {
        var sockets: VirtualSockets
        let id: FlowID

        var text: String { String(decoding: sockets.socket(.client, id).received, as: UTF8.self) }
        var client: VirtualSockets.Socket { sockets.socket(.client, id) }
        var server: VirtualSockets.Socket { sockets.socket(.server, id) }
        var hasEnded: Bool { sockets.ended.contains(id) }
    }

    private static let slow = Conditions(
        up: DirectionConditions(delay: .milliseconds(100)), down: DirectionConditions(delay: .milliseconds(100)))

    private static func request(_ line: String, _ fields: String..., body: String = "") -> [UInt8] {
        let length = body.isEmpty ? [] : ["Content-Length: \(body.utf8.count)"]
        return Array(([line, "Host: h"] + fields + length + ["", body]).joined(separator: "\r\n").utf8)
    }

    private static func responses(_ text: String) -> Int { text.matches(of: /HTTP\/1\.1 \d/).count }

    private static func rule(_ reply: FaultResponse, at point: FaultPoint = .beforeRequest, path: String? = nil)
        -> FaultRule
    {
        FaultRule(path: path, times: 1...Int.max, point: point, action: .respond(reply))
    }

    private static func send(
        _ requests: [UInt8], _ rules: [FaultRule] = [rule(FaultResponse(status: 503))],
        _ conditions: Conditions = .clear
    ) -> Outcome {
        var sockets = VirtualSockets(conditions, exchangeTracking: ExchangeTracking(rules: rules))
        let id = sockets.open()
        sockets.send(requests, from: .client, id)
        while let deadline = sockets.box.link.nextDeadline, deadline < Instant.start + .seconds(50) {
            sockets.wait(deadline - sockets.now)
        }
        return Outcome(sockets: sockets, id: id)
    }

    private static func portal(_ requests: [UInt8]) -> Outcome {
        var conditions = Conditions.clear
        conditions.connectionPolicy = .portal
        return send(requests, [], conditions)
    }

    // MARK: Persistence

    @Test(
        arguments: [
            ("GET / HTTP/1.1", "Accept: a", false, nil), ("GET / HTTP/1.1", "Connection: close", true, "close"),
            ("GET / HTTP/1.1", "Connection: x, CLOSE", true, "close"), ("GET / HTTP/1.0", "Accept: a", true, "close"),
            ("GET / HTTP/1.0", "Connection: Keep-Alive", false, "keep-alive"),
            ("GET / HTTP/1.0", "Connection: keep-alive, close", true, "close"),
            ("HEAD / HTTP/1.0", "Accept: a", true, "close"),
        ] as [(String, String, Bool, String?)])
    func theRequestDecidesWhetherTheConnectionIsClosed(
        line: String, field: String, closes: Bool, option: String?
    ) {
        let outcomes = [
            Self.send(Self.request(line, field)), Self.send(Self.request(line, field), Self.slow),
            Self.portal(Self.request(line, field)),
        ]
        for outcome in outcomes {
            #expect(outcome.client.gotFin == closes && !outcome.client.gotReset, "\(outcome.text)")
            #expect(outcome.text.contains("Connection: ") == (option != nil), "\(outcome.text)")
            if let option { #expect(outcome.text.contains("\r\nConnection: \(option)\r\n"), "\(outcome.text)") }
        }
    }

    private static func send(_ requests: [UInt8], _ conditions: Conditions) -> Outcome {
        send(requests, [rule(FaultResponse(status: 503))], conditions)
    }

    @Test(arguments: [200, 204, 304, 503]) func aRulesOwnConnectionCloseClosesTheConnection(_ status: Int) {
        let reply = FaultResponse(status: status, fields: [.init("connection", "Close")], body: Array("x".utf8))
        let outcome = Self.send(Self.request("GET / HTTP/1.1"), [Self.rule(reply)])
        #expect(outcome.client.gotFin && outcome.text.contains("connection: Close\r\n"))
        #expect(!outcome.text.contains("Connection:"), "the option is not sent twice")
        #expect(outcome.text.hasSuffix(status == 204 || status == 304 ? "\r\n\r\n" : "\r\n\r\nx"))
    }

    @Test(arguments: [
        (200, "OK"), (404, "Not Found"), (418, "I'm a teapot"), (429, "Too Many Requests"),
        (503, "Service Unavailable"), (507, "Insufficient Storage"), (599, "Unassigned"),
    ])
    func theStatusLineHasAReasonPhrase(_ status: Int, _ reason: String) {
        let text = Self.send(Self.request("GET / HTTP/1.1"), [Self.rule(FaultResponse(status: status))]).text
        #expect(text.hasPrefix("HTTP/1.1 \(status) \(reason)\r\n"), "\(text)")
        let own = FaultResponse(status: status, reason: "Because")
        #expect(
            Self.send(Self.request("GET / HTTP/1.1"), [Self.rule(own)]).text.hasPrefix("HTTP/1.1 \(status) Because\r\n")
        )
    }

    // MARK: What follows

    /// Bytes after the request that closes the connection are not processed, and do not cause a RST.
    @Test func aPipelinedRequestAfterTheClosingOneIsDiscarded() {
        let requests =
            Self.request("GET /a HTTP/1.1") + Self.request("PUT /b HTTP/1.1", "Connection: close", body: "hi")
            + Self.request("GET /c HTTP/1.1")
        for var outcome in [Self.send(requests), Self.send(requests, Self.slow), Self.portal(requests)] {
            #expect(
                Self.responses(outcome.text) == 2 && outcome.client.gotFin && !outcome.client.gotReset,
                "\(outcome.text)")
            outcome.sockets.send(Self.request("GET /d HTTP/1.1"), from: .client, outcome.id)
            outcome.sockets.wait(.seconds(1))
            #expect(Self.responses(outcome.text) == 2)
            #expect(outcome.server.received.isEmpty && !outcome.hasEnded)
            outcome.sockets.report(.inputClosed(.client), outcome.id)
            outcome.sockets.wait(.seconds(2))
            #expect(outcome.hasEnded)
        }
    }

    /// The requests before the closing one reach the server, and their responses the client, before the FIN.
    @Test func earlierExchangesAreCompletedBeforeTheClosingReply() {
        var sockets = VirtualSockets(
            Self.slow, exchangeTracking: ExchangeTracking(rules: [Self.rule(FaultResponse(status: 503), path: "/b")]))
        let id = sockets.open()
        sockets.send(
            Self.request("GET /a HTTP/1.1") + Self.request("GET /b HTTP/1.0") + Self.request("GET /c HTTP/1.1"),
            from: .client, id)
        sockets.wait(.seconds(2))
        #expect(sockets.socket(.server, id).received == Self.request("GET /a HTTP/1.1"))
        #expect(sockets.socket(.client, id).received.isEmpty && !sockets.socket(.client, id).gotFin)
        sockets.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8), from: .server, id)
        sockets.wait(.seconds(2))
        let text = String(decoding: sockets.socket(.client, id).received, as: UTF8.self)
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 503 Service Unavailable\r\n"))
        #expect(sockets.socket(.client, id).gotFin)
        sockets.report(.inputClosed(.client), id)
        sockets.wait(.seconds(2))
        #expect(sockets.ended.contains(id) && sockets.socket(.server, id).gotFin)
    }

    /// At `mid-request` the server receives all of the request, whose body arrives after the reply.
    @Test(arguments: ["HTTP/1.0", "HTTP/1.1"]) func theServerReceivesTheRestOfTheRequest(_ version: String) {
        let body = String(repeating: "b", count: 100)
        let request = Self.request("POST /a \(version)", "Connection: close", body: body)
        let next = Self.request("GET /b HTTP/1.1")
        var sockets = VirtualSockets(
            Self.slow,
            exchangeTracking: ExchangeTracking(rules: [Self.rule(FaultResponse(status: 503), at: .midRequest)]))
        let id = sockets.open()
        let half = request.count - 50
        sockets.send(Array(request[..<half]), from: .client, id)
        sockets.wait(.seconds(2))
        #expect(sockets.socket(.client, id).gotFin, "the reply does not wait for the rest")
        sockets.send(Array(request[half...]) + next, from: .client, id)
        sockets.wait(.seconds(2))
        #expect(sockets.socket(.server, id).received == request)
        // The server's response is read to its end, and discarded.
        sockets.send(Array("HTTP/1.0 201 Created\r\n\r\nbody".utf8), from: .server, id)
        sockets.report(.inputClosed(.server), id)
        sockets.wait(.seconds(2))
        #expect(sockets.exchangeEvents.contains { $0.contains("response read") && $0.contains("201") })
        let text = String(decoding: sockets.socket(.client, id).received, as: UTF8.self)
        #expect(Self.responses(text) == 1 && text.hasPrefix("HTTP/1.1 503 "))
        sockets.report(.inputClosed(.client), id)
        sockets.wait(.seconds(2))
        #expect(sockets.ended.contains(id) && !sockets.socket(.client, id).gotReset)
    }

    @Test(arguments: [FaultPoint.beforeRequestEnd, .beforeResponse])
    func atLaterPointsTheServerHasTheRequestAndItsEndDoesNotResetTheClient(_ point: FaultPoint) {
        let request = Self.request("POST /a HTTP/1.1", "Connection: close", body: "hello")
        var sockets = VirtualSockets(
            Self.slow, exchangeTracking: ExchangeTracking(rules: [Self.rule(FaultResponse(status: 503), at: point)]))
        let id = sockets.open()
        sockets.send(request, from: .client, id)
        sockets.wait(.seconds(2))
        #expect(sockets.socket(.server, id).received == request)
        sockets.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8), from: .server, id)
        sockets.report(.gone(.server), id)
        sockets.wait(.seconds(2))
        let client = sockets.socket(.client, id)
        #expect(String(decoding: client.received, as: UTF8.self).hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
        #expect(client.gotFin && !client.gotReset)
        sockets.report(.inputClosed(.client), id)
        sockets.wait(.seconds(2))
        #expect(sockets.ended.contains(id))
    }

    @Test func aClientThatHalfClosesAfterItsRequestGetsTheReplyAndTheFIN() {
        var sockets = VirtualSockets(
            Self.slow, exchangeTracking: ExchangeTracking(rules: [Self.rule(FaultResponse(status: 503))]))
        let id = sockets.open()
        sockets.send(Self.request("GET / HTTP/1.0"), from: .client, id)
        sockets.report(.inputClosed(.client), id)
        sockets.wait(.seconds(2))
        #expect(sockets.socket(.client, id).gotFin && !sockets.socket(.client, id).received.isEmpty)
        #expect(sockets.ended.contains(id) && sockets.socket(.server, id).gotFin)
    }

    /// The server's socket is closed although the server is still sending.
    @Test func aServerThatKeepsSendingIsClosedWithTheClient() {
        var sockets = VirtualSockets(
            .clear,
            exchangeTracking: ExchangeTracking(rules: [Self.rule(FaultResponse(status: 503), at: .beforeRequestEnd)]))
        let id = sockets.open()
        sockets.send(Self.request("GET / HTTP/1.0"), from: .client, id)
        sockets.send(Array("HTTP/1.1 200 OK\r\n\r\n".utf8), from: .server, id)
        for _ in 0..<100 { sockets.send([UInt8](repeating: 7, count: 10_000), from: .server, id) }
        #expect(!sockets.socket(.server, id).isPaused && sockets.box.link.bytesHeld == 0)
        sockets.report(.inputClosed(.client), id)
        #expect(sockets.ended.contains(id) && sockets.socket(.server, id).isClosed)
    }

    /// A client that does not close its socket is aborted after the time limit of orphans.
    @Test func aClientThatDoesNotCloseIsAborted() {
        for var outcome in [
            Self.send(Self.request("GET / HTTP/1.0")), Self.portal(Self.request("GET / HTTP/1.0")),
        ] {
            #expect(outcome.client.gotFin && !outcome.hasEnded)
            outcome.sockets.wait(OrphanLimits().timeMax)
            #expect(outcome.client.gotReset && outcome.hasEnded)
        }
    }

    /// The limit begins when the client's socket has sent the reply: a client that reads late gets all of it.
    @Test func aClientThatDoesNotReadIsNotAborted() {
        let reply = FaultResponse(status: 200, body: [UInt8](repeating: 1, count: 1 << 20))
        var sockets = VirtualSockets(.clear, exchangeTracking: ExchangeTracking(rules: [Self.rule(reply)]))
        let id = sockets.open()
        sockets.setRead(false, .client, id)
        sockets.send(Self.request("GET / HTTP/1.0"), from: .client, id)
        sockets.wait(.seconds(1000))
        #expect(!sockets.socket(.client, id).gotReset && !sockets.ended.contains(id))
        sockets.setRead(true, .client, id)
        sockets.wait(.seconds(1))
        #expect(sockets.socket(.client, id).gotFin && sockets.socket(.client, id).received.count > 1 << 20)
        sockets.wait(OrphanLimits().timeMax)
        #expect(sockets.socket(.client, id).gotReset && sockets.ended.contains(id))
    }
}
