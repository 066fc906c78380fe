import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing
import Wire

@testable import Impairment

/// Faults on the streams of HTTP/2, beside other streams of the same connection.
@Suite struct StreamFaultTests {
    private static let busy = FaultAction.respond(FaultResponse(status: 503, body: Array("busy".utf8)))

    struct Case: CustomTestStringConvertible {
        let point: FaultPoint
        let action: FaultAction
        var side: FaultSide?
        var bytes: Int64?
        /// What the server and the client have received of the stream.
        let server: String
        let client: String
        /// What they have received after an hour, if that is more.
        var later: (server: String, client: String)?

        var testDescription: String { "\(point.rawValue) \(action) \(side?.rawValue ?? "")" }
    }

    private static let (request, response) = ("H D6 D4.", "H200 D4 D4 H.")
    private static let delay = FaultAction.delay(.seconds(60))

    static let cases = [
        Case(point: .beforeRequest, action: .reset, server: "", client: "R2"),
        Case(point: .beforeRequest, action: .resetStream(.refusedStream), server: "", client: "R7"),
        Case(point: .beforeRequest, action: .stall, server: "", client: ""),
        Case(point: .beforeRequest, action: busy, server: "", client: "H503 D4."),
        Case(point: .midRequest, action: .reset, server: "H D5 R8", client: "R2"),
        Case(point: .midRequest, action: .reset, side: .client, server: "H D5", client: "R2"),
        Case(point: .midRequest, action: .reset, side: .server, server: "H D5 R8", client: ""),
        Case(point: .midRequest, action: .reset, bytes: 0, server: "H R8", client: "R2"),
        Case(point: .midRequest, action: .reset, bytes: 6, server: "H D6 R8", client: "R2"),
        Case(point: .midRequest, action: .reset, bytes: 99, server: "H D6 D3 R8", client: "R2"),
        Case(point: .midRequest, action: .stall, server: "H D5", client: ""),
        Case(point: .midRequest, action: busy, server: "H D5 D1 D4.", client: "H503 D4."),
        Case(
            point: .midRequest, action: delay, server: "H D5", client: "",
            later: (server: "H D5 D1 D4.", client: response)),
        Case(
            point: .midRequest, action: .throttle(bytesPerSecond: 200), server: "H D5 D1", client: "",
            later: (server: "H D5 D1 D2 D2.", client: response)),
        Case(point: .beforeRequestEnd, action: .reset, server: "H D6 D3 R8", client: "R2"),
        Case(point: .beforeRequestEnd, action: .stall, server: "H D6 D3", client: ""),
        Case(point: .beforeRequestEnd, action: busy, server: request, client: "H503 D4."),
        Case(
            point: .beforeRequestEnd, action: delay, server: "H D6 D3", client: "",
            later: (server: "H D6 D3 D1.", client: response)),
        Case(point: .beforeResponse, action: .reset, server: request + " R8", client: "R2"),
        Case(point: .beforeResponse, action: .stall, server: request, client: ""),
        Case(point: .beforeResponse, action: busy, server: request, client: "H503 D4."),
        Case(
            point: .beforeResponse, action: delay, server: request, client: "",
            later: (server: request, client: response)
        ),
        Case(
            point: .beforeResponse, action: .throttle(bytesPerSecond: 400), server: request, client: "H200 D4",
            later: (server: request, client: response)),
        Case(point: .afterResponseHead, action: .reset, server: request + " R8", client: "H200 R2"),
        Case(point: .afterResponseHead, action: .stall, server: request, client: "H200"),
        Case(point: .midResponse, action: .reset, server: request + " R8", client: "H200 D1 R2"),
        Case(point: .midResponse, action: .stall, bytes: 6, server: request, client: "H200 D4 D2"),
        // Behind the body and before the trailers, which have the status of gRPC.
        Case(point: .midResponse, action: .reset, bytes: 1000, server: request + " R8", client: "H200 D4 D4 R2"),
        Case(
            point: .midResponse, action: delay, bytes: 5, server: request, client: "H200 D4 D1",
            later: (server: request, client: "H200 D4 D1 D3 H.")),
        Case(point: .midResponse, action: .dropTrailers, bytes: 1000, server: request, client: "H200 D4 D4 D0."),
        Case(point: .beforeRequest, action: .dropTrailers, server: request, client: "H200 D4 D4 D0."),
        Case(point: .afterResponse, action: .reset, server: request + " R8", client: response + " R2"),
        Case(point: .afterResponse, action: .goAway, server: request, client: response),
    ]

