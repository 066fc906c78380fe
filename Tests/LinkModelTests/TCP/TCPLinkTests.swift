import TestSupport
import Testing

@testable import LinkModel

private let threeG = Conditions(
    up: DirectionConditions(rate: .kilobits(330), delay: .milliseconds(100)),
    down: DirectionConditions(rate: .kilobits(780), delay: .milliseconds(100)))
private let steady = Conditions(
    up: DirectionConditions(delay: .milliseconds(50)), down: DirectionConditions(delay: .milliseconds(50)))
private let dead = Conditions(up: DirectionConditions(loss: .all), down: DirectionConditions(loss: .all))

/// Drives a link and writes down when what happened.
private final class Tape {
    var link: TCPLink
    var seen: [FlowOccurrence] = []

    init(_ conditions: Conditions, seed: UInt64 = 1) { link = TCPLink(conditions, seed: seed) }

    /// Runs until `end`, or until nothing is due.
    func run(until end: Instant = Instant(.seconds(3600))) {
        while link.runNext(until: end) {
            while let occurrence = link.takeOccurrence() { seen.append(occurrence) }
        }
    }

    func delivered(_ direction: Direction) -> Int {
        seen.reduce(0) { sum, occurrence in
            if case .delivered(let bytes, direction) = occurrence.event { sum + bytes } else { sum }
        }
    }

    func time(_ event: FlowEvent) -> Nanoseconds? { seen.first { $0.event == event }?.time.sinceStart }
}

@Suite struct TCPLinkTests {
    /// SYN 60 B, SYN-ACK 60 B: as measured between two kernels, 202.07 ms.
    @Test func connectingTakesARoundTripAndTwoPackets() {
        let tape = Tape(threeG)
        _ = tape.link.open(at: .start)
        tape.run()
        let expected = Rate.kilobits(330).serialisation(ofBytes: 60) + Rate.kilobits(780).serialisation(ofBytes: 60)
        #expect(tape.time(.established(.client)) == expected + .milliseconds(200))
    }

    /// Whose handshake was done while nothing was in force is the same, whenever the link hears of it: later packets have the same
    /// times, whatever holds then.
    @Test(arguments: [threeG, steady, dead]) func whoIsThereAlreadyHasShakenHands(_ later: Conditions) {
        let (before, after) = (Tape(.clear), Tape(.clear))
        let (first, second) = (before.link.open(at: .start), PerDirection(up: 50_000, down: 300_000))
        before.run(until: .start)
        before.seen = []
        before.link.setConditions(later)
        after.link.setConditions(later)
        let third = after.link.open(
            at: .start, chance: ConnectionChance(number: 0, seed: 1), isEstablished: true)
        #expect(after.link.nextDue == nil, "no packet of it is on the link")
        for direction in Direction.allCases {
            before.link.send(second[direction], on: first, direction, at: .start)
            after.link.send(second[direction], on: third, direction, at: .start)
        }
        for tape in [before, after] { tape.run(until: Instant(.seconds(30))) }
        #expect(before.seen == after.seen)
        #expect(before.seen.isEmpty == (later == dead))
        #expect(before.link.counters(.up).packetsLost == after.link.counters(.up).packetsLost)
    }

    /// ACK, 152 B up, the server's quick ACK, 252 B down: measured 208 ms after the connection.
    @Test func aRequestIsAnsweredBehindTheServersQuickAck() throws {
        let tape = Tape(threeG)
        let flow = tape.link.open(at: .start)
        tape.link.send(100, on: flow, .up, at: .start)
        tape.run(until: Instant(.milliseconds(320)))
        let asked = try #require(tape.time(.delivered(bytes: 100, .up)))
        tape.link.send(200, on: flow, .down, at: Instant(asked))
        tape.run()
        let connected = try #require(tape.time(.established(.client)))
        let answered = try #require(tape.time(.delivered(bytes: 200, .down)))
        #expect(abs((answered - connected).inMilliseconds - 208.06) < 0.05)
    }

