import Determinism
import TestSupport
import Testing

@testable import LinkModel

@Suite struct PacketPipeTests {
    private func pipe(_ conditions: DirectionConditions) -> PacketPipe {
        PacketPipe(conditions, seed: 3, name: "link/up")
    }

    private func flow(_ number: Int = 0) -> PacketPipe.FlowState {
        PacketPipe.FlowState(seed: 3, name: "link/up/conn/\(number)")
    }

    @Test func aByteQueueAcceptsPacketsUntilItExceedsItsLimit() {
        var pipe = pipe(DirectionConditions(rate: .kilobits(8), queue: .bytes(1000)))
        var flow = flow()
        // A byte per millisecond: 400, 800, 1200 bytes are queued; the fourth packet finds more than 1000 bytes.
        let arrivals = (0..<4).map { _ in pipe.offer(bytes: 400, flow: &flow, at: 0).arrival }
        #expect(arrivals == [400_000_000, 800_000_000, 1_200_000_000, nil])
        let later = pipe.offer(bytes: 400, flow: &flow, at: 400_000_000).arrival
        #expect(later == 1_600_000_000)
    }

    @Test func listedPacketsAreLost() {
        var pipe = pipe(DirectionConditions(lostPackets: PacketNumbers([4...5, 2...2])))
        var flow = flow()
        let fates = (1...6).map { Int64($0) }.map { pipe.offer(bytes: 100, flow: &flow, at: $0).arrival != nil }
        #expect(fates == [true, false, true, false, false, true])
        #expect(PacketNumbers([3...2 + 1, 1...2])?.description == "1-3")
        #expect(PacketNumbers([0...1]) == nil)
        #expect(PacketNumbers([]) == nil)
    }

    @Test func duplicationAndReorderingHaveTheirProbabilities() {
        let share = Probability(partsPerMillion: 250_000)!
        var pipe = pipe(DirectionConditions(delay: .milliseconds(50), duplication: share, reordering: share))
        var flow = flow()
        var early = 0
        var copies = 0
        for number in 0..<10_000 {
            let now = Int64(number) * 1_000_000
            let (arrival, copy) = pipe.offer(bytes: 100, flow: &flow, at: now)
            if arrival == now { early += 1 } else { #expect(arrival == now + 50_000_000) }
            if copy != nil { copies += 1 }
        }
        #expect((2300...2700).contains(early))
        #expect((2300...2700).contains(copies))
        #expect(pipe.counters.packetsDuplicated == copies)
    }

    @Test(arguments: Jitter.Distribution.allCases) func jitterHasItsMeanAndDeviation(
        _ distribution: Jitter.Distribution
    ) {
        var stream = RandomStream(seed: 1, "test")
        let jitter = Jitter(span: .milliseconds(10), distribution: distribution)
        let draws = (0..<200_000).map { _ in Double(jitter.draw(&stream)) / 1e6 }
        let mean = draws.reduce(0, +) / Double(draws.count)
        let deviation = (draws.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(draws.count)).squareRoot()
        #expect(abs(mean) < 0.3)
        switch distribution {
        case .uniform: #expect(abs(deviation - 10 / 3.0.squareRoot()) < 0.1)
        case .normal: #expect(abs(deviation - 10) < 0.1)
        case .pareto:
            // Without the tail beyond 4 deviations, 1/U^(1/3) has this deviation.
            #expect((7...9).contains(deviation))
            #expect(draws.min()! > -5.8 && draws.max()! <= 40)
            let median = (cubeRootOfTwo - 1.5) / 0.75.squareRoot() * 10
            #expect(abs(draws.sorted()[100_000] - median) < 0.1)
        }
    }

    /// The median of 1/U^(1/3).
    private let cubeRootOfTwo = 1.2599210498948732

    @Test func packetsKeepTheirOrderUnlessTheyMayOvertake() {
        for mayOvertake in [false, true] {
            let jitter = Jitter(span: .milliseconds(20), mayOvertake: mayOvertake)
            var pipe = pipe(DirectionConditions(delay: .milliseconds(50), jitter: jitter))
            var flow = flow()
            let arrivals = (0..<100).map { pipe.offer(bytes: 9, flow: &flow, at: $0 * 1_000_000).arrival! }
            #expect((arrivals == arrivals.sorted()) == !mayOvertake)
        }
    }

    @Test func burstsLoseTheShareOfTheirChain() {
        // p 1 %, r 25 %, 70 % lost while bad: 0.01 / 0.26 * 0.7 = 2.69 %.
        let bursts = BurstLoss.gilbertElliott(
            becomesBad: Probability(partsPerMillion: 10_000)!, becomesGood: Probability(partsPerMillion: 250_000)!,
            lossInBad: Probability(partsPerMillion: 700_000)!, lossInGood: .zero)
        var pipe = PacketPipe(DirectionConditions(bursts: bursts), seed: 5, name: "link/up")
        var flow = PacketPipe.FlowState(seed: 5, name: "link/up/conn/0")
        let lost = (0..<200_000).filter { pipe.offer(bytes: 100, flow: &flow, at: Int64($0) * 1000).arrival == nil }
            .count
        #expect(abs(Double(lost) / 200_000 - 0.0269) < 0.002)
        // The same share of time, independently of the traffic.
        let timed = BurstLoss.timed(good: .seconds(9), bad: .seconds(1), lossInBad: .one, lossInGood: .zero)
        var slow = PacketPipe(DirectionConditions(bursts: timed), seed: 5, name: "link/up")
        let gone = (0..<100_000)
            .filter { slow.offer(bytes: 100, flow: &flow, at: Int64($0) * 100_000_000).arrival == nil }.count
        #expect(abs(Double(gone) / 100_000 - 0.1) < 0.02)
    }

    @Test func afterALongPauseBurstsLoseTheShareOfTheirMeans() {
        let timed = BurstLoss.timed(good: .seconds(9), bad: .seconds(1), lossInBad: .one, lossInGood: .zero)
        let lost = (0..<2000).filter { seed in
            var pipe = PacketPipe(DirectionConditions(bursts: timed), seed: UInt64(seed), name: "link/up")
            var flow = PacketPipe.FlowState(seed: UInt64(seed), name: "link/up/conn/0")
            _ = pipe.offer(bytes: 100, flow: &flow, at: 0)
            // More than 10 000 mean cycles of 10 s later.
            return pipe.offer(bytes: 100, flow: &flow, at: 200_000_000_000_000).arrival == nil
        }
        #expect(abs(Double(lost.count) / 2000 - 0.1) < 0.03)
    }
}

/// Changes of conditions with packets queued or in flight.
@Suite struct PacketPipeChangeTests {
    private static let edge = Conditions(
        up: DirectionConditions(rate: .kilobits(200), delay: .milliseconds(440)),
        down: DirectionConditions(rate: .kilobits(240), delay: .milliseconds(400)))

