import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing
import Wire

@testable import Impairment

/// Fault rules: their values, the requests that they match, and changes of the rules of a running link.
@Suite struct FaultRuleTests {
    private static let way = DirectionConditions(delay: .milliseconds(20))
    private static let late = Conditions(up: way, down: way)
    private static let reply = FaultAction.respond(FaultResponse(status: 503))
    private static let actions: [FaultAction] = [
        .reset, .close, .stall, .delay(.seconds(1)), .throttle(bytesPerSecond: 10), reply, .report(),
    ]

    private static func request(_ method: String, _ path: String) -> [UInt8] {
        Array("\(method) \(path) HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n".utf8)
    }

    private static let response = Array("HTTP/1.1 200 X\r\nContent-Length: 2\r\n\r\nok".utf8)

    private static func add(_ rule: FaultRule, _ sockets: VirtualSockets) throws -> Int {
        try sockets.box.link.addFaultRule(rule, at: sockets.now)
    }

    private static func remove(_ number: Int, _ sockets: inout VirtualSockets) -> Bool {
        let isRemoved = sockets.box.link.removeFaultRule(number, at: sockets.now)
        sockets.wait(.zero)
        return isRemoved
    }

    private static func status(_ sockets: VirtualSockets) -> [[Int]] {
        sockets.box.link.faultRules.map { [$0.number, $0.matched, $0.applied, $0.fired] }
    }

    /// Sends a request, and the response if the request has arrived.
    private static func exchange(_ sockets: inout VirtualSockets, _ id: FlowID, _ method: String, _ path: String) {
        let before = sockets.socket(.server, id).received.count
        let request = request(method, path)
        sockets.send(request, from: .client, id)
        sockets.runToQuiet()
        if sockets.socket(.server, id).received.count == before + request.count {
            sockets.send(response, from: .server, id)
            sockets.runToQuiet()
        }
    }

    // MARK: Values

    @Test(arguments: FaultPoint.allCases) func impossibleCombinationsAreRefusedWithTheirReason(point: FaultPoint) throws
    {
        for action in Self.actions {
            let isPossible =
                switch action {
                case .respond: point < .afterResponseHead
                case .throttle: point != .afterResponse
                default: true
                }
            let rule = FaultRule(point: point, action: action)
            #expect((rule.problem == nil) == isPossible, "\(point) \(action)")
            var sockets = VirtualSockets()
            if isPossible {
                #expect(try Self.add(rule, sockets) == 0)
                #expect(sockets.box.link.faultRules.map(\.rule) == [rule])
            } else {
                #expect(rule.problem?.contains(point.rawValue) == true)
                #expect(throws: FaultRuleError.self) { try Self.add(rule, sockets) }
                #expect(sockets.box.link.faultRules.isEmpty)
                // A call cannot inject it either.
                sockets = VirtualSockets(Self.late, exchangeTracking: ExchangeTracking())
                let id = sockets.open()
                sockets.send(Self.request("GET", "/"), from: .client, id)
                let isInjected = sockets.box.link.injectFault(
                    ExchangeFault(rule: 3, point: point, action: action), into: ExchangeID(number: 0), of: id,
                    at: sockets.now)
                #expect(!isInjected)
            }
        }
    }