    /// As measured on Linux 6.18: 1.022 2.050 3.074 4.098 5.122 7.134 11.23 19.42 35.55 s, timers being late by their wheel.
    @Test func aSynIsRepeatedOnLinuxsSchedule() {
        let measured = [1.022, 2.050, 3.074, 4.098, 5.122, 7.134, 11.23, 19.42, 35.55]
        for healing in measured.indices {
            let tape = Tape(dead, seed: UInt64(healing))
            let flow = tape.link.open(at: .start)
            tape.run(until: Instant(Nanoseconds(Int64((measured[healing] - 0.5) * 1e9))))
            tape.link.setConditions(.clear)
            tape.run(until: Instant(.seconds(60)))
            let connected = tape.time(.established(.client))?.inSeconds ?? 0
            // A wheel's tick of 32 ms a repetition at most below 2 s, 256 ms below 16 s, 2 s above.
            #expect(
                abs(connected - measured[healing]) < (healing < 6 ? 0.1 : healing < 8 ? 0.5 : 2.5),
                "\(flow) \(connected)")
        }
    }

    /// The intervals double up to TCP_RTO_MAX (`tcp_syn_linear_timeouts` 4): 67 s, 131 s, then every 120 s; for Apple's stack
    /// every 64 s from 67 s on (`tcp_syn_backoff`); by RFC 6298 after 1, 3, 7 ... 63 s, then every 60 s.
    @Test(arguments: [
        (StackPreset.linux, [0.0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131, 251, 371]),
        (.apple, [0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67, 131, 195, 259]),
        (.rfc, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]),
    ]) func aSynIsRepeatedAtDoubledIntervalsUpToTheLongestTimeout(_ stack: StackPreset, _ schedule: [Double]) {
        var link = TCPLink(dead, seed: 1, client: stack)
        _ = link.open(at: .start)
        var times = [0.0]
        while times.count < schedule.count, let due = link.nextDue, due < Instant(.seconds(600)) {
            let before = link.counters(.up).packetsLost
            _ = link.runNext(until: due)
            if link.counters(.up).packetsLost > before { times.append(due.sinceStart.inSeconds) }
        }
        #expect(times.count == schedule.count)
        // Linux's timers are late by an eighth at most, and by 2.1 s above 16 s.
        for (time, due) in zip(times, schedule) { #expect(time >= due && time - due < 0.2 + due / 12, "\(times)") }
    }

    /// A SYN-ACK is repeated after 1, 2, 4 ... 64 s, then every 120 s.
    @Test func aSynAckIsRepeatedAtDoubledIntervals() {
        var link = TCPLink(steady, seed: 1)
        _ = link.open(at: .start)
        // The SYN has arrived, the answer does not.
        link.setCut(PerDirection(up: false, down: true))
        _ = link.runNext(until: Instant(.milliseconds(50)))
        link.setCut(PerDirection(up: true, down: true))
        var times: [Double] = []
        while times.count < 9, let due = link.nextDue, due < Instant(.seconds(900)) {
            let before = link.counters(.down).packetsLost
            _ = link.runNext(until: due)
            if link.counters(.down).packetsLost > before { times.append(due.sinceStart.inSeconds) }
        }
        for (time, due) in zip(times, [1, 3, 7, 15, 31, 63, 127, 247, 367]) {
            #expect(time >= Double(due) && time - Double(due) < 0.2 + Double(due) / 12, "\(times)")
        }
        #expect(times.count == 9)
    }

    /// An established connection whose peer is gone, at a round trip of 100 ms: measured 0.32 (probe), 0.64, 1.28, 2.53,
    /// 5.09, 10.2, 20.2, 41.4 s.
    @Test func aBlackHoleIsTriedLaterAndLater() throws {
        let measured = [0.32, 0.64, 1.28, 2.53, 5.09, 10.2, 20.2, 41.4]
        let tape = Tape(steady)
        let flow = tape.link.open(at: .start)
        tape.run(until: Instant(.seconds(1)))
        tape.link.setConditions(dead)
        let sent = Instant(.seconds(1))
        tape.link.send(200, on: flow, .up, at: sent)
        var tries: [Double] = []
        var before = tape.link.counters(.up).packetsLost
        while tries.count < measured.count, let due = tape.link.nextDue, due < Instant(.seconds(200)) {
            _ = tape.link.runNext(until: due)
            let lost = tape.link.counters(.up).packetsLost
            if lost > before { tries.append((due - sent).inSeconds) }
            before = lost
        }
        #expect(tries.count == measured.count)
        for (ours, theirs) in zip(tries, measured) { #expect(abs(ours / theirs - 1) < 0.06, "\(tries)") }
    }

    /// 10, 20, 40, 80 ... segments a round trip: 100 KB over a long fast link are four of them, measured 462 ms.
    @Test func slowStartSetsTheTimeOfWhatIsNotLarge() throws {
        let lte = Conditions(
            up: DirectionConditions(rate: .kilobits(10_000), delay: .milliseconds(65)),
            down: DirectionConditions(rate: .kilobits(50_000), delay: .milliseconds(50)))
        let tape = Tape(lte)
        let flow = tape.link.open(at: .start)
        tape.link.send(100, on: flow, .up, at: .start)
        tape.run(until: Instant(.milliseconds(182)))
        let asked = try #require(tape.time(.delivered(bytes: 100, .up)))
        tape.link.send(102_400, on: flow, .down, at: Instant(asked))
        tape.run()
        let connected = try #require(tape.time(.established(.client)))
        let last = try #require(tape.seen.last?.time.sinceStart)
        #expect(abs((last - connected).inMilliseconds - 462) < 3)
        #expect(tape.delivered(.down) == 102_400)
    }

    @Test func anOutageEndsAtTheNextRepetitionNotAtOnce() throws {
        let tape = Tape(steady)
        let flow = tape.link.open(at: .start)
        tape.run(until: Instant(.seconds(1)))
        tape.link.setConditions(dead)
        tape.link.send(200, on: flow, .up, at: Instant(.seconds(1)))
        tape.run(until: Instant(.seconds(4)))
        tape.link.setConditions(steady)
        tape.run()
        let arrived = try #require(tape.time(.delivered(bytes: 200, .up)))
        #expect(arrived > .seconds(6) && arrived < .milliseconds(6500), "at 5.09 s after it was sent, and 50 ms")
    }

    @Test func whatAFullQueueDropsComesAgain() throws {
        var conditions = threeG
        conditions.down.queue = try #require(QueueLimit(packets: 10))
        let tape = Tape(conditions)
        let flow = tape.link.open(at: .start)
        tape.link.send(500_000, on: flow, .down, at: .start)
        tape.link.finish(flow, .down, at: .start)
        tape.run()
        #expect(tape.delivered(.down) == 500_000)
        #expect(tape.seen.last?.event == .finished(.down))
        #expect(tape.link.counters(.down).packetsDropped > 10)
    }

    @Test func aResetIsAnsweredToWhateverComesLater() {
        let tape = Tape(steady)
        let flow = tape.link.open(at: .start)
        tape.run(until: Instant(.seconds(1)))
        tape.link.setConditions(dead)
        tape.link.abort(flow, from: .client, at: Instant(.seconds(1)))
        tape.link.setConditions(steady)
        tape.run(until: Instant(.seconds(5)))
        #expect(tape.seen.allSatisfy { $0.event != .reset(.up) }, "the RST is lost for good")
        tape.link.send(10, on: flow, .down, at: Instant(.seconds(5)))
        tape.run()
        #expect(tape.seen.last?.event == .reset(.up))
    }

    @Test(arguments: [
        DirectionConditions(
            rate: .kilobits(50_000), delay: .milliseconds(20), loss: Loss(partsPerMillion: 50_000)!),
        DirectionConditions(
            rate: .kilobits(50_000), delay: .milliseconds(20),
            bursts: .timed(
                good: .milliseconds(300), bad: .milliseconds(100), lossInBad: Loss(partsPerMillion: 300_000)!,
                lossInGood: .none)),
    ]) func removingAConnectionLeavesTheLossesOfOthersAlone(_ lossy: DirectionConditions) {
        func endOfFourth(openThird: Bool) -> Instant? {
            let tape = Tape(Conditions(up: lossy, down: lossy), seed: 7)
            var flows: [FlowID] = []
            for index in 0..<4 {
                // One after the other, so that they do not share the queue, only the chance.
                let start = Instant(.seconds(Int64(index) * 1000))
                tape.run(until: start)
                let flow = tape.link.open(at: start)
                flows.append(flow)
                if index != 2 || openThird { tape.link.send(200_000, on: flow, .up, at: start) }
            }
            tape.run(until: Instant(.seconds(9000)))
            let fourth = flows[3]
            return tape.seen.last { $0.flow == fourth }?.time
        }
        #expect(endOfFourth(openThird: true) == endOfFourth(openThird: false))
        #expect(endOfFourth(openThird: true) != nil)
    }
}

@Suite struct TCPPartsTests {
    @Test func theWheelIsLateByItsTickAndNeverEarly() {
        for span: Int64 in [1, 40, 200, 251, 252, 1000, 1999, 2016, 10_000, 60_000] {
            for phase: Int64 in [0, 1, 3, 1000] {
                let now = Instant(.milliseconds(12_345))
                let due = Wheel.expiry(.milliseconds(span), armedAt: now, phase: .milliseconds(phase))
                let late = (due - now).inMilliseconds - Double(span)
                let jiffies = (span + 3) / 4
                let tick: Double = jiffies < 63 ? 4 : jiffies < 504 ? 32 : jiffies < 4032 ? 256 : 2048
                #expect(late > 0 && late <= tick + 4, "\(span) \(phase) \(late)")
            }
        }
    }

    @Test func theTimeoutIsThreeRoundTripsAtFirstAndThenSettles() {
        var estimator = RoundTripEstimator(.linux)
        let roundTrip: Int64 = 202_000_000
        estimator.take(roundTrip, acknowledged: 0, next: 1)
        #expect(estimator.timeout == 608_000_000)
        for byte: Int64 in 2..<60 { estimator.take(roundTrip, acknowledged: byte, next: byte + 1) }
        #expect(estimator.timeout == 404_000_000, "SRTT + 200 ms, in jiffies")
        estimator.backOff()
        #expect(estimator.timeout == 808_000_000)
    }

    @Test func cubeRootsAreWhole() {
        for root: Int64 in [0, 1, 2, 9, 100, 12_345, 100_000] {
            #expect(Cubic.cubeRoot(root * root * root) == root)
            #expect(Cubic.cubeRoot(root * root * root + 1) == (root == 0 ? 1 : root))
        }
    }

    @Test func aLossTakesThreeTenthsOfTheWindow() {
        var cubic = Cubic(initialWindow: 10)
        cubic.window = 100
        #expect(cubic.thresholdAfterLoss() == 70)
        cubic.window = 2
        #expect(cubic.thresholdAfterLoss() == 2)
    }

    @Test func streamsOfDifferentNamesDiffer() {
        var one = RandomStream(seed: 1, "link/up/conn/1/loss")
        var same = RandomStream(seed: 1, "link/up/conn/1/loss")
        var other = RandomStream(seed: 1, "link/up/conn/2/loss")
        let draws = (0..<8).map { _ in one.next() }
        #expect(draws == (0..<8).map { _ in same.next() })
        #expect(draws != (0..<8).map { _ in other.next() })
    }

    @Test func chancesComeOutAsAsked() {
        var stream = RandomStream(seed: 3, "coins")
        let third = Loss(partsPerMillion: 333_333)!
        let count = (0..<100_000).filter { _ in stream.chance(third) }.count
        #expect(abs(count - 33_333) < 600)
        #expect((0..<1000).allSatisfy { _ in !stream.chance(.none) })
        #expect((0..<1000).allSatisfy { _ in stream.chance(.all) })
        let mean = (0..<20_000).reduce(0) { sum, _ in sum + stream.exponential(mean: 1_000_000) } / 20_000
        #expect(abs(mean - 1_000_000) < 30_000)
    }

    @Test func burstsLoseTheShareThatTheirChainSays() {
        // p 1 %, r 25 %, 70 % lost while bad: 0.01 / 0.26 * 0.7 = 2.69 %.
        let bursts = Bursts.perPacket(
            becomesBad: Loss(partsPerMillion: 10_000)!, becomesGood: Loss(partsPerMillion: 250_000)!,
            lossInBad: Loss(partsPerMillion: 700_000)!, lossInGood: .none)
        var pipe = PacketPipe(DirectionConditions(bursts: bursts), seed: 5, name: "link/up")
        var flow = PacketPipe.FlowState(seed: 5, name: "link/up/conn/0")
        let lost = (0..<200_000).filter { pipe.offer(bytes: 100, flow: &flow, at: Int64($0) * 1000).arrival == nil }
            .count
        #expect(abs(Double(lost) / 200_000 - 0.0269) < 0.002)
        // The same share of time, whatever is sent.
        let timed = Bursts.timed(good: .seconds(9), bad: .seconds(1), lossInBad: .all, lossInGood: .none)
        var slow = PacketPipe(DirectionConditions(bursts: timed), seed: 5, name: "link/up")
        let gone = (0..<100_000)
            .filter { slow.offer(bytes: 100, flow: &flow, at: Int64($0) * 100_000_000).arrival == nil }.count
        #expect(abs(Double(gone) / 100_000 - 0.1) < 0.02)
    }
}
