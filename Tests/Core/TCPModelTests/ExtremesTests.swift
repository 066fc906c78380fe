import Determinism
import LinkModel
import TestSupport
import Testing

@testable import TCPModel

/// Streams of any length.
@Suite struct LongStreamTests {
    /// A long-lived connection of small messages, as of Redis or SQL, before its first full segment.
    @Test(arguments: [2_150_000_000, 1 << 31, 10 << 30, 1 << 40, 1 << 62])
    func aFullSegmentAfterAnyNumberOfSmallOnesGrowsTheWindow(
        carried: Int64
    ) {
        var growth = ReceiveWindow()
        var now: Int64 = 1_000_000_000
        var segment = Segment(kind: .data)
        for round: Int64 in 0..<20 {
            segment.start = carried + round * 1448
            segment.end = segment.start + 1448
            segment.timestampEcho = now - 50_000_000
            _ = growth.grow(with: segment, readUpTo: segment.end, at: now)
            now += 60_000_000
        }
        #expect((65_535...33_554_432).contains(growth.size))
    }

    /// The same over a link, in both directions.
    @Test(arguments: [0, 2_150_000_000, 1 << 32, 10 << 30, (1 << 62) - 300_000] as [Int64], [true, false])
    func transfersContinueAfterAnyStreamLength(first: Int64, readsImmediately: Bool) {
        let way = DirectionConditions(rate: .kilobits(20_000), delay: .milliseconds(10))
        var link = TCPLink(Conditions(up: way, down: way), seed: 1, readsImmediately: readsImmediately)
        link.firstByte = first
        let flow = link.open(at: .start)
        for direction in Direction.allCases {
            link.send(200_000, on: flow, direction, at: .start)
            link.finish(flow, direction, at: .start)
        }
        var delivered = PerDirection(up: 0, down: 0)
        var ends = 0
        while link.advance(to: Instant(.seconds(60))) {
            while let event = link.takeEvent() {
                switch event.event {
                case .delivered(let bytes, let direction):
                    delivered[direction] += bytes
                    link.read(bytes, on: flow, direction, at: event.time)
                case .finished: ends += 1
                default: break
                }
            }
        }
        #expect(delivered == PerDirection(up: 200_000, down: 200_000))
        #expect(ends == 2)
    }
}

