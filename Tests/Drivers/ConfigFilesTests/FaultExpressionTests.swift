import Determinism
import Impairment
import LinkModel
import TestSupport
import Testing

@testable import ConfigFiles

/// Fault rules on one line.
@Suite struct FaultExpressionTests {
    private static func parse(_ text: String) throws -> FaultRule { try FaultExpression.parse(text) }

    @Test func aRuleMayStateMethodPathCountPointAndAction() throws {
        #expect(
            try Self.parse("PUT /api/notes/* nth 1 before-response stall")
                == FaultRule(method: "PUT", path: "/api/notes/*", action: .stall))
        #expect(
            try Self.parse("any * times 2 before-request respond 503 Retry-After: 120")
                == FaultRule(
                    times: 2...2, point: .beforeRequest,
                    action: .respond(FaultResponse(status: 503, fields: [.init("Retry-After", "120")]))))
        #expect(
            try Self.parse("GET probability 2.5 % any delay 1m5s")
                == FaultRule(
                    method: "GET", times: 1...Int.max, probability: 0.025, point: nil, action: .delay(.seconds(65))))
        #expect(
            try Self.parse("GET /big mid-response bytes 100 reset client")
                == FaultRule(
                    method: "GET", path: "/big", point: .midResponse, bytes: 100, side: .client, action: .reset))
        #expect(
            try Self.parse("POST times unlimited nth 3 after-response-head throttle 200")
                == FaultRule(
                    method: "POST", nth: 3, times: 1...Int.max, point: .afterResponseHead,
                    action: .throttle(bytesPerSecond: 200)))
        #expect(try Self.parse("* /login before-request portal").action == .respond(.portal))
        #expect(try Self.parse("GET mid-request close").action == .close)
    }

    @Test(arguments: [
        ("TLS after-client-hello stall", FaultRule(handshake: .afterClientHello, action: .stall)),
        (
            "TLS *.CDN.test nth 2 after-server-hello reset client",
            FaultRule(handshake: .afterServerHello, serverName: "*.cdn.test", nth: 2, side: .client, action: .reset)
        ),
        (
            "TLS api.test times unlimited mid-stream bytes 20000 close",
            FaultRule(handshake: .midStream, serverName: "api.test", times: 1...Int.max, bytes: 20_000, action: .close)
        ),
        (
            "TLS * probability 5% mid-server-hello delay 2s",
            FaultRule(handshake: .midServerHello, times: 1...Int.max, probability: 0.05, action: .delay(.seconds(2)))
        ),
    ]) func aRuleOfHandshakesSelectsByTheNameOfTheServer(_ text: String, rule: FaultRule) throws {
        #expect(try Self.parse(text) == rule)
        #expect(try Self.parse("\(rule)") == rule)
    }

    @Test(arguments: [
        ("TLS", 4, "expected a point of TLS"), ("TLS api.test", 13, "expected a point of TLS"),
        ("TLS api.test before-request reset", 14, "unknown point 'before-request' of TLS"),
        ("TLS https://api.test/ after-client-hello reset", 5, "the name of a server (SNI)"),
        ("TLS after-client-hello respond 503", 24, "reset, close, stall and delay"),
        ("TLS mid-stream reset", 16, "which needs it"), ("TLS after-client-hello bytes 5 reset", 32, "which needs it"),
    ]) func aWrongRuleOfHandshakesHasAPlace(_ text: String, column: Int, message: String) {
        let error = #expect(throws: FaultExpression.ParseError.self) { try FaultExpression.parse(text) }
        #expect(error?.column == column && error?.message.contains(message) == true, "\(error?.oneLine ?? "")")
    }

    @Test(arguments: [
        (
            #"TCP server "250 " after "\r\n.\r\n" before-match reset"#,
            FaultRule(
                stream: StreamMatch(
                    sender: .server, text: Array("250 ".utf8), after: Array("\r\n.\r\n".utf8), point: .beforeMatch),
                action: .reset)
        ),
        (
            #"TCP client "a \"b\\\x00\xff\t" nth 2 after-match bytes 10 stall both"#,
            FaultRule(
                stream: StreamMatch(
                    sender: .client, text: Array("a \"b\\".utf8) + [0, 255, 9], point: .afterMatch),
                nth: 2, bytes: 10, side: .both, action: .stall)
        ),
        (
            "TCP server times unlimited mid-stream bytes 20000 close",
            FaultRule(
                stream: StreamMatch(sender: .server, point: .midStream), times: 1...Int.max, bytes: 20_000,
                action: .close)
        ),
        (
            #"TCP server "OK" probability 5% after-match delay 2s"#,
            FaultRule(
                stream: StreamMatch(sender: .server, text: Array("OK".utf8), point: .afterMatch), times: 1...Int.max,
                probability: 0.05, action: .delay(.seconds(2)))
        ),
    ]) func aRuleOfBytesSelectsByAText(_ text: String, rule: FaultRule) throws {
        #expect(try Self.parse(text) == rule)
        #expect(try Self.parse("\(rule)") == rule)
    }

    @Test(arguments: [
        ("TCP", 4, "expected the sender of the bytes"), ("TCP both \"a\" before-match reset", 5, "not 'both'"),
        ("TCP server 250 before-match reset", 12, "a text stands in double quotes"),
        ("TCP server \"250 before-match reset", 12, "has no end"),
        ("TCP server \"\" before-match reset", 12, "the text is empty"),
        (#"TCP server "\q" before-match reset"#, 12, "unknown escape"),
        (#"TCP server "\x4" before-match reset"#, 12, "two hexadecimal digits"),
        (#"TCP server "\x+4" before-match reset"#, 12, "two hexadecimal digits"),
        ("TCP server \"a\" after b before-match reset", 16, "a text in quotes"),
        ("TCP server \"a\" before-matsch reset", 16, "did you mean 'before-match'"),
        ("TCP server before-match reset", 25, "needs a text in quotes"),
        ("TCP server mid-stream reset", 23, "needs bytes"),
        ("TCP server \"a\" mid-stream bytes 4 reset", 35, "before-match and after-match"),
        ("TCP server \"a\" before-match bytes 4 reset", 37, "after-match and mid-stream only"),
        ("TCP server \"a\" before-match respond 503", 29, "the actions of a fault of TCP are reset"),
        ("TCP server \"a\" before-match throttle 5", 29, "the actions of a fault of TCP are reset"),
        ("TCP server \"a\" before-match delay 5s client", 29, "side applies to"),
        ("TCP server \"\(String(repeating: "a", count: 257))\" before-match reset", 285, "at most 256 bytes"),
    ]) func aWrongRuleOfBytesHasAPlace(_ text: String, column: Int, message: String) {
        let error = #expect(throws: FaultExpression.ParseError.self) { try FaultExpression.parse(text) }
        #expect(error?.column == column && error?.message.contains(message) == true, "\(error?.oneLine ?? "")")
    }

    @Test func aReplyHasFieldsAndABody() throws {
        let rule = try Self.parse(
            #"GET before-request-end respond 429 Content-Type: text/html; charset=utf-8 X-Note: "body: \"a\\b\"" body <b>x:  y</b> body"#
        )
        #expect(
            rule.action
                == .respond(
                    FaultResponse(
                        status: 429,
                        fields: [
                            .init("Content-Type", "text/html; charset=utf-8"), .init("X-Note", #"body: "a\b""#),
                        ], body: Array("<b>x:  y</b> body".utf8))))
    }

    @Test(arguments: [
        ("", 1, "the rule ends early; expected a method"),
        ("put /x before-response reset", 1, "not 'put'; did you mean 'PUT'"),
        ("GET http://h/x before-response reset", 5, "without scheme and host"),
        ("GET /x?y before-response reset", 5, "without the query"),
        ("GET befor-response reset", 5, "unknown word 'befor-response'; did you mean 'before-response'"),
        ("GET stall", 5, "the point is missing before 'stall'"),
        ("GET nth 0 before-response reset", 9, "must be from 1 to"),
        ("GET nth x before-response reset", 9, "must be the number of a request"),
        ("GET nth 2 probability 5% before-response reset", 11, "either 'nth' or 'probability'"),
        ("GET nth 2 nth 3 before-response reset", 11, "'nth' is given twice"),
        ("GET probability 5 before-response reset", 17, "expected a percentage"),
        ("GET probability 0% before-response reset", 5, "never applies"),
        ("GET before-response", 20, "the rule ends early; expected an action"),
        ("GET before-response stal", 21, "unknown action 'stal'; did you mean"),
        ("GET before-response kill", 21, "a proxy cannot kill a client"),
        ("GET stored reset", 5, "does not see the point 'stored'"),
        ("GET before-response bytes 3 reset", 21, "follows 'mid-request' or 'mid-response' only"),
        ("GET before-response delay 5", 27, "has no unit"),
        ("GET before-response throttle 0", 30, "must be from 1 to"),
        ("GET before-response reset clint", 27, "did you mean 'client'?"),
        ("GET before-response reset client now", 34, "unexpected 'now'"),
        ("GET before-response delay 5s client", 21, "side applies to reset, close and stall only"),
        ("GET before-response respond 99", 29, "must be from 200 to 599"),
        ("GET before-response respond 503 busy", 33, "expected a header field"),
        ("GET before-response respond 503 X-A:", 33, "has no value"),
        ("GET before-response respond 503 X-A: \"b", 38, "the quoted value has no end"),
        ("GET after-response respond 503", 20, "respond is not possible at after-response"),
    ]) func anErrorGivesThePlaceAndTheNearestName(_ text: String, _ column: Int, _ message: String) throws {
        let error = try #require(throws: FaultExpression.ParseError.self) { try FaultExpression.parse(text) }
        #expect(error.message.contains(message), "\(error.message)")
        #expect(error.column == column, "\(error)")
        #expect(error.description.hasSuffix("\n  \(text)\n  \(String(repeating: " ", count: column - 1))^"))
    }

    @Test func longTextsAreLimited() {
        let marks = String(repeating: "\u{301}", count: 1 << 20)
        for text in [
            marks, "GET " + marks, "GET before-response respond 200 body " + String(repeating: "x", count: 3 << 20),
        ] {
            #expect(throws: FaultExpression.ParseError.self) { try FaultExpression.parse(text) }
        }
    }

    @Test func aStreamIsResetWithACode() throws {
        let rule = try FaultExpression.parse("POST * before-request reset REFUSED_STREAM client")
        #expect(rule.side == .client && rule.description == "POST * before-request reset REFUSED_STREAM client")
        #expect(rule.action.description == "reset REFUSED_STREAM" && rule.action != .reset)
        let error = #expect(throws: FaultExpression.ParseError.self) {
            _ = try FaultExpression.parse("POST * before-request reset REFUSED")
        }
        #expect(error?.oneLine.hasPrefix("column 29: unexpected 'REFUSED' after the action") == true)
    }

    /// The text of a rule is the same rule.
    @Test(arguments: randomSeeds(300)) func theDescriptionOfARuleIsParsedToTheSameRule(_ seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        var rule = FaultRule(action: .reset)
        rule.method = ["GET", "POST", "M-SEARCH", nil].randomElement(using: &random) ?? nil
        rule.path = ["/", "/a*b/*", "*x", nil].randomElement(using: &random) ?? nil
        switch Int.random(in: 0..<3, using: &random) {
        case 0: rule.nth = Int.random(in: 1...1000, using: &random)
        case 1:
            rule.probability = Double(Int.random(in: 1...999_999, using: &random)) / 1e6
            rule.times = 1...Int.max
        default: break
        }
        if Bool.random(using: &random) {
            let times = [1, 7, Int.max].randomElement(using: &random) ?? 1
            rule.times = times == .max ? 1...times : times...times
        }
        rule.point = (FaultPoint.allCases + [nil]).randomElement(using: &random) ?? nil
        if rule.point == .midRequest || rule.point == .midResponse, Bool.random(using: &random) {
            rule.bytes = Int64.random(in: 0...5000, using: &random)
        }
        let words = ["a", "body", "x:", "\"", "\\", "b;c", "é", ":"]
        func text() -> String {
            (0..<Int.random(in: 1...4, using: &random)).map { _ in words.randomElement(using: &random) ?? "a" }
                .joined(separator: " ")
        }
        switch Int.random(in: 0..<9, using: &random) {
        case 0: rule.action = .close
        case 1: rule.action = .stall
        case 2: rule.action = .delay(Nanoseconds(Int64.random(in: 1...86_400_000_000_000, using: &random)))
        case 3: rule.action = .throttle(bytesPerSecond: Int64.random(in: 1...1_000_000, using: &random))
        case 4:
            rule.point = .beforeRequestEnd
            rule.bytes = nil
            var reply = FaultResponse(status: Int.random(in: 200...599, using: &random))
            for name in ["X-A", "B"].prefix(Int.random(in: 0...2, using: &random)) {
                reply.fields.append(.init(name, text()))
            }
            if Bool.random(using: &random) { reply.body = Array("\(text()) ".utf8) }
            rule.action = .respond(reply)
        case 5: rule.action = .resetConnection
        case 6: rule.action = .limitStreams(Int.random(in: 0...FaultAction.streamsMax, using: &random))
        case 7:
            let actions: [FaultAction] = [
                .goAway, .ignorePings, .ping, .blockWindow(connection: false), .blockWindow(connection: true),
                .dropTrailers, .truncateHeaders,
            ]
            rule.action = actions.randomElement(using: &random) ?? .goAway
        default: break
        }
        switch rule.action {
        case .reset, .resetConnection, .close, .stall:
            rule.side = (FaultSide.allCases + [nil]).randomElement(using: &random) ?? nil
        default: break
        }
        if rule.problem != nil { return }
        #expect(try FaultExpression.parse(rule.description) == rule, "seed \(seed): \(rule)")
    }
}
