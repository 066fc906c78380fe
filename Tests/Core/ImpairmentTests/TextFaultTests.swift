import Determinism
import Impairment
import LinkModel
import NIOCore
import TestSupport
import Testing

/// The faults of rules about the bytes of a connection, whatever its protocol.
@Suite struct TextFaultTests {
    private static let conditions = Conditions(
        up: DirectionConditions(delay: .milliseconds(20)), down: DirectionConditions(delay: .milliseconds(20)))

    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func rule(
        _ sender: Side, _ text: String, after: String = "", at point: StreamPoint = .beforeMatch, nth: Int = 1,
        times: Int = 1, bytes: Int64? = nil, side: FaultSide? = nil, then action: FaultAction = .reset
    ) -> FaultRule {
        FaultRule(
            stream: StreamMatch(sender: sender, text: Self.bytes(text), after: Self.bytes(after), point: point),
            nth: nth, times: times...times, bytes: bytes, side: side, action: action)
    }

    private static func sockets(_ rules: FaultRule..., conditions: Conditions = conditions) -> VirtualSockets {
        VirtualSockets(conditions, exchangeTracking: ExchangeTracking(rules: rules))
    }

    /// Sends a text in pieces and waits until it has arrived.
    private static func send(
        _ text: String, _ side: Side, _ sockets: inout VirtualSockets, _ id: FlowID, piece: Int = .max
    ) {
        let all = bytes(text)
        for start in stride(from: 0, to: all.count, by: min(piece, all.count)) {
            sockets.send(Array(all[start..<(all.count - start > piece ? start + piece : all.count)]), from: side, id)
        }
        sockets.runToQuiet()
    }

    private static func received(_ sockets: VirtualSockets, _ side: Side, _ id: FlowID) -> String {
        String(decoding: sockets.socket(side, id).received, as: UTF8.self)
    }

    private static func fired(_ sockets: VirtualSockets) -> [Int] { sockets.box.link.faultRules.map(\.fired) }

    /// A conversation of SMTP up to the end of the mail.
    private static func mail(_ sockets: inout VirtualSockets, _ id: FlowID, piece: Int = .max) {
        send("220 ready\r\n", .server, &sockets, id, piece: piece)
        send("MAIL\r\nRCPT\r\nDATA\r\n", .client, &sockets, id, piece: piece)
        send("250 ok\r\n250 ok\r\n354 go\r\n", .server, &sockets, id, piece: piece)
        send("Text 250 \r\n.\r\n", .client, &sockets, id, piece: piece)
    }

    @Test(arguments: [Conditions.clear, conditions], [FaultAction.reset, .close, .stall])
    func aResponseIsLostAfterTheTextOfTheOtherPeer(_ conditions: Conditions, action: FaultAction) {
        let rule = Self.rule(.server, "250 ", after: "\r\n.\r\n", then: action)
        for piece in [1, 3, Int.max] {
            var sockets = Self.sockets(rule, conditions: conditions)
            let id = sockets.open()
            Self.mail(&sockets, id, piece: piece)
            #expect(Self.fired(sockets) == [0])
            Self.send("250 queued\r\n", .server, &sockets, id)
            let (client, server) = (sockets.socket(.client, id), sockets.socket(.server, id))
            #expect(Self.received(sockets, .client, id) == "220 ready\r\n250 ok\r\n250 ok\r\n354 go\r\n")
            #expect(Self.received(sockets, .server, id) == "MAIL\r\nRCPT\r\nDATA\r\nText 250 \r\n.\r\n")
            #expect(client.gotReset == (action == .reset) && server.gotReset == (action == .reset))
            #expect((client.gotFin || client.isClosed) == (action == .close))
            #expect(Self.fired(sockets) == [1])
            #expect(sockets.allExchangeEvents.contains { "\($0.event)".hasPrefix("fault of rule 0 at before-match") })
        }
    }

    /// Text in pieces of any size: the fault fires no later than at the end of the text.
    @Test(arguments: [1, 2, 3, 7, 1000]) func aTextIsFoundInPieces(piece: Int) {
        for (sender, other) in [(Side.client, Side.server), (.server, .client)] {
            var sockets = Self.sockets(Self.rule(sender, "abab-abac", at: .afterMatch, bytes: 2))
            let id = sockets.open()
            Self.send("xxabab-abab-abac123456", sender, &sockets, id, piece: piece)
            #expect(Self.received(sockets, other, id) == "xxabab-abab-abac12" && Self.fired(sockets) == [1])
            #expect(sockets.socket(other, id).gotReset && sockets.socket(sender, id).gotReset)
        }
    }