/// Random combinations of values at and beyond their limits.
@Suite(.timeLimit(.minutes(20))) struct ExtremesPropertyTests {
    private static let spans: [Int64] = [
        .min, -1, 0, 1, 999_999, 600_000_000_000, 3_155_760_000_000_000_000 /* a century */, 1 << 62, .max,
    ]

    private static func direction(_ generator: inout SeededGenerator) -> DirectionConditions {
        func span(_ generator: inout SeededGenerator) -> Nanoseconds {
            Nanoseconds(spans.randomElement(using: &generator)!)
        }
        func share(_ generator: inout SeededGenerator) -> Probability {
            [Probability.zero, .zero, .one, Probability(partsPerMillion: 1)!, Probability(partsPerMillion: 200_000)!]
                .randomElement(
                    using: &generator)!
        }
        var conditions = DirectionConditions(
            rate: [nil, Rate(bitsPerSecond: 100), Rate(bitsPerSecond: 100_000_000_000)].randomElement(
                using: &generator)!,
            delay: span(&generator), loss: Int.random(in: 0..<3, using: &generator) == 0 ? share(&generator) : .zero,
            queue: [.packets(.min), .packets(1), .packets(.max), .bytes(.min), .bytes(1), .bytes(.max)].randomElement(
                using: &generator)!)
        if Bool.random(using: &generator) {
            conditions.jitter = Jitter(
                span: span(&generator), distribution: Jitter.Distribution.allCases.randomElement(using: &generator)!,
                mayOvertake: Bool.random(using: &generator))
        }
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
            conditions.bursts = .timed(
                good: span(&generator), bad: span(&generator), lossInBad: share(&generator), lossInGood: .zero)
        case 1:
            conditions.bursts = .gilbertElliott(
                becomesBad: share(&generator), becomesGood: share(&generator), lossInBad: share(&generator),
                lossInGood: .zero)
        case 2:
            conditions.rate = nil
            conditions.trace = try? DeliveryTrace(
                milliseconds: Bool.random(using: &generator) ? [DeliveryTrace.millisecondsMax] : [0, 0, 1])
        default: break
        }
        conditions.duplication = share(&generator)
        conditions.reordering = share(&generator)
        return conditions
    }

    private static func conditions(_ generator: inout SeededGenerator) -> Conditions {
        Conditions(
            up: direction(&generator), down: direction(&generator),
            dnsDelay: Nanoseconds(spans.randomElement(using: &generator)!))
    }

    private static func stack(_ generator: inout SeededGenerator) -> StackPreset {
        var stack = [StackPreset.linux, .apple, .rfc].randomElement(using: &generator)!
        func change(_ span: inout Nanoseconds, _ generator: inout SeededGenerator) {
            if Int.random(in: 0..<4, using: &generator) == 0 {
                span = Nanoseconds(spans.randomElement(using: &generator)!)
            }
        }
        change(&stack.rtoVarianceMin, &generator)
        change(&stack.rtoSlop, &generator)
        change(&stack.rtoMin, &generator)
        change(&stack.rtoMax, &generator)
        change(&stack.rtoFallback, &generator)
        change(&stack.delayedAck, &generator)
        if Int.random(in: 0..<4, using: &generator) == 0 {
            stack.synTimeouts = Bool.random(using: &generator) ? [] : spans.map { Nanoseconds($0) }
            stack.initialWindow = [.min, 0, 1, .max].randomElement(using: &generator)!
        }
        return stack
    }

    private static func timeline(_ generator: inout SeededGenerator) -> Timeline {
        let first = Timeline.NamedConditions("first", conditions(&generator))
        let second = Timeline.NamedConditions("second", conditions(&generator))
        let entries: [Timeline.Entry] = [
            .init(
                at: .zero,
                .flap(
                    [.init(first, Timeline.intervalMin), .init(second, Timeline.timeMax)],
                    jitter: [Probability.zero, .one].randomElement(using: &generator)!)),
            .init(at: .seconds(5), .ramp(to: second, over: .seconds(86_000))),
        ]
        let repeats = Bool.random(using: &generator) ? Timeline.timeMax : nil
        guard let timeline = try? Timeline(entries, repeatsAfter: repeats) else {
            preconditionFailure("the timeline is not valid")
        }
        return timeline
    }

    @Test(arguments: randomSeeds(40)) func noValueTrapsSpinsOrExceedsModelledTime(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let note = Comment(rawValue: "seed \(seed)")
        var link = TCPLink(
            Self.conditions(&generator), seed: seed, client: Self.stack(&generator), server: Self.stack(&generator),
            readsImmediately: Bool.random(using: &generator), recordsPackets: seed % 4 == 0)
        let times: [Int64] = [0, 1, 1_000_000_000, 1 << 61, Int64.max / 2 - 1_000_000_000, Int64.max / 2, .max]
        var now = Instant(Nanoseconds(times.randomElement(using: &generator)!))
        var flows: [FlowID] = []
        var last = Int64.min
        func run(_ link: inout TCPLink) {
            var steps = 0
            while steps < 300, link.advance(to: now) {
                steps += 1
                while let event = link.takeEvent() {
                    let time = event.time.sinceStart.count
                    #expect(time <= Instant.end.sinceStart.count, note)
                    #expect(time >= last, note)
                    last = time
                    if case .delivered(let bytes, let direction) = event.event, Bool.random(using: &generator) {
                        link.read(bytes, on: event.flow, direction, at: event.time)
                    }
                }
                while link.takeRecord() != nil {}
            }
        }
        for _ in 0..<40 {
            let side = Side.allCases.randomElement(using: &generator)!
            let flow = flows.randomElement(using: &generator)
            switch Int.random(in: 0..<10, using: &generator) {
            case 0, 1:
                link.firstByte = [0, 2_150_000_000, 1 << 32, 1 << 62].randomElement(using: &generator)!
                flows.append(link.open(at: now, isEstablished: Bool.random(using: &generator)))
            case 2...4:
                let bytes = [1, 100, 30_000, 1 << 31, Int.max].randomElement(using: &generator)!
                if let flow { link.send(bytes, on: flow, side.sendDirection, at: now) }
            case 5: if let flow { link.finish(flow, side.sendDirection, at: now) }
            case 6: if let flow { link.read(.max, on: flow, side.sendDirection, at: now) }
            case 7: link.setConditions(Self.conditions(&generator))
            case 8:
                link.startTimeline(
                    Self.timeline(&generator), from: Nanoseconds(Self.spans.randomElement(using: &generator)!), at: now)
            default: if let flow, seed % 3 == 0 { link.abort(flow, from: side, at: now) }
            }
            if let due = link.nextDeadline { #expect(due <= .end, note) }
            run(&link)
            now = max(now, now + Nanoseconds(Self.spans.filter { $0 >= 0 }.randomElement(using: &generator)!))
        }
        for flow in flows { _ = link.info(flow, .client) }
    }
}
