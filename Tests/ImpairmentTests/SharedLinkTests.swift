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
    @Test func bytesComeOutUnchangedAndLate() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.runToQuiet()
        let end = sockets.end(.server, id)
        #expect(end.received == hello)
        let expected: Int64 = 600 + 600 + 2 * 50_000 + 520 + 570 + 50_000
        #expect(end.times == [.microseconds(expected)])
    }

    @Test func withNothingInForceBytesPassAtOnce() {
        var sockets = VirtualSockets()
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.send(hello, from: .server, id)
        #expect(sockets.end(.server, id).received == hello)
        #expect(sockets.end(.client, id).received == hello)
        #expect(sockets.box.link.bytesHeld == 0)
        #expect(sockets.box.link.bytesCarried == PerDirection(up: 5, down: 5))
    }

    @Test func aPortalAnswersOverTheLinkInTheServersPlace() {
        var conditions = slow
        conditions.connectionPolicy = .portal
        var sockets = VirtualSockets(conditions)
        let id = sockets.open(connected: false)
        let wantsUpstream = sockets.box.link.wantsUpstream(id)
        #expect(!wantsUpstream)
        sockets.send(Array("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".utf8), from: .client, id)
        sockets.tell(.inputClosed(.client), id)
        sockets.runToQuiet()
        let end = sockets.end(.client, id)
        #expect(String(decoding: end.received, as: UTF8.self).hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(end.gotFin && sockets.over == [id])
        #expect(sockets.end(.server, id).received.isEmpty)
        // A handshake and a request there, an answer back, as to any server on this link.
        #expect(end.times.allSatisfy { $0 > .milliseconds(200) && $0 < .milliseconds(250) })

        let tls = sockets.open(connected: false)
        sockets.send([22, 3, 1, 0, 5, 13, 10, 13, 10, 13, 10], from: .client, tls)
        sockets.runToQuiet()
        #expect(sockets.end(.client, tls).gotReset && sockets.over.contains(tls))
    }

    private func reachability(_ sockets: VirtualSockets) -> Reachability { sockets.box.link.reachability }

    @Test func aTimelineThatRefusesCutsWhatIsThere() throws {
        var refusing = Conditions.clear
        refusing.connectionPolicy = .refuse
        var sockets = VirtualSockets(.clear)
        sockets.follow(
            try Timeline([
                Timeline.Entry(at: .zero, .hold(Timeline.NamedConditions("x", .clear))),
                Timeline.Entry(at: .seconds(1), .hold(Timeline.NamedConditions("x", refusing))),
                Timeline.Entry(at: .seconds(2), .hold(Timeline.NamedConditions("x", dead))),
                Timeline.Entry(at: .seconds(3), .hold(Timeline.NamedConditions("x", .clear))),
            ]))
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        #expect(reachability(sockets) == .open)
        sockets.wait(.milliseconds(999))
        #expect(sockets.end(.server, id).received == hello && !sockets.end(.client, id).gotReset)
        sockets.wait(.milliseconds(2))
        #expect(sockets.end(.client, id).gotReset && sockets.end(.server, id).gotReset && sockets.over == [id])
        #expect(reachability(sockets) == .refused)
        // Let in by mistake, it is thrown out.
        let late = sockets.open()
        #expect(sockets.end(.client, late).gotReset && sockets.over.contains(late))
        sockets.wait(.seconds(1))
        #expect(reachability(sockets) == .silent)
        sockets.wait(.seconds(1))
        #expect(reachability(sockets) == .open)
    }

    @Test func aRampToARefusalCutsAtItsEnd() throws {
        var refusing = Conditions.clear
        refusing.connectionPolicy = .refuse
        var sockets = VirtualSockets(.clear)
        sockets.follow(
            try Timeline([
                Timeline.Entry(at: .zero, .hold(Timeline.NamedConditions("x", .clear))),
                Timeline.Entry(at: .seconds(1), .ramp(to: Timeline.NamedConditions("x", refusing), over: .seconds(2))),
            ]))
        let id = sockets.open()
        sockets.wait(.milliseconds(2999))
        #expect(!sockets.over.contains(id) && reachability(sockets) == .open)
        sockets.wait(.milliseconds(1))
        #expect(sockets.over == [id] && reachability(sockets) == .refused)
        #expect(sockets.box.link.isTransparent == false)
    }

    @Test func bytesWaitForTheUpstreamToAnswer() {
        var sockets = VirtualSockets()
        let id = sockets.open(connected: false)
        sockets.send(hello, from: .client, id)
        #expect(sockets.end(.server, id).received.isEmpty)
        sockets.tell(.connected, id)
        #expect(sockets.end(.server, id).received == hello)
    }

    @Test(arguments: [Conditions.clear, slow]) func aHalfClosedConnectionStillCarriesTheAnswer(_ conditions: Conditions)
    {
        var sockets = VirtualSockets(conditions)
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.tell(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == hello)
        #expect(sockets.end(.server, id).gotFin)
        #expect(!sockets.end(.client, id).gotFin)
        sockets.send(Array("answer".utf8), from: .server, id)
        sockets.tell(.inputClosed(.server), id)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).received == Array("answer".utf8))
        #expect(sockets.end(.client, id).gotFin)
        #expect(sockets.over == [id])
        #expect(sockets.box.link.connectionCount == 0)
    }

    @Test(arguments: [Side.client, .server]) func aResetTravelsToTheOtherSide(_ side: Side) {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        let before = sockets.now
        sockets.tell(.gone(side), id)
        #expect(!sockets.end(side.opposite, id).gotReset, "not before it has crossed the link")
        sockets.runToQuiet()
        #expect(sockets.end(side.opposite, id).gotReset)
        #expect(sockets.now - before == .microseconds(400 + 50_000))
        #expect(sockets.over == [id])
    }

    @Test func aClientThatClosesWithDataInFlightHasItDelivered() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.send([UInt8](repeating: 7, count: 20_000), from: .client, id)
        sockets.tell(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received.count == 20_000)
        #expect(sockets.end(.server, id).gotFin)
    }

    /// What has been read of a socket had left its sender's kernel before the RST: it arrives, and the RST behind it.
    @Test(arguments: [Conditions.clear, slow], [Side.client, .server])
    func aResetComesAfterEverythingThatWasSentBeforeIt(_ conditions: Conditions, _ side: Side) {
        // At once, before the handshake is over on this link, and later.
        for isEstablished in [false, true] {
            var sockets = VirtualSockets(conditions)
            let id = sockets.open()
            if isEstablished { sockets.runToQuiet() }
            let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
            sockets.send(bytes, from: side, id)
            sockets.tell(.gone(side), id)
            // On a clear link at once.
            if conditions != .clear {
                #expect(!sockets.end(side.opposite, id).gotReset)
                sockets.runToQuiet()
            }
            let end = sockets.end(side.opposite, id)
            #expect(end.received == bytes && end.gotReset && !end.gotFin)
            #expect(sockets.over == [id] && sockets.box.link.bytesHeld == 0)
        }
    }

    @Test func aResetWaitsForTheUpstreamAndForWhatItsSocketHasNotSent() {
        var sockets = VirtualSockets(limits: BufferLimits(socketBytesMax: 2000))
        let id = sockets.open(connected: false)
        for _ in 0..<3 { sockets.send([UInt8](repeating: 1, count: 1000), from: .client, id) }
        sockets.tell(.gone(.client), id)
        #expect(sockets.over.isEmpty && !sockets.end(.server, id).gotReset)
        sockets.setRead(false, .server, id)
        sockets.tell(.connected, id)
        #expect(sockets.end(.server, id).received.count == 2000 && !sockets.end(.server, id).gotReset)
        sockets.setRead(true, .server, id)
        #expect(sockets.end(.server, id).received.count == 3000 && sockets.end(.server, id).gotReset)
        #expect(sockets.over == [id])
    }

    /// A receiver that never reads holds a RST up no longer than a connection may last without one of its sockets.
    @Test(arguments: [Conditions.clear, slow]) func aResetBehindWhatNobodyReadsComesInTheEnd(_ conditions: Conditions) {
        var sockets = VirtualSockets(conditions, limits: BufferLimits(socketBytesMax: 2000))
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setRead(false, .server, id)
        sockets.send([UInt8](repeating: 1, count: 200_000), from: .client, id)
        sockets.tell(.gone(.client), id)
        sockets.wait(.seconds(99))
        #expect(sockets.over.isEmpty && !sockets.end(.server, id).gotReset)
        sockets.wait(.seconds(1))
        #expect(sockets.over == [id] && sockets.end(.server, id).gotReset)
        sockets.runToQuiet()
        #expect(sockets.box.link.bytesHeld == 0 && sockets.box.link.nextDue == nil)
    }

    /// Shares shrink as connections come; what the first hold counts against those that come later.
    @Test(arguments: [false, true]) func connectionsThatComeOneAfterTheOtherHoldNoMoreThanTheWhole(hasToxic: Bool) {
        let (whole, least, read) = (1 << 20, 1 << 10, 1000)
        var limits = BufferLimits(
            bytesMaxTotal: whole, bytesMaxPerDirection: 256 << 10, bytesMinPerDirection: least)
        limits.toxicBytesMaxTotal = whole
        limits.toxicBytesMaxPerDirection = 512 << 10
        var sockets = VirtualSockets(slow, limits: limits)
        if hasToxic { sockets.add(.latency(latency: 3_600_000, jitter: 0), .up) }
        for count in 1...40 {
            let id = sockets.open()
            for _ in 0..<2000 where !sockets.end(.client, id).isPaused {
                sockets.send([UInt8](repeating: 1, count: read), from: .client, id)
            }
            #expect(sockets.end(.client, id).isPaused)
            #expect(sockets.box.link.bytesHeld(id, .up) >= least, "each has its smallest share")
            #expect(sockets.box.link.bytesHeld <= whole + count * (least + read), "\(count)")
        }
        // It comes out again.
        if hasToxic { sockets.remove() }
        sockets.runToQuiet()
        #expect(sockets.box.link.bytesHeld == 0)
        #expect(sockets.ends.values.allSatisfy { !$0.up.isPaused })
    }

    @Test func aRefusedDialResetsTheClientAfterARoundTrip() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open(connected: false)
        sockets.send(hello, from: .client, id)
        sockets.tell(.gone(.server), id)
        #expect(!sockets.end(.client, id).gotReset)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).gotReset)
        #expect(sockets.over == [id])
    }

    @Test func aDialRefusedLateStillResetsTheClient() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open(connected: false)
        sockets.send(hello, from: .client, id)
        sockets.runToQuiet()
        sockets.tell(.gone(.server), id)
        sockets.runToQuiet()
        #expect(sockets.end(.client, id).gotReset)
        #expect(sockets.box.link.bytesHeld == 0)
    }

    @Test func aClientThatLeavesBeforeTheServerHeardOfItLeavesNoTrace() {
        var sockets = VirtualSockets(dead)
        let id = sockets.open()
        sockets.send(hello, from: .client, id)
        sockets.tell(.gone(.client), id)
        #expect(sockets.end(.server, id).gotReset)
        #expect(sockets.over == [id])
        #expect(sockets.box.link.bytesHeld == 0)
    }

    @Test func atHundredPercentLossNothingArrivesAndNothingIsClosedUntilItHeals() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setConditions(dead)
        sockets.send(hello, from: .client, id)
        sockets.tell(.inputClosed(.client), id)
        sockets.wait(.seconds(3600))
        #expect(sockets.end(.server, id).received.isEmpty && !sockets.end(.server, id).gotFin)
        #expect(sockets.over.isEmpty)
        sockets.setConditions(slow)
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == hello && sockets.end(.server, id).gotFin)
    }

    @Test func aReceiverThatDoesNotReadStopsTheSender() {
        var sockets = VirtualSockets(limits: BufferLimits(straightBytesMax: 1000, socketBytesMax: 2000))
        let id = sockets.open()
        sockets.setRead(false, .server, id)
        for _ in 0..<2 { sockets.send([UInt8](repeating: 1, count: 1000), from: .client, id) }
        #expect(!sockets.end(.client, id).isPaused, "its socket takes as much")
        sockets.send([UInt8](repeating: 1, count: 1000), from: .client, id)
        #expect(sockets.end(.server, id).received.count == 2000)
        #expect(sockets.end(.client, id).isPaused)
        #expect(!sockets.end(.server, id).isPaused, "the other direction goes on")
        sockets.setRead(true, .server, id)
        #expect(!sockets.end(.client, id).isPaused)
        #expect(sockets.end(.server, id).received.count == 3000)
    }

    @Test func tinyPiecesCountForWhatASocketKeepsForThem() {
        var sockets = VirtualSockets(limits: BufferLimits(socketBytesMax: 64 * 1024))
        let id = sockets.open()
        sockets.setRead(false, .server, id)
        for _ in 0..<1000 { sockets.send([1], from: .client, id) }
        #expect(sockets.end(.server, id).times.count == 128, "64 KiB / 512 B")
        sockets.setRead(true, .server, id)
        #expect(sockets.end(.server, id).received.count == 1000)
    }

    @Test func aFullShareStopsTheSenderUntilHalfOfItHasGone() {
        let limits = BufferLimits(bytesMaxTotal: 40_000, bytesMaxPerDirection: 20_000, bytesMinPerDirection: 100)
        var sockets = VirtualSockets(slow, limits: limits)
        let id = sockets.open()
        sockets.send([UInt8](repeating: 1, count: 19_999), from: .client, id)
        #expect(!sockets.end(.client, id).isPaused)
        sockets.send([1], from: .client, id)
        #expect(sockets.end(.client, id).isPaused)
        while sockets.box.link.bytesHeld(id, .up) > 10_000 {
            #expect(sockets.end(.client, id).isPaused)
            sockets.wait(.milliseconds(1))
        }
        #expect(!sockets.end(.client, id).isPaused)
    }

    @Test func aLateDriverChangesNothingButTheLateness() {
        func run(step: Nanoseconds?) -> [Nanoseconds] {
            var sockets = VirtualSockets(slow)
            let id = sockets.open()
            sockets.send([UInt8](repeating: 1, count: 30_000), from: .client, id)
            if let step { for _ in 0..<10 { sockets.wait(step) } } else { sockets.runToQuiet() }
            return sockets.end(.server, id).times
        }
        #expect(run(step: nil) == run(step: .seconds(1)))
    }

    @Test func clearingLetsLaterBytesThroughInOrder() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.send([1, 2, 3], from: .client, id)
        sockets.setConditions(.clear)
        sockets.send([4, 5], from: .client, id)
        #expect(sockets.end(.server, id).received.isEmpty, "nothing overtakes")
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == [1, 2, 3, 4, 5])
        sockets.send([6], from: .client, id)
        #expect(sockets.end(.server, id).received == [1, 2, 3, 4, 5, 6])
    }

    @Test func lossIsRepairedByRetransmission() {
        var lossy = way
        lossy.loss = Probability(partsPerMillion: 200_000) ?? .zero
        var sockets = VirtualSockets(Conditions(up: lossy, down: lossy))
        let id = sockets.open()
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        sockets.send(bytes, from: .client, id)
        sockets.tell(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == bytes)
        #expect(sockets.end(.server, id).gotFin)
        #expect(sockets.box.link.counters(.up).packetsLost > 10)
    }

    @Test func anOutageHealsWithTheNextRetransmissionAndNotAtOnce() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setConditions(dead)
        let cut = sockets.now
        sockets.send(hello, from: .client, id)
        sockets.wait(.seconds(11))
        sockets.setConditions(slow)
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == hello)
        // A probe, then time-outs that double: at some 5 s, 10 s and 20 s.
        let came = sockets.end(.server, id).times.last.map { $0 - cut.sinceStart } ?? .zero
        #expect(came > .seconds(15) && came < .seconds(25), "\(came)")
    }

    @Test func aConnectionWithoutOneOfItsSocketsDoesNotLastForEver() {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        sockets.setConditions(dead)
        sockets.tell(.gone(.client), id)
        sockets.wait(.seconds(99))
        #expect(sockets.over.isEmpty && !sockets.end(.server, id).gotReset)
        #expect(sockets.box.link.orphanCount == 1)
        sockets.wait(.seconds(1))
        #expect(sockets.over == [id] && sockets.end(.server, id).gotReset)
        #expect(sockets.box.link.nextDue == nil)
    }

    @Test func noMoreConnectionsWithoutASocketThanTheLimitSays() {
        let link = SharedLink(slow, orphanLimits: OrphanLimits(countMax: 2))
        var sockets = VirtualSockets(link)
        let ids = (0..<3).map { _ in sockets.open() }
        sockets.runToQuiet()
        sockets.setConditions(dead)
        for id in ids { sockets.tell(.gone(.client), id) }
        #expect(sockets.over == [ids[0]])
    }

    @Test func aTimelineIsFollowed() throws {
        var sockets = VirtualSockets(slow)
        let id = sockets.open()
        sockets.runToQuiet()
        let timeline = try Timeline([
            .init(at: .zero, .hold(.init("dead", dead))), .init(at: .seconds(5), .hold(.init("slow", slow))),
        ])
        sockets.follow(timeline)
        sockets.send(hello, from: .client, id)
        sockets.wait(.seconds(4))
        #expect(sockets.end(.server, id).received.isEmpty)
        #expect(sockets.box.link.conditions == dead)
        sockets.runToQuiet()
        #expect(sockets.end(.server, id).received == hello)
        #expect(sockets.box.link.conditions == slow)
    }
}