    /// Exchanges one request and response on stream 1, and one on stream 3, frame by frame in turn. A server responds to
    /// requests whose end it has received.
    private static func run(_ stage: inout HTTP2Stage) {
        stage.request(1, "/a", length: 10)
        stage.data(1, 6, from: .client)
        stage.request(3, "/b")
        stage.data(3, 4, from: .client)
        stage.data(1, 4, endsStream: true, from: .client)
        stage.data(3, 2, endsStream: true, from: .client)
        respond(&stage, late: false)
    }

    private static func respond(_ stage: inout HTTP2Stage, late: Bool) {
        let serves = stage.arrived(.server).contains { $0.frame.stream == 1 && $0.frame.endsStream }
        let isReset = stage.arrived(.server).contains { $0.frame.stream == 1 && $0.frame.kind == .resetStream }
        if serves && !isReset { stage.response(1) }
        if serves && !isReset { stage.data(1, 4, from: .server) }
        if !late { stage.response(3) }
        if !late { stage.data(3, 4, from: .server) }
        if serves && !isReset { stage.data(1, 4, from: .server) }
        if serves && !isReset { stage.headers(1, [("grpc-status", "0")], endsStream: true, from: .server) }
        if !late { stage.data(3, 2, endsStream: true, from: .server) }
    }

    @Test(arguments: cases) func aFaultActsOnItsStreamOnly(_ item: Case) {
        let rule = FaultRule(
            method: "POST", path: "/a", point: item.point, bytes: item.bytes, side: item.side, action: item.action)
        var stage = HTTP2Stage([rule])
        Self.run(&stage)
        #expect(stage.text(1, .server) == item.server)
        #expect(stage.text(1, .client) == item.client)
        let hadResponded = stage.arrived(.server).contains { $0.frame.stream == 1 && $0.frame.endsStream }
        stage.sockets.wait(.seconds(3600))
        if let later = item.later {
            if !hadResponded { Self.respond(&stage, late: true) }
            stage.sockets.wait(.seconds(3600))
            #expect(stage.text(1, .server) == later.server)
            #expect(stage.text(1, .client) == later.client)
        } else {
            #expect(stage.text(1, .server) == item.server)
            #expect(stage.text(1, .client) == item.client)
        }
        // The other stream has everything, in order.
        #expect(stage.text(3, .server) == "H D4 D2.")
        #expect(stage.text(3, .client) == "H200 D4 D2.")
        let head = stage.arrived(.server).first { $0.frame.stream == 3 }
        #expect(head?.fields.map(\.name) == [":method", ":scheme", ":authority", ":path", "x-client"])
        #expect(head?.fields[3].value == "/b")
        // What has been discarded, and nothing else, has been returned as credit for the connection.
        let sent = (up: 16, down: stage.sent.down.isEmpty ? 0 : Self.body(stage.sent.down))
        let received = (
            up: stage.arrived(.server).reduce(0) { $0 + $1.body },
            down: stage.arrived(.client).reduce(0) { $0 + $1.body }
        )
        let own = if case .respond = item.action { 4 } else { 0 }
        #expect(stage.credit(0, .client) == sent.up - received.up)
        #expect(stage.credit(0, .server) == sent.down - (received.down - own))
        // The events name the fault and the stream.
        let fired = stage.sockets.allExchangeEvents.compactMap { event -> ExchangeID? in
            if case .faultInjected(let id, rule: 0, point: item.point, offset: _) = event.event { id } else { nil }
        }
        #expect(fired.map(\.stream) == [1])
        #expect(stage.sockets.box.link.faultRules.map(\.fired) == [1])
    }

