import Determinism
import LinkModel
import NIOCore
import TestSupport
import Testing

@testable import Impairment

/// Datagrams on the link of a device, in virtual time.
@Suite struct DatagramLinkTests {
    private static func client(_ number: Int) -> DatagramAddress {
        DatagramAddress(high: 0, low: 0xFFFF_0A00_0000 + UInt64(number >> 16), port: UInt16(truncatingIfNeeded: number))
    }

    private static func payload(_ number: Int, bytes: Int = 1172) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeInteger(UInt64(number))
        buffer.writeRepeatingByte(UInt8(truncatingIfNeeded: number), count: max(0, bytes - 8))
        return buffer
    }

    private static func ms(_ count: Int64) -> Instant { .start + .milliseconds(count) }

    /// Returns the datagrams that have left the link, and their times.
    private static func sent(_ link: inout SharedLink) -> [(number: Int, time: Instant, direction: Direction)] {
        var result: [(number: Int, time: Instant, direction: Direction)] = []
        while let next = link.takeDatagramAction() {
            guard case .send(let payload, let direction) = next.action else { continue }
            result.append((Int(payload.getInteger(at: 0, as: UInt64.self) ?? 0), next.time, direction))
        }
        return result
    }

    private static func closes(_ link: inout SharedLink) -> [DatagramSessionEnd] {
        var result: [DatagramSessionEnd] = []
        while let next = link.takeDatagramAction() {
            if case .close(let cause, _) = next.action { result.append(cause) }
        }
        return result
    }

    private static func conditions(_ direction: DirectionConditions, _ datagrams: DatagramConditions = .open)
        -> Conditions
    {
        Conditions(up: direction, down: direction, datagrams: datagrams)
    }

    // MARK: The link

    @Test func aDatagramTakesTheRateAndTheDelayWithItsHeaders() {
        // 1172 + 28 bytes at 1 Mbit/s take 9.6 ms.
        var link = SharedLink(
            Self.conditions(DirectionConditions(rate: Rate(bitsPerSecond: 1_000_000), delay: .milliseconds(50))))
        for number in 1...3 { link.receiveDatagram(Self.payload(number), from: Self.client(1), at: .start) }
        link.advance(to: Self.ms(1000))
        let times = Self.sent(&link).map(\.time.sinceStart.count)
        #expect(times == [59_600_000, 69_200_000, 78_800_000])
        #expect(link.bytesRead.up == 3 * 1172 && link.bytesCarried.up == 3 * 1172)
    }

    @Test func datagramsWaitForTheSegmentsOfConnectionsAndTheOtherWayRound() throws {
        let conditions = Self.conditions(DirectionConditions(rate: Rate(bitsPerSecond: 1_000_000)))
        var link = SharedLink(conditions)
        let id = link.open(at: .start, isEstablished: true)
        link.receive(.bytes(ByteBuffer(repeating: 1, count: 20_000), from: .client), on: id, at: .start)
        let queued = link.queueState(.up).bytes
        try #require(queued > 10_000)
        link.receiveDatagram(Self.payload(1), from: Self.client(1), at: .start)
        link.advance(to: Self.ms(10_000))
        let time = try #require(Self.sent(&link).first?.time)
        #expect(time.sinceStart == .microseconds(Int64(queued + 1200) * 8))

        // A connection on a link full of datagrams gets its first byte through later.
        func establishment(after datagrams: Int) -> Instant? {
            var link = SharedLink(conditions)
            for number in 0..<datagrams { link.receiveDatagram(Self.payload(number), from: Self.client(1), at: .start) }
            let id = link.open(at: .start)
            link.receive(.connected, on: id, at: .start)
            link.receive(.bytes(ByteBuffer(string: "x"), from: .client), on: id, at: .start)
            link.advance(to: Self.ms(10_000))
            while let next = link.takeAction() { if case .write = next.action { return next.time } }
            return nil
        }
        let (alone, behind) = (try #require(establishment(after: 0)), try #require(establishment(after: 10)))
        #expect(behind - alone == .microseconds(10 * 1200 * 8))
    }

    @Test func aLongDatagramTravelsInFragmentsThatAreLostTogether() {
        // 4000 + 8 bytes: fragments of 1480, 1480 and 1048 bytes with 20 bytes of header each.
        let million = Rate(bitsPerSecond: 1_000_000)
        var link = SharedLink(Self.conditions(DirectionConditions(rate: million)))
        link.receiveDatagram(Self.payload(1, bytes: 4000), from: Self.client(1), at: .start)
        link.advance(to: Self.ms(1000))
        #expect(Self.sent(&link).map(\.time.sinceStart) == [.microseconds(8 * (4008 + 60))])
        #expect(link.counters(.up).packets == 3 && link.counters(.up).bytes == 4068)

        for lost in 1...4 {
            var link = SharedLink(
                Self.conditions(DirectionConditions(lostPackets: PacketNumbers([lost...lost]))))
            link.receiveDatagram(Self.payload(1, bytes: 4000), from: Self.client(1), at: .start)
            #expect(Self.sent(&link).count == (lost == 4 ? 1 : 0), "fragment \(lost) of 3 is lost")
        }
    }

    @Test func aDatagramLongerThanTheMTUIsLost() {
        var link = SharedLink(Self.conditions(.clear, DatagramConditions(mtu: 1280)))
        link.receiveDatagram(Self.payload(1, bytes: 1252), from: Self.client(1), at: .start)
        link.receiveDatagram(Self.payload(2, bytes: 1253), from: Self.client(1), at: .start)
        #expect(Self.sent(&link).map(\.number) == [1])
        #expect(link.datagramCounters.overMTU == 1 && link.counters(.up).packetsLost == 1)
    }

    @Test func blackholeAndPortalLoseAllDatagramsAndOutagesThoseOfTheirDirection() {
        for conditions in [
            Self.conditions(.clear, DatagramConditions(policy: .blackhole)),
            Conditions(up: .clear, down: .clear, connectionPolicy: .portal),
        ] {
            var link = SharedLink(conditions)
            link.receiveDatagram(Self.payload(1), from: Self.client(1), at: .start)
            #expect(Self.sent(&link).isEmpty && link.datagramCounters.blackholed == 1)
            #expect(link.datagramSessionCount == 0 && !link.refusesDatagrams)
        }
        var link = SharedLink()
        link.receiveDatagram(Self.payload(1), from: Self.client(1), at: .start)
        let id = link.datagramSessions[0].id
        link.setOutage(PerDirection(up: false, down: true), at: .start)
        link.receiveDatagram(Self.payload(2), fromServerOf: id, at: .start)
        link.receiveDatagram(Self.payload(3), from: Self.client(1), at: .start)
        link.setOutage(PerDirection(up: false, down: false), at: .start)
        link.receiveDatagram(Self.payload(4), fromServerOf: id, at: .start)
        #expect(Self.sent(&link).map(\.number) == [1, 3, 4])
    }

    @Test func aTimelineChangesWhatHappensToDatagrams() throws {
        let slow = Self.conditions(DirectionConditions(delay: .milliseconds(10)))
        let refused = Self.conditions(.clear, DatagramConditions(policy: .refuse))
        let links = [("slow", slow), ("refused", refused), ("clear", Conditions.clear)].enumerated()
        let timeline = try Timeline(
            links.map { Timeline.Entry(at: .seconds(Int64($0.offset)), .hold(.init($0.element.0, $0.element.1))) })
        var link = SharedLink()
        link.startTimeline(timeline, at: .start)
        for time in [Int64(500), 1500, 2500] {
            link.receiveDatagram(Self.payload(Int(time)), from: Self.client(1), at: Self.ms(time))
            #expect(link.refusesDatagrams == (time == 1500))
        }
        link.advance(to: Self.ms(5000))
        let sent = Self.sent(&link)
        #expect(sent.map(\.number) == [500, 2500])
        #expect(sent.map(\.time) == [Self.ms(510), Self.ms(2500)])
    }

    @Test func aMessageThatThePortIsUnreachableCrossesTheLink() {
        var link = SharedLink(Self.conditions(DirectionConditions(delay: .milliseconds(40))))
        link.receiveDatagram(Self.payload(1), from: Self.client(1), at: .start)
        let id = link.datagramSessions[0].id
        link.receiveUnreachable(fromServerOf: id, at: Self.ms(100))
        link.advance(to: Self.ms(1000))
        var times: [Instant] = []
        while let next = link.takeDatagramAction() {
            if case .reportUnreachable = next.action { times.append(next.time) }
        }
        #expect(times == [Self.ms(140)] && link.datagramCounters.unreachable == 1)
    }

    // MARK: Sessions

    @Test func aSessionEndsWhenItIsIdleAndTheServersLaterDatagramsAreIgnored() throws {
        var link = SharedLink(Self.conditions(.clear, DatagramConditions(idle: .seconds(30))))
        link.receiveDatagram(Self.payload(1), from: Self.client(1), at: .start)
        let id = link.datagramSessions[0].id
        link.receiveDatagram(Self.payload(2), fromServerOf: id, at: Self.ms(20_000))
        #expect(link.nextDeadline == Self.ms(50_000), "a datagram of the server keeps the session")
        link.advance(to: Self.ms(49_999))
        #expect(link.datagramSessionCount == 1)
        link.advance(to: Self.ms(50_000))
        #expect(link.datagramSessionCount == 0 && link.nextDeadline == nil)
        link.receiveDatagram(Self.payload(3), fromServerOf: id, at: Self.ms(50_001))
        link.receiveDatagram(Self.payload(4), from: Self.client(1), at: Self.ms(50_002))
        #expect(link.datagramSessions.first?.number == 1, "the client's next datagram opens another session")
        #expect(Self.sent(&link).map(\.number) == [1, 2, 4])
    }

    @Test func theSessionWithTheOldestDatagramMakesRoom() {
        var link = SharedLink(datagramLimits: DatagramLimits(sessionsMax: 3))
        for number in [1, 2, 3, 1, 4, 5] {
            link.receiveDatagram(Self.payload(number), from: Self.client(number), at: link.now + .milliseconds(1))
        }
        #expect(Set(link.datagramSessions.map(\.client)) == Set([1, 4, 5].map(Self.client)))
        #expect(link.datagramCounters.sessionsEvicted == 2 && link.datagramCounters.sessionsOpened == 5)
        #expect(Self.closes(&link) == [.evicted, .evicted])
    }

    @Test func aSessionGetsAnotherPortAfterTheRebindInterval() {
        var link = SharedLink(Self.conditions(.clear, DatagramConditions(rebind: .seconds(10))))
        var rebinds: [Instant] = []
        for second in 0..<25 {
            link.receiveDatagram(Self.payload(second), from: Self.client(1), at: .start + .seconds(Int64(second)))
            while let next = link.takeDatagramAction() { if case .rebind = next.action { rebinds.append(next.time) } }
        }
        #expect(rebinds == [.start + .seconds(10), .start + .seconds(20)])
        #expect(link.datagramCounters.sessionsOpened == 1)
    }

    @Test func bytesInFlightAreLimited() {
        var link = SharedLink(
            Self.conditions(DirectionConditions(delay: .seconds(1))), datagramLimits: DatagramLimits(bytesMax: 10_000))
        for number in 0..<100 { link.receiveDatagram(ByteBuffer(), from: Self.client(number), at: .start) }
        #expect(link.datagramsInFlight == 10_000 / 256, "a datagram without bytes takes memory too")
        #expect(link.datagramCounters.discarded == 100 - 39)
        link.advance(to: Self.ms(1000))
        #expect(link.datagramsInFlight == 0)
    }

    @Test(arguments: randomSeeds(5, soak: 200)) func theTableAgreesWithAModelUnderRandomTraffic(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let idle = Nanoseconds.milliseconds(Int64.random(in: 5...50, using: &generator))
        let most = Int.random(in: 1...20, using: &generator)
        var link = SharedLink(datagramLimits: DatagramLimits(sessionsMax: most, idleMax: idle))
        // The clients in the order of their last datagrams.
        var model: [(client: Int, last: Instant)] = []
        for _ in 0..<2000 {
            let now = link.now + .microseconds(Int64.random(in: 0...4000, using: &generator))
            let client = Int.random(in: 0..<30, using: &generator)
            model.removeAll { $0.last + idle <= now }
            link.receiveDatagram(ByteBuffer(), from: Self.client(client), at: now)
            let known = model.contains { $0.client == client }
            model.removeAll { $0.client == client }
            if !known && model.count == most { model.removeFirst() }
            model.append((client, now))
            if Int.random(in: 0..<100, using: &generator) == 0, let first = model.first {
                let id = link.datagramSessions.first { $0.client == Self.client(first.client) }?.id
                #expect(id.map { link.endDatagramSession($0, at: now) } == true)
                model.removeFirst()
            }
            let expected = Set(model.map { Self.client($0.client) })
            guard Set(link.datagramSessions.map(\.client)) == expected else {
                Issue.record("seed \(seed): the sessions differ at \(now)")
                return
            }
        }
    }

    // MARK: Figures

    /// The number of datagrams of a figure: a million with `SLOWLANE_SEEDS` of 20.
    private static let count = TestSettings.work(20_000, soak: 1_000_000)

    /// Sends datagrams at an interval; returns them as they left the link.
    private static func run(
        _ conditions: DirectionConditions, every interval: Nanoseconds, seed: UInt64 = 7
    ) -> [(number: Int, time: Instant, direction: Direction)] {
        var link = SharedLink(Self.conditions(conditions), seed: seed)
        var result: [(number: Int, time: Instant, direction: Direction)] = []
        var time = Instant.start
        for number in 0..<count {
            link.receiveDatagram(payload(number, bytes: 100), from: client(1), at: time)
            time = time + interval
            if number % 64 == 0 { result += sent(&link) }
        }
        link.advance(to: time + .seconds(60))
        return result + sent(&link)
    }

    /// Whether a count is within 4.5 standard deviations of a binomial distribution, which a correct model misses once in
    /// 150 000 settings.
    private static func isBinomial(_ found: Int, of count: Int, _ probability: Double) -> Bool {
        let deviation = (Double(count) * probability * (1 - probability)).squareRoot()
        return abs(Double(found) - Double(count) * probability) < 4.5 * deviation
    }

    @Test(arguments: [0.1, 2.0, 10.0, 50.0]) func datagramsAreLostIndependently(_ percent: Double) throws {
        let loss = try #require(Probability(partsPerMillion: Int32(percent * 10_000)))
        let arrived = Self.run(DirectionConditions(delay: .milliseconds(20), loss: loss), every: .microseconds(100))
        #expect(Self.isBinomial(Self.count - arrived.count, of: Self.count, percent / 100))
        // Independence: two losses in a row have the product of the probabilities.
        let numbers = Set(arrived.map(\.number))
        let pairs = (0..<Self.count / 2).count { !numbers.contains(2 * $0) && !numbers.contains(2 * $0 + 1) }
        #expect(Self.isBinomial(pairs, of: Self.count / 2, percent * percent / 10_000))
        #expect(zip(arrived, arrived.dropFirst()).allSatisfy { $0.number < $1.number }, "the order is kept")
        #expect(arrived.allSatisfy { $0.time.sinceStart.count == Int64($0.number) * 100_000 + 20_000_000 })
        let again = Self.run(DirectionConditions(delay: .milliseconds(20), loss: loss), every: .microseconds(100))
        #expect(again.map(\.number) == arrived.map(\.number), "the same seed loses the same datagrams")
    }

    @Test func datagramsAreDuplicatedAndOvertakeAtTheirProbabilities() throws {
        let share = try #require(Probability(partsPerMillion: 30_000))
        let duplicated = Self.run(
            DirectionConditions(delay: .milliseconds(20), duplication: share), every: .microseconds(100))
        #expect(Self.isBinomial(duplicated.count - Self.count, of: Self.count, 0.03))
        let reordered = Self.run(
            DirectionConditions(delay: .milliseconds(20), reordering: share), every: .microseconds(100))
        #expect(reordered.count == Self.count)
        let early = reordered.count { $0.time.sinceStart.count == Int64($0.number) * 100_000 }
        #expect(Self.isBinomial(early, of: Self.count, 0.03))
        #expect(
            early + reordered.count { $0.time.sinceStart.count == Int64($0.number) * 100_000 + 20_000_000 }
                == Self.count)
    }

    @Test func jitterHasItsDistributionAndKeepsTheOrderUnlessItMayOvertake() {
        for mayOvertake in [false, true] {
            let jitter = Jitter(span: .milliseconds(10), distribution: .uniform, mayOvertake: mayOvertake)
            let conditions = DirectionConditions(delay: .milliseconds(30), jitter: jitter)
            // At 25 ms, no datagram waits for the one before it.
            let arrived = Self.run(conditions, every: .milliseconds(25))
            let delays = arrived.map { Double($0.time.sinceStart.count - Int64($0.number) * 25_000_000) / 1e6 }
            #expect(delays.count == Self.count && delays.allSatisfy { (20...40).contains($0) })
            // Ten classes of 2 ms: chi-square with nine degrees of freedom exceeds 33.7 once in 10 000 settings.
            var classes = [Int](repeating: 0, count: 10)
            for delay in delays { classes[min(9, Int((delay - 20) / 2))] += 1 }
            let expected = Double(Self.count) / 10
            let chiSquare = classes.reduce(0) { $0 + (Double($1) - expected) * (Double($1) - expected) / expected }
            #expect(chiSquare < 33.7, "\(classes)")

            let dense = Self.run(conditions, every: .milliseconds(1)).map(\.number)
            let inOrder = zip(dense, dense.dropFirst()).allSatisfy { $0 < $1 }
            #expect(inOrder == !mayOvertake)
        }
    }

    @Test func theRateAndTheQueueBoundDatagrams() {
        // 128 bytes every 100 microseconds are 10.24 Mbit/s; the rate is half of that.
        let conditions = DirectionConditions(rate: Rate(bitsPerSecond: 5_120_000), queue: .packets(20))
        let arrived = Self.run(conditions, every: .microseconds(100))
        #expect(abs(arrived.count - Self.count / 2) <= 20)
        let gaps = zip(arrived, arrived.dropFirst()).map { $1.time - $0.time }
        #expect(gaps.allSatisfy { $0 >= .microseconds(200) })
        let delays = arrived.map { $0.time.sinceStart.count - Int64($0.number) * 100_000 }
        #expect(delays.allSatisfy { $0 <= 20 * 200_000 }, "20 packets of 200 microseconds")
    }

    @Test func burstsHaveTheMeanLengthOfTheirChain() throws {
        func parts(_ percent: Int32) throws -> Probability {
            try #require(Probability(partsPerMillion: percent * 10_000))
        }
        let bursts = BurstLoss.gilbertElliott(
            becomesBad: try parts(1), becomesGood: try parts(25), lossInBad: .one, lossInGood: .zero)
        let arrived = Self.run(DirectionConditions(bursts: bursts), every: .microseconds(100))
        let numbers = Set(arrived.map(\.number))
        let lost = (0..<Self.count).filter { !numbers.contains($0) }
        let starts = lost.count { numbers.contains($0 - 1) || $0 == 0 }
        // A burst has 1 / 25 % = 4 datagrams with a standard deviation of 3.46.
        let mean = Double(lost.count) / Double(starts)
        #expect(abs(mean - 4) < 4.5 * 3.46 / Double(starts).squareRoot())
    }
}