    /// A change of loss or delay keeps the queue, and so does a ramp: the link transmits no more than its rate.
    @Test(arguments: [true, false]) func aChangeWithoutANewRateAndARampKeepTheQueue(isRamp: Bool) throws {
        var pipe = PacketPipe(Self.edge.up, seed: 1, name: "link")
        let steps: Int64 = 100
        var allowance = Int64(51 * 1500 * 8)
        var flows = (0..<8).map { PacketPipe.FlowState(seed: 1, name: "link/conn/\($0)") }
        var conditions = Self.edge.up
        for step in 0..<steps {
            let now = step * 100_000_000
            if isRamp {
                conditions.rate = Rate(bitsPerSecond: 200_000 + step * 20_000)
            } else {
                conditions.delay = .milliseconds(400 - step)
            }
            pipe.setConditions(conditions, rampTime: isRamp ? now : nil)
            let rate = try #require(conditions.rate)
            allowance += rate.bitsPerSecond / 10
            for time in stride(from: now, to: now + 100_000_000, by: 1_000_000) {
                _ = pipe.offer(bytes: 1500, flow: &flows[Int(time / 1_000_000) % 8], at: time)
            }
        }
        #expect(pipe.counters.bytes * 8 <= allowance)
        #expect(pipe.counters.bytes * 8 > allowance * 9 / 10, "the link is never idle")
        #expect(pipe.depth(at: steps * 100_000_000) > 40)
    }

    /// 50 packets at 20 kbit/s take 30 s; after the ramp they delay others by 18 ms.
    @Test func duringARampTheQueueDrainsAtTheNewRate() throws {
        var conditions = DirectionConditions(rate: .kilobits(20))
        var pipe = PacketPipe(conditions, seed: 1, name: "link")
        var old = PacketPipe.FlowState(seed: 1, name: "link/conn/0")
        var new = PacketPipe.FlowState(seed: 1, name: "link/conn/1")
        for _ in 0..<50 { _ = pipe.offer(bytes: 1500, flow: &old, at: 0) }
        conditions.rate = .kilobits(33_000)
        pipe.setConditions(conditions, rampTime: 500_000_000)
        #expect(pipe.offer(bytes: 1500, flow: &new, at: 500_000_000).arrival == nil, "the queue is as full as before")
        let arrival = try #require(pipe.offer(bytes: 1500, flow: &new, at: 520_000_000).arrival)
        #expect(arrival < 521_000_000)
        let last = try #require(pipe.offer(bytes: 1500, flow: &old, at: 520_000_000).arrival)
        #expect(last == 30_000_000_000, "packets of the same connection keep their arrival times")
    }