    @Test func theReceiverGetsNothingOfATextInOneRead() {
        var sockets = Self.sockets(Self.rule(.client, "INCR"))
        let id = sockets.open()
        Self.send("GET a\r\nINCR a\r\n", .client, &sockets, id)
        #expect(Self.received(sockets, .server, id) == "GET a\r\n" && sockets.socket(.server, id).gotReset)
    }

    @Test func matchesAreCountedOverAllConnections() {
        var sockets = Self.sockets(Self.rule(.client, "PUT", at: .afterMatch, nth: 3, times: 2))
        var resets: [Bool] = []
        for _ in 0..<3 {
            let id = sockets.open()
            Self.send("PUT-PUT-", .client, &sockets, id)
            resets.append(sockets.socket(.client, id).gotReset)
        }
        // A match behind the third one, which ends its connection, is not counted.
        #expect(resets == [false, true, true] && Self.fired(sockets) == [2])
    }

    @Test func aPositionNeedsNoText() {
        let rule = FaultRule(
            stream: StreamMatch(sender: .server, point: .midStream), bytes: 1000, side: .client, action: .reset)
        var sockets = Self.sockets(rule)
        let id = sockets.open()
        sockets.send([0, 0, 0, 8], from: .client, id)
        sockets.send([UInt8](repeating: 7, count: 5000), from: .server, id)
        sockets.wait(.seconds(1))
        #expect(sockets.socket(.client, id).received.count == 1000 && sockets.socket(.client, id).gotReset)
        #expect(!sockets.socket(.server, id).gotReset && Self.fired(sockets) == [1])
    }

    @Test func aDelayHoldsTheTextAndWhatFollows() {
        var sockets = Self.sockets(Self.rule(.server, "+OK", at: .beforeMatch, then: .delay(.seconds(5))))
        let id = sockets.open()
        sockets.send(Self.bytes("PING\r\n"), from: .client, id)
        sockets.send(Self.bytes("a+OK\r\nb"), from: .server, id)
        sockets.wait(.seconds(4))
        #expect(Self.received(sockets, .client, id) == "a")
        sockets.wait(.seconds(2))
        sockets.runToQuiet()
        #expect(Self.received(sockets, .client, id) == "a+OK\r\nb")
    }

    @Test func aRuleOfBytesAppliesToHTTPAndToTLS() {
        for request in ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\u{16}\u{3}\u{1}GET / "] {
            var sockets = Self.sockets(Self.rule(.server, "</html", at: .beforeMatch, then: .stall))
            let id = sockets.open()
            Self.send(request, .client, &sockets, id)
            Self.send("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\ntext</html>\n", .server, &sockets, id)
            #expect(Self.received(sockets, .client, id).hasSuffix("\r\n\r\ntext"), "\(request)")
            #expect(!sockets.socket(.client, id).isClosed && Self.fired(sockets) == [1])
        }
    }

    @Test func removedRulesHaveNoEffectAndLaterOnesSearchFromThen() throws {
        var sockets = Self.sockets()
        let id = sockets.open()
        // It may be the beginning of an HTTP request, so the connection is tracked without a rule.
        Self.send("x", .client, &sockets, id)
        try sockets.box.link.addFaultRule(Self.rule(.client, "one"), at: sockets.now)
        let isRemoved = sockets.box.link.removeFaultRule(0, at: sockets.now)
        #expect(isRemoved)
        try sockets.box.link.addFaultRule(Self.rule(.client, "two", at: .afterMatch), at: sockets.now)
        Self.send("one-two-", .client, &sockets, id)
        #expect(Self.received(sockets, .server, id) == "xone-two" && Self.fired(sockets) == [1])
    }

    /// The search agrees with a search in the whole text, for random texts of two letters.
    @Test func theSearchFindsWhatAWholeSearchFinds() {
        var random = RandomStream(seed: 7, "texts")
        for _ in 0..<300 {
            func letters(_ count: Int64) -> String {
                String((0..<count).map { _ in random.bool(probability: 0.5) ? "a" : "b" })
            }
            let (text, all) = (letters(1 + random.integer(below: 5)), letters(40))
            var sockets = Self.sockets(Self.rule(.client, text, at: .afterMatch), conditions: .clear)
            let id = sockets.open()
            Self.send(all, .client, &sockets, id, piece: Int(1 + random.integer(below: 6)))
            let expected = all.firstRange(of: text).map { String(all[..<$0.upperBound]) } ?? all
            #expect(Self.received(sockets, .server, id) == expected, "\(text) in \(all)")
        }
    }
}
