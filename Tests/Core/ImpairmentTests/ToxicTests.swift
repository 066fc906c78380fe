import Determinism
import LinkModel
import NIOCore
import TCPModel
import TestSupport
import Testing

@testable import Impairment

private func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) } }
private func ms(_ count: Int64) -> Nanoseconds { .milliseconds(count) }

@Suite struct ToxicTests {
    // MARK: latency

    @Test func latencyDelaysEachChunkWithoutThrottling() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 100, jitter: 0))
        let id = sockets.open()
        for _ in 0..<50 {
            sockets.send(bytes(1000), from: .server, id)
            sockets.wait(ms(1))
        }
        sockets.runToQuiet()
        let end = sockets.socket(.client, id)
        #expect(end.received.count == 50_000)
        #expect(end.times == (0..<50).map { ms(100 + Int64($0)) })
    }

    @Test func twoLatenciesAddUpForEveryChunkOfAPipelinedStream() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 100, jitter: 0), name: "a")
        sockets.add(.latency(latency: 100, jitter: 0), name: "b")
        let id = sockets.open()
        for _ in 0..<5 {
            sockets.send(bytes(10), from: .server, id)
            sockets.wait(ms(20))
        }
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).times == [200, 220, 240, 260, 280].map { ms($0) })
    }

    @Test func jitterStaysInItsRangeAndKeepsTheOrder() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 50, jitter: 20))
        var delays: Set<Nanoseconds> = []
        for _ in 0..<400 {
            let id = sockets.open()
            let sent = sockets.now
            sockets.send(bytes(1), from: .server, id)
            sockets.runToQuiet()
            delays.insert(sockets.socket(.client, id).times[0] - sent.sinceStart)
        }
        #expect(delays.min() == ms(30) && delays.max() == ms(69))
        #expect(delays.count == 40)

        let id = sockets.open()
        for number in 0..<200 {
            sockets.send([UInt8(number)], from: .server, id)
            sockets.wait(.microseconds(100))
        }
        sockets.runToQuiet()
        let end = sockets.socket(.client, id)
        #expect(end.received == (0..<200).map { UInt8($0) })
        #expect(end.times == end.times.sorted())
    }

    @Test func aNegativeLatencyIsNoDelayAndExtremeValuesAreHarmless() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: -50, jitter: 0), name: "a")
        let id = sockets.open()
        sockets.send(bytes(3), from: .server, id)
        #expect(sockets.socket(.client, id).received.count == 3)
        sockets.add(.latency(latency: .max, jitter: .max), name: "b")
        sockets.add(.latency(latency: .min, jitter: .min), name: "c")
        sockets.add(.latency(latency: 0, jitter: 1_000_000_000_000), name: "d")
        sockets.send(bytes(3), from: .server, id)
        sockets.wait(.seconds(1))
        for name in ["b", "c", "d"] { sockets.remove(name) }
        #expect(sockets.socket(.client, id).received.count == 6)
    }

    @Test func latencyHolds1024ChunksThenPausesTheSender() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 1000, jitter: 0))
        let id = sockets.open()
        for _ in 0..<1023 { sockets.send(bytes(10), from: .server, id) }
        #expect(!sockets.socket(.server, id).isPaused)
        sockets.send(bytes(10), from: .server, id)
        #expect(sockets.socket(.server, id).isPaused)
        sockets.runToQuiet()
        #expect(!sockets.socket(.server, id).isPaused)
        #expect(sockets.socket(.client, id).received.count == 10_240)
    }

    @Test func anUpdateReleasesTheHeldChunkAndAppliesToTheOthers() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 1000, jitter: 0))
        let id = sockets.open()
        for number in 0..<3 {
            sockets.send([UInt8(number)], from: .server, id)
            sockets.wait(ms(10))
        }
        sockets.update(.latency(latency: 200, jitter: 0))
        #expect(sockets.socket(.client, id).times == [ms(30)])
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).times == [ms(30), ms(210), ms(220)])
    }

    @Test func removalReleasesAllChunksInOrder() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 1000, jitter: 0))
        let id = sockets.open()
        for number in 0..<9 { sockets.send([UInt8(number)], from: .server, id) }
        sockets.report(.inputClosed(.server), id)
        sockets.wait(ms(5))
        sockets.remove()
        let end = sockets.socket(.client, id)
        #expect(end.received == [0, 1, 2, 3, 4, 5, 6, 7, 8])
        #expect(end.times.allSatisfy { $0 == ms(5) } && end.gotFin)
        #expect(sockets.box.link.bytesHeld == 0)
    }

    @Test func aFINFollowsTheDelayedBytes() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 100, jitter: 0))
        let (idle, busy) = (sockets.open(), sockets.open())
        sockets.report(.inputClosed(.server), idle)
        #expect(sockets.socket(.client, idle).gotFin)
        sockets.send(bytes(1), from: .server, busy)
        sockets.report(.inputClosed(.server), busy)
        sockets.wait(ms(99))
        #expect(!sockets.socket(.client, busy).gotFin)
        sockets.wait(ms(1))
        #expect(sockets.socket(.client, busy).received.count == 1 && sockets.socket(.client, busy).gotFin)
    }

    @Test func aResetFollowsTheDelayedBytes() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 100, jitter: 0))
        let id = sockets.open()
        sockets.send(bytes(7), from: .server, id)
        sockets.report(.gone(.server), id)
        sockets.runToQuiet()
        let end = sockets.socket(.client, id)
        #expect(end.received.count == 7 && end.gotReset && sockets.ended.contains(id))
        #expect(sockets.box.link.bytesHeld == 0)
    }

    // MARK: bandwidth

    @Test func bandwidthDelaysEachSliceByItsSize() {
        var sockets = VirtualSockets()
        sockets.add(.bandwidth(rate: 10))
        let id = sockets.open()
        sockets.wait(.seconds(5))
        let start = sockets.now
        sockets.send(bytes(2500), from: .server, id)
        sockets.runToQuiet()
        let end = sockets.socket(.client, id)
        // 10 kB/s: 1000 B every 100 ms, then the rest.
        #expect(end.pieces == [1000, 1000, 500])
        #expect(end.times.map { $0 - start.sinceStart } == [ms(100), ms(200), ms(250)])
    }

    @Test func bandwidthIsPerConnectionAndPausesTheSender() {
        var sockets = VirtualSockets()
        sockets.add(.bandwidth(rate: 100))
        let ids = [sockets.open(), sockets.open()]
        for id in ids { sockets.send(bytes(10_000), from: .server, id) }
        #expect(ids.allSatisfy { sockets.socket(.server, $0).isPaused })
        sockets.wait(ms(100))
        #expect(ids.allSatisfy { sockets.socket(.client, $0).received.count == 10_000 })
        #expect(ids.allSatisfy { !sockets.socket(.server, $0).isPaused })
    }

    @Test(arguments: [0, -1, Int64.min]) func aRateOfZeroHoldsAllBytes(_ rate: Int64) {
        var sockets = VirtualSockets()
        sockets.add(.bandwidth(rate: rate))
        let id = sockets.open()
        sockets.send(bytes(5000), from: .server, id)
        sockets.send(bytes(5000), from: .server, id)
        sockets.wait(.seconds(100_000))
        #expect(sockets.socket(.client, id).received.isEmpty)
        sockets.remove()
        #expect(sockets.socket(.client, id).received == bytes(5000) + bytes(5000))
    }

    // MARK: slow_close

    @Test func slowCloseDelaysOnlyTheFIN() {
        var sockets = VirtualSockets()
        sockets.add(.slowClose(delay: 300))
        let id = sockets.open()
        sockets.send(bytes(5), from: .server, id)
        #expect(sockets.socket(.client, id).received.count == 5)
        sockets.report(.inputClosed(.server), id)
        sockets.wait(ms(200))
        // The delay starts again.
        sockets.update(.slowClose(delay: 250))
        sockets.wait(ms(249))
        #expect(!sockets.socket(.client, id).gotFin)
        sockets.wait(ms(1))
        #expect(sockets.socket(.client, id).gotFin)
    }

    // MARK: timeout

    @Test func timeoutDiscardsBytesAndClosesBothSocketsWhenIdle() {
        var sockets = VirtualSockets()
        sockets.add(.timeout(timeout: 100))
        let id = sockets.open()
        sockets.wait(ms(60))
        sockets.send(bytes(5), from: .server, id)
        sockets.send(bytes(8), from: .client, id)
        #expect(sockets.socket(.server, id).received.count == 8)
        sockets.wait(ms(99))
        #expect(!sockets.ended.contains(id))
        sockets.wait(ms(1))
        #expect(sockets.socket(.client, id).received.isEmpty)
        #expect(
            sockets.socket(.client, id).isClosed && sockets.socket(.server, id).isClosed && sockets.ended.contains(id))
    }

    @Test func aTimeoutOfZeroClosesOnRemovalOnly() {
        var sockets = VirtualSockets()
        sockets.add(.timeout(timeout: 0))
        let id = sockets.open()
        sockets.send(bytes(5), from: .server, id)
        sockets.wait(.seconds(3600))
        #expect(!sockets.ended.contains(id))
        sockets.remove()
        #expect(
            sockets.socket(.client, id).isClosed && sockets.socket(.server, id).isClosed && sockets.ended.contains(id))
        let next = sockets.open()
        sockets.send(bytes(5), from: .server, next)
        #expect(sockets.socket(.client, next).received.count == 5)
    }

    @Test func aConnectionWithoutTheTimeoutSurvivesItsRemoval() {
        var sockets = VirtualSockets()
        sockets.add(.timeout(timeout: 0), toxicity: 0)
        let id = sockets.open()
        sockets.send(bytes(5), from: .server, id)
        sockets.remove()
        #expect(sockets.socket(.client, id).received.count == 5 && !sockets.ended.contains(id))
    }

    /// A connection may come from the fast path after a `timeout` was added and removed: it is closed as if it had been on the
    /// link.
    @Test func aRemovedTimeoutClosesOlderFastPathConnections() {
        var sockets = VirtualSockets()
        sockets.wait(.seconds(10))
        sockets.add(.timeout(timeout: 0))
        sockets.remove()
        sockets.add(.timeout(timeout: 0), toxicity: 0, name: "undrawn")
        sockets.remove("undrawn")
        sockets.add(.latency(latency: 5, jitter: 0), name: "late")
        sockets.remove("late")
        func comes(_ number: Int, beganAt seconds: Int64) -> FlowID {
            sockets.openEstablished(ConnectionSeed(number: number, seed: 1), openedAt: Instant(.seconds(seconds)))
        }
        let before = comes(0, beganAt: 9)
        sockets.send(bytes(5), from: .server, before)
        #expect(sockets.socket(.client, before).isClosed && sockets.socket(.server, before).isClosed)
        #expect(sockets.socket(.client, before).received.isEmpty && sockets.ended.contains(before))
        sockets.wait(.seconds(1))
        let after = comes(1, beganAt: 11)
        sockets.send(bytes(5), from: .server, after)
        #expect(sockets.socket(.client, after).received.count == 5 && !sockets.ended.contains(after))
        // A new connection is not affected.
        let new = sockets.open()
        sockets.send(bytes(5), from: .server, new)
        #expect(sockets.socket(.client, new).received.count == 5)
    }

    /// Whether the toxic applies follows from the connection's number, on the link and on the fast path.
    @Test func aRemovedTimeoutClosesTheFastPathConnectionsItWouldHaveAppliedTo() {
        func closed(isOnLink: Bool) -> [Bool] {
            var sockets = VirtualSockets(seed: 3)
            var ids: [FlowID] = []
            if isOnLink { ids = (0..<40).map { _ in sockets.open() } }
            sockets.add(.timeout(timeout: 0), toxicity: 0.5)
            sockets.remove()
            if !isOnLink {
                ids = (0..<40).map { sockets.openEstablished(ConnectionSeed(number: $0, seed: 3), openedAt: .start) }
            }
            return ids.map { sockets.ended.contains($0) }
        }
        let isClosed = closed(isOnLink: true)
        #expect(isClosed == closed(isOnLink: false))
        #expect(Set(isClosed).count == 2)
    }

    @Test func timeoutPassesTheFIN() {
        var sockets = VirtualSockets()
        sockets.add(.timeout(timeout: 0))
        let id = sockets.open()
        sockets.send(bytes(5), from: .server, id)
        sockets.report(.inputClosed(.server), id)
        #expect(sockets.socket(.client, id).gotFin && sockets.socket(.client, id).received.isEmpty)
    }

    @Test func aTimeoutEndsAConnectionWithoutUpstream() {
        var sockets = VirtualSockets()
        sockets.add(.timeout(timeout: 50), .up)
        let id = sockets.open(connected: false)
        sockets.send(bytes(5), from: .client, id)
        sockets.wait(ms(50))
        #expect(sockets.socket(.client, id).isClosed && sockets.ended.contains(id))
    }

    // MARK: reset_peer

    @Test func resetPeerResetsBothSocketsAfterAByteOrTheFIN() {
        var sockets = VirtualSockets()
        let old = sockets.open()
        sockets.add(.resetPeer(timeout: 30))
        let ids = [old, sockets.open()]
        sockets.wait(.seconds(10))
        #expect(sockets.ended.isEmpty)
        sockets.send(bytes(5), from: .server, ids[0])
        sockets.report(.inputClosed(.server), ids[1])
        sockets.wait(ms(29))
        #expect(sockets.ended.isEmpty)
        sockets.wait(ms(1))
        for id in ids {
            #expect(sockets.socket(.client, id).gotReset && sockets.socket(.server, id).gotReset)
            #expect(sockets.socket(.client, id).received.isEmpty && sockets.ended.contains(id))
        }
    }

    @Test func aRemovedResetPeerDoesNotReset() {
        var sockets = VirtualSockets()
        sockets.add(.resetPeer(timeout: 30))
        let id = sockets.open()
        sockets.send(bytes(5), from: .server, id)
        sockets.wait(ms(10))
        sockets.remove()
        #expect(sockets.socket(.client, id).received.count == 5)
        sockets.wait(.seconds(1))
        #expect(!sockets.socket(.client, id).gotReset)
    }

    // MARK: slicer

    @Test func slicesHaveAboutTheSizeAndArePausedAndFlushed() {
        var sockets = VirtualSockets()
        sockets.add(.slicer(averageSize: 100, sizeVariation: 20, delay: 500))
        let id = sockets.open()
        sockets.send(bytes(1000), from: .server, id)
        sockets.runToQuiet()
        let end = sockets.socket(.client, id)
        #expect(end.received == bytes(1000))
        #expect(end.pieces.allSatisfy { (1...120).contains($0) } && end.pieces.count >= 9)
        #expect(Set(end.pieces).count > 1)
        #expect(end.times == end.times.indices.map { .microseconds(500 * Int64($0)) })
        #expect(end.flushes == end.pieces.count)
    }

    @Test(arguments: [
        (0, 0), (0, 50), (-5, -5), (1, 1000), (1, 0), (Int64.max, Int64.max), (Int64.min, Int64.min), (10, 10),
    ]) func noSlicerSizeLosesBytes(_ size: Int64, _ variation: Int64) {
        var sockets = VirtualSockets()
        sockets.add(.slicer(averageSize: size, sizeVariation: variation, delay: 0))
        let id = sockets.open()
        sockets.send(bytes(3000), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == bytes(3000))
    }

    // MARK: limit_data

    @Test func limitDataPassesItsBytesThenClosesBothSockets() {
        var sockets = VirtualSockets()
        sockets.add(.limitData(bytes: 100))
        let id = sockets.open()
        sockets.send(bytes(60), from: .server, id)
        #expect(!sockets.ended.contains(id))
        sockets.send(bytes(60), from: .server, id)
        #expect(sockets.socket(.client, id).received.count == 100)
        #expect(
            sockets.socket(.client, id).isClosed && sockets.socket(.server, id).isClosed && sockets.ended.contains(id))
        let exact = sockets.open()
        sockets.send(bytes(100), from: .server, exact)
        #expect(sockets.ended.contains(exact))
    }

    @Test func limitDataKeepsItsCountAcrossUpdates() {
        var sockets = VirtualSockets()
        sockets.add(.limitData(bytes: 1000))
        let id = sockets.open()
        sockets.send(bytes(60), from: .server, id)
        sockets.update(.limitData(bytes: 50))
        #expect(!sockets.ended.contains(id))
        sockets.send(bytes(1), from: .server, id)
        #expect(sockets.socket(.client, id).received.count == 60 && sockets.ended.contains(id))
    }

    @Test func aLimitOfZeroPassesNothing() {
        var sockets = VirtualSockets()
        sockets.add(.limitData(bytes: 0))
        let id = sockets.open()
        sockets.send(bytes(1), from: .server, id)
        #expect(sockets.socket(.client, id).received.isEmpty && sockets.ended.contains(id))
    }

    @Test func bytesPassedByALimitPassTheToxicsBehindIt() {
        var sockets = VirtualSockets()
        sockets.add(.limitData(bytes: 10), name: "limit")
        sockets.add(.latency(latency: 100, jitter: 0), name: "late")
        let id = sockets.open()
        sockets.send(bytes(20), from: .server, id)
        sockets.wait(ms(99))
        #expect(!sockets.socket(.client, id).isClosed)
        sockets.wait(ms(1))
        #expect(sockets.socket(.client, id).received.count == 10 && sockets.socket(.client, id).isClosed)
    }

    // MARK: packet_loss

    @Test func packetLossLosesPacketsAndNoBytes() {
        var sockets = VirtualSockets(
            Conditions(
                up: DirectionConditions(delay: .milliseconds(20)), down: DirectionConditions(delay: .milliseconds(20))))
        sockets.add(.packetLoss(lossRate: 0.05, correlation: 0))
        let id = sockets.open()
        sockets.wait(.seconds(1))
        sockets.send(bytes(400_000), from: .server, id)
        sockets.send(bytes(400_000), from: .client, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == bytes(400_000))
        #expect(sockets.socket(.server, id).received == bytes(400_000))
        let down = sockets.box.link.counters(.down)
        #expect((8...25).contains(down.packetsLost) && down.retransmissions >= down.packetsLost)
        #expect(sockets.box.link.counters(.up).packetsLost == 0)
    }

    @Test func packetLossDelaysBytesOnALinkWithoutConditions() {
        var sockets = VirtualSockets()
        sockets.add(.packetLoss(lossRate: 1, correlation: 0))
        let id = sockets.open()
        sockets.send(bytes(1000), from: .server, id)
        sockets.wait(.seconds(5))
        #expect(sockets.socket(.client, id).received.isEmpty)
        sockets.remove()
        sockets.wait(.seconds(10))
        // At the next backed-off retransmission, not before.
        #expect(sockets.socket(.client, id).received.count == 1000)
        #expect(sockets.socket(.client, id).times.allSatisfy { $0 > .seconds(5) })
        #expect(sockets.box.link.counters(.down).packetsLost >= 4)
    }

    @Test func correlationMakesLossesComeInRuns() {
        func runs(_ correlation: Double) -> Int {
            var process = CorrelatedLoss(rate: 0.1, correlation: correlation, random: RandomStream(seed: 3, "test"))
            let coins = (0..<10_000).map { _ in process.losesNext() }
            return zip(coins, coins.dropFirst()).count { $0 && $1 }
        }
        #expect(runs(0) < 200 && runs(0.7) > 1000)
        var always = CorrelatedLoss(rate: 7, correlation: -1, random: RandomStream(seed: 3, "test"))
        #expect((0..<100).allSatisfy { _ in always.losesNext() })
    }

    // MARK: toxicity and seeds

    private func drawn(seed: UInt64, toxicity: Double) -> [Bool] {
        var sockets = VirtualSockets(seed: seed)
        sockets.add(.latency(latency: 100, jitter: 50), toxicity: toxicity)
        return (0..<200).map { _ in
            let id = sockets.open()
            sockets.send(bytes(1), from: .server, id)
            return sockets.socket(.client, id).received.isEmpty
        }
    }

    @Test func toxicityIsTheShareOfConnections() {
        #expect(drawn(seed: 1, toxicity: 0).allSatisfy { !$0 } && drawn(seed: 1, toxicity: -3).allSatisfy { !$0 })
        #expect(drawn(seed: 1, toxicity: 1).allSatisfy { $0 } && drawn(seed: 1, toxicity: 7).allSatisfy { $0 })
        #expect((35...85).contains(drawn(seed: 1, toxicity: 0.3).count { $0 }))
    }

    @Test func theSameSeedGivesTheSameRun() {
        #expect(drawn(seed: 7, toxicity: 0.5) == drawn(seed: 7, toxicity: 0.5))
        #expect(drawn(seed: 7, toxicity: 0.5) != drawn(seed: 8, toxicity: 0.5))
        func times(_ seed: UInt64) -> [[Nanoseconds]] {
            var sockets = VirtualSockets(seed: seed)
            sockets.add(.latency(latency: 100, jitter: 50), toxicity: 0.5)
            let ids = (0..<20).map { _ in sockets.open() }
            for id in ids { for _ in 0..<5 { sockets.send(bytes(1), from: .server, id) } }
            sockets.runToQuiet()
            return ids.map { sockets.socket(.client, $0).times }
        }
        #expect(times(7) == times(7) && times(7) != times(8))
    }

    @Test func reseedingRestartsTheRandomStreams() {
        var sockets = VirtualSockets(seed: 7)
        func round() -> [Bool] {
            sockets.box.link.reseed(99, at: sockets.now)
            sockets.add(.timeout(timeout: 0), toxicity: 0.5)
            defer { sockets.remove() }
            return (0..<50).map { _ in
                let id = sockets.open()
                sockets.send(bytes(1), from: .server, id)
                return sockets.socket(.client, id).received.isEmpty
            }
        }
        let first = round()
        #expect(round() == first && Set(first).count == 2)
    }

    @Test func anAddedToxicAppliesToOpenConnections() {
        var sockets = VirtualSockets()
        let id = sockets.open()
        sockets.send(bytes(4), from: .server, id)
        sockets.add(.latency(latency: 100, jitter: 0))
        sockets.send(bytes(4), from: .server, id)
        #expect(sockets.socket(.client, id).received.count == 4)
        sockets.wait(ms(100))
        #expect(sockets.socket(.client, id).received.count == 8)
    }

    @Test func toxicsComeBeforeTheLink() {
        var sockets = VirtualSockets(
            Conditions(
                up: DirectionConditions(delay: .milliseconds(40)), down: DirectionConditions(delay: .milliseconds(40))))
        sockets.add(.latency(latency: 100, jitter: 0))
        let id = sockets.open()
        sockets.wait(.seconds(1))
        let start = sockets.now
        sockets.send(bytes(1), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).times.map { $0 - start.sinceStart } == [ms(140)])
    }

    @Test func aHalfCloseGoesThroughToxics() {
        var sockets = VirtualSockets()
        sockets.add(.latency(latency: 10, jitter: 0), .up, name: "up")
        sockets.add(.latency(latency: 10, jitter: 0), .down, name: "down")
        let id = sockets.open()
        sockets.send(bytes(3), from: .client, id)
        sockets.report(.inputClosed(.client), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.server, id).gotFin && !sockets.ended.contains(id))
        sockets.send(bytes(9000), from: .server, id)
        sockets.report(.inputClosed(.server), id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received.count == 9000 && sockets.ended.contains(id))
    }

    // MARK: Combinations

    /// Slow enough for bytes to queue.
    private static let slow = Conditions(
        up: DirectionConditions(rate: .kilobits(200), delay: .milliseconds(440)),
        down: DirectionConditions(rate: .kilobits(240), delay: .milliseconds(400)))

    @Test func timeoutClosesAConnectionWithoutBytes() {
        var sockets = VirtualSockets()
        sockets.add(.timeout(timeout: 1000))
        let id = sockets.open()
        sockets.wait(ms(999))
        #expect(!sockets.ended.contains(id))
        sockets.wait(ms(1))
        #expect(sockets.socket(.client, id).isClosed && sockets.ended.contains(id))
    }

    @Test func bytesPassedByALimitArriveOverASlowLink() {
        var sockets = VirtualSockets(Self.slow)
        sockets.add(.limitData(bytes: 100_000))
        let id = sockets.open()
        sockets.wait(.seconds(2))
        sockets.send(bytes(150_000), from: .server, id)
        sockets.runToQuiet()
        #expect(sockets.socket(.client, id).received == Array(bytes(150_000).prefix(100_000)))
        #expect(!sockets.socket(.client, id).gotReset && sockets.ended.contains(id))
    }

    @Test func aLateDriverChangesNothing() {
        func times(_ step: Nanoseconds) -> [[Nanoseconds]] {
            var sockets = VirtualSockets(Self.slow)
            sockets.add(.slicer(averageSize: 400, sizeVariation: 100, delay: 700), name: "slices")
            sockets.add(.bandwidth(rate: 100), name: "rate")
            let ids = [sockets.open(), sockets.open()]
            sockets.wait(.seconds(2))
            for id in ids { for _ in 0..<20 { sockets.send(bytes(8000), from: .server, id) } }
            for _ in 0..<Nanoseconds.seconds(60).count / step.count { sockets.wait(step) }
            return ids.map { sockets.socket(.client, $0).times }
        }
        let exact = times(.milliseconds(1))
        #expect(exact[0].count > 100)
        #expect(times(.seconds(1)) == exact && times(.seconds(30)) == exact)
    }

    @Test func anUpstreamThatConnectsTooLateIsReset() {
        var sockets = VirtualSockets(Self.slow)
        sockets.add(.limitData(bytes: 0), .up)
        let id = sockets.open(connected: false)
        sockets.wait(.seconds(1))
        sockets.send(bytes(5), from: .client, id)
        sockets.wait(ms(10))
        sockets.report(.connected, id)
        #expect(sockets.socket(.server, id).gotReset)
        sockets.runToQuiet()
        #expect(sockets.ended.contains(id))
    }

    @Test func countsAndDiscardedBytesAreKeptWhileAToxicDoesNotApply() {
        var sockets = VirtualSockets()
        sockets.add(.limitData(bytes: 100), name: "limit")
        let limited = sockets.open()
        sockets.send(bytes(60), from: .server, limited)
        sockets.update(.limitData(bytes: 100), toxicity: 0, name: "limit")
        sockets.update(.limitData(bytes: 100), toxicity: 1, name: "limit")
        sockets.send(bytes(60), from: .server, limited)
        #expect(sockets.socket(.client, limited).received.count == 100)
        sockets.remove("limit")
        sockets.add(.timeout(timeout: 0), name: "hold")
        let held = sockets.open()
        sockets.send(bytes(60), from: .server, held)
        sockets.update(.timeout(timeout: 0), toxicity: 0, name: "hold")
        #expect(!sockets.ended.contains(held))
        sockets.remove("hold")
        #expect(sockets.ended.contains(held))
    }

    @Test func aResetAfterADelayedFINIsPassedOn() {
        var sockets = VirtualSockets()
        sockets.add(.slowClose(delay: 5000), .up)
        let id = sockets.open()
        sockets.report(.inputClosed(.client), id)
        sockets.wait(ms(100))
        sockets.report(.gone(.client), id)
        sockets.wait(.seconds(5))
        #expect(sockets.socket(.server, id).gotReset && sockets.ended.contains(id))
    }

    @Test func staleTimersAreRemoved() {
        var sockets = VirtualSockets()
        sockets.add(.timeout(timeout: 1_000_000_000))
        for _ in 0..<2000 {
            let id = sockets.open()
            sockets.report(.gone(.client), id)
        }
        #expect(sockets.box.link.connectionCount == 0 && sockets.box.link.timerCount < 200)
    }
}
