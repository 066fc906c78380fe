import Determinism
import LinkModel
import TestSupport
import Testing

@testable import TCPModel

private let threeG = Conditions(
    up: DirectionConditions(rate: .kilobits(330), delay: .milliseconds(100)),
    down: DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100)))
private let steady = Conditions(
    up: DirectionConditions(delay: .milliseconds(50)), down: DirectionConditions(delay: .milliseconds(50)))
private let dead = Conditions(up: DirectionConditions(loss: .one), down: DirectionConditions(loss: .one))

/// Runs a link and records its events.
private final class Recorder {
    var link: TCPLink
    var seen: [TimedFlowEvent] = []

    init(_ conditions: Conditions, seed: UInt64 = 1) { link = TCPLink(conditions, seed: seed) }

    /// Runs until `end`, or until no event is due.
    func run(until end: Instant = Instant(.seconds(3600))) {
        while link.advance(to: end) {
            while let event = link.takeEvent() { seen.append(event) }
        }
    }

    func delivered(_ direction: Direction) -> Int {
        seen.reduce(0) { sum, event in
            if case .delivered(let bytes, direction) = event.event { sum + bytes } else { sum }
        }
    }

    func time(_ event: FlowEvent) -> Nanoseconds? { seen.first { $0.event == event }?.time.sinceStart }
}

@Suite struct TCPLinkTests {
    /// SYN 60 B, SYN-ACK 60 B; measured between two kernels: 202.07 ms.
    @Test func connectingTakesARoundTripAndTwoPackets() {
        let recorder = Recorder(threeG)
        _ = recorder.link.open(at: .start)
        recorder.run()
        let expected =
            Rate.kilobits(330).serializationTime(ofBytes: 60) + Rate.kilobits(780).serializationTime(ofBytes: 60)
        #expect(recorder.time(.established(.client)) == expected + .milliseconds(200))
    }

    /// A connection in the place of one that was removed in the middle of a transfer has nothing of it: its events are those of
    /// a first connection.
    @Test func aRemovedConnectionLeavesNothingBehind() throws {
        let lossy = DirectionConditions(
            rate: .kilobits(780), delay: .milliseconds(20), loss: Probability(partsPerMillion: 50_000)!)
        let conditions = Conditions(up: lossy, down: lossy)
        /// Returns the events of a transfer that begins at the 60th second.
        func events(after others: Int) throws -> [TimedFlowEvent] {
            let recorder = Recorder(conditions)
            for number in 0..<others {
                let other = recorder.link.open(at: .start, seed: ConnectionSeed(number: 7 + number, seed: 3))
                recorder.link.setLosses(
                    [CorrelatedLoss(rate: 0.5, correlation: 0, random: RandomStream(seed: 1, "x"))], on: other, .down)
                recorder.link.send(10_000, on: other, .up, at: .start)
                recorder.link.send(100_000, on: other, .down, at: .start)
                recorder.run(until: Instant(.seconds(1)))
                recorder.link.remove(other)
            }
            recorder.run(until: Instant(.seconds(60)))
            recorder.seen = []
            let start = Instant(.seconds(60))
            let id = recorder.link.open(at: start, seed: ConnectionSeed(number: 0, seed: 1))
            recorder.link.send(200_000, on: id, .down, at: start)
            recorder.run()
            #expect(recorder.delivered(.down) == 200_000)
            return recorder.seen
        }
        let first = try events(after: 0).map { ($0.time, $0.event) }
        let later = try events(after: 3).map { ($0.time, $0.event) }
        #expect(first.elementsEqual(later) { $0 == $1 })
    }

    /// A handshake under clear conditions leaves the same state as an established connection added later: later packets have
    /// the same times under any conditions.
    @Test(arguments: [threeG, steady, dead]) func aConnectionMayOpenWithoutAHandshake(_ later: Conditions) {
        let (before, after) = (Recorder(.clear), Recorder(.clear))
        let (first, second) = (before.link.open(at: .start), PerDirection(up: 50_000, down: 300_000))
        before.run(until: .start)
        before.seen = []
        before.link.setConditions(later)
        after.link.setConditions(later)
        let third = after.link.open(
            at: .start, seed: ConnectionSeed(number: 0, seed: 1), isEstablished: true)
        #expect(after.link.nextDeadline == nil, "no packet is in flight")
        for direction in Direction.allCases {
            before.link.send(second[direction], on: first, direction, at: .start)
            after.link.send(second[direction], on: third, direction, at: .start)
        }
        for recorder in [before, after] { recorder.run(until: Instant(.seconds(30))) }
        #expect(before.seen == after.seen)
        #expect(before.seen.isEmpty == (later == dead))
        #expect(before.link.counters(.up).packetsLost == after.link.counters(.up).packetsLost)
    }