    private static func body(_ bytes: [UInt8]) -> Int {
        var reader = HTTP2FrameReader()
        reader.received(ByteBuffer(bytes: bytes))
        var count = 0
        while let frame = try? reader.takeFrame() {
            if frame.kind == .data { count += frame.payloadBytes }
        }
        return count
    }

    @Test(arguments: [FaultAction.resetConnection, .close], FaultPoint.allCases)
    func theConnectionEndsAtAPoint(_ action: FaultAction, _ point: FaultPoint) {
        for conditions in [
            Conditions.clear, Conditions(up: .init(delay: .seconds(1)), down: .init(delay: .seconds(1))),
        ] {
            var stage = HTTP2Stage([FaultRule(path: "/a", point: point, action: action)], conditions: conditions)
            stage.sockets.wait(.seconds(10))
            stage.request(1, "/a", length: 10)
            stage.data(1, 6, from: .client)
            stage.data(1, 4, endsStream: true, from: .client)
            stage.sockets.wait(.seconds(10))
            if point > .beforeRequestEnd {
                stage.response(1)
                stage.data(1, 4, from: .server)
                stage.data(1, 4, endsStream: true, from: .server)
            }
            stage.sockets.wait(.seconds(10))
            let server: [FaultPoint: String] = [.beforeRequest: "", .midRequest: "H D5", .beforeRequestEnd: "H D6 D3"]
            let client: [FaultPoint: String] = [
                .afterResponseHead: "H200", .midResponse: "H200 D1", .afterResponse: "H200 D4 D4.",
            ]
            #expect(stage.text(1, .server) == server[point] ?? "H D6 D4.", "\(conditions)")
            #expect(stage.text(1, .client) == client[point] ?? "", "\(conditions)")
            for side in [Side.client, .server] {
                let socket = stage.sockets.socket(side, stage.id)
                #expect(action == .close ? socket.isClosed || socket.gotFin : socket.gotReset, "\(side) \(conditions)")
            }
        }
    }

    @Test func withoutAFaultTheBytesAreThoseOfThePeers() {
        for rules in [[], [FaultRule(path: "/other", action: .reset)]] {
            var stage = HTTP2Stage(rules)
            Self.run(&stage)
            stage.number(.windowUpdate, 0, 10, from: .client)
            stage.number(.resetStream, 1, 5, from: .client)
            stage.send(Array(HTTP2Frame.goAway(last: 3, .noError).readableBytesView), from: .server)
            #expect(stage.sockets.socket(.server, stage.id).received == stage.sent.up)
            #expect(stage.sockets.socket(.client, stage.id).received == stage.sent.down)
            #expect(stage.sockets.box.link.untrackedConnectionCount == (rules.isEmpty ? 1 : 0))
        }
    }

    @Test func pointsThatAStreamDoesNotHaveAreMissed() {
        // HEADERS with END_STREAM has no body.
        for point in [FaultPoint.midRequest, .beforeRequestEnd, .midResponse] {
            var stage = HTTP2Stage([FaultRule(point: point, action: .reset)])
            stage.request(1, "/a", "GET", endsStream: true)
            stage.response(1, endsStream: true)
            #expect(stage.text(1, .server) == "H." && stage.text(1, .client) == "H200.")
            #expect(stage.events.contains("0 fault of rule 0 missed \(point.rawValue)"))
        }
        // A response in one frame of HEADERS ends with its head.
        var stage = HTTP2Stage([FaultRule(point: .afterResponseHead, action: .reset)])
        stage.request(1, "/a", "GET", endsStream: true)
        stage.response(1, endsStream: true)
        #expect(stage.text(1, .client) == "H200. R2")
        // Interim responses precede the point.
        stage = HTTP2Stage([FaultRule(point: .beforeResponse, action: .stall)])
        stage.request(1, "/a", "GET", endsStream: true)
        stage.response(1, 103)
        stage.response(1, 200, endsStream: true)
        #expect(stage.text(1, .client) == "H103")
    }

