import HTTPWire
import LinkModel
import NIOCore
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

    /// Who waits for `100 Continue` gets it in the middle of the request; a final answer there is none we can follow.
    @Test func anInterimAnswerComesInTheMiddleOfItsRequest() {
        let request = Self.request("PUT", "n1", "text")
        for (early, reports) in [
            (
                Array("HTTP/1.1 100 Continue\r\n\r\n".utf8),
                ["0 requested PUT n1 4 B", "0 arrived", "0 committed 200", "0 answered 200"]
            ),
            (Self.answer(413), ["not HTTP: an answer without a request"]),
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

    @Test func anAnswerBeforeItsRequestEndsTheWatchAndNothingElse() {
        var sockets = VirtualSockets(Self.late, watch: Self.watch(FaultRule(nth: 2, action: .cut)))
        let id = sockets.open()
        let whole = Self.request("PUT", "n1", "0123456789")
        sockets.send(Array(whole.dropLast(5)), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.answer(413), from: .server, id)
        sockets.send(Array(whole.suffix(5)), from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).received == Self.answer(413))
        #expect(sockets.end(.server, id).received == whole)
        #expect(sockets.reports == ["not HTTP: an answer without a request"])
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
            sent[side.sends] += bytes
        }
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == sent.up)
        #expect(sockets.end(.client, id).received == sent.down)
    }
}