    @Test func valuesOutOfRangeAreRefused() {
        let rules: [(FaultRule, String)] = [
            (FaultRule(nth: 0, action: .reset), "nth"), (FaultRule(times: 0...0, action: .reset), "times"),
            (FaultRule(times: -1...3, action: .reset), "times"),
            (FaultRule(probability: 1.5, action: .reset), "probability"),
            (FaultRule(probability: .nan, action: .reset), "probability"),
            (FaultRule(bytes: 4, action: .reset), "bytes"),
            (FaultRule(point: .midRequest, bytes: -1, action: .reset), "bytes"),
            (FaultRule(path: String(repeating: "x", count: 1025), action: .reset), "pattern"),
            (FaultRule(side: .client, action: .delay(.seconds(1))), "side"),
            (FaultRule(action: .delay(.zero)), "delay"),
            (FaultRule(action: .delay(Nanoseconds(.max))), "delay"),
            (FaultRule(action: .throttle(bytesPerSecond: 0)), "rate"),
            (FaultRule(action: .respond(FaultResponse(status: 101))), "status"),
            (FaultRule(action: .respond(FaultResponse(status: 200, fields: [.init("X", "a\r\nB: c")]))), "header"),
            (
                FaultRule(
                    action: .respond(FaultResponse(status: 200, body: [UInt8](repeating: 0, count: 1 << 20 + 1)))),
                "body"
            ),
        ]
        for (rule, word) in rules { #expect(rule.problem?.contains(word) == true, "\(word): \(rule.problem ?? "-")") }
        #expect(FaultRule(times: 0...Int.max, probability: 0.5, point: nil, action: Self.reply).problem == nil)
    }

    @Test(arguments: [
        ("*", "", true), ("*", "/a/b", true), ("/a*", "/a", true), ("/a*b", "/ab", true), ("/a*b", "/a/xx/b", true),
        ("/a*b", "/abc", false), ("*b*d", "abcd", true), ("*ab*ab", "xabab", true), ("*ab*ab", "xab", false),
        ("", "", true),
        ("", "a", false), ("a**c", "abc", true), ("\u{E9}", "e\u{301}", false),
    ]) func patternsMatchBytes(_ pattern: String, _ text: String, _ matches: Bool) {
        #expect(FaultPattern(pattern).matches(text) == matches)
    }

    @Test(arguments: [
        ("/a/b?c=/d", "/a/b"), ("http://h/a?x", "/a"), ("http://h", "/"), ("*", "*"), ("/x://y", "/x://y"), ("", ""),
    ]) func thePathOfATargetHasNoAuthorityAndNoQuery(_ target: String, _ path: String) {
        #expect(ExchangeRegistry.path(target) == path)
    }

    // MARK: Matching

    @Test func aRuleAppliesFromItsNthMatchOn() throws {
        var sockets = VirtualSockets(Self.late, exchangeTracking: ExchangeTracking())
        _ = try Self.add(
            FaultRule(
                method: "PUT", path: "/notes/*", nth: 2, times: 1...2, point: .beforeRequestEnd, action: Self.reply),
            sockets)
        let id = sockets.open()
        let requests = [
            ("PUT", "/notes/1"), ("GET", "/notes/1"), ("PUT", "/other"), ("PUT", "/notes/2"), ("PUT", "/notes/3?x"),
            ("PUT", "/notes/4"),
        ]
        for (method, path) in requests { Self.exchange(&sockets, id, method, path) }
        let statuses = sockets.exchangeEvents.compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
        let delivered = sockets.exchangeEvents.filter { $0.contains("response delivered") }
        #expect(delivered.map { $0.suffix(3) } == ["200", "200", "200", "503", "503", "200"])
        #expect(!statuses.isEmpty)
        #expect(Self.status(sockets) == [[0, 4, 2, 2]])
        #expect(sockets.box.link.faultRules.first?.isSatisfied == true)
    }

    @Test func theFirstOfSeveralRulesIsUsed() throws {
        var sockets = VirtualSockets(Self.late, exchangeTracking: ExchangeTracking())
        _ = try Self.add(FaultRule(method: "PUT", times: 1...5, point: .beforeRequestEnd, action: Self.reply), sockets)
        _ = try Self.add(FaultRule(times: 2...5, point: .beforeResponse, action: .delay(.seconds(1))), sockets)
        let id = sockets.open()
        for method in ["PUT", "GET", "PUT"] { Self.exchange(&sockets, id, method, "/a") }
        #expect(Self.status(sockets) == [[0, 2, 2, 2], [1, 3, 3, 1]])
        #expect(sockets.box.link.faultRules.last?.isSatisfied == false)
    }

    /// The draws are those of a stream of the rule alone: another rule and other connections do not shift them.
    @Test func chanceIsDrawnFromTheStreamOfTheRule() throws {
        func fired(_ seed: UInt64, others: Bool) throws -> [Bool] {
            var sockets = VirtualSockets(Self.late, exchangeTracking: ExchangeTracking(), seed: seed)
            let rule = FaultRule(times: 0...Int.max, probability: 0.3, point: nil, action: .report())
            _ = try Self.add(rule, sockets)
            if others {
                _ = try Self.add(
                    FaultRule(method: "PUT", times: 0...Int.max, probability: 0.5, point: nil, action: .report()),
                    sockets)
            }
            let id = sockets.open()
            for _ in 0..<40 { Self.exchange(&sockets, id, "GET", "/a") }
            var hits = [Bool](repeating: false, count: 40)
            for event in sockets.allExchangeEvents {
                if case .faultInjected(let id, _, _, _) = event.event { hits[id.number] = true }
            }
            return hits
        }
        var stream = RandomStream(seed: 5, "link/fault/0")
        var expected: [Bool] = []
        for _ in 0..<40 {
            expected.append(stream.bool(probability: 0.3))
            if expected.last == true { _ = stream.integer(below: 7) }
        }
        #expect(try fired(5, others: false) == expected)
        #expect(try fired(5, others: true) == expected)
        #expect(try fired(6, others: false) != expected)
        #expect(expected.contains(true) && expected.contains(false))
    }

    /// Every point is drawn at which the action is possible, and no other.
    @Test func aDrawnPointIsAPossibleOne() throws {
        var sockets = VirtualSockets(Self.late, exchangeTracking: ExchangeTracking())
        _ = try Self.add(FaultRule(times: 0...Int.max, point: nil, action: Self.reply), sockets)
        let id = sockets.open()
        for _ in 0..<60 { Self.exchange(&sockets, id, "GET", "/a") }
        var points: Set<FaultPoint> = []
        for event in sockets.allExchangeEvents {
            if case .faultInjected(_, _, let point, _) = event.event { points.insert(point) }
        }
        #expect(points == [.beforeRequest, .midRequest, .beforeRequestEnd, .beforeResponse])
        #expect(Self.status(sockets) == [[0, 60, 60, 60]])
    }

    @Test func aSubjectPatternDependsOnTheBody() throws {
        var sockets = VirtualSockets(
            Self.late,
            exchangeTracking: ExchangeTracking { _, body in String(decoding: body.prefix(4), as: UTF8.self) })
        _ = try Self.add(FaultRule(subject: "n2*", point: .beforeRequest, action: Self.reply), sockets)
        let id = sockets.open()
        for note in ["n1aa", "n2bb"] {
            for piece in ["POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n", note] {
                sockets.send(Array(piece.utf8), from: .client, id)
                sockets.runToQuiet()
            }
            if note == "n1aa" { sockets.send(Self.response, from: .server, id) }
            sockets.runToQuiet()
        }
        #expect(String(decoding: sockets.socket(.server, id).received, as: UTF8.self).hasSuffix("\r\n\r\nn1aa"))
        #expect(sockets.exchangeEvents.last == "1 response delivered 503")
        // With Expect, the rule is applied to the head alone: the client waits for 100.
        sockets.send(
            Array("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n".utf8), from: .client, id)
        sockets.runToQuiet()
        #expect(String(decoding: sockets.socket(.server, id).received, as: UTF8.self).hasSuffix("4\r\n\r\n"))
    }

    // MARK: Rules at run time

    @Test func rulesAreAddedAndRemovedWhileTheLinkRuns() throws {
        var sockets = VirtualSockets(Self.late)
        let old = sockets.open()
        let new = sockets.open()
        let first = try Self.add(FaultRule(times: 1...Int.max, action: .reset), sockets)
        let second = try Self.add(FaultRule(method: "PUT", action: .stall), sockets)
        #expect([first, second] == [0, 1])
        let isPassThrough = sockets.box.link.isPassThrough
        #expect(!isPassThrough)
        Self.exchange(&sockets, old, "GET", "/a")
        #expect(sockets.socket(.client, old).gotReset)
        let id = sockets.open()
        Self.exchange(&sockets, id, "GET", "/a")
        #expect(sockets.socket(.client, id).gotReset)
        #expect(Self.remove(first, &sockets) && !Self.remove(first, &sockets))
        Self.exchange(&sockets, new, "GET", "/a")
        #expect(sockets.socket(.client, new).received == Self.response)
        #expect(try Self.add(FaultRule(action: .reset), sockets) == 2, "numbers are not used again")
        #expect(Self.remove(2, &sockets) && Self.remove(second, &sockets))
        #expect(sockets.box.link.faultRules.isEmpty && sockets.exchangeEvents.isEmpty)
    }

    @Test func theNumberOfRulesIsLimited() throws {
        let sockets = VirtualSockets()
        for _ in 0..<1000 { _ = try Self.add(FaultRule(action: .reset), sockets) }
        #expect(throws: FaultRuleError.self) { try Self.add(FaultRule(action: .reset), sockets) }
    }

    @Test(arguments: FaultPoint.allCases) func aRemovedRuleLetsGoOfWhatItHolds(point: FaultPoint) throws {
        for action in [FaultAction.delay(.seconds(1000)), .throttle(bytesPerSecond: 1), .report(hold: .seconds(1000))] {
            guard action.problem(at: point) == nil else { continue }
            var stage = FaultStage(.oneBody, .random, Self.late, [FaultRule(point: point, action: action)])
            stage.run(until: Instant(.seconds(5)))
            #expect(stage.fault?.point == point)
            let isWhole = stage.client.received == stage.scene.down && point != .afterResponse
            #expect(!isWhole)
            stage.sockets.wait(Instant(.seconds(5)) - stage.sockets.now)
            #expect(Self.remove(0, &stage.sockets))
            stage.run(until: Instant(.seconds(6)))
            #expect(stage.server.received == stage.scene.up && stage.client.received == stage.scene.down, "\(action)")
            #expect(stage.sockets.box.link.bytesHeld == 0)
        }
    }

    /// A rule may also be removed before its fault fires, while it withholds a request or a response.
    @Test func aRemovedRuleReleasesWithheldMessages() throws {
        for (rule, part) in [
            (FaultRule(point: .beforeRequest, action: .reset), "PUT /a HTTP/1.1\r\nHo"),
            (
                FaultRule(subject: "x", point: .midRequest, action: .reset),
                "PUT /a HTTP/1.1\r\nContent-Length: 9\r\n\r\nab"
            ),
        ] {
            var sockets = VirtualSockets(Self.late, exchangeTracking: ExchangeTracking(rules: [rule]))
            let id = sockets.open()
            sockets.send(Array(part.utf8), from: .client, id)
            sockets.runToQuiet()
            #expect(sockets.socket(.server, id).received.isEmpty)
            #expect(sockets.box.link.bytesHeld(id, .up) == part.utf8.count)
            #expect(Self.remove(0, &sockets))
            sockets.runToQuiet()
            #expect(sockets.socket(.server, id).received == Array(part.utf8))
        }
        var sockets = VirtualSockets(Self.late, exchangeTracking: ExchangeTracking(rules: [FaultRule(action: .stall)]))
        let id = sockets.open()
        sockets.send(Self.request("GET", "/"), from: .client, id)
        sockets.runToQuiet()
        sockets.send(Array(Self.response.dropLast()), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received.isEmpty)
        #expect(Self.remove(0, &sockets))
        sockets.send(Array(Self.response.suffix(1)), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Self.response)
    }

    // MARK: Limits

    /// A withheld response fills the connection's share: reading pauses, and no other connection is affected.
    @Test func heldBytesCountInTheLimitsAndPauseReading() throws {
        var limits = BufferLimits(bytesMaxTotal: 100_000, bytesMaxPerDirection: 50_000, bytesMinPerDirection: 10_000)
        limits.toxicBytesMaxTotal = 80_000
        var sockets = VirtualSockets(
            Self.late, limits: limits,
            exchangeTracking: ExchangeTracking(rules: [
                FaultRule(path: "/a", point: .beforeRequestEnd, action: .delay(.seconds(100)))
            ]))
        let (held, other) = (sockets.open(), sockets.open())
        sockets.send(Self.request("GET", "/a"), from: .client, held)
        sockets.wait(.seconds(1))
        var sent: [UInt8] = []
        for number in 0..<1000 where !sockets.socket(.server, held).isPaused {
            let piece = [UInt8](repeating: UInt8(number % 251), count: 1000)
            sent += piece
            sockets.send(number == 0 ? Array("HTTP/1.1 200 X\r\n\r\n".utf8) + piece : piece, from: .server, held)
            sockets.wait(.milliseconds(1))
        }
        #expect(sockets.socket(.server, held).isPaused)
        #expect((19_000...25_000).contains(sockets.box.link.bytesHeld(held, .down)), "\(sockets.box.link.bytesHeld)")
        // The last byte of the request is held as well.
        #expect(sockets.box.link.bytesHeld == sockets.box.link.bytesHeld(held, .down) + 1)
        let start = sockets.now
        sockets.send(Self.request("GET", "/b"), from: .client, other)
        sockets.wait(.milliseconds(100))
        sockets.send(Self.response, from: .server, other)
        sockets.wait(.milliseconds(100))
        #expect(sockets.socket(.client, other).received == Self.response)
        #expect(sockets.socket(.client, other).times.last == start.sinceStart + .milliseconds(120))
        sockets.runToQuiet()
        #expect(!sockets.socket(.server, held).isPaused)
        #expect(sockets.socket(.client, held).received.suffix(sent.count) == sent[...])
        #expect(sockets.box.link.bytesHeld == 0)
    }

    /// A response that exceeds the share cannot be withheld whole. A fault that discards it fires at its end all the
    /// same; one that delivers it later does not fire.
    @Test(arguments: [true, false]) func aResponseLargerThanTheShareIsNotWithheld(isDiscarded: Bool) {
        var limits = BufferLimits()
        limits.toxicBytesMaxPerDirection = 20_000
        let action: FaultAction = isDiscarded ? .respond(FaultResponse(status: 500)) : .delay(.seconds(5))
        var stage = FaultStage(.largeChunks, .random, Self.late, [FaultRule(action: action)], limits: limits)
        stage.run()
        #expect(stage.server.received == stage.scene.up)
        if isDiscarded {
            #expect(String(decoding: stage.client.received, as: UTF8.self).hasPrefix("HTTP/1.1 500"))
            #expect(stage.fault?.offset == 0)
        } else {
            #expect(stage.client.received == stage.scene.down)
            #expect(stage.fault == nil && Self.status(stage.sockets) == [[0, 1, 1, 0]])
        }
        #expect(stage.sockets.box.link.bytesHeld == 0)
    }

    /// Bytes that cannot be the start of a request do not wait for the end of a head.
    @Test(arguments: ["\u{16}\u{3}\u{1}hello", "SSH-2.0-x\r\n", "EHLO example\r\n", "*1\r\n$4\r\nPING\r\n"])
    func otherProtocolsDoNotWait(text: String) throws {
        var sockets = VirtualSockets(
            Self.late, exchangeTracking: ExchangeTracking(rules: [FaultRule(point: .beforeRequest, action: .reset)]))
        let id = sockets.open()
        sockets.send(Array(text.utf8), from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == Array(text.utf8))
        #expect(sockets.box.link.bytesHeld == 0)
    }

    // MARK: Positions

    @Test(arguments: FaultStage.Pieces.allCases) func thePartOfAMessageMayBeGivenInBytes(pieces: FaultStage.Pieces) {
        for (scene, bytes, expected) in [
            (FaultScene.oneBody, Int64(17), 17), (.oneBody, 100_000, 199), (.oneBody, 0, 0), (.smallChunks, 10, 10),
            (.smallChunks, 100_000, FaultScene.smallChunks.target.response.body.count - 1),
        ] {
            let rule = FaultRule(point: .midResponse, bytes: bytes, action: .reset)
            var stage = FaultStage(scene, pieces, Self.late, [rule])
            stage.run()
            let head = scene.target.response.head.count
            #expect(stage.client.received == Array(scene.down.prefix(head + expected)), "\(scene.name) \(bytes)")
            #expect(stage.fault?.offset == Int64(head + expected))
        }
    }
}
