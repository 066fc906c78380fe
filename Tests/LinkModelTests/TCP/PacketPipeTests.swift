import TestSupport
import Testing

@testable import LinkModel

@Suite struct PacketPipeTests {
    private func pipe(_ conditions: DirectionConditions) -> PacketPipe {
        PacketPipe(conditions, seed: 3, name: "link/up")
    }

    private func coins(_ number: Int = 0) -> PacketPipe.Coins {
        PacketPipe.Coins(seed: 3, name: "link/up/conn/\(number)")
    }

    @Test func aQueueInBytesTakesAPacketUntilMoreThanItsLimitWaits() {
        var pipe = pipe(DirectionConditions(rate: .kilobits(8), queue: .bytes(1000)))
        var coins = coins()
        // A byte a millisecond: 400, 800, 1200 wait; the fourth finds more than 1000 bytes.
        let arrivals = (0..<4).map { _ in pipe.offer(bytes: 400, coins: &coins, at: 0).arrival }
        #expect(arrivals == [400_000_000, 800_000_000, 1_200_000_000, nil])
        let later = pipe.offer(bytes: 400, coins: &coins, at: 400_000_000).arrival
        #expect(later == 1_600_000_000)
    }

    @Test func theListedPacketsAreLost() {
        var pipe = pipe(DirectionConditions(lostPackets: PacketNumbers([4...5, 2...2])))
        var coins = coins()
        let fates = (1...6).map { Int64($0) }.map { pipe.offer(bytes: 100, coins: &coins, at: $0).arrival != nil }
        #expect(fates == [true, false, true, false, false, true])
        #expect(PacketNumbers([3...2 + 1, 1...2])?.description == "1-3")
        #expect(PacketNumbers([0...1]) == nil)
        #expect(PacketNumbers([]) == nil)
    }

    @Test func someComeTwiceAndSomeOvertake() {
        let share = Loss(partsPerMillion: 250_000)!
        var pipe = pipe(DirectionConditions(delay: .milliseconds(50), duplication: share, reordering: share))
        var coins = coins()
        var early = 0
        var copies = 0
        for number in 0..<10_000 {
            let now = Int64(number) * 1_000_000
            let (arrival, copy) = pipe.offer(bytes: 100, coins: &coins, at: now)
            if arrival == now { early += 1 } else { #expect(arrival == now + 50_000_000) }
            if copy != nil { copies += 1 }
        }
        #expect((2300...2700).contains(early))
        #expect((2300...2700).contains(copies))
        #expect(pipe.counters.packetsDuplicated == copies)
    }

    @Test(arguments: Jitter.Distribution.allCases) func jitterHasItsMeanAndSpread(_ distribution: Jitter.Distribution) {
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
            // Cut at 4 deviations the tail is missing; the rest of 1/U^(1/3) has this spread.
            #expect((7...9).contains(deviation))
            #expect(draws.min()! > -5.8 && draws.max()! <= 40)
            let median = (cubeRootOfTwo - 1.5) / 0.75.squareRoot() * 10
            #expect(abs(draws.sorted()[100_000] - median) < 0.1)
        }
    }

    /// The median of 1/U^(1/3).
    private let cubeRootOfTwo = 1.2599210498948732

    @Test func packetsWaitOnlyIfTheyMayNotOvertake() {
        for mayOvertake in [false, true] {
            let jitter = Jitter(span: .milliseconds(20), mayOvertake: mayOvertake)
            var pipe = pipe(DirectionConditions(delay: .milliseconds(50), jitter: jitter))
            var coins = coins()
            let arrivals = (0..<100).map { pipe.offer(bytes: 9, coins: &coins, at: $0 * 1_000_000).arrival! }
            #expect((arrivals == arrivals.sorted()) == !mayOvertake)
        }
    }
}

@Suite struct DeliveryTraceTests {
    private let ms: Int64 = 1_000_000

    private func arrivals(_ stamps: [UInt32], _ packets: [(bytes: Int, at: Int64)]) throws -> [Int64?] {
        let trace = try DeliveryTrace(milliseconds: stamps)
        var pipe = PacketPipe(DirectionConditions(trace: trace), seed: 1, name: "link")
        var coins = PacketPipe.Coins(seed: 1, name: "link/conn/0")
        return packets.map { pipe.offer(bytes: $0.bytes, coins: &coins, at: $0.at * ms).arrival.map { $0 / ms } }
    }

    @Test func aFileOfOneIsTwelveMegabits() throws {
        #expect(try DeliveryTrace(milliseconds: [1]).averageBitsPerSecond == 12_000_000)
        #expect(try arrivals([1], (0..<5).map { _ in (1500, 0) }) == [1, 2, 3, 4, 5])
    }

    @Test func bytesCountNotPackets() throws {
        // Three small ones share an opportunity; what is over goes with the next.
        #expect(try arrivals([10, 20, 30], [(600, 0), (600, 0), (600, 0), (1500, 0)]) == [10, 10, 20, 30])
    }

    @Test func whatNobodyUsesIsLostAndItBeginsAgain() throws {
        #expect(
            try arrivals([5, 5, 7, 100], [(1500, 6), (1500, 50), (1500, 100), (1500, 104)]) == [7, 100, 105, 105])
        #expect(try arrivals([5, 100], [(100, 5)]) == [100], "an opportunity at the same moment has passed")
    }

    @Test func whatIsNoTraceIsRefused() {
        #expect(throws: DeliveryTrace.Refusal.isEmpty) { try DeliveryTrace(milliseconds: []) }
        #expect(throws: DeliveryTrace.Refusal.isEmpty) { try DeliveryTrace(milliseconds: [0, 0]) }
        #expect(throws: DeliveryTrace.Refusal.goesBack(index: 2)) { try DeliveryTrace(milliseconds: [1, 5, 4]) }
        #expect(throws: DeliveryTrace.Refusal.isTooLate(index: 0)) { try DeliveryTrace(milliseconds: [86_400_001]) }
    }

    /// Against the rule written out: every opportunity, one after the other, takes 1500 bytes off the queue.
    @Test(arguments: 0..<50) func agreesWithTheRuleWrittenOut(seed: UInt64) throws {
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