    @Test(arguments: randomSeeds(30)) func aDrawnPointIsAlwaysReached(_ seed: UInt64) {
        var stage = HTTP2Stage([FaultRule(point: nil, action: .reset)], seed: seed)
        stage.request(1, "/a", "GET", endsStream: true)
        if stage.text(1, .server) == "H." {
            stage.response(1, endsStream: true)
        }
        #expect(stage.sockets.box.link.faultRules.map(\.fired) == [1], "seed \(seed)")
    }

    @Test func moreOpenStreamsThanTheLimitAreNotTracked() {
        var stage = HTTP2Stage([FaultRule(path: "/other", action: .reset)])
        for index in 0...StreamTracker.streamsMax { stage.request(UInt32(2 * index + 1), "/a", endsStream: true) }
        #expect(stage.events.last?.hasPrefix("not HTTP: HTTP/2: more than 10000 open streams") == true)
        #expect(stage.sockets.socket(.server, stage.id).received == stage.sent.up)
    }

    @Test func theStateOfEndedStreamsIsLimited() {
        var stage = HTTP2Stage([FaultRule(times: 0...Int.max, point: .beforeRequest, action: Self.busy)])
        for index in 0..<StreamTracker.retiredMax + 100 {
            stage.request(UInt32(2 * index + 1), "/a", "GET", endsStream: true)
        }
        let count = stage.sockets.box.link.faultRules.first?.fired
        #expect(count == StreamTracker.retiredMax + 100)
        #expect(stage.sockets.socket(.server, stage.id).received.count < 200)
        // Late frames of streams that the server does not know are discarded.
        stage.number(.resetStream, UInt32(2 * StreamTracker.retiredMax + 1), 8, from: .client)
        #expect(stage.sockets.socket(.server, stage.id).received.count < 200)
    }

    @Test func theThirdPostIsLostAfterTheServerHasExecutedIt() {
        var stage = HTTP2Stage([FaultRule(method: "POST", nth: 3, action: .stall)])
        for stream in stride(from: UInt32(1), through: 9, by: 2) {
            stage.request(stream, "/notes", stream == 3 ? "GET" : "POST", endsStream: true)
            stage.response(stream, 201)
            stage.data(stream, 3, endsStream: true, from: .server)
        }
        let texts = stride(from: UInt32(1), through: 9, by: 2).map { stage.text($0, .client) }
        #expect(texts == ["H201 D3.", "H201 D3.", "H201 D3.", "", "H201 D3."])
        #expect(stage.text(7, .server) == "H.")
        let fault = stage.sockets.allExchangeEvents.compactMap(\.event.faultedStream)
        #expect(fault == [7])
        // The client gives up; the server's stream has ended, and the connection continues.
        stage.number(.resetStream, 7, 8, from: .client)
        #expect(stage.text(7, .server) == "H. R8")
        #expect(stage.events.last == "3 interrupted")
    }

    @Test func aDelayedRequestThatIsOvertakenGetsAGreaterIdentifier() {
        var stage = HTTP2Stage([FaultRule(path: "/late", point: .beforeRequest, action: Self.delay)])
        stage.request(1, "/late")
        stage.data(1, 5, endsStream: true, from: .client)
        stage.request(3, "/b", "GET", endsStream: true)
        stage.response(3, endsStream: true)
        #expect(stage.text(3, .server) == "H." && stage.text(3, .client) == "H200.")
        stage.sockets.wait(.seconds(61))
        #expect(stage.text(1, .server) == "" && stage.text(5, .server) == "H D5.")
        stage.response(5)
        stage.data(5, 2, endsStream: true, from: .server)
        #expect(stage.text(1, .client) == "H200 D2.")
        // Later streams follow, in both directions.
        stage.request(5, "/c", "GET", endsStream: true)
        #expect(stage.text(7, .server) == "H.")
        stage.number(.resetStream, 7, 2, from: .server)
        #expect(stage.text(5, .client) == "R2")
    }

