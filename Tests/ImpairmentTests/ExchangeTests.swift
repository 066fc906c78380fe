import HTTPWire
import LinkModel
import NIOCore
import TCPModel
import TestSupport
import Testing

@testable import Impairment

/// Requests and answers are followed by their bytes, and answers can be lost after the server gave them.
@Suite struct ExchangeTests {
    private static let way = DirectionConditions(delay: .milliseconds(50))
    private static let late = Conditions(up: way, down: way)

    /// Requests are about the last part of their path.
    private static func watch(_ rules: FaultRule...) -> ExchangeWatch {
        ExchangeWatch(rules: rules) { head, _ in head.target.split(separator: "/").last.map(String.init) }
    }

    private static func request(_ method: String, _ note: String, _ body: String = "") -> [UInt8] {
        Array("\(method) /notes/\(note) HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    }

    private static func answer(_ status: Int, _ body: String = "") -> [UInt8] {
        Array("HTTP/1.1 \(status) X\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    }

    @Test func anExchangeIsFollowedFromEndToEnd() {
        var sockets = VirtualSockets(Self.late, watch: Self.watch())
        let id = sockets.open()
        sockets.send(Self.request("PUT", "n1", "text"), from: .client, id)
        #expect(sockets.reports == ["0 requested PUT n1 4 B"])
        sockets.runToQuiet()
        #expect(sockets.reports.dropFirst(1) == ["0 arrived"])
        sockets.send(Self.answer(409, "no"), from: .server, id)
        #expect(sockets.reports.dropFirst(2) == ["0 committed 409"])
        sockets.runToQuiet()
        #expect(sockets.reports.dropFirst(3) == ["0 answered 409"])
        sockets.tell(.inputClosed(.client), id)
        sockets.tell(.inputClosed(.server), id)
        sockets.runToQuiet()
        #expect(sockets.reports.count == 4)
    }

    /// Who waits for `100 Continue` gets it in the middle of the request; a final response there is the request's own, and no
    /// other may follow.
    @Test func anInterimAnswerComesInTheMiddleOfItsRequest() {
        let request = Self.request("PUT", "n1", "text")
        for (early, reports) in [
            (
                Array("HTTP/1.1 100 Continue\r\n\r\n".utf8),
                ["0 requested PUT n1 4 B", "0 arrived", "0 committed 200", "0 answered 200"]
            ),
            (
                Self.answer(413),
                [
                    "0 requested PUT n1 0 B", "0 committed 413", "0 answered 413",
                    "not HTTP: an answer without a request",
                ]
            ),
        ] {
            var sockets = VirtualSockets(Self.late, watch: Self.watch())
            let id = sockets.open()
            sockets.send(Array(request.dropLast(4)), from: .client, id)
            sockets.runToQuiet()
            sockets.send(early, from: .server, id)
            sockets.runToQuiet()
            #expect(sockets.end(.client, id).received == early)
            sockets.send(Array(request.suffix(4)), from: .client, id)
            sockets.runToQuiet()
            sockets.send(Self.answer(200), from: .server, id)
            sockets.runToQuiet()
            #expect(sockets.reports == reports)
        }
    }

    // Each byte may come alone.
    @Test(arguments: [1, 7, 1000]) func aMutedAnswerNeverTravels(piece: Int) {
        let rule = FaultRule(method: "POST", subject: "n1", nth: 2, action: .mute)
        var sockets = VirtualSockets(Self.late, watch: Self.watch(rule))
        let id = sockets.open()
        func send(_ bytes: [UInt8], from side: Side) {
            for start in stride(from: 0, to: bytes.count, by: piece) {
                sockets.send(Array(bytes[start..<min(start + piece, bytes.count)]), from: side, id)
                sockets.runToQuiet()
            }
        }
        for note in ["n1", "n2", "n1", "n1"] { send(Self.request("POST", note, "x"), from: .client) }
        let first = Self.answer(201, "one") + Self.answer(201, "two")
        send(first + Self.answer(201, "three") + Self.answer(201, "four"), from: .server)
        #expect(sockets.end(.client, id).received == first)
        #expect(sockets.reports.contains("2 faulted by rule 0"))
        #expect(!sockets.end(.client, id).gotReset)
        #expect(sockets.over.isEmpty)
        sockets.tell(.gone(.client), id)
        sockets.runToQuiet()
        #expect(sockets.reports.suffix(2) == ["2 lost", "3 lost"])
    }

    @Test func aCutAnswerEndsInAReset() {
        var sockets = VirtualSockets(Self.late, watch: Self.watch(FaultRule(action: .cut)), isRecording: true)
        let id = sockets.open()
        sockets.send(Self.request("GET", "n1"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.answer(200, "text"), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).received.isEmpty)
        #expect(sockets.end(.client, id).gotReset)
        #expect(sockets.end(.server, id).gotReset)
        #expect(sockets.over == [id])
        #expect(
            sockets.reports == [
                "0 requested GET n1 0 B", "0 arrived", "0 committed 200", "0 faulted by rule 0", "0 lost",
            ])
        // A capture says why there is a RST.
        let resets = sockets.packets.filter { $0.record.kind == .reset }
        #expect(resets.first?.cause == "fault: the answer is cut")
        // The rule has had its turn.
        let next = sockets.open()
        sockets.send(Self.request("GET", "n1"), from: .client, next)
        sockets.runToQuiet()
        sockets.send(Self.answer(200, "text"), from: .server, next)
        sockets.runToQuiet()
        #expect(sockets.end(.client, next).received == Self.answer(200, "text"))
    }

    /// The server closes, or falls over, after its answer was muted: the client hears nothing of it until it leaves.
    @Test(arguments: [Input.inputClosed(.server), .gone(.server)]) func aMutedConnectionStaysSilent(end: Input) {
        var sockets = VirtualSockets(Self.late, watch: Self.watch(FaultRule(action: .mute)))
        let id = sockets.open()
        sockets.send(Self.request("GET", "n1"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.answer(200, "text"), from: .server, id)
        sockets.tell(end, id)
        sockets.send(Array("more".utf8), from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).received.isEmpty)
        #expect(!sockets.end(.client, id).gotFin)
        #expect(!sockets.end(.client, id).gotReset)
        #expect(sockets.over.isEmpty)
        sockets.tell(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.over == [id])
        #expect(sockets.box.link.bytesHeld == 0)
    }

    @Test(arguments: [nil, FaultAction.mute, .cut], [late, .clear])
    func anAnswerMayEndWithItsConnection(fault: FaultAction?, conditions: Conditions) {
        let rules = fault.map { [FaultRule(action: $0)] } ?? []
        var sockets = VirtualSockets(conditions, watch: ExchangeWatch(rules: rules))
        let id = sockets.open()
        let answer = Array("HTTP/1.0 200 OK\r\n\r\nall that comes".utf8)
        sockets.send(Self.request("GET", "n1"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(answer, from: .server, id)
        sockets.tell(.inputClosed(.server), id)
        sockets.runToQuiet()
        #expect(sockets.reports.contains("0 committed 200"))
        #expect(sockets.reports.contains("0 answered 200") == (fault == nil))
        #expect(sockets.end(.client, id).received == (fault == nil ? answer : []))
        #expect(sockets.end(.client, id).gotFin == (fault == nil))
        #expect(sockets.end(.client, id).gotReset == (fault == .cut))
    }

    @Test func aPipelinedFaultLeavesWhatCameBefore() {
        let rule = FaultRule(subject: "n2", action: .cut)
        var sockets = VirtualSockets(Self.late, watch: Self.watch(rule))
        let id = sockets.open()
        sockets.send(Self.request("GET", "n1") + Self.request("GET", "n2"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.answer(200, "one") + Self.answer(200, "two"), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).received == Self.answer(200, "one"))
        #expect(sockets.end(.client, id).gotReset)
    }

    @Test(arguments: ["SSH-2.0-x\r\n", "\u{16}\u{3}\u{1}", "GET / HTTP/1.1\r\nBad Header: x\r\n\r\n", "\r\n\r\n\u{0}"])
    func whatIsNoHTTPPassesUntouched(text: String) {
        var sockets = VirtualSockets(Self.late, watch: Self.watch(FaultRule(action: .cut)))
        let id = sockets.open()
        let bytes = Array(text.utf8) + Array(repeating: 0, count: 100_000)
        sockets.send(bytes, from: .client, id)
        sockets.send(bytes, from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == bytes)
        #expect(sockets.end(.client, id).received == bytes)
        #expect(sockets.reports.count == 1)
        #expect(sockets.reports.first?.hasPrefix("not HTTP: ") == true)
    }

    @Test func anUpgradedConnectionPasses() {
        var sockets = VirtualSockets(Self.late, watch: Self.watch())
        let id = sockets.open()
        let ask = Array("GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n".utf8)
        let agree = Array("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n".utf8)
        sockets.send(ask, from: .client, id)
        sockets.runToQuiet()
        sockets.send(agree + [0x81, 0, 1], from: .server, id)
        sockets.send([0x82, 3, 4], from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).received == agree + [0x81, 0, 1])
        #expect(sockets.end(.server, id).received == ask + [0x82, 3, 4])
    }

    /// `413` while the upload goes on: the exchange is complete, and the next on the connection is followed as ever.
    @Test(arguments: [1, 3, 1000]) func aResponseBeforeItsRequestEndsBelongsToIt(piece: Int) {
        var sockets = VirtualSockets(Self.late, watch: Self.watch(FaultRule(nth: 3, action: .cut)))
        let id = sockets.open()
        func send(_ bytes: [UInt8], from side: Side) {
            for start in stride(from: 0, to: bytes.count, by: piece) {
                sockets.send(Array(bytes[start..<min(start + piece, bytes.count)]), from: side, id)
            }
        }
        let whole = Self.request("PUT", "n1", "0123456789")
        send(Array(whole.dropLast(5)), from: .client)
        sockets.runToQuiet()
        send(Self.answer(413, "too large"), from: .server)
        #expect(sockets.reports == ["0 requested PUT n1 5 B", "0 committed 413"])
        sockets.runToQuiet()
        send(Array(whole.suffix(5)), from: .client)
        sockets.runToQuiet()
        send(Self.request("GET", "n2"), from: .client)
        sockets.runToQuiet()
        send(Self.answer(200), from: .server)
        sockets.runToQuiet()
        #expect(
            sockets.reports == [
                "0 requested PUT n1 5 B", "0 committed 413", "0 answered 413", "1 requested GET n2 0 B", "1 arrived",
                "1 committed 200", "1 answered 200",
            ])
        #expect(sockets.end(.client, id).received == Self.answer(413, "too large") + Self.answer(200))
        // The rules still count.
        send(Self.request("PUT", "n3", "0123456789").dropLast(5), from: .client)
        sockets.runToQuiet()
        send(Self.answer(413), from: .server)
        sockets.runToQuiet()
        #expect(sockets.reports.suffix(3) == ["2 committed 413", "2 faulted by rule 0", "2 lost"])
        #expect(sockets.end(.client, id).gotReset)
    }

    /// A client that is refused in the middle and goes.
    @Test func anUploadGivenUpAfterItsResponseIsNotLost() {
        var sockets = VirtualSockets(Self.late, watch: Self.watch())
        let id = sockets.open()
        sockets.send(Array(Self.request("PUT", "n1", "0123456789").dropLast(5)), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Array("HTTP/1.1 413 X\r\nConnection: close\r\n\r\nno".utf8), from: .server, id)
        sockets.tell(.inputClosed(.server), id)
        sockets.runToQuiet()
        sockets.tell(.gone(.client), id)
        sockets.runToQuiet()
        #expect(sockets.reports == ["0 requested PUT n1 5 B", "0 committed 413", "0 answered 413"])
    }

    /// Random conversations, cut anywhere, with responses before and after their requests' ends: each exchange is told
    /// once, in order, with its own status.
    @Test(arguments: 0..<60) func everyExchangeOfAConversationIsToldOnce(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let note = Comment(rawValue: "seed \(seed)")
        var sockets = VirtualSockets(seed % 2 == 0 ? .clear : Self.late, watch: Self.watch())
        let id = sockets.open()
        func send(_ bytes: [UInt8], from side: Side) {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...rest.count, using: &generator)
                sockets.send(Array(rest.prefix(count)), from: side, id)
                rest = rest.dropFirst(count)
            }
        }
        var expected: [String] = []
        for number in 0..<20 {
            let body = String(repeating: "x", count: Int.random(in: 1...3000, using: &generator))
            let status = Int.random(in: 200...599, using: &generator)
            let request = Self.request("PUT", "n", body)
            let response =
                Bool.random(using: &generator) || status == 204 || status == 304
                ? Self.answer(status, status == 204 || status == 304 ? "" : body)
                : Array("HTTP/1.1 \(status) X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".utf8)
            let isEarly = Bool.random(using: &generator)
            let sent = isEarly ? request.count - Int.random(in: 1...body.utf8.count, using: &generator) : request.count
            send(Array(request.prefix(sent)), from: .client)
            if Bool.random(using: &generator) { sockets.runToQuiet() }
            if Bool.random(using: &generator) { send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), from: .server) }
            send(response, from: .server)
            if Bool.random(using: &generator) { sockets.runToQuiet() }
            send(Array(request.dropFirst(sent)), from: .client)
            if Bool.random(using: &generator) { sockets.runToQuiet() }
            expected += ["\(number) committed \(status)", "\(number) answered \(status)"]
        }
        sockets.runToQuiet()
        for number in 0..<20 {
            let told = sockets.reports.filter { $0.hasPrefix("\(number) ") && !$0.hasSuffix(" arrived") }
            #expect(told.count == 3 && told[0].hasPrefix("\(number) requested PUT"), note)
            #expect(Array(told.dropFirst()) == Array(expected[2 * number...2 * number + 1]), note)
        }
        #expect(!sockets.reports.contains { $0.hasPrefix("not HTTP") || $0.hasSuffix("lost") }, note)
    }

    /// What cannot be followed is not kept, however much of it there is.
    @Test func whatIsNotFollowedIsNotKept() throws {
        var plan = FaultPlan([FaultRule(nth: 1, action: .mute)])
        var none = FaultPlan([])
        let watch = Self.watch()
        var next = 0
        let piece = ByteBuffer(bytes: [UInt8](repeating: 7, count: 10_000))
        // A client that speaks something else, and a server that answers in kind.
        var blind = ExchangeTracker()
        for _ in 0..<1000 {
            _ = blind.takeRequestBytes(piece, watch, &none, nextID: &next)
            _ = blind.takeAnswerBytes(piece, watch, &none, nextID: &next)
        }
        #expect(blind.bytesKept == 0)
        // The same where only the server speaks.
        var served = ExchangeTracker()
        for _ in 0..<1000 { _ = served.takeAnswerBytes(piece, watch, &none, nextID: &next) }
        #expect(served.bytesKept == 0)
        // A response that is withheld.
        var muted = ExchangeTracker()
        _ = muted.takeRequestBytes(ByteBuffer(bytes: Self.request("GET", "n1")), watch, &plan, nextID: &next)
        _ = muted.takeAnswerBytes(ByteBuffer(bytes: Self.answer(200)), watch, &plan, nextID: &next)
        #expect(muted.isMuted)
        for _ in 0..<1000 { _ = muted.takeAnswerBytes(piece, watch, &plan, nextID: &next) }
        #expect(muted.bytesKept == 0)
        // Requests without end, and no response: some time nobody follows them any more.
        var ahead = ExchangeTracker()
        var reports: [String] = []
        for _ in 0..<2000 {
            reports += ahead.takeRequestBytes(
                ByteBuffer(bytes: Self.request("GET", "n1")), watch, &none, nextID: &next
            ).map(\.description)
        }
        #expect(reports.count == 1026 && reports.last == "not HTTP: more than 1024 requests without a response")
        #expect(ahead.bytesKept == 0 && ahead.finish().isEmpty)
    }

    /// Whatever is watched, without faults every byte arrives, however it is cut and whatever it says.
    @Test(arguments: 0..<40) func watchingChangesNothing(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var sockets = VirtualSockets(Self.late, watch: Self.watch())
        let id = sockets.open()
        var sent = PerDirection(up: [UInt8](), down: [UInt8]())
        for _ in 0..<60 {
            let side: Side = Bool.random(using: &generator) ? .client : .server
            var bytes =
                side == .client
                ? Self.request("PUT", "n\(Int.random(in: 1...3, using: &generator))", "body")
                : Self.answer(200, "answer")
            if Int.random(in: 0..<20, using: &generator) == 0 {
                bytes[Int.random(in: bytes.indices, using: &generator)] = .random(in: 0...255, using: &generator)
            }
            let cut = Int.random(in: 0...bytes.count, using: &generator)
            for piece in [Array(bytes.prefix(cut)), Array(bytes.dropFirst(cut))] where !piece.isEmpty {
                sockets.send(piece, from: side, id)
            }
            sent[side.sendDirection] += bytes
        }
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == sent.up)
        #expect(sockets.end(.client, id).received == sent.down)
    }
}