    /// A bad state that lasts for hours ends when the conditions change.
    @Test func newBurstsStartInTheGoodState() {
        func bursts(_ length: Nanoseconds) -> DirectionConditions {
            DirectionConditions(bursts: .timed(good: .milliseconds(1), bad: length, lossInBad: .one, lossInGood: .zero))
        }
        var pipe = PacketPipe(bursts(.seconds(1_000_000)), seed: 1, name: "link")
        var flow = PacketPipe.FlowState(seed: 1, name: "link/conn/0")
        #expect(pipe.offer(bytes: 100, flow: &flow, at: 1_000_000_000).arrival == nil)
        pipe.setConditions(bursts(.milliseconds(1)))
        let arrived = (0..<1000).filter {
            pipe.offer(bytes: 100, flow: &flow, at: 2_000_000_000 + $0 * 1_000_000).arrival != nil
        }
        #expect((350...650).contains(arrived.count), "\(arrived.count)")
    }
}

@Suite struct DeliveryTraceTests {
    private let ms: Int64 = 1_000_000

    private func arrivals(_ stamps: [UInt32], _ packets: [(bytes: Int, at: Int64)]) throws -> [Int64?] {
        let trace = try DeliveryTrace(milliseconds: stamps)
        var pipe = PacketPipe(DirectionConditions(trace: trace), seed: 1, name: "link")
        var flow = PacketPipe.FlowState(seed: 1, name: "link/conn/0")
        return packets.map { pipe.offer(bytes: $0.bytes, flow: &flow, at: $0.at * ms).arrival.map { $0 / ms } }
    }

    @Test func oneOpportunityPerMillisecondCarriesTwelveMegabitsPerSecond() throws {
        #expect(try DeliveryTrace(milliseconds: [1]).averageBitsPerSecond == 12_000_000)
        #expect(try arrivals([1], (0..<5).map { _ in (1500, 0) }) == [1, 2, 3, 4, 5])
    }

    @Test func opportunitiesCountBytesNotPackets() throws {
        // Small packets share an opportunity; the rest uses the next one.
        #expect(try arrivals([10, 20, 30], [(600, 0), (600, 0), (600, 0), (1500, 0)]) == [10, 10, 20, 30])
    }

    @Test func unusedOpportunitiesExpireAndTheTraceRepeats() throws {
        #expect(
            try arrivals([5, 5, 7, 100], [(1500, 6), (1500, 50), (1500, 100), (1500, 104)]) == [7, 100, 105, 105])
        #expect(try arrivals([5, 100], [(100, 5)]) == [100], "an opportunity at the same time has expired")
    }

    @Test func invalidTracesAreRejected() {
        #expect(throws: DeliveryTraceError.isEmpty) { try DeliveryTrace(milliseconds: []) }
        #expect(throws: DeliveryTraceError.isEmpty) { try DeliveryTrace(milliseconds: [0, 0]) }
        #expect(throws: DeliveryTraceError.descending(index: 2)) { try DeliveryTrace(milliseconds: [1, 5, 4]) }
        #expect(throws: DeliveryTraceError.tooLate(index: 0)) { try DeliveryTrace(milliseconds: [86_400_001]) }
    }

    /// The reference serves every opportunity in turn, 1500 bytes each.
    @Test(arguments: 0..<50) func tracesMatchAReferenceImplementation(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var stamp: UInt32 = 0
        let stamps =
            (0..<Int.random(in: 1...20, using: &generator)).map { _ in
                stamp += .random(in: 0...9, using: &generator)
                return stamp
            } + [stamp + 1]
        var now: Int64 = 0
        let packets = (0..<60).map { _ in
            now += Int64.random(in: 0...15, using: &generator)
            return (bytes: Int.random(in: 40...1500, using: &generator), at: now)
        }
        var expected = [Int64?](repeating: nil, count: packets.count)
        var left = packets.map(\.bytes)
        var first = 0
        var round: Int64 = 0
        while first < packets.count {
            for stamp in stamps {
                let time = round * Int64(stamps[stamps.count - 1]) + Int64(stamp)
                var room = 1500
                while first < packets.count, packets[first].at < time, room > 0 {
                    let taken = min(room, left[first])
                    left[first] -= taken
                    room -= taken
                    if left[first] == 0 {
                        expected[first] = time
                        first += 1
                    }
                }
            }
            round += 1
        }
        #expect(try arrivals(stamps, packets) == expected, "seed \(seed)")
    }
}
