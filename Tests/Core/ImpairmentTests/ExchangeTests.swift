import Determinism
import LinkModel
import NIOCore
import TCPModel
import TestSupport
import Testing
import Wire

@testable import Impairment

/// Tracking of exchanges by their bytes, and faults that withhold a response after the server has sent it.
@Suite struct ExchangeTests {
    private static let way = DirectionConditions(delay: .milliseconds(50))
    private static let late = Conditions(up: way, down: way)

    /// The subject of a request is the last part of its path.
    private static func tracking(_ rules: FaultRule...) -> ExchangeTracking {
        ExchangeTracking(rules: rules) { head, _ in head.target.split(separator: "/").last.map(String.init) }
    }

    private static func request(_ method: String, _ note: String, _ body: String = "") -> [UInt8] {
        Array("\(method) /notes/\(note) HTTP/1.1\r\nHost: h\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    }

    private static func response(_ status: Int, _ body: String = "") -> [UInt8] {
        Array("HTTP/1.1 \(status) X\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
    }

    @Test func anExchangeIsTrackedFromRequestToResponse() {
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking())
        let id = sockets.open()
        sockets.send(Self.request("PUT", "n1", "text"), from: .client, id)
        #expect(sockets.exchangeEvents == ["0 requested PUT n1 4 B"])
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.dropFirst(1) == ["0 request delivered"])
        sockets.send(Self.response(409, "no"), from: .server, id)
        #expect(sockets.exchangeEvents.dropFirst(2) == ["0 response read 409"])
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.dropFirst(3) == ["0 response delivered 409"])
        sockets.report(.inputClosed(.client), id)
        sockets.report(.inputClosed(.server), id)
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.count == 4)
    }

    /// A client that has read the body of a response without a length must also read the end of the stream.
    @Test(arguments: [("Content-Length: 2\r\n", 0), ("", 1)]) func aDeliveredResponseHasTheOffsetOfItsEnd(
        length: String, endOfStream: Int
    ) {
        let response = Array("HTTP/1.1 200 X\r\n\(length)\r\nno".utf8)
        var registry = ExchangeRegistry(Self.tracking(), seed: 1, name: "link")
        var tracker = ExchangeTracker()
        tracker.received(ByteBuffer(bytes: Self.request("GET", "n1")), .up, &registry, at: .start)
        tracker.received(ByteBuffer(bytes: response), .down, &registry, at: .start)
        tracker.ended(.down, .finished, &registry, at: .start)
        tracker.wrote(response.count, .down, &registry, at: .start)
        var ends: [Int64] = []
        while let action = tracker.takeAction() {
            if case .report(.responseDelivered(_, _, let end)) = action { ends.append(end) }
        }
        #expect(ends == [Int64(response.count + endOfStream)])
    }

    /// `100 Continue` comes in the middle of its request. A final response there belongs to the request; a second one does not.
    @Test func aResponseMayComeInTheMiddleOfItsRequest() {
        let request = Self.request("PUT", "n1", "text")
        for (early, reports) in [
            (
                Array("HTTP/1.1 100 Continue\r\n\r\n".utf8),
                ["0 requested PUT n1 4 B", "0 request delivered", "0 response read 200", "0 response delivered 200"]
            ),
            (
                Self.response(413),
                [
                    "0 requested PUT n1 0 B", "0 response read 413", "0 response delivered 413",
                    "not HTTP: a response without a request",
                ]
            ),
        ] {
            var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking())
            let id = sockets.open()
            sockets.send(Array(request.dropLast(4)), from: .client, id)
            sockets.runToQuiet()
            sockets.send(early, from: .server, id)
            sockets.runToQuiet()
            #expect(sockets.socket(.client, id).received == early)
            sockets.send(Array(request.suffix(4)), from: .client, id)
            sockets.runToQuiet()
            sockets.send(Self.response(200), from: .server, id)
            sockets.runToQuiet()
            #expect(sockets.exchangeEvents == reports)
        }
    }

    // Down to single bytes.
    @Test(arguments: [1, 7, 1000]) func aMutedResponseNeverReachesTheClient(piece: Int) {
        let rule = FaultRule(method: "POST", subject: "n1", nth: 2, action: .stall)
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking(rule))
        let id = sockets.open()
        func send(_ bytes: [UInt8], from side: Side) {
            for start in stride(from: 0, to: bytes.count, by: piece) {
                sockets.send(Array(bytes[start..<min(start + piece, bytes.count)]), from: side, id)
                sockets.runToQuiet()
            }
        }
        for note in ["n1", "n2", "n1", "n1"] { send(Self.request("POST", note, "x"), from: .client) }
        let first = Self.response(201, "one") + Self.response(201, "two")
        send(first + Self.response(201, "three") + Self.response(201, "four"), from: .server)
        #expect(sockets.socket(.client, id).received == first)
        #expect(sockets.exchangeEvents.contains("2 fault of rule 0"))
        #expect(!sockets.socket(.client, id).gotReset)
        #expect(sockets.ended.isEmpty)
        sockets.report(.gone(.client), id)
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.suffix(2) == ["2 interrupted", "3 interrupted"])
    }

    @Test func anAbortedResponseEndsInAReset() {
        var sockets = VirtualSockets(
            Self.late, exchangeTracking: Self.tracking(FaultRule(action: .reset)), observation: .packets)
        let id = sockets.open()
        sockets.send(Self.request("GET", "n1"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.response(200, "text"), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received.isEmpty)
        #expect(sockets.socket(.client, id).gotReset)
        #expect(sockets.socket(.server, id).gotReset)
        #expect(sockets.ended == [id])
        #expect(
            sockets.exchangeEvents == [
                "0 requested GET n1 0 B", "0 request delivered", "0 response read 200", "0 fault of rule 0",
                "0 interrupted",
            ])
        // The capture states the cause of the RST.
        let resets = sockets.packets.filter { $0.record.kind == .reset }
        #expect(resets.first?.cause == "fault: response withheld, connection reset")
        // The rule applies once.
        let next = sockets.open()
        sockets.send(Self.request("GET", "n1"), from: .client, next)
        sockets.runToQuiet()
        sockets.send(Self.response(200, "text"), from: .server, next)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, next).received == Self.response(200, "text"))
    }

    /// The server closes or crashes after its response was muted: nothing reaches the client until the client closes.
    @Test(arguments: [SocketEvent.inputClosed(.server), .gone(.server)]) func aMutedConnectionDoesNotShowTheServersEnd(
        end: SocketEvent
    ) {
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking(FaultRule(action: .stall)))
        let id = sockets.open()
        sockets.send(Self.request("GET", "n1"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.response(200, "text"), from: .server, id)
        sockets.report(end, id)
        sockets.send(Array("more".utf8), from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received.isEmpty)
        #expect(!sockets.socket(.client, id).gotFin)
        #expect(!sockets.socket(.client, id).gotReset)
        #expect(sockets.ended.isEmpty)
        sockets.report(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.ended == [id])
        #expect(sockets.box.link.bytesHeld == 0)
    }

    /// The end of a withheld response may never be found. What comes after it does not pass either.
    @Test(arguments: [FaultAction.stall, .reset]) func aMalformedWithheldResponseLeavesNoGap(_ action: FaultAction) {
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking(FaultRule(nth: 2, action: action)))
        let id = sockets.open()
        sockets.send(Self.request("GET", "n1") + Self.request("GET", "n2"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.response(200, "one"), from: .server, id)
        sockets.send(Array("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n".utf8), from: .server, id)
        sockets.send(Array("no chunk\r\n".utf8), from: .server, id)
        sockets.send(Array("later".utf8), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.response(200, "one"))
        #expect(sockets.socket(.client, id).gotReset == (action == .reset))
    }

    @Test(arguments: [nil, FaultAction.stall, .reset], [late, .clear])
    func aResponseMayEndWithItsConnection(fault: FaultAction?, conditions: Conditions) {
        let rules = fault.map { [FaultRule(action: $0)] } ?? []
        var sockets = VirtualSockets(conditions, exchangeTracking: ExchangeTracking(rules: rules))
        let id = sockets.open()
        let response = Array("HTTP/1.0 200 OK\r\n\r\nall that comes".utf8)
        sockets.send(Self.request("GET", "n1"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(response, from: .server, id)
        sockets.report(.inputClosed(.server), id)
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.contains("0 response read 200"))
        #expect(sockets.exchangeEvents.contains("0 response delivered 200") == (fault == nil))
        #expect(sockets.socket(.client, id).received == (fault == nil ? response : []))
        #expect(sockets.socket(.client, id).gotFin == (fault == nil))
        #expect(sockets.socket(.client, id).gotReset == (fault == .reset))
    }

    @Test func aFaultLeavesEarlierPipelinedResponsesAlone() {
        let rule = FaultRule(subject: "n2", action: .reset)
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking(rule))
        let id = sockets.open()
        sockets.send(Self.request("GET", "n1") + Self.request("GET", "n2"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Self.response(200, "one") + Self.response(200, "two"), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.response(200, "one"))
        #expect(sockets.socket(.client, id).gotReset)
    }

    @Test(arguments: ["SSH-2.0-x\r\n", "\u{16}\u{3}\u{1}", "GET / HTTP/1.1\r\nBad Header: x\r\n\r\n", "\r\n\r\n\u{0}"])
    func otherProtocolsPassUnchanged(text: String) {
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking(FaultRule(action: .reset)))
        let id = sockets.open()
        let bytes = Array(text.utf8) + Array(repeating: 0, count: 100_000)
        sockets.send(bytes, from: .client, id)
        sockets.send(bytes, from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == bytes)
        #expect(sockets.socket(.client, id).received == bytes)
        #expect(sockets.exchangeEvents.count == 1)
        #expect(sockets.exchangeEvents.first?.hasPrefix("not HTTP: ") == true)
    }

    @Test func anUpgradedConnectionPassesUnchanged() {
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking())
        let id = sockets.open()
        let ask = Array("GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n".utf8)
        let agree = Array("HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n".utf8)
        sockets.send(ask, from: .client, id)
        sockets.runToQuiet()
        sockets.send(agree + [0x81, 0, 1], from: .server, id)
        sockets.send([0x82, 3, 4], from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == agree + [0x81, 0, 1])
        #expect(sockets.socket(.server, id).received == ask + [0x82, 3, 4])
    }

    /// `413` during an upload: the exchange is complete, and the next one on the connection is tracked.
    @Test(arguments: [1, 3, 1000]) func aResponseBeforeItsRequestEndsBelongsToIt(piece: Int) {
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking(FaultRule(nth: 3, action: .reset)))
        let id = sockets.open()
        func send(_ bytes: [UInt8], from side: Side) {
            for start in stride(from: 0, to: bytes.count, by: piece) {
                sockets.send(Array(bytes[start..<min(start + piece, bytes.count)]), from: side, id)
            }
        }
        let whole = Self.request("PUT", "n1", "0123456789")
        send(Array(whole.dropLast(5)), from: .client)
        sockets.runToQuiet()
        send(Self.response(413, "too large"), from: .server)
        #expect(sockets.exchangeEvents == ["0 requested PUT n1 5 B", "0 response read 413"])
        sockets.runToQuiet()
        send(Array(whole.suffix(5)), from: .client)
        sockets.runToQuiet()
        send(Self.request("GET", "n2"), from: .client)
        sockets.runToQuiet()
        send(Self.response(200), from: .server)
        sockets.runToQuiet()
        #expect(
            sockets.exchangeEvents == [
                "0 requested PUT n1 5 B", "0 response read 413", "0 response delivered 413", "1 requested GET n2 0 B",
                "1 request delivered",
                "1 response read 200", "1 response delivered 200",
            ])
        #expect(sockets.socket(.client, id).received == Self.response(413, "too large") + Self.response(200))
        // The rules still count requests.
        send(Self.request("PUT", "n3", "0123456789").dropLast(5), from: .client)
        sockets.runToQuiet()
        send(Self.response(413), from: .server)
        sockets.runToQuiet()
        #expect(sockets.exchangeEvents.suffix(3) == ["2 response read 413", "2 fault of rule 0", "2 interrupted"])
        #expect(sockets.socket(.client, id).gotReset)
    }

    /// A client that closes after an early response.
    @Test func anUploadClosedAfterItsEarlyResponseIsReported() {
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking())
        let id = sockets.open()
        sockets.send(Array(Self.request("PUT", "n1", "0123456789").dropLast(5)), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Array("HTTP/1.1 413 X\r\nConnection: close\r\n\r\nno".utf8), from: .server, id)
        sockets.report(.inputClosed(.server), id)
        sockets.runToQuiet()
        sockets.report(.gone(.client), id)
        sockets.runToQuiet()
        #expect(
            sockets.exchangeEvents == ["0 requested PUT n1 5 B", "0 response read 413", "0 response delivered 413"])
    }

    /// Random conversations in random pieces, with responses before and after the ends of their requests: each exchange is
    /// reported once, in order, with its own status.
    @Test(arguments: randomSeeds(8, soak: 400)) func everyExchangeIsReportedOnceAndInOrder(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let comment = Comment(rawValue: "seed \(seed)")
        var sockets = VirtualSockets(seed % 2 == 0 ? .clear : Self.late, exchangeTracking: Self.tracking())
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
                ? Self.response(status, status == 204 || status == 304 ? "" : body)
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
            expected += ["\(number) response read \(status)", "\(number) response delivered \(status)"]
        }
        sockets.runToQuiet()
        for number in 0..<20 {
            let events = sockets.exchangeEvents.filter {
                $0.hasPrefix("\(number) ") && !$0.hasSuffix(" request delivered")
            }
            #expect(events.count == 3 && events[0].hasPrefix("\(number) requested PUT"), comment)
            #expect(Array(events.dropFirst()) == Array(expected[2 * number...2 * number + 1]), comment)
        }
        #expect(!sockets.exchangeEvents.contains { $0.hasPrefix("not HTTP") || $0.hasSuffix("interrupted") }, comment)
    }

    /// Any number of bytes that cannot be tracked leaves nothing in memory.
    @Test func bytesOfUntrackedConnectionsAreNotKept() {
        var muting = ExchangeRegistry(Self.tracking(FaultRule(nth: 1, action: .stall)), seed: 1, name: "link")
        var registry = ExchangeRegistry(Self.tracking(), seed: 1, name: "link")
        func feed(
            _ tracker: inout ExchangeTracker, _ bytes: ByteBuffer, _ direction: Direction,
            _ registry: inout ExchangeRegistry
        ) {
            tracker.received(bytes, direction, &registry, at: .start)
        }
        let piece = ByteBuffer(bytes: [UInt8](repeating: 7, count: 10_000))
        // Another protocol in both directions.
        var other = ExchangeTracker()
        for _ in 0..<1000 {
            feed(&other, piece, .up, &registry)
            feed(&other, piece, .down, &registry)
            while other.takeAction() != nil {}
        }
        #expect(other.bytesKept == 0)
        // Another protocol from the server only.
        var served = ExchangeTracker()
        for _ in 0..<1000 {
            feed(&served, piece, .down, &registry)
            while served.takeAction() != nil {}
        }
        #expect(served.bytesKept == 0)
        // A muted response.
        var muted = ExchangeTracker()
        feed(&muted, ByteBuffer(bytes: Self.request("GET", "n1")), .up, &muting)
        feed(&muted, ByteBuffer(bytes: Self.response(200)), .down, &muting)
        #expect(muted.withholdsEnd.down)
        for _ in 0..<1000 { feed(&muted, piece, .down, &muting) }
        #expect(muted.bytesKept == 0)
        // More requests without responses than the limit.
        var ahead = ExchangeTracker()
        var events: [String] = []
        for _ in 0..<2000 {
            feed(&ahead, ByteBuffer(bytes: Self.request("GET", "n1")), .up, &registry)
            while let action = ahead.takeAction() {
                switch action {
                case .report(.requested), .report(.notHTTP): events.append("\(action)")
                default: break
                }
            }
        }
        #expect(events.count == 1026)
        #expect(events.last?.contains("more than 1024 requests without a response") == true)
        ahead.connectionEnded()
        #expect(ahead.bytesKept == 0 && ahead.takeAction() == nil)
    }

    /// Without faults every byte arrives, in pieces of any size and with any content.
    @Test(arguments: 0..<40) func trackingWithoutFaultsChangesNoByte(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var sockets = VirtualSockets(Self.late, exchangeTracking: Self.tracking())
        let id = sockets.open()
        var sent = PerDirection(up: [UInt8](), down: [UInt8]())
        for _ in 0..<60 {
            let side: Side = Bool.random(using: &generator) ? .client : .server
            var bytes =
                side == .client
                ? Self.request("PUT", "n\(Int.random(in: 1...3, using: &generator))", "body")
                : Self.response(200, "answer")
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
        #expect(sockets.socket(.server, id).received == sent.up)
        #expect(sockets.socket(.client, id).received == sent.down)
    }
}
