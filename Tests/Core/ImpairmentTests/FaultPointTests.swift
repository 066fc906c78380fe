import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing

@testable import Impairment

/// Every action at every point, with messages of several shapes in pieces of any size: each peer receives exactly the
/// bytes that the definitions of point and action name.
@Suite(.timeLimit(.minutes(20))) struct FaultPointTests {
    private static let way = DirectionConditions(delay: .milliseconds(20))
    private static let late = Conditions(up: way, down: way)
    private static let cases: [(FaultScene, FaultStage.Pieces)] =
        [FaultScene.headOnly, .oneBody, .pair, .smallChunks].flatMap { scene in
            FaultStage.Pieces.allCases.map { (scene, $0) }
        } + [(.largeChunks, .whole), (.largeChunks, .random)]

    /// The scenes for actions that differ in their sockets only.
    private static let fewCases = cases.filter { $0.1 == .random && $0.0.down.count < 10_000 }

    /// The rule for the last exchange of a scene.
    private static func rule(_ point: FaultPoint, _ action: FaultAction, side: FaultSide? = nil) -> FaultRule {
        FaultRule(path: "/notes/n1", point: point, side: side, action: action)
    }

    /// Runs an action in all scenes and over both links, and calls `check` with each result if the fault has fired. In a
    /// few scenes, the driver decides on the fault when the request is reported, in place of a rule.
    private static func run(
        _ point: FaultPoint, _ action: FaultAction, side: FaultSide? = nil, kills: Bool = false, byFIN: Bool = false,
        conditions: [Conditions] = [late, .clear], cases: [(FaultScene, FaultStage.Pieces)] = cases,
        until time: Instant = .end,
        _ check: (FaultScene, PerDirection<Int>, inout FaultStage, Comment) -> Void
    ) {
        for conditions in conditions {
            // Without conditions the points are at the same bytes.
            let cases = conditions.isClear && !TestSettings.isSoak ? cases.filter { $0.1 == .random } : cases
            let decided = cases.filter { $0.1 == .random && $0.0.down.count < 10_000 }.map { ($0.0, $0.1, true) }
            for (scene, pieces, isDecided) in cases.map({ ($0.0, $0.1, false) }) + decided {
                let comment = Comment(
                    rawValue: "\(scene.name), \(pieces), \(conditions.isClear ? "clear" : "late"), "
                        + (isDecided ? "decided" : "rule"))
                var stage = FaultStage(
                    scene, pieces, conditions, [rule(point, action, side: side)], isDecided: isDecided)
                stage.killsOnFault = kills
                stage.killsByFIN = byFIN
                stage.run(until: time)
                if !isDecided { #expect(stage.sockets.box.link.faultRules.first?.matched == 1, comment) }
                guard let written = scene.written(at: point, action) else {
                    // The exchange does not reach the point.
                    #expect(stage.fault == nil, comment)
                    #expect(stage.server.received == scene.up && stage.client.received == scene.down, comment)
                    #expect(stage.sockets.allExchangeEvents.contains { "\($0.event)".contains("missed") }, comment)
                    continue
                }
                #expect(stage.fault?.point == point, comment)
                #expect(stage.fault?.offset == scene.offset(at: point, action), comment)
                if !isDecided { #expect(stage.sockets.box.link.faultRules.first?.fired == 1, comment) }
                check(scene, written, &stage, comment)
                if stage.sockets.ended.contains(stage.id) {
                    #expect(stage.sockets.box.link.bytesHeld == 0, comment)
                }
            }
        }
    }

    /// The bytes of earlier exchanges that the client has received when its connection is aborted or closed: before
    /// `before-response`, the server has not responded.
    private static func received(_ scene: FaultScene, _ point: FaultPoint, _ written: PerDirection<Int>) -> [UInt8] {
        point < .beforeResponse ? [] : Array(scene.down.prefix(written.down))
    }

    @Test(arguments: FaultPoint.allCases) func anAbortResetsBothSocketsAfterTheBytesBeforeThePoint(point: FaultPoint) {
        Self.run(point, .reset) { scene, written, stage, comment in
            #expect(stage.server.received == Array(scene.up.prefix(written.up)), comment)
            #expect(stage.client.received == Self.received(scene, point, written), comment)
            #expect(stage.server.gotReset && stage.client.gotReset, comment)
            #expect(stage.sockets.ended == [stage.id], comment)
        }
    }

    @Test(arguments: FaultPoint.allCases) func aCloseEndsBothStreamsAfterTheBytesBeforeThePoint(point: FaultPoint) {
        Self.run(point, .close) { scene, written, stage, comment in
            #expect(stage.server.received == Array(scene.up.prefix(written.up)), comment)
            #expect(stage.client.received == Self.received(scene, point, written), comment)
            #expect(stage.server.isClosed && stage.client.isClosed, comment)
            #expect(!stage.server.gotReset && !stage.client.gotReset, comment)
            #expect(stage.sockets.ended == [stage.id], comment)
        }
    }

    @Test(arguments: FaultPoint.allCases) func aMutedDirectionDeliversNothingMore(point: FaultPoint) {
        Self.run(point, .stall) { scene, written, stage, comment in
            #expect(stage.server.received == Array(scene.up.prefix(written.up)), comment)
            #expect(stage.client.received == Array(scene.down.prefix(written.down)), comment)
            #expect(stage.sockets.ended.isEmpty, comment)
            for socket in [stage.server, stage.client] {
                #expect(!socket.gotFin && !socket.gotReset && !socket.isClosed, comment)
            }
            #expect(stage.sockets.box.link.bytesHeld == 0, "muted bytes are discarded; \(comment)")
            // The ends of the muted stream are not delivered either.
            let sender: Side = point <= .midRequest ? .client : .server
            stage.sockets.report(.inputClosed(sender), stage.id)
            stage.sockets.wait(.seconds(50))
            let receiver = stage.sockets.socket(sender.opposite, stage.id)
            #expect(!receiver.gotFin && !receiver.gotReset, comment)
            stage.sockets.report(.gone(.client), stage.id)
            stage.sockets.runToQuiet()
            stage.sockets.report(.gone(.server), stage.id)
            stage.sockets.runToQuiet()
            #expect(stage.sockets.ended == [stage.id], comment)
        }
    }

    @Test(arguments: FaultPoint.allCases) func aHeldConnectionDeliversNothingAndThenEverything(point: FaultPoint) {
        let time = Nanoseconds.seconds(10)
        Self.run(point, .delay(time), conditions: [Self.late], until: Instant(.seconds(9))) {
            scene, written, stage, comment in
            // Bytes of earlier exchanges wait where they are.
            let isFirst = scene.exchanges.count == 1
            if point > .beforeRequest || isFirst { #expect(stage.server.received.count == written.up, comment) }
            if point > .beforeResponse || isFirst { #expect(stage.client.received.count == written.down, comment) }
            let fired = stage.fault?.time ?? .start
            stage.run(until: fired + (time - Nanoseconds(1)))
            let before = (stage.server.received.count, stage.client.received.count)
            #expect(stage.server.times.allSatisfy { $0 <= fired.sinceStart }, comment)
            #expect(stage.client.times.allSatisfy { $0 <= fired.sinceStart }, comment)
            stage.run()
            #expect(stage.server.received == scene.up && stage.client.received == scene.down, comment)
            let later = stage.server.times + stage.client.times
            #expect(later.allSatisfy { $0 <= fired.sinceStart || $0 >= fired.sinceStart + time }, comment)
            #expect(before.0 <= scene.up.count && before.1 <= scene.down.count)
        }
        Self.run(point, .delay(time)) { scene, _, stage, comment in
            #expect(stage.server.received == scene.up && stage.client.received == scene.down, comment)
            #expect(!stage.client.gotReset && !stage.server.gotReset && stage.sockets.ended.isEmpty, comment)
            #expect(stage.sockets.box.link.bytesHeld == 0, comment)
        }
    }

    @Test(arguments: FaultPoint.allCases.filter { $0 != .afterResponse }) func aTrickledMessageKeepsItsRate(
        point: FaultPoint
    ) {
        let isUp = point <= .midRequest
        for rate: Int64 in [50, 20_000] {
            let cases = Self.cases.filter { rate > 1000 || $0.0.down.count < 600 }
            Self.run(point, .throttle(bytesPerSecond: rate), cases: cases) { scene, written, stage, comment in
                #expect(stage.server.received == scene.up && stage.client.received == scene.down, comment)
                let socket = isUp ? stage.server : stage.client
                let start = isUp ? written.up : written.down
                let piece = max(1, Int(rate) / 100)
                var count = 0
                var (first, last): (Nanoseconds?, Nanoseconds) = (nil, .zero)
                for (size, time) in zip(socket.pieces, socket.times) {
                    count += size
                    if count <= start { continue }
                    #expect(size <= piece, comment)
                    if first == nil { first = time }
                    last = time
                }
                // The first piece leaves at once, and each further one when the time of its predecessor is over.
                let left = (isUp ? scene.up : scene.down).count - start
                guard let first, left > 0 else {
                    #expect(left == 0, comment)
                    return
                }
                let expected = Nanoseconds(Int64(max(0, left - piece)) * 1_000_000_000 / rate)
                let measured = last - first
                #expect(measured >= expected, "\(measured) of \(expected); \(comment)")
                #expect(measured < expected + expected + .milliseconds(200), comment)
            }
        }
    }

    @Test(arguments: FaultPoint.allCases.filter { $0 <= .beforeResponse }) func aReplyReplacesTheServersResponse(
        point: FaultPoint
    ) throws {
        let reply = FaultResponse(status: 503, fields: [.init("Retry-After", "7")], body: Array("later".utf8))
        let expected = Array(
            "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nlater".utf8)
        Self.run(point, .respond(reply)) { scene, written, stage, comment in
            // Only at `before-request` the server does not receive the request.
            let up = point == .beforeRequest ? Array(scene.up.prefix(written.up)) : scene.up
            #expect(stage.server.received == up, comment)
            #expect(stage.client.received == Array(scene.down.prefix(written.down)) + expected, comment)
            let number = scene.exchanges.count - 1
            #expect(stage.sockets.exchangeEvents.contains("\(number) response delivered 503"), comment)
            let isRead = stage.sockets.exchangeEvents.contains { $0.hasPrefix("\(number) response read 20") }
            #expect(isRead == (point != .beforeRequest), comment)
            // The next exchange on the connection is not changed.
            let (next, response) = (FaultScene.request("PUT", "/notes/n2", body: 3), FaultScene.response(404, body: 2))
            stage.sockets.send(next.bytes, from: .client, stage.id)
            stage.sockets.runToQuiet()
            #expect(stage.server.received == up + next.bytes, comment)
            stage.sockets.send(response.bytes, from: .server, stage.id)
            stage.sockets.runToQuiet()
            #expect(stage.client.received.suffix(response.bytes.count) == response.bytes[...], comment)
            #expect(stage.sockets.exchangeEvents.last == "\(number + 1) response delivered 404", comment)
            #expect(stage.sockets.box.link.bytesHeld == 0, comment)
        }
    }

    @Test(arguments: FaultPoint.allCases) func aReportedPointChangesNothing(point: FaultPoint) {
        Self.run(point, .report()) { scene, _, stage, comment in
            #expect(stage.server.received == scene.up && stage.client.received == scene.down, comment)
            #expect(stage.sockets.ended.isEmpty, comment)
        }
    }

    @Test(arguments: FaultPoint.allCases) func aClientKilledAtAPointHasExchangedTheBytesBeforeIt(point: FaultPoint) {
        Self.run(point, .report(), kills: true) { scene, written, stage, comment in
            #expect(stage.server.received == Array(scene.up.prefix(written.up)), comment)
            #expect(stage.client.received.count <= written.down, comment)
            if point > .beforeResponse { #expect(stage.client.received.count == written.down, comment) }
            #expect(stage.server.gotReset, comment)
            #expect(stage.sockets.ended == [stage.id], comment)
        }
    }

    /// The kernel of a killed process sends a FIN if its socket has no unread bytes.
    @Test(arguments: FaultPoint.allCases) func aClientWhoseKernelSendsAFINHasSentTheBytesBeforeThePoint(
        point: FaultPoint
    ) {
        Self.run(point, .report(), kills: true, byFIN: true, cases: Self.fewCases) { scene, written, stage, comment in
            #expect(stage.server.received == Array(scene.up.prefix(written.up)), comment)
            #expect(stage.server.gotFin && !stage.server.gotReset, comment)
        }
    }

    /// A client that has the last byte may act on the response before it is killed.
    @Test func aReportThatHoldsWithholdsTheLastByteOfTheResponse() {
        for (scene, pieces) in Self.fewCases {
            let rule = Self.rule(.afterResponse, .report(hold: .seconds(10)))
            var stage = FaultStage(scene, pieces, Self.late, [rule])
            stage.run(until: Instant(.seconds(9)))
            #expect(stage.fault?.point == .afterResponse)
            #expect(stage.client.received == Array(scene.down.dropLast()))
            stage.run()
            #expect(stage.client.received == scene.down)
        }
    }

    @Test(arguments: FaultPoint.allCases, [FaultSide.client, .server]) func oneSocketIsAbortedAndTheOtherStaysOpen(
        point: FaultPoint, side: FaultSide
    ) {
        for isAbort in [true, false] {
            let action: FaultAction = isAbort ? .reset : .close
            Self.run(point, action, side: side, cases: Self.fewCases, until: Instant(.seconds(50))) {
                scene, written, stage, comment in
                let (ended, open) = side == .client ? (stage.client, stage.server) : (stage.server, stage.client)
                #expect(isAbort ? ended.gotReset : ended.isClosed, comment)
                #expect(!open.gotReset && !open.gotFin && !open.isClosed, comment)
                #expect(stage.server.received.count <= written.up, comment)
                #expect(stage.client.received.count <= written.down, comment)
                stage.sockets.report(.gone(side == .client ? .server : .client), stage.id)
                stage.sockets.runToQuiet()
                #expect(stage.sockets.ended == [stage.id], comment)
            }
        }
    }

    @Test(arguments: FaultPoint.allCases, FaultSide.allCases) func bothDirectionsMayBeMuted(
        point: FaultPoint, side: FaultSide
    ) {
        Self.run(point, .stall, side: side, cases: Self.fewCases, until: Instant(.seconds(50))) {
            scene, written, stage, comment in
            if side != .client { #expect(stage.server.received.count <= written.up, comment) }
            if side != .server { #expect(stage.client.received.count <= written.down, comment) }
            let receivers =
                side == .client ? [stage.client] : side == .server ? [stage.server] : [stage.client, stage.server]
            for socket in receivers { #expect(!socket.gotFin && !socket.gotReset, comment) }
        }
    }
}
