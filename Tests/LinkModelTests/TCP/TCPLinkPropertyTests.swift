import TestSupport
import Testing

@testable import LinkModel

/// Random transfers over random links: the delivered bytes are always the next of the stream, and the stream is complete
/// after an orderly close on a link that recovers.
@Suite(.timeLimit(.minutes(2))) struct TCPLinkPropertyTests {
    private struct Stream {
        var sent = 0
        var delivered = 0
        var isFinished = false
        var isEnded = false
    }

    static func conditions(_ generator: inout SeededGenerator) -> Conditions {
        func direction() -> DirectionConditions {
            let share = { (parts: ClosedRange<Int32>, generator: inout SeededGenerator) in
                Probability(partsPerMillion: .random(in: parts, using: &generator)) ?? .zero
            }
            var conditions = DirectionConditions(
                rate: Bool.random(using: &generator)
                    ? Rate(bitsPerSecond: .random(in: 50_000...100_000_000, using: &generator)) : nil,
                delay: Nanoseconds(.random(in: 0...600_000_000, using: &generator)),
                queue: Bool.random(using: &generator)
                    ? .packets(.random(in: 1...200, using: &generator))
                    : .bytes(.random(in: 1...300_000, using: &generator)))
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: conditions.loss = share(0...300_000, &generator)
            case 1: conditions.loss = .one
            case 2:
                conditions.bursts = .gilbertElliott(
                    becomesBad: share(0...100_000, &generator), becomesGood: share(100_000...1_000_000, &generator),
                    lossInBad: share(0...1_000_000, &generator), lossInGood: share(0...10_000, &generator))
            case 3:
                conditions.bursts = .timed(
                    good: .milliseconds(.random(in: 1...5000, using: &generator)),
                    bad: .milliseconds(.random(in: 1...2000, using: &generator)),
                    lossInBad: share(0...1_000_000, &generator), lossInGood: .zero)
            default: break
            }
            if Bool.random(using: &generator) {
                conditions.jitter = Jitter(
                    span: Nanoseconds(.random(in: 0...200_000_000, using: &generator)),
                    distribution: Jitter.Distribution.allCases.randomElement(using: &generator)!,
                    mayOvertake: Bool.random(using: &generator))
            }
            if Int.random(in: 0..<6, using: &generator) == 0 {
                conditions.duplication = share(0...100_000, &generator)
                conditions.reordering = share(0...200_000, &generator)
            }
            if Int.random(in: 0..<6, using: &generator) == 0 {
                var stamp: UInt32 = 0
                conditions.rate = nil
                var stamps: [UInt32] = []
                for _ in 0..<Int.random(in: 1...50, using: &generator) {
                    stamp += .random(in: 0...200, using: &generator)
                    stamps.append(stamp)
                }
                conditions.trace = try? DeliveryTrace(milliseconds: stamps + [stamp + 1])
            }
            if Int.random(in: 0..<8, using: &generator) == 0 {
                let first = Int.random(in: 1...100, using: &generator)
                conditions.lostPackets = PacketNumbers([first...first + 3, 2...2])
            }
            return conditions
        }
        return Conditions(up: direction(), down: direction())
    }

    static func timeline(_ generator: inout SeededGenerator) -> Timeline {
        var start = Nanoseconds.zero
        var entries: [Timeline.Entry] = []
        for index in 0..<Int.random(in: 1...6, using: &generator) {
            let length = Nanoseconds(.random(in: 20_000_000...8_000_000_000, using: &generator))
            let link = Timeline.NamedConditions("some", conditions(&generator))
            let phase: Timeline.Phase
            switch Int.random(in: (index == 0 ? 1 : 0)..<3, using: &generator) {
            case 0: phase = .ramp(to: link, over: Nanoseconds(length.count / 2))
            case 1: phase = .hold(link)
            default:
                var parts: [Timeline.Interval] = []
                for _ in 0..<Int.random(in: 1...3, using: &generator) {
                    let span = Nanoseconds(.random(in: 10_000_000...2_000_000_000, using: &generator))
                    parts.append(Timeline.Interval(Timeline.NamedConditions("other", conditions(&generator)), span))
                }
                phase = .flap(
                    parts, jitter: Probability(partsPerMillion: .random(in: 0...1_000_000, using: &generator)) ?? .zero)
            }
            entries.append(Timeline.Entry(at: start, phase))
            start = start + length
        }
        let repeats = Bool.random(using: &generator) ? start : nil
        guard let timeline = try? Timeline(entries, repeatsAfter: repeats) else {
            preconditionFailure("the timeline is not valid")
        }
        return timeline
    }

    // 600 runs of some 20 connections: more than 10 000 transfers.
    @Test(arguments: 0..<600) func deliveredBytesAreTheBytesSent(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let note = Comment(rawValue: "seed \(seed)")
        var link = TCPLink(
            Self.conditions(&generator), seed: seed, client: seed % 3 == 1 ? .apple : seed % 3 == 2 ? .rfc : .linux,
            readsImmediately: seed % 2 == 0)
        // The bytes that applications have not read.
        var unread: [FlowID: PerDirection<Int>] = [:]
        var now = Instant.start
        var flows: [FlowID] = []
        var streams: [FlowID: PerDirection<Stream>] = [:]
        var reset: Set<FlowID> = []

        var mostUnread = 0
        func readAll(_ flow: FlowID, _ link: inout TCPLink) {
            for direction in Direction.allCases {
                link.read(unread[flow]?[direction] ?? 0, on: flow, direction, at: now)
                unread[flow]?[direction] = 0
            }
        }

        func run(until end: Instant, _ link: inout TCPLink) {
            while link.advance(to: end) {
                while let event = link.takeEvent() {
                    let flow = event.flow
                    switch event.event {
                    case .established, .writable: break
                    case .delivered(let bytes, let direction):
                        streams[flow]?[direction].delivered += bytes
                        unread[flow, default: PerDirection(up: 0, down: 0)][direction] += bytes
                        mostUnread = max(mostUnread, unread[flow]?[direction] ?? 0)
                        #expect(streams[flow]?[direction].isEnded == false, note)
                    case .finished(let direction):
                        #expect(streams[flow]?[direction].isFinished == true, note)
                        #expect(streams[flow]?[direction].delivered == streams[flow]?[direction].sent, note)
                        streams[flow]?[direction].isEnded = true
                    case .reset: #expect(reset.contains(flow), note)
                    }
                }
            }
        }

        for _ in 0..<80 {
            now = now + Nanoseconds(.random(in: 0...500_000_000, using: &generator))
            run(until: now, &link)
            let choice = Int.random(in: 0..<100, using: &generator)
            guard !flows.isEmpty, choice >= 30 else {
                let flow = link.open(at: now)
                flows.append(flow)
                streams[flow] = PerDirection(up: Stream(), down: Stream())
                continue
            }
            let flow = flows.randomElement(using: &generator)!
            let direction = Bool.random(using: &generator) ? Direction.up : .down
            switch choice {
            case 30..<80 where streams[flow]![direction].isFinished == false && !reset.contains(flow):
                let bytes = Int.random(in: 1...(Bool.random(using: &generator) ? 300 : 60_000), using: &generator)
                streams[flow]![direction].sent += bytes
                link.send(bytes, on: flow, direction, at: now)
            case 80..<86 where !reset.contains(flow):
                streams[flow]![direction].isFinished = true
                link.finish(flow, direction, at: now)
            case 86..<88:
                reset.insert(flow)
                link.abort(flow, from: direction.sender, at: now)
            case 88..<92: link.setConditions(Self.conditions(&generator))
            case 92..<95:
                link.follow(
                    Self.timeline(&generator), from: .milliseconds(.random(in: 0...20_000, using: &generator)), at: now)
            case 95..<97:
                link.setOutage(
                    PerDirection(up: Bool.random(using: &generator), down: Bool.random(using: &generator)))
            default: readAll(flow, &link)
            }
            for flow in flows {
                for direction in Direction.allCases {
                    #expect(streams[flow]![direction].delivered <= streams[flow]![direction].sent, note)
                }
            }
        }
        link.setConditions(.clear)
        link.setOutage(PerDirection(up: false, down: false))
        for flow in flows where !reset.contains(flow) {
            for direction in Direction.allCases where !streams[flow]![direction].isFinished {
                streams[flow]![direction].isFinished = true
                link.finish(flow, direction, at: now)
            }
        }
        // Unread bytes fit into a receive buffer, which only grows with the bytes read.
        if seed % 2 == 1 { #expect(mostUnread < 1_000_000, note) }
        // Applications that have not read start to read at intervals.
        for _ in 0..<1000 where seed % 2 == 1 {
            now = now + .milliseconds(200)
            for flow in flows { readAll(flow, &link) }
            run(until: now, &link)
        }
        // The longest RTO is 120 s, the longest SYN timeout 64 s.
        run(until: now + .seconds(2000), &link)
        for flow in flows where !reset.contains(flow) {
            for direction in Direction.allCases {
                #expect(streams[flow]![direction].delivered == streams[flow]![direction].sent, note)
                #expect(streams[flow]![direction].isEnded, note)
            }
        }
    }

    /// No value of any field traps, or runs without end.
    @Test(arguments: 0..<60) func extremeConditionsDoNotTrapOrSpin(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        func direction() -> DirectionConditions {
            DirectionConditions(
                rate: [nil, Rate(bitsPerSecond: 100), Rate(bitsPerSecond: 100_000_000_000)].randomElement(
                    using: &generator)!,
                delay: [.zero, Nanoseconds(1), DirectionConditions.delayMax].randomElement(using: &generator)!,
                loss: [.zero, .one, Probability(partsPerMillion: 1)!, Probability(partsPerMillion: 999_999)!].randomElement(
                    using: &generator)!,
                queue: [.packets(1), .packets(100_000), .bytes(1), .bytes(150_000_000)].randomElement(
                    using: &generator)!,
                jitter: [
                    nil, Jitter(span: DirectionConditions.delayMax, distribution: .normal),
                    Jitter(span: DirectionConditions.delayMax, distribution: .pareto, mayOvertake: true),
                ].randomElement(using: &generator)!,
                bursts: [
                    nil, .gilbertElliott(becomesBad: .one, becomesGood: .zero, lossInBad: .one, lossInGood: .one),
                    .timed(good: .zero, bad: .zero, lossInBad: .one, lossInGood: .zero),
                ].randomElement(using: &generator)!,
                duplication: [.zero, .one].randomElement(using: &generator)!,
                reordering: [.zero, .one].randomElement(using: &generator)!)
        }
        var link = TCPLink(Conditions(up: direction(), down: direction()), seed: seed)
        let flow = link.open(at: .start)
        link.send(300_000, on: flow, .up, at: .start)
        link.send(300_000, on: flow, .down, at: .start)
        var steps = 0
        while steps < 200_000, link.advance(to: Instant(.seconds(100_000))) { steps += 1 }
        #expect(steps < 200_000, "seed \(seed) spins")
    }

    /// The digest of a thousand mixed transfers is the same in debug and release, in every process and on every machine. A
    /// change of the model changes it; update it here then.
    @Test func theDigestOfAThousandTransfersIsStable() {
        var digest: UInt64 = 0xCBF2_9CE4_8422_2325
        func mix(_ value: Int64) {
            digest = (digest ^ UInt64(bitPattern: value)) &* 0x0000_0100_0000_01B3
        }
        var generator = SeededGenerator(seed: 11)
        var count = 0
        while count < 1000 {
            var conditions = Self.conditions(&generator)
            if conditions.up.loss == .one { conditions.up.loss = .zero }
            if conditions.down.loss == .one { conditions.down.loss = .zero }
            var link = TCPLink(conditions, seed: UInt64(count))
            for index in 0..<20 {
                let start = Instant(.milliseconds(Int64(index) * 300))
                let flow = link.open(at: start)
                link.send(.random(in: 1...50_000, using: &generator), on: flow, .up, at: start)
                link.send(.random(in: 1...50_000, using: &generator), on: flow, .down, at: start)
                count += 1
            }
            while link.advance(to: Instant(.seconds(120))) {
                while let event = link.takeEvent() {
                    mix(event.time.sinceStart.count)
                    mix(Int64(event.flow.index))
                    if case .delivered(let bytes, let direction) = event.event {
                        mix(Int64(direction == .up ? bytes : -bytes))
                    }
                }
            }
        }
        #expect(digest == 6_094_376_778_150_473_738, "the digest is \(digest)")
    }
}
