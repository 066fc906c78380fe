import Determinism
import LinkModel
import NIOCore
import Testing

@testable import Impairment

private let way = DirectionConditions(rate: .kilobits(800), delay: .milliseconds(50))
private let slow = Conditions(up: way, down: way)
private let dead = Conditions(
    up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one))
private let hello = Array("hello".utf8)

@Suite struct SharedLinkTests {
    @Test func bytesArriveUnchangedAtTheModelledTime() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.runToQuiet()
        let end = sockets.socket(.server, id)
        #expect(end.received == hello)
        let expected: Int64 = 600 + 600 + 2 * 50_000 + 520 + 570 + 50_000
        #expect(end.times == [.microseconds(expected)])
    }

    @Test func withoutConditionsBytesPassAtOnce() {
        var sockets = VirtualSockets()
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.send(hello, from: .server, id)
        #expect(sockets.socket(.server, id).received == hello)
        #expect(sockets.socket(.client, id).received == hello)
        #expect(sockets.box.link.bytesHeld == 0)
        #expect(sockets.box.link.bytesCarried == PerDirection(up: 5, down: 5))
    }

    @Test func aPortalRespondsOverTheLinkInPlaceOfTheServer() {
        var conditions = slow
        conditions.connectionPolicy = .portal
        var sockets = VirtualSockets(conditions)
        let id = sockets.open(connected: false)
        let needsUpstream = sockets.box.link.needsUpstream(id)
        #expect(!needsUpstream)
        sockets.send(Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8), from: .client, id)
        sockets.report(.inputClosed(.client), id)
        sockets.runToQuiet()
        let end = sockets.socket(.client, id)
        #expect(String(decoding: end.received, as: UTF8.self).hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(end.gotFin && sockets.ended == [id])
        #expect(sockets.socket(.server, id).received.isEmpty)
        // A handshake, a request and a response take the same time as with a server.
        #expect(end.times.allSatisfy { $0 > .milliseconds(200) && $0 < .milliseconds(250) })

        let tls = sockets.open(connected: false)
        sockets.send([22, 3, 1, 0, 5, 13, 10, 13, 10, 13, 10], from: .client, tls)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, tls).gotReset && sockets.ended.contains(tls))
    }

    private func synTreatment(_ sockets: VirtualSockets) -> SYNTreatment { sockets.box.link.synTreatment }

    @Test func aTimelineThatRefusesAbortsOpenConnections() throws {
        var refusing = Conditions.clear
        refusing.connectionPolicy = .offline
        var sockets = VirtualSockets(.clear)
        sockets.startTimeline(
            try Timeline([
                Timeline.Entry(at: .zero, .hold(Timeline.NamedConditions("x", .clear))),
                Timeline.Entry(at: .seconds(1), .hold(Timeline.NamedConditions("x", refusing))),
                Timeline.Entry(at: .seconds(2), .hold(Timeline.NamedConditions("x", dead))),
                Timeline.Entry(at: .seconds(3), .hold(Timeline.NamedConditions("x", .clear))),
            ]))
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        #expect(synTreatment(sockets) == .open)
        sockets.wait(.milliseconds(999))
        #expect(sockets.socket(.server, id).received == hello && !sockets.socket(.client, id).gotReset)
        sockets.wait(.milliseconds(2))
        #expect(sockets.socket(.client, id).gotReset && sockets.socket(.server, id).gotReset && sockets.ended == [id])
        #expect(synTreatment(sockets) == .refused)
        // A connection that is nevertheless accepted is aborted.
        let late = sockets.open()
        #expect(sockets.socket(.client, late).gotReset && sockets.ended.contains(late))
        sockets.wait(.seconds(1))
        #expect(synTreatment(sockets) == .blackholed)
        sockets.wait(.seconds(1))
        #expect(synTreatment(sockets) == .open)
    }

    @Test func aRampToARefusalAbortsAtItsEnd() throws {
        var refusing = Conditions.clear
        refusing.connectionPolicy = .offline
        var sockets = VirtualSockets(.clear)
        sockets.startTimeline(
            try Timeline([
                Timeline.Entry(at: .zero, .hold(Timeline.NamedConditions("x", .clear))),
                Timeline.Entry(at: .seconds(1), .ramp(to: Timeline.NamedConditions("x", refusing), over: .seconds(2))),
            ]))
        let id = sockets.open()
        sockets.wait(.milliseconds(2999))
        #expect(!sockets.ended.contains(id) && synTreatment(sockets) == .open)
        sockets.wait(.milliseconds(1))
        #expect(sockets.ended == [id] && synTreatment(sockets) == .refused)
        #expect(sockets.box.link.isPassThrough == false)
    }

    @Test func bytesWaitForTheUpstreamToConnect() {
        var sockets = VirtualSockets()
        let id = sockets.open(connected: false)
        sockets.send(hello, from: .client, id)
        #expect(sockets.socket(.server, id).received.isEmpty)
        sockets.report(.connected, id)
        #expect(sockets.socket(.server, id).received == hello)
    }

    @Test(arguments: [Conditions.clear, slow]) func aHalfClosedConnectionCarriesTheResponse(_ conditions: Conditions) {
        var sockets = VirtualSockets(conditions)
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.report(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == hello)
        #expect(sockets.socket(.server, id).gotFin)
        #expect(!sockets.socket(.client, id).gotFin)
        sockets.send(Array("answer".utf8), from: .server, id)
        sockets.report(.inputClosed(.server), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Array("answer".utf8))
        #expect(sockets.socket(.client, id).gotFin)
        #expect(sockets.ended == [id])
        #expect(sockets.box.link.connectionCount == 0)
    }

    @Test(arguments: [Side.client, .server]) func aResetCrossesTheLink(_ side: Side) {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        let before = sockets.now
        sockets.report(.gone(side), id)
        #expect(!sockets.socket(side.opposite, id).gotReset, "not before it has crossed the link")
        sockets.runToQuiet()
        #expect(sockets.socket(side.opposite, id).gotReset)
        #expect(sockets.now - before == .microseconds(400 + 50_000))
        #expect(sockets.ended == [id])
    }

    @Test func bytesInFlightAreDeliveredAfterAClose() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.send([UInt8](repeating: 7, count: 20_000), from: .client, id)
        sockets.report(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received.count == 20_000)
        #expect(sockets.socket(.server, id).gotFin)
    }

    /// Bytes read from a socket had left its peer's kernel before the RST: they arrive before it.
    @Test(arguments: [Conditions.clear, slow], [Side.client, .server])
    func bytesSentBeforeAResetAreDeliveredBeforeIt(_ conditions: Conditions, _ side: Side) {
        // Before and after the modelled handshake.
        for isEstablished in [false, true] {
            var sockets = VirtualSockets(conditions)
            let id = sockets.open()
            if isEstablished { sockets.runToQuiet() }
            let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            sockets.send(bytes, from: side, id)
            sockets.report(.gone(side), id)
            // Without conditions everything happens at once.
            if conditions != .clear {
                #expect(!sockets.socket(side.opposite, id).gotReset)
                sockets.runToQuiet()
            }
            let end = sockets.socket(side.opposite, id)
            #expect(end.received == bytes && end.gotReset && !end.gotFin)
            #expect(sockets.ended == [id] && sockets.box.link.bytesHeld == 0)
        }
    }

    @Test func aResetWaitsForTheUpstreamAndForUnsentBytesOfItsSocket() {
        var sockets = VirtualSockets(limits: BufferLimits(socketBytesMax: 2000))
        let id = sockets.open(connected: false)
        for _ in 0..<3 { sockets.send([UInt8](repeating: 1, count: 1000), from: .client, id) }
        sockets.report(.gone(.client), id)
        #expect(sockets.ended.isEmpty && !sockets.socket(.server, id).gotReset)
        sockets.setRead(false, .server, id)
        sockets.report(.connected, id)
        #expect(sockets.socket(.server, id).received.count == 2000 && !sockets.socket(.server, id).gotReset)
        sockets.setRead(true, .server, id)
        #expect(sockets.socket(.server, id).received.count == 3000 && sockets.socket(.server, id).gotReset)
        #expect(sockets.ended == [id])
    }

    /// A receiver that never reads delays a RST by the lifetime of an orphan at most.
    @Test(arguments: [Conditions.clear, slow]) func aResetBehindUnreadBytesIsPassedAfterTheOrphanTimeout(
        _ conditions: Conditions
    ) {
        var sockets = VirtualSockets(conditions, limits: BufferLimits(socketBytesMax: 2000))
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setRead(false, .server, id)
        sockets.send([UInt8](repeating: 1, count: 200_000), from: .client, id)
        sockets.report(.gone(.client), id)
        sockets.wait(.seconds(99))
        #expect(sockets.ended.isEmpty && !sockets.socket(.server, id).gotReset)
        sockets.wait(.seconds(1))
        #expect(sockets.ended == [id] && sockets.socket(.server, id).gotReset)
        sockets.runToQuiet()
        #expect(sockets.box.link.bytesHeld == 0 && sockets.box.link.nextDeadline == nil)
    }

    /// Shares shrink as connections are opened; bytes held by older ones count against newer ones.
    @Test(arguments: [false, true]) func shrinkingSharesKeepTheTotalLimit(hasToxic: Bool) {
        let (whole, least, read) = (1 << 20, 1 << 10, 1000)
        var limits = BufferLimits(
            bytesMaxTotal: whole, bytesMaxPerDirection: 256 << 10, bytesMinPerDirection: least)
        limits.toxicBytesMaxTotal = whole
        limits.toxicBytesMaxPerDirection = 512 << 10
        var sockets = VirtualSockets(slow, limits: limits)
        if hasToxic { sockets.add(.latency(latency: 3_600_000, jitter: 0), .up) }
        for count in 1...40 {
            let id = sockets.open()
            for _ in 0..<2000 where !sockets.socket(.client, id).isPaused {
                sockets.send([UInt8](repeating: 1, count: read), from: .client, id)
            }
            #expect(sockets.socket(.client, id).isPaused)
            #expect(sockets.box.link.bytesHeld(id, .up) >= least, "each has its smallest share")
            #expect(sockets.box.link.bytesHeld <= whole + count * (least + read), "\(count)")
        }
        // All bytes leave again.
        if hasToxic { sockets.remove() }
        sockets.runToQuiet()
        #expect(sockets.box.link.bytesHeld == 0)
        #expect(sockets.sockets.values.allSatisfy { !$0.up.isPaused })
    }

    @Test func aRefusedDialResetsTheClientAfterARoundTrip() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open(connected: false)
        sockets.send(hello, from: .client, id)
        sockets.report(.gone(.server), id)
        #expect(!sockets.socket(.client, id).gotReset)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).gotReset)
        #expect(sockets.ended == [id])
    }

    @Test func aDialRefusedLateStillResetsTheClient() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open(connected: false)
        sockets.send(hello, from: .client, id)
        sockets.runToQuiet()
        sockets.report(.gone(.server), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).gotReset)
        #expect(sockets.box.link.bytesHeld == 0)
    }

    @Test func aClientGoneBeforeItsSYNArrivedLeavesNothingBehind() {
        var sockets = VirtualSockets(dead)
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.report(.gone(.client), id)
        #expect(sockets.socket(.server, id).gotReset)
        #expect(sockets.ended == [id])
        #expect(sockets.box.link.bytesHeld == 0)
    }

    @Test func aFullLossStallsConnectionsUntilItEnds() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setConditions(dead)
        sockets.send(hello, from: .client, id)
        sockets.report(.inputClosed(.client), id)
        sockets.wait(.seconds(3600))
        #expect(sockets.socket(.server, id).received.isEmpty && !sockets.socket(.server, id).gotFin)
        #expect(sockets.ended.isEmpty)
        sockets.setConditions(slow)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == hello && sockets.socket(.server, id).gotFin)
    }

    @Test func aReceiverThatDoesNotReadPausesItsSender() {
        var sockets = VirtualSockets(limits: BufferLimits(passThroughBytesMax: 1000, socketBytesMax: 2000))
        let id = sockets.open()
        sockets.setRead(false, .server, id)
        for _ in 0..<2 { sockets.send([UInt8](repeating: 1, count: 1000), from: .client, id) }
        #expect(!sockets.socket(.client, id).isPaused, "its socket takes as much")
        sockets.send([UInt8](repeating: 1, count: 1000), from: .client, id)
        #expect(sockets.socket(.server, id).received.count == 2000)
        #expect(sockets.socket(.client, id).isPaused)
        #expect(!sockets.socket(.server, id).isPaused, "the other direction goes on")
        sockets.setRead(true, .server, id)
        #expect(!sockets.socket(.client, id).isPaused)
        #expect(sockets.socket(.server, id).received.count == 3000)
    }

    @Test func tinyPiecesCountWithTheirCostInASocket() {
        var sockets = VirtualSockets(limits: BufferLimits(socketBytesMax: 64 * 1024))
        let id = sockets.open()
        sockets.setRead(false, .server, id)
        for _ in 0..<1000 { sockets.send([1], from: .client, id) }
        #expect(sockets.socket(.server, id).times.count == 128, "64 KiB / 512 B")
        sockets.setRead(true, .server, id)
        #expect(sockets.socket(.server, id).received.count == 1000)
    }

    @Test func aFullSharePausesTheSenderUntilHalfOfItIsFree() {
        let limits = BufferLimits(bytesMaxTotal: 40_000, bytesMaxPerDirection: 20_000, bytesMinPerDirection: 100)
        var sockets = VirtualSockets(slow, limits: limits)
        let id = sockets.open()
        sockets.send([UInt8](repeating: 1, count: 19_999), from: .client, id)
        #expect(!sockets.socket(.client, id).isPaused)
        sockets.send([1], from: .client, id)
        #expect(sockets.socket(.client, id).isPaused)
        while sockets.box.link.bytesHeld(id, .up) > 10_000 {
            #expect(sockets.socket(.client, id).isPaused)
            sockets.wait(.milliseconds(1))
        }
        #expect(!sockets.socket(.client, id).isPaused)
    }

    @Test func aLateDriverChangesNoModelledTime() {
        func run(step: Nanoseconds?) -> [Nanoseconds] {
            var sockets = VirtualSockets(slow)
            let id = sockets.open()
            sockets.send([UInt8](repeating: 1, count: 30_000), from: .client, id)
            if let step { for _ in 0..<10 { sockets.wait(step) } } else { sockets.runToQuiet() }
            return sockets.socket(.server, id).times
        }
        #expect(run(step: nil) == run(step: .seconds(1)))
    }

    @Test func clearingTheConditionsKeepsBytesInOrder() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.send([1, 2, 3], from: .client, id)
        sockets.setConditions(.clear)
        sockets.send([4, 5], from: .client, id)
        #expect(sockets.socket(.server, id).received.isEmpty, "nothing overtakes")
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == [1, 2, 3, 4, 5])
        sockets.send([6], from: .client, id)
        #expect(sockets.socket(.server, id).received == [1, 2, 3, 4, 5, 6])
    }

    @Test func lossIsRepairedByRetransmission() {
        var lossy = way
        lossy.loss = Probability(partsPerMillion: 200_000) ?? .zero
        var sockets = VirtualSockets(Conditions(up: lossy, down: lossy))
        let id = sockets.open()
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        sockets.send(bytes, from: .client, id)
        sockets.report(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == bytes)
        #expect(sockets.socket(.server, id).gotFin)
        #expect(sockets.box.link.counters(.up).packetsLost > 10)
    }

    @Test func afterAnOutageBytesArriveWithTheNextRetransmission() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setConditions(dead)
        let cut = sockets.now
        sockets.send(hello, from: .client, id)
        sockets.wait(.seconds(11))
        sockets.setConditions(slow)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == hello)
        // A probe, then timeouts that double: after about 5 s, 10 s and 20 s.
        let came = sockets.socket(.server, id).times.last.map { $0 - cut.sinceStart } ?? .zero
        #expect(came > .seconds(15) && came < .seconds(25), "\(came)")
    }

    @Test func anOrphanIsAbortedAtItsDeadline() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setConditions(dead)
        sockets.report(.gone(.client), id)
        sockets.wait(.seconds(99))
        #expect(sockets.ended.isEmpty && !sockets.socket(.server, id).gotReset)
        #expect(sockets.box.link.orphanCount == 1)
        sockets.wait(.seconds(1))
        #expect(sockets.ended == [id] && sockets.socket(.server, id).gotReset)
        #expect(sockets.box.link.nextDeadline == nil)
    }

    /// After both FINs nothing that happens to the server's socket could have an effect; no lifetime of an orphan passes.
    @Test(arguments: [false, true]) func aConnectionEndsWithTheClientAfterBothFINs(serverEndsFirst: Bool) {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.report(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).gotFin)
        // The FIN of the server has not reached the client when the client's socket ends.
        if serverEndsFirst { sockets.report(.inputClosed(.server), id) }
        sockets.report(.gone(.client), id)
        #expect(sockets.ended == (serverEndsFirst ? [id] : []))
        if !serverEndsFirst { sockets.report(.inputClosed(.server), id) }
        #expect(sockets.ended == [id] && sockets.box.link.orphanCount == 0)
    }

    @Test func theOldestOrphanIsAbortedBeyondTheLimit() {
        let link = SharedLink(slow, orphanLimits: OrphanLimits(countMax: 2))
        var sockets = VirtualSockets(link)
        let ids = (0..<3).map { _ in sockets.open() }
        sockets.runToQuiet()
        sockets.setConditions(dead)
        for id in ids { sockets.report(.gone(.client), id) }
        #expect(sockets.ended == [ids[0]])
    }

    @Test func aTimelineChangesTheConditions() throws {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        let timeline = try Timeline([
            .init(at: .zero, .hold(.init("dead", dead))), .init(at: .seconds(5), .hold(.init("slow", slow))),
        ])
        sockets.startTimeline(timeline)
        sockets.send(hello, from: .client, id)
        sockets.wait(.seconds(4))
        #expect(sockets.socket(.server, id).received.isEmpty)
        #expect(sockets.box.link.conditions == dead)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).received == hello)
        #expect(sockets.box.link.conditions == slow)
    }
}
