import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing
import Wire

@testable import Impairment

/// The actions that exist on HTTP/2 only, upgrades to HTTP/2, and what else has a meaning of its own on streams.
@Suite struct StreamActionTests {
    @Test(arguments: [false, true]) func aBlockedWindowDoesNotOpenForTheSender(_ ofConnection: Bool) {
        let rule = FaultRule(path: "/a", point: .beforeRequest, action: .blockWindow(connection: ofConnection))
        var stage = HTTP2Stage([rule])
        for stream in [UInt32(1), 3] {
            stage.request(stream, stream == 1 ? "/a" : "/b")
            stage.data(stream, 1_000, from: .client)
            stage.number(.windowUpdate, stream, 1_000, from: .server)
        }
        stage.number(.windowUpdate, 0, 2_000, from: .server)
        #expect(stage.credit(1, .client) == 0 && stage.credit(3, .client) == 1_000)
        #expect(stage.credit(0, .client) == (ofConnection ? 0 : 2_000))
        // The windows of the server are not those of the fault.
        for stream in [UInt32(0), 1] { stage.number(.windowUpdate, stream, 7, from: .client) }
        #expect(stage.credit(0, .server) == 7 && stage.credit(1, .server) == 7)
        #expect(stage.text(1, .server) == "H D1000")
    }

    @Test(arguments: [false, true]) func aBlockedWindowOfAResponseStopsTheServer(_ ofConnection: Bool) {
        let rule = FaultRule(path: "/a", point: .beforeResponse, action: .blockWindow(connection: ofConnection))
        var stage = HTTP2Stage([rule])
        stage.request(1, "/a", "GET", endsStream: true)
        stage.response(1)
        for stream in [UInt32(0), 1] { stage.number(.windowUpdate, stream, 100, from: .client) }
        #expect(stage.credit(1, .server) == 0 && stage.credit(0, .server) == (ofConnection ? 0 : 100))
        stage.data(1, 10, endsStream: true, from: .server)
        #expect(stage.text(1, .client) == "H200 D10.")
    }

    // MARK: Samples of responses

    private static let sampled = ExchangeTracking(
        rules: [FaultRule(path: "/a", point: .beforeResponse, action: .reset)], samplesResponses: true)