    @Test func aDelayedRequestThatIsNotOvertakenKeepsItsIdentifier() {
        var stage = HTTP2Stage([FaultRule(path: "/late", point: .beforeRequest, action: Self.delay)])
        stage.request(1, "/late", endsStream: true)
        stage.sockets.wait(.seconds(61))
        #expect(stage.text(1, .server) == "H.")
    }

    @Test func aResponseOfAFaultFollowsTheServersSettings() {
        var stage = HTTP2Stage([FaultRule(point: .beforeRequest, action: Self.busy)], sendsSettings: false)
        stage.request(1, "/a", "GET", endsStream: true)
        #expect(stage.arrived(.client).isEmpty)
        stage.send(HTTP2Stage.settings, from: .server)
        #expect(stage.arrived(.client).map(\.text) == ["S", "H503", "D4."])
    }

    @Test func aResponseOfAFaultKeepsToTheClientsWindows() {
        let body = [UInt8](repeating: 1, count: 200_000)
        var stage = HTTP2Stage([
            FaultRule(path: "/a", point: .beforeRequest, action: .respond(FaultResponse(status: 500, body: body)))
        ])
        stage.request(1, "/a", "GET", endsStream: true)
        func received(_ stream: UInt32) -> Int {
            stage.arrived(.client).filter { $0.frame.stream == stream }.reduce(0) { $0 + $1.body }
        }
        #expect(received(1) == 65_535)
        // DATA of the server waits, because the client's window for the connection is exhausted.
        stage.request(3, "/b", "GET", endsStream: true)
        stage.response(3)
        stage.data(3, 1000, endsStream: true, from: .server)
        #expect(received(3) == 0)
        stage.number(.windowUpdate, 1, 65_535, from: .client)
        #expect(received(1) == 65_535)
        stage.number(.windowUpdate, 0, 65_535, from: .client)
        // The credit is for bytes that the server has not sent.
        #expect(received(1) + received(3) == 2 * 65_535 && stage.credit(0, .server) == 0)
        for _ in 0..<2 {
            stage.number(.windowUpdate, 1, 65_535, from: .client)
            stage.number(.windowUpdate, 0, 65_535, from: .client)
        }
        #expect(received(1) == 200_000 && received(3) == 1000)
        #expect(stage.text(1, .client).hasSuffix("."))
        // All credit but that for the response of the fault reaches the server in the end.
        stage.number(.windowUpdate, 0, 201_000 - 3 * 65_535, from: .client)
        #expect(stage.credit(0, .server) == 1000)
        // The server does not know the stream.
        #expect(stage.arrived(.server).allSatisfy { $0.frame.stream != 1 })
    }

    /// A server that keeps to the client's window for the connection, whose client returns credit for what it receives.
    @Test func lostResponsesDoNotConsumeTheWindowOfTheConnection() {
        for action in [FaultAction.stall, .reset, Self.busy] {
            let rule = FaultRule(path: "/lost", times: 0...Int.max, point: .beforeResponse, action: action)
            var stage = HTTP2Stage([rule])
            var returned = 0
            for index in 0..<60 {
                let stream = UInt32(2 * index + 1)
                stage.request(stream, index % 3 == 0 ? "/lost" : "/kept", "GET", endsStream: true)
                stage.response(stream)
                let sent = Self.body(stage.sent.down)
                #expect(65_535 + stage.credit(0, .server) - sent >= 10_000, "\(action): no window at \(index)")
                stage.data(stream, 10_000, endsStream: true, from: .server)
                let received = stage.arrived(.client).reduce(0) { $0 + $1.body }
                if received > returned { stage.number(.windowUpdate, 0, UInt32(received - returned), from: .client) }
                returned = received
            }
            #expect(stage.credit(0, .server) == 600_000)
            for index in 0..<60 where index % 3 != 0 {
                #expect(stage.text(UInt32(2 * index + 1), .client) == "H200 D10000.")
            }
        }
    }