    /// ACK, 152 B up, the server's quick ACK, 252 B down: measured 208 ms after the connection.
    @Test func aResponseFollowsTheServersQuickAck() throws {
        let recorder = Recorder(threeG)
        let flow = recorder.link.open(at: .start)
        recorder.link.send(100, on: flow, .up, at: .start)
        recorder.run(until: Instant(.milliseconds(320)))
        let requested = try #require(recorder.time(.delivered(bytes: 100, .up)))
        recorder.link.send(200, on: flow, .down, at: Instant(requested))
        recorder.run()
        let connected = try #require(recorder.time(.established(.client)))
        let responded = try #require(recorder.time(.delivered(bytes: 200, .down)))
        #expect(abs((responded - connected).inMilliseconds - 208.06) < 0.05)
    }

    /// Measured on Linux 6.18: 1.022 2.050 3.074 4.098 5.122 7.134 11.23 19.42 35.55 s, with the delay of the timer wheel.
    @Test func aSYNIsRetransmittedOnLinuxsSchedule() {
        let measured = [1.022, 2.050, 3.074, 4.098, 5.122, 7.134, 11.23, 19.42, 35.55]
        for outageEnd in measured.indices {
            let recorder = Recorder(dead, seed: UInt64(outageEnd))
            let flow = recorder.link.open(at: .start)
            recorder.run(until: Instant(Nanoseconds(Int64((measured[outageEnd] - 0.5) * 1e9))))
            recorder.link.setConditions(.clear)
            recorder.run(until: Instant(.seconds(60)))
            let connected = recorder.time(.established(.client))?.inSeconds ?? 0
            // A tick of the timer wheel for each retransmission: 32 ms below 2 s, 256 ms below 16 s, 2 s above.
            #expect(
                abs(connected - measured[outageEnd]) < (outageEnd < 6 ? 0.1 : outageEnd < 8 ? 0.5 : 2.5),
                "\(flow) \(connected)")
        }
    }

    /// The intervals double up to TCP_RTO_MAX (`tcp_syn_linear_timeouts` 4): 67 s, 131 s, then every 120 s; for Apple's stack
    /// every 64 s from 67 s on (`tcp_syn_backoff`); by RFC 6298 after 1, 3, 7 ... 63 s, then every 60 s.
    @Test(arguments: [
        (StackPreset.linux, [0.0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131, 251, 371]),
        (.apple, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131, 195, 259]),
        (.rfc, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]),
    ]) func synTimeoutsDoubleUpToTheMaximumRTO(_ stack: StackPreset, _ schedule: [Double]) {
        var link = TCPLink(dead, seed: 1, client: stack)
        _ = link.open(at: .start)
        var times = [0.0]
        while times.count < schedule.count, let due = link.nextDeadline, due < Instant(.seconds(600)) {
            let before = link.counters(.up).packetsLost
            _ = link.advance(to: due)
            if link.counters(.up).packetsLost > before { times.append(due.sinceStart.inSeconds) }
        }
        #expect(times.count == schedule.count)
        // The delay of Linux's timers is at most an eighth, and 2.1 s above 16 s.
        for (time, due) in zip(times, schedule) { #expect(time >= due && time - due < 0.2 + due / 12, "\(times)") }
    }

    /// A SYN-ACK is retransmitted after 1, 2, 4 ... 64 s, then every 120 s.
    @Test func synAckTimeoutsDouble() {
        var link = TCPLink(steady, seed: 1)
        _ = link.open(at: .start)
        // The SYN arrives, the SYN-ACK does not.
        link.setOutage(PerDirection(up: false, down: true))
        _ = link.advance(to: Instant(.milliseconds(50)))
        link.setOutage(PerDirection(up: true, down: true))
        var times: [Double] = []
        while times.count < 9, let due = link.nextDeadline, due < Instant(.seconds(900)) {
            let before = link.counters(.down).packetsLost
            _ = link.advance(to: due)
            if link.counters(.down).packetsLost > before { times.append(due.sinceStart.inSeconds) }
        }
        for (time, due) in zip(times, [1, 3, 7, 15, 31, 63, 127, 247, 367]) {
            #expect(time >= Double(due) && time - Double(due) < 0.2 + Double(due) / 12, "\(times)")
        }
        #expect(times.count == 9)
    }

    /// An established connection without a peer, at a round trip of 100 ms; measured: 0.32 (probe), 0.64, 1.28, 2.53,
    /// 5.09, 10.2, 20.2, 41.4 s.
    @Test func retransmissionsToABlackHoleBackOff() throws {
        let measured = [0.32, 0.64, 1.28, 2.53, 5.09, 10.2, 20.2, 41.4]
        let recorder = Recorder(steady)
        let flow = recorder.link.open(at: .start)
        recorder.run(until: Instant(.seconds(1)))
        recorder.link.setConditions(dead)
        let sent = Instant(.seconds(1))
        recorder.link.send(200, on: flow, .up, at: sent)
        var tries: [Double] = []
        var before = recorder.link.counters(.up).packetsLost
        while tries.count < measured.count, let due = recorder.link.nextDeadline, due < Instant(.seconds(200)) {
            _ = recorder.link.advance(to: due)
            let lost = recorder.link.counters(.up).packetsLost
            if lost > before { tries.append((due - sent).inSeconds) }
            before = lost
        }
        #expect(tries.count == measured.count)
        for (ours, theirs) in zip(tries, measured) { #expect(abs(ours / theirs - 1) < 0.06, "\(tries)") }
    }

    /// Slow start sends 10, 20, 40, 80 ... segments per round trip: 100 KB over a long fast link take four; measured: 462 ms.
    @Test func slowStartDeterminesTheTimeOfSmallTransfers() throws {
        let lte = Conditions(
            up: DirectionConditions(rate: .kilobits(10_000), delay: .milliseconds(65)),
            down: DirectionConditions(rate: .kilobits(50_000), delay: .milliseconds(50)))
        let recorder = Recorder(lte)
        let flow = recorder.link.open(at: .start)
        recorder.link.send(100, on: flow, .up, at: .start)
        recorder.run(until: Instant(.milliseconds(182)))
        let requested = try #require(recorder.time(.delivered(bytes: 100, .up)))
        recorder.link.send(102_400, on: flow, .down, at: Instant(requested))
        recorder.run()
        let connected = try #require(recorder.time(.established(.client)))
        let last = try #require(recorder.seen.last?.time.sinceStart)
        #expect(abs((last - connected).inMilliseconds - 462) < 3)
        #expect(recorder.delivered(.down) == 102_400)
    }

    /// Without a rate limit nothing ends slow start: 1 MiB takes seven round trips, also those that are not longer than the gap
    /// between two ACKs of one train (2 ms).
    @Test(arguments: [200, 500, 1000, 1001, 2000, 50_000])
    func slowStartGoesOnWithoutARateLimit(delayInMicroseconds delay: Int64) throws {
        let oneWay = DirectionConditions(delay: .microseconds(delay))
        let recorder = Recorder(Conditions(up: oneWay, down: oneWay))
        let flow = recorder.link.open(at: .start)
        let start = Nanoseconds.microseconds(5 * delay)
        recorder.run(until: Instant(start))
        recorder.link.send(1 << 20, on: flow, .down, at: Instant(start))
        recorder.run()
        let last = try #require(recorder.seen.last?.time.sinceStart)
        #expect(recorder.delivered(.down) == 1 << 20)
        let roundTrips = Double((last - start).count) / Double(2 * delay * 1000)
        #expect((6.5...7.5).contains(roundTrips), "\(roundTrips) round trips")
    }

    @Test func dataFlowsAfterAnOutageAtTheNextRetransmission() throws {
        let recorder = Recorder(steady)
        let flow = recorder.link.open(at: .start)
        recorder.run(until: Instant(.seconds(1)))
        recorder.link.setConditions(dead)
        recorder.link.send(200, on: flow, .up, at: Instant(.seconds(1)))
        recorder.run(until: Instant(.seconds(4)))
        recorder.link.setConditions(steady)
        recorder.run()
        let arrived = try #require(recorder.time(.delivered(bytes: 200, .up)))
        #expect(
            arrived > .seconds(6) && arrived < .milliseconds(6500), "5.09 s after the write, plus the delay of 50 ms")
    }

    @Test func packetsDroppedAtAFullQueueAreRetransmitted() throws {
        var conditions = threeG
        conditions.down.queue = try #require(QueueLimit(packets: 10))
        let recorder = Recorder(conditions)
        let flow = recorder.link.open(at: .start)
        recorder.link.send(500_000, on: flow, .down, at: .start)
        recorder.link.finish(flow, .down, at: .start)
        recorder.run()
        #expect(recorder.delivered(.down) == 500_000)
        #expect(recorder.seen.last?.event == .finished(.down))
        #expect(recorder.link.counters(.down).packetsDropped > 10)
    }

    @Test(arguments: [Instant.start, Instant(.seconds(5))]) func bytesAfterAFinishAreIgnored(_ later: Instant) {
        let recorder = Recorder(steady)
        let flow = recorder.link.open(at: .start)
        recorder.link.send(100, on: flow, .up, at: .start)
        recorder.link.finish(flow, .up, at: .start)
        recorder.run(until: later)
        recorder.link.send(1000, on: flow, .up, at: later)
        recorder.run()
        #expect(recorder.delivered(.up) == 100)
        #expect(recorder.seen.last?.event == .finished(.up))
    }

    @Test func segmentsForAnAbortedConnectionGetARST() {
        let recorder = Recorder(steady)
        let flow = recorder.link.open(at: .start)
        recorder.run(until: Instant(.seconds(1)))
        recorder.link.setConditions(dead)
        recorder.link.abort(flow, from: .client, at: Instant(.seconds(1)))
        recorder.link.setConditions(steady)
        recorder.run(until: Instant(.seconds(5)))
        #expect(recorder.seen.allSatisfy { $0.event != .reset(.up) }, "a lost RST is not retransmitted")
        recorder.link.send(10, on: flow, .down, at: Instant(.seconds(5)))
        recorder.run()
        #expect(recorder.seen.last?.event == .reset(.up))
    }

    @Test(arguments: [
        DirectionConditions(
            rate: .kilobits(50_000), delay: .milliseconds(20), loss: Probability(partsPerMillion: 50_000)!),
        DirectionConditions(
            rate: .kilobits(50_000), delay: .milliseconds(20),
            bursts: .timed(
                good: .milliseconds(300), bad: .milliseconds(100), lossInBad: Probability(partsPerMillion: 300_000)!,
                lossInGood: .zero)),
    ]) func removingAConnectionLeavesTheLossesOfOthersAlone(_ lossy: DirectionConditions) {
        func endOfFourth(openThird: Bool) -> Instant? {
            let recorder = Recorder(Conditions(up: lossy, down: lossy), seed: 7)
            var flows: [FlowID] = []
            for index in 0..<4 {
                // In sequence, so that they share random streams but not the queue.
                let start = Instant(.seconds(Int64(index) * 1000))
                recorder.run(until: start)
                let flow = recorder.link.open(at: start)
                flows.append(flow)
                if index != 2 || openThird { recorder.link.send(200_000, on: flow, .up, at: start) }
            }
            recorder.run(until: Instant(.seconds(9000)))
            let fourth = flows[3]
            return recorder.seen.last { $0.flow == fourth }?.time
        }
        #expect(endOfFourth(openThird: true) == endOfFourth(openThird: false))
        #expect(endOfFourth(openThird: true) != nil)
    }
}