    /// Only the response tells whether the server has executed a write once more.
    @Test func theServerCompletesAResponseThatIsSampledAlthoughTheStreamIsReset() {
        var stage = HTTP2Stage([], tracking: Self.sampled)
        stage.request(1, "/a", endsStream: true)
        stage.response(1, 201)
        #expect(stage.text(1, .client) == "R2")
        stage.data(1, 4, from: .server)
        stage.data(1, 3, from: .server)
        stage.headers(1, [("grpc-status", "0")], endsStream: true, from: .server)
        #expect(
            stage.events.suffix(4) == [
                "0 fault of rule 0 at before-response after 0 B", "0 interrupted", "0 response sampled 7 B",
                "0 response read 201",
            ], "\(stage.events)")
        // The server gets its credit back, and no RST_STREAM.
        #expect(stage.text(1, .server) == "H." && stage.credit(1, .server) == 7 && stage.credit(0, .server) == 7)
        #expect(stage.text(1, .client) == "R2")
        stage.request(3, "/b", endsStream: true)
        stage.response(3, endsStream: true)
        #expect(stage.text(3, .client) == "H200.")
    }

    /// A response without an end does not keep the server busy, and the end of the connection ends the wait.
    @Test(arguments: [false, true]) func theWaitForTheRestOfAResponseIsLimited(_ hasEnded: Bool) {
        var stage = HTTP2Stage([], tracking: Self.sampled)
        stage.request(1, "/a", endsStream: true)
        stage.response(1, 201)
        for _ in 0..<(hasEnded ? 1 : ExchangeTracking.bodySampleMax / 10_000 + 1) {
            stage.data(1, 10_000, from: .server)
        }
        if hasEnded {
            stage.sockets.report(.gone(.client), stage.id)
            stage.sockets.wait(.seconds(1))
        } else {
            #expect(stage.text(1, .server) == "H. R8")
        }
        // The sample is not taken for the whole body.
        #expect(stage.events.contains("0 response sampled 0 B") && stage.events.contains("0 response read 201"))
    }

    @Test(arguments: [FaultAction.resetConnection, .close, .resetStream(.cancel)])
    func aResponseThatIsCutHasAStatus(_ action: FaultAction) {
        let rule = FaultRule(path: "/a", point: .beforeResponse, action: action)
        var stage = HTTP2Stage([], tracking: ExchangeTracking(rules: [rule], samplesResponses: true))
        stage.request(1, "/a", endsStream: true)
        stage.response(1, 201)
        stage.sockets.wait(.seconds(1))
        #expect(stage.events.contains("0 response sampled 0 B") && stage.events.contains("0 response read 201"))
    }

    /// The negative test `ping` of gRPC: a PING before and after the headers and the data.
    @Test func pingsSurroundTheFramesOfAResponse() {
        var stage = HTTP2Stage([FaultRule(path: "/a", point: .beforeResponse, action: .ping)])
        stage.request(1, "/a", endsStream: true)
        stage.response(1)
        stage.data(1, 4, from: .server)
        stage.headers(1, [("grpc-status", "0")], endsStream: true, from: .server)
        #expect(stage.arrived(.client).map(\.text).suffix(7) == ["P", "H200", "P", "D4", "P", "H.", "P"])
        let before = stage.arrived(.server).count
        // The client acknowledges three of four; those of the server pass.
        for frame in stage.arrived(.client).filter({ $0.frame.kind == .ping }).dropLast() {
            stage.send(acknowledgement(of: frame.frame.content), from: .client)
        }
        #expect(stage.arrived(.server).count == before)
        stage.send(acknowledgement(of: ByteBuffer(repeating: 1, count: 8)), from: .client)
        #expect(stage.arrived(.server).count == before + 1)
        stage.sockets.report(.gone(.client), stage.id)
        stage.sockets.wait(.seconds(1))
        #expect(stage.events.contains("0 PING of rule 0 acknowledged 3 of 4"))
    }

    private func acknowledgement(of payload: ByteBuffer) -> [UInt8] {
        Array(HTTP2Frame.bytes(.ping, flags: HTTP2Frame.Flag.ack, stream: 0, payload).readableBytesView)
    }

    @Test func nothingFollowsATruncatedHeaderBlock() {
        var stage = HTTP2Stage([FaultRule(path: "/a", point: .beforeResponse, action: .truncateHeaders)])
        stage.request(1, "/a", endsStream: true)
        stage.request(3, "/b", "GET", endsStream: true)
        stage.response(1)
        let bytes = stage.sockets.socket(.client, stage.id).received
        stage.data(1, 4, endsStream: true, from: .server)
        stage.response(3, endsStream: true)
        #expect(stage.sockets.socket(.client, stage.id).received == bytes)
        // HEADERS of stream 1 without END_HEADERS, and half of its block.
        let frame = Array(
            HTTP2Frame.truncatedBlock(1, [HTTP2Field(":status", "200"), HTTP2Field("x-server", "stage")])
                .readableBytesView)
        #expect(bytes.suffix(frame.count) == frame[...] && frame[4] == 0)
        #expect(!stage.events.contains { $0.contains("response delivered") })
        // The other direction goes on.
        stage.request(5, "/c", "GET", endsStream: true)
        #expect(stage.text(5, .server) == "H.")
    }

    @Test func aTruncatedRequestLeavesTheServerWaiting() {
        var stage = HTTP2Stage([FaultRule(path: "/a", point: .beforeRequest, action: .truncateHeaders)])
        let before = stage.sockets.socket(.server, stage.id).received.count
        stage.request(1, "/a", endsStream: true)
        let received = stage.sockets.socket(.server, stage.id).received
        #expect(received.count > before + HTTP2Frame.headerBytes && received[before + 4] == 0)
        stage.request(3, "/b", endsStream: true)
        #expect(stage.sockets.socket(.server, stage.id).received == received)
        #expect(!stage.events.contains { $0.contains("request delivered") })
    }

    @Test func actionsOfStreamsAreRejectedAtPointsWithoutAMeaning() {
        let problems = FaultPoint.allCases.map { point in
            [FaultAction.blockWindow(connection: false), .dropTrailers, .truncateHeaders, .ping]
                .filter { FaultRule(point: point, action: $0).problem == nil }.count
        }
        #expect(problems == [4, 3, 3, 4, 3, 3, 1])
    }

    // MARK: Header blocks that wait

    /// A block that waits without being overtaken stays as its sender has written it.
    @Test func aDelayedResponseThatIsNotOvertakenKeepsItsBytes() {
        var stage = HTTP2Stage([FaultRule(path: "/a", action: .delay(.seconds(1)))])
        stage.request(1, "/a", "GET", endsStream: true)
        stage.response(1, endsStream: true)
        stage.sockets.wait(.seconds(2))
        stage.request(3, "/b", "GET", endsStream: true)
        stage.response(3, endsStream: true)
        #expect(stage.sockets.socket(.client, stage.id).received == stage.sent.down)
        #expect(stage.sockets.socket(.server, stage.id).received == stage.sent.up)
    }

    // MARK: Upgrades

    private static let upgrade =
        "POST /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        + "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\nContent-Length: 4\r\n\r\nbody"
    private static let switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"

    private static func upgraded(_ rule: FaultRule) -> HTTP2Stage {
        var stage = HTTP2Stage([rule], begins: false)
        stage.send(Array(upgrade.utf8), from: .client)
        stage.send(Array(switching.utf8) + HTTP2Stage.settings, from: .server)
        stage.send(HTTP2Frame.preface + HTTP2Stage.settings + HTTP2Stage.acknowledgement, from: .client)
        return stage
    }

    @Test func anUpgradedConnectionWithoutAFaultPassesUnchanged() {
        var stage = Self.upgraded(FaultRule(path: "/other", action: .reset))
        stage.response(1)
        stage.data(1, 4, endsStream: true, from: .server)
        stage.request(3, "/b", "GET", endsStream: true)
        stage.response(3, endsStream: true)
        #expect(stage.sockets.socket(.client, stage.id).received == stage.sent.down)
        #expect(stage.sockets.socket(.server, stage.id).received == stage.sent.up)
        let delivered = stage.events.filter { $0.contains("response delivered") }
        #expect(delivered == ["0 response delivered 200", "1 response delivered 200"])
        #expect(!stage.events.contains { $0.contains("switched") || $0.contains("not HTTP") })
    }

    /// The request of the upgrade is stream 1, whose response is a stream's.
    @Test func aFaultActsOnTheStreamOfAnUpgradedRequest() {
        let frames = { (stage: HTTP2Stage) in
            let skipped = Self.switching.utf8.count
            var reader = HTTP2FrameReader()
            reader.received(ByteBuffer(bytes: stage.sockets.socket(.client, stage.id).received.dropFirst(skipped)))
            var texts: [String] = []
            while let frame = try? reader.takeFrame() {
                texts.append("\(frame.kind.map { "\($0)" } ?? "?") \(frame.stream)\(frame.endsStream ? "." : "")")
            }
            return texts
        }
        var lost = Self.upgraded(FaultRule(path: "/a", action: .stall))
        lost.response(1, 201)
        lost.data(1, 4, endsStream: true, from: .server)
        lost.request(3, "/b", "GET", endsStream: true)
        lost.response(3, endsStream: true)
        #expect(frames(lost) == ["settings 0", "headers 3."])
        #expect(lost.events.contains("0 fault of rule 0 at before-response after 0 B"))

        var reset = Self.upgraded(FaultRule(path: "/a", point: .midResponse, action: .resetStream(.refusedStream)))
        reset.response(1, 201)
        reset.data(1, 4, endsStream: true, from: .server)
        #expect(frames(reset) == ["settings 0", "headers 1", "data 1", "resetStream 1"])

        var away = Self.upgraded(FaultRule(path: "/a", point: .beforeResponse, action: .goAway))
        away.response(1, endsStream: true)
        #expect(frames(away) == ["settings 0", "goAway 0", "headers 1."])
    }

    /// A server that does not upgrade responds on HTTP/1.1, where the actions of HTTP/2 do not exist.
    @Test func anUpgradeThatTheServerIgnoresLeavesHTTP11() {
        for action in [FaultAction.goAway, .reset] {
            var stage = HTTP2Stage([FaultRule(path: "/a", point: .afterResponseHead, action: action)], begins: false)
            stage.send(Array(Self.upgrade.utf8), from: .client)
            stage.send(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8), from: .server)
            let isHTTP2Only = action == .goAway
            #expect(stage.events.contains("0 fault of rule 0 missed after-response-head") == isHTTP2Only)
            #expect(stage.sockets.socket(.client, stage.id).gotReset == !isHTTP2Only)
        }
    }

    @Test func anUpgradeWithoutAPrefaceEndsTheTracking() {
        var stage = HTTP2Stage([FaultRule(path: "/other", action: .reset)], begins: false)
        stage.send(Array(Self.upgrade.utf8), from: .client)
        stage.send(Array(Self.switching.utf8), from: .server)
        stage.send(Array("PRI * HTTP/2.0\r\n\r\nNO".utf8), from: .client)
        stage.send(Array("more".utf8), from: .client)
        #expect(stage.sockets.socket(.server, stage.id).received == stage.sent.up)
        #expect(stage.events.last?.contains("preface does not follow the upgrade") == true)
    }

    // MARK: Tunnels and event streams

    /// WebSocket on a stream (RFC 8441): the tunnel is named, and its frames pass at once in both directions.
    @Test func anExtendedConnectIsATunnel() {
        var stage = HTTP2Stage([FaultRule(path: "/other", action: .reset)])
        stage.headers(
            1,
            [
                (":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"), (":path", "/chat"),
                (":authority", "h"),
            ],
            from: .client)
        stage.response(1)
        for (index, side) in [Side.client, .server, .client].enumerated() {
            stage.data(1, index + 1, from: side)
            let bytes = stage.arrived(side.opposite).last
            #expect(bytes?.text == "D\(index + 1)")
        }
        #expect(stage.events.contains("0 protocol switched"))
        let head = stage.sockets.allExchangeEvents.compactMap { event -> HTTPRequestHead? in
            if case .requestStarted(_, let head) = event.event { head } else { nil }
        }.first
        #expect(head?.method == "CONNECT" && head?.target == "/chat" && head?.value(of: "Upgrade") == "websocket")
        #expect(stage.sockets.box.link.remainingTraffic(of: stage.id) != .none)
        stage.data(1, 0, endsStream: true, from: .client)
        stage.data(1, 0, endsStream: true, from: .server)
        #expect(stage.sockets.box.link.remainingTraffic(of: stage.id) == .none)
        // The end of the exchange is the switch.
        #expect(!stage.events.contains { $0.contains("delivered 200") || $0.contains("interrupted") })
    }

    /// The events of a server (`text/event-stream`) pass when they are sent, although a fault waits for the end.
    @Test func eventsOfAServerDoNotWait() {
        var stage = HTTP2Stage([FaultRule(path: "/events", point: .afterResponse, action: .reset)])
        stage.request(1, "/events", "GET", endsStream: true)
        stage.headers(1, [(":status", "200"), ("content-type", "text/event-stream")], from: .server)
        for count in 1...5 {
            stage.data(1, count, from: .server)
            #expect(stage.arrived(.client).last?.text == "D\(count)")
        }
    }

    // MARK: Decisions of a driver

    @Test func aRequestWaitsForItsDecision() {
        for point in [FaultPoint.beforeRequest, .midRequest, .beforeRequestEnd, .beforeResponse, .afterResponse] {
            var stage = HTTP2Stage([], tracking: ExchangeTracking(awaitsDecisions: true))
            stage.sockets.decide = { event in
                guard case .requested(_, let head, let body, _) = event, head.target == "/a" else { return nil }
                // The request has been read to its end.
                return FaultRule(point: point, action: body.count == 10 ? .reset : .close)
            }
            stage.request(1, "/a", length: 10)
            stage.request(3, "/b", length: 4)
            stage.data(1, 6, from: .client)
            #expect(stage.text(1, .server) == "" && stage.text(3, .server) == "")
            stage.data(1, 4, endsStream: true, from: .client)
            stage.data(3, 4, endsStream: true, from: .client)
            let expected: [FaultPoint: String] = [
                .beforeRequest: "", .midRequest: "H D5 R8", .beforeRequestEnd: "H D6 D3 R8",
            ]
            #expect(stage.text(1, .server) == expected[point] ?? "H D6 D4.", "\(point)")
            #expect(stage.text(3, .server) == "H D4.", "\(point)")
            if point > .beforeRequestEnd {
                stage.response(1)
                stage.data(1, 4, endsStream: true, from: .server)
            }
            #expect(stage.text(1, .client) == (point == .afterResponse ? "H200 D4. R2" : "R2"), "\(point)")
            #expect(stage.events.contains { $0.contains("0 fault of rule 0 at \(point.rawValue)") }, "\(point)")
        }
    }

    /// Requests that wait for their decisions reach the server in the order in which they are decided.
    @Test func aRequestWithABodyThatWaitsIsOvertaken() {
        var stage = HTTP2Stage([], tracking: ExchangeTracking(awaitsDecisions: true))
        stage.request(1, "/a", length: 10)
        stage.request(3, "/b", "GET", endsStream: true)
        #expect(stage.text(3, .server) == "H.")
        stage.data(1, 10, endsStream: true, from: .client)
        #expect(stage.text(5, .server) == "H D10.")
        // A client that resets a request that waits.
        stage.request(5, "/c", length: 10)
        stage.number(.resetStream, 5, 8, from: .client)
        stage.request(7, "/d", "GET", endsStream: true)
        let paths = stage.arrived(.server).flatMap { $0.fields.filter { $0.name == ":path" }.map(\.value) }
        #expect(paths == ["/b", "/a", "/d"])
    }

    /// The bytes of a connection leave in another order if a frame overtakes a request that waits; the comparison of both
    /// ends does not apply to them.
    @Test(arguments: ["nothing", "acknowledgement", "request"]) func aReorderingIsKnown(_ overtaker: String) {
        var stage = HTTP2Stage([], tracking: ExchangeTracking(awaitsDecisions: true))
        stage.request(1, "/a", length: 10)
        switch overtaker {
        case "acknowledgement": stage.send(HTTP2Stage.acknowledgement, from: .client)
        case "request": stage.request(3, "/b", "GET", endsStream: true)
        default: break
        }
        stage.data(1, 10, endsStream: true, from: .client)
        #expect(stage.sockets.box.link.hasReordered(stage.id) == (overtaker != "nothing"))
        #expect((stage.sockets.socket(.server, stage.id).received == stage.sent.up) == (overtaker == "nothing"))
    }

    /// What waits for a decision does not exhaust the windows of its sender: 65 535 bytes without WINDOW_UPDATE.
    @Test func requestsThatAreNotCompleteAreDecidedInTime() {
        var stage = HTTP2Stage([], tracking: ExchangeTracking(awaitsDecisions: true))
        stage.request(1, "/large", length: 1_000_000)
        stage.data(1, StreamTracker.undecidedBytesMax - 1, from: .client)
        #expect(stage.text(1, .server) == "")
        stage.data(1, 1, from: .client)
        #expect(stage.text(1, .server).hasPrefix("H D"))
        for stream in stride(from: UInt32(3), to: 40, by: 2) {
            stage.request(stream, "/b", length: 100_000)
            stage.data(stream, 8_000, from: .client)
        }
        let waiting = stage.arrived(.server).filter { $0.frame.kind == .headers }.count
        #expect(waiting >= 16)
        // Without a length, the body may depend on the response.
        stage.request(41, "/bidi")
        #expect(stage.text(41, .server) == "H")
    }

    // MARK: Captive portal

    @Test func aCaptivePortalRespondsOnStreams() {
        var stage = HTTP2Stage(
            [], conditions: Conditions(up: .clear, down: .clear, connectionPolicy: .portal), sendsSettings: false)
        stage.request(1, "/a", "GET", endsStream: true)
        stage.request(3, "/b")
        stage.data(3, 10, from: .client)
        stage.request(5, "/c", "HEAD", endsStream: true)
        let length = FaultResponse.portal.body.count
        #expect(stage.arrived(.client).first?.text == "S" && stage.arrived(.client).contains { $0.text == "A" })
        #expect(stage.text(1, .client) == "H200 D\(length).")
        #expect(stage.text(3, .client) == "H200 D\(length). R0")
        #expect(stage.text(5, .client) == "H200.")
        #expect(stage.credit(0, .client) == 10)
        // Windows that the page exceeds.
        stage.send(
            Array(HTTP2Frame.settings([(HTTP2Frame.Setting.initialWindowSize, 10)]).readableBytesView), from: .client)
        stage.request(7, "/d", "GET", endsStream: true)
        #expect(stage.text(7, .client) == "R7")
        stage.send([0, 0, 0, 0, 0, 0, 0, 0, 0], from: .client)
        stage.sockets.wait(.seconds(1))
        #expect(stage.sockets.ended.contains(stage.id))
    }
}