    @Test func goAwayNamesTheLastStreamThatIsProcessed() {
        for (point, last) in [(FaultPoint.beforeRequest, 1), (.beforeResponse, 5)] {
            var stage = HTTP2Stage([FaultRule(path: "/go", point: point, action: .goAway)])
            stage.request(1, "/a", "GET", endsStream: true)
            stage.request(3, "/go", "GET", endsStream: true)
            if point == .beforeResponse { stage.request(5, "/b", "GET", endsStream: true) }
            if point == .beforeResponse { stage.response(3, endsStream: true) }
            #expect(stage.arrived(.client).filter { $0.frame.kind == .goAway }.map(\.frame.number) == [UInt32(last)])
            // Streams up to the last one continue, later ones are ignored.
            stage.response(1, endsStream: true)
            #expect(stage.text(1, .client) == "H200.")
            #expect(stage.text(3, .client) == (point == .beforeRequest ? "" : "H200."))
            stage.request(7, "/c", "GET", endsStream: true)
            #expect(stage.text(7, .server) == "")
            #expect(stage.text(3, .server) == (point == .beforeRequest ? "" : "H."))
        }
    }

    @Test func settingsOfAFaultAreAcknowledgedToNobody() {
        var stage = HTTP2Stage([FaultRule(point: .beforeResponse, action: .limitStreams(1))])
        stage.request(1, "/a", "GET", endsStream: true)
        stage.response(1, endsStream: true)
        let settings = stage.arrived(.client).filter { $0.frame.kind == .settings && !$0.frame.isAcknowledgement }
        #expect(settings.count == 2 && settings.last?.frame.settings.map(\.id) == [3])
        #expect(stage.text(1, .client) == "H200.")
        let before = stage.arrived(.server).count
        stage.send(HTTP2Stage.acknowledgement, from: .client)
        #expect(stage.arrived(.server).count == before)
        stage.send(HTTP2Stage.settings, from: .server)
        stage.send(HTTP2Stage.acknowledgement, from: .client)
        #expect(stage.arrived(.server).count == before + 1)
    }

    @Test func pingsAreIgnoredAfterTheFault() {
        let ping = Array(HTTP2Frame.bytes(.ping, stream: 0, ByteBuffer(repeating: 7, count: 8)).readableBytesView)
        var stage = HTTP2Stage([FaultRule(path: "/mute", point: .beforeRequest, action: .ignorePings)])
        stage.send(ping, from: .client)
        stage.request(1, "/mute", "GET", endsStream: true)
        stage.send(ping, from: .client)
        #expect(stage.arrived(.server).map(\.text).suffix(2) == ["P", "H."])
    }

