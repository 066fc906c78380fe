import Determinism
import Impairment
import TestSupport
import Testing

@testable import ConfigFiles

/// Fault rules on one line.
@Suite struct FaultExpressionTests {
    private static func parse(_ text: String) throws -> FaultRule { try FaultExpression.parse(text) }

    @Test func readsEachPart() throws {
        #expect(
            try Self.parse("PUT /api/notes/* nth 1 committed mute")
                == FaultRule(method: "PUT", path: "/api/notes/*", action: .mute))
        #expect(
            try Self.parse("any * times 2 queued reply 503 Retry-After: 120")
                == FaultRule(
                    times: 2...2, point: .queued,
                    action: .reply(FaultReply(status: 503, fields: [.init("Retry-After", "120")]))))
        #expect(
            try Self.parse("GET chance 2.5 % any hold 1m5s")
                == FaultRule(
                    method: "GET", times: 1...Int.max, chance: 0.025, point: nil, action: .hold(.seconds(65))))
        #expect(
            try Self.parse("GET /big partly-answered bytes 100 cut client")
                == FaultRule(
                    method: "GET", path: "/big", point: .partlyAnswered, bytes: 100, side: .client, action: .abort))
        #expect(
            try Self.parse("POST times unlimited nth 3 answer-started trickle 200")
                == FaultRule(
                    method: "POST", nth: 3, times: 1...Int.max, point: .answerStarted,
                    action: .trickle(bytesPerSecond: 200)))
        #expect(try Self.parse("* /login queued portal").action == .reply(.portal))
        #expect(try Self.parse("GET partly-sent close").action == .close)
    }

    @Test func aReplyHasFieldsAndABody() throws {
        let rule = try Self.parse(
            #"GET received reply 429 Content-Type: text/html; charset=utf-8 X-Note: "body: \"a\\b\"" body <b>x:  y</b> body"#
        )
        #expect(
            rule.action
                == .reply(
                    FaultReply(
                        status: 429,
                        fields: [
                            .init("Content-Type", "text/html; charset=utf-8"), .init("X-Note", #"body: "a\b""#),
                        ], body: Array("<b>x:  y</b> body".utf8))))
    }

    @Test(arguments: [
        ("", 1, "the rule ends early; expected a method"),
        ("put /x committed cut", 1, "not 'put'; did you mean 'PUT'"),
        ("GET http://h/x committed cut", 5, "without scheme and host"),
        ("GET /x?y committed cut", 5, "without the query"),
        ("GET comitted cut", 5, "unknown word 'comitted'; did you mean 'committed'?"),
        ("GET mute", 5, "the point is missing before 'mute'"),
        ("GET nth 0 committed cut", 9, "must be from 1 to"),
        ("GET nth x committed cut", 9, "must be the number of a request"),
        ("GET nth 2 chance 5% committed cut", 11, "either 'nth' or 'chance'"),
        ("GET nth 2 nth 3 committed cut", 11, "'nth' is given twice"),
        ("GET chance 5 committed cut", 12, "expected a percentage"),
        ("GET chance 0% committed cut", 5, "never applies"),
        ("GET committed", 14, "the rule ends early; expected an action"),
        ("GET committed mut", 15, "unknown action 'mut'; did you mean"),
        ("GET committed kill", 15, "a proxy cannot kill a client"),
        ("GET stored cut", 5, "does not see the point 'stored'"),
        ("GET committed bytes 3 cut", 15, "follows 'partly-sent' or 'partly-answered' only"),
        ("GET committed hold 5", 20, "has no unit"),
        ("GET committed trickle 0", 23, "must be from 1 to"),
        ("GET committed cut clint", 19, "did you mean 'client'?"),
        ("GET committed cut client now", 26, "unexpected 'now'"),
        ("GET committed hold 5s client", 15, "side applies to cut, close and mute only"),
        ("GET committed reply 99", 21, "must be from 200 to 599"),
        ("GET committed reply 503 busy", 25, "expected a header field"),
        ("GET committed reply 503 X-A:", 25, "has no value"),
        ("GET committed reply 503 X-A: \"b", 30, "the quoted value has no end"),
        ("GET answered reply 503", 14, "reply is not possible at answered"),
    ]) func anErrorGivesThePlaceAndTheNearestName(_ text: String, _ column: Int, _ message: String) throws {
        let error = try #require(throws: FaultExpression.ParseError.self) { try FaultExpression.parse(text) }
        #expect(error.message.contains(message), "\(error.message)")
        #expect(error.column == column, "\(error)")
        #expect(error.description.hasSuffix("\n  \(text)\n  \(String(repeating: " ", count: column - 1))^"))
    }

    @Test func longTextsAreLimited() {
        let marks = String(repeating: "\u{301}", count: 1 << 20)
        for text in [marks, "GET " + marks, "GET committed reply 200 body " + String(repeating: "x", count: 3 << 20)] {
            #expect(throws: FaultExpression.ParseError.self) { try FaultExpression.parse(text) }
        }
    }

    /// The text of a rule is the same rule.
    @Test(arguments: randomSeeds(300)) func theDescriptionOfARuleIsParsedToTheSameRule(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var rule = FaultRule(action: .abort)
        rule.method = ["GET", "POST", "M-SEARCH", nil].randomElement(using: &random) ?? nil
        rule.path = ["/", "/a*b/*", "*x", nil].randomElement(using: &random) ?? nil
        switch Int.random(in: 0..<3, using: &random) {
        case 0: rule.nth = Int.random(in: 1...1000, using: &random)
        case 1:
            rule.chance = Double(Int.random(in: 1...999_999, using: &random)) / 1e6
            rule.times = 1...Int.max
        default: break
        }
        if Bool.random(using: &random) {
            let times = [1, 7, Int.max].randomElement(using: &random) ?? 1
            rule.times = times == .max ? 1...times : times...times
        }
        rule.point = (FaultPoint.allCases + [nil]).randomElement(using: &random) ?? nil
        if rule.point == .partlySent || rule.point == .partlyAnswered, Bool.random(using: &random) {
            rule.bytes = Int64.random(in: 0...5000, using: &random)
        }
        let words = ["a", "body", "x:", "\"", "\\", "b;c", "é", ":"]
        func text() -> String {
            (0..<Int.random(in: 1...4, using: &random)).map { _ in words.randomElement(using: &random) ?? "a" }
                .joined(separator: " ")
        }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: rule.action = .close
        case 1: rule.action = .mute
        case 2: rule.action = .hold(Nanoseconds(Int64.random(in: 1...86_400_000_000_000, using: &random)))
        case 3: rule.action = .trickle(bytesPerSecond: Int64.random(in: 1...1_000_000, using: &random))
        case 4:
            rule.point = .received
            rule.bytes = nil
            var reply = FaultReply(status: Int.random(in: 200...599, using: &random))
            for name in ["X-A", "B"].prefix(Int.random(in: 0...2, using: &random)) {
                reply.fields.append(.init(name, text()))
            }
            if Bool.random(using: &random) { reply.body = Array("\(text()) ".utf8) }
            rule.action = .reply(reply)
        default: break
        }
        switch rule.action {
        case .abort, .close, .mute: rule.side = (FaultSide.allCases + [nil]).randomElement(using: &random) ?? nil
        default: break
        }
        if rule.problem != nil { return }
        #expect(try FaultExpression.parse(rule.description) == rule, "seed \(seed): \(rule)")
    }
}
