internal import Determinism
public import LinkModel

/// Random conditions and timelines for property tests.
public enum RandomConditions {
    /// Returns random conditions.
    public static func conditions(_ generator: inout SeededGenerator) -> Conditions {
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

    /// Returns a random timeline.
    public static func timeline(_ generator: inout SeededGenerator) -> Timeline {
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
}