    @Test func malformedFramesPassUntilAFaultHasFired() {
        let malformed: [UInt8] = [0, 0, 3, 3, 0, 0, 0, 0, 1, 1, 2, 3]
        for fires in [false, true] {
            var stage = HTTP2Stage([FaultRule(path: "/a", point: .beforeRequest, action: .stall)])
            stage.request(1, fires ? "/a" : "/b", "GET", endsStream: true)
            stage.send(malformed + [1, 2, 3], from: .client)
            stage.send([9, 9, 9], from: .server)
            let (client, server) = (stage.sockets.socket(.client, stage.id), stage.sockets.socket(.server, stage.id))
            #expect(client.gotReset == fires && server.gotReset == fires)
            if !fires { #expect(server.received == stage.sent.up && client.received == stage.sent.down) }
            #expect(stage.events.contains { $0.hasPrefix("not HTTP: HTTP/2: a frame of type 3 needs 4 bytes") })
        }
    }

    @Test func removingARuleEndsItsDelay() {
        var stage = HTTP2Stage([FaultRule(point: .beforeResponse, action: Self.delay)])
        stage.request(1, "/a", "GET", endsStream: true)
        stage.response(1, endsStream: true)
        #expect(stage.text(1, .client) == "")
        let now = stage.sockets.now
        let isRemoved = stage.sockets.box.link.removeFaultRule(0, at: now)
        #expect(isRemoved)
        stage.sockets.wait(.milliseconds(1))
        #expect(stage.text(1, .client) == "H200.")
    }

    @Test func anyPiecesOfTheBytesGiveTheSameFaults() {
        var generator = SeededGenerator(seed: 3)
        for action in [FaultAction.reset, Self.busy, .stall] {
            for point in [FaultPoint.midRequest, .beforeResponse] {
                var whole = HTTP2Stage([FaultRule(path: "/a", point: point, action: action)])
                Self.run(&whole)
                // The same bytes of the peers, in other pieces.
                var pieces = VirtualSockets(
                    exchangeTracking: ExchangeTracking(rules: [FaultRule(path: "/a", point: point, action: action)]))
                let id = pieces.open()
                for side in [Side.client, .server] {
                    var rest = whole.sent[side.sendDirection][...]
                    while !rest.isEmpty {
                        let size = Int.random(in: 1...min(20, rest.count), using: &generator)
                        pieces.send(Array(rest.prefix(size)), from: side, id)
                        rest = rest.dropFirst(size)
                    }
                }
                let server = whole.sockets.socket(.server, whole.id).received
                // The order of the frames for the server and of the client differs only in what a response causes.
                #expect(
                    pieces.socket(.server, id).received.count == server.count
                        && pieces.socket(.client, id).received.count
                            == whole.sockets.socket(.client, whole.id).received.count,
                    "seed 3, \(action) \(point)")
            }
        }
    }

    @Test func randomBytesNeverTrap() {
        var generator = SeededGenerator(seed: 9)
        for round in 0..<TestSettings.work(160, soak: 8000) {
            let actions: [FaultAction] = [
                .reset, .stall, Self.busy, .delay(.milliseconds(5)), .throttle(bytesPerSecond: 900), .goAway, .close,
            ]
            let rule = FaultRule(
                times: 0...Int.max, probability: 0.7, point: nil, action: actions[round % actions.count])
            var stage = HTTP2Stage([rule])
            for _ in 0..<40 {
                let side: Side = Bool.random(using: &generator) ? .client : .server
                let stream = UInt32.random(in: 0...6, using: &generator)
                switch Int.random(in: 0...6, using: &generator) {
                case 0: stage.request(stream | 1, "/a", endsStream: Bool.random(using: &generator))
                case 1: stage.response(stream | 1, endsStream: Bool.random(using: &generator))
                case 2, 3:
                    stage.data(
                        stream | 1, Int.random(in: 0...50, using: &generator),
                        endsStream: Bool.random(using: &generator),
                        from: side)
                case 4:
                    stage.number(.windowUpdate, stream, UInt32.random(in: 0...(.max), using: &generator), from: side)
                case 5: stage.number(.resetStream, stream | 1, 8, from: side)
                default: stage.sockets.wait(.milliseconds(3))
                }
                if stage.sockets.ended.contains(stage.id) { break }
            }
            stage.sockets.report(.inputClosed(.client), stage.id)
            stage.sockets.report(.inputClosed(.server), stage.id)
            stage.sockets.wait(.seconds(1000))
            // Both peers have received frames, none of which is broken.
            _ = (stage.arrived(.client), stage.arrived(.server))
            #expect(stage.sockets.ended.contains(stage.id), "seed 9, round \(round), \(rule)")
        }
    }
}

extension HTTP2Stage.Arrived {
    /// The bytes that count for flow control.
    var body: Int { frame.kind == .data ? frame.payloadBytes : 0 }
}

extension ExchangeEvent {
    fileprivate var faultedStream: UInt32? { if case .faultInjected(let id, _, _, _) = self { id.stream } else { nil } }
}