@Suite struct TCPPartsTests {
    @Test func kernelTimersAreLateByAtMostATickAndNeverEarly() {
        for span: Int64 in [1, 40, 200, 251, 252, 1000, 1999, 2016, 10_000, 60_000] {
            for phase: Int64 in [0, 1, 3, 1000] {
                let now = Instant(.milliseconds(12_345))
                let due = KernelTimerWheel.expiry(.milliseconds(span), armedAt: now, phase: .milliseconds(phase))
                let late = (due - now).inMilliseconds - Double(span)
                let jiffies = (span + 3) / 4
                let tick: Double = jiffies < 63 ? 4 : jiffies < 504 ? 32 : jiffies < 4032 ? 256 : 2048
                #expect(late > 0 && late <= tick + 4, "\(span) \(phase) \(late)")
            }
        }
    }

    @Test func theRTOIsThreeRoundTripsAtFirstAndThenConverges() {
        var estimator = RoundTripEstimator(.linux)
        let roundTrip: Int64 = 202_000_000
        estimator.addSample(roundTrip, sndUna: 0, sndNxt: 1)
        #expect(estimator.rto == 608_000_000)
        for byte: Int64 in 2..<60 { estimator.addSample(roundTrip, sndUna: byte, sndNxt: byte + 1) }
        #expect(estimator.rto == 404_000_000, "SRTT + 200 ms, in jiffies")
        estimator.backOff()
        #expect(estimator.rto == 808_000_000)
    }

    @Test func cubeRootsAreIntegers() {
        for root: Int64 in [0, 1, 2, 9, 100, 12_345, 100_000] {
            #expect(Cubic.cubeRoot(root * root * root) == root)
            #expect(Cubic.cubeRoot(root * root * root + 1) == (root == 0 ? 1 : root))
        }
    }

    @Test func aLossReducesTheWindowByThreeTenths() {
        var cubic = Cubic(initialWindow: 10)
        cubic.cwnd = 100
        #expect(cubic.recalculateSsthresh() == 70)
        cubic.cwnd = 2
        #expect(cubic.recalculateSsthresh() == 2)
    }

}
