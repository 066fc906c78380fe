public import Determinism

/// A running ``Timeline``: the current conditions and the time of their next change.
public struct TimelineRun: Sendable {
    /// The timeline.
    public let timeline: Timeline
    /// The current conditions.
    public private(set) var conditions: Conditions
    /// The name of the current conditions; during a ramp, of its target.
    public private(set) var name: String
    /// The time of the next change; `nil` if the conditions stay as they are.
    public private(set) var nextDeadline: Instant?
    /// Whether the current conditions result from a step of a ramp; the queue is kept then.
    public var isRamping: Bool {
        if case .ramp = timeline.entries[index].phase { true } else { false }
    }

    /// The number of changes of ``name`` since the start; a flap or a new entry may set the same name again.
    public private(set) var changeCount = 0

    private let seed: UInt64
    private let streamName: String
    /// The time of the timeline's zero.
    private let start: Int64
    private var roundStart: Int64
    private var round = 0
    /// The index of the current entry.
    private var index = 0
    /// The next interval of a flap.
    private var nextInterval = 0
    private var rampStart: Conditions
    private var random: RandomStream

    /// The maximum number of steps of a ramp, and the shortest step.
    private static let rampStepsMax: Int64 = 100
    private static let rampStepMin: Int64 = 10_000_000
    /// The maximum number of intervals of a flap with jitter whose lengths are drawn in one call: two days of the
    /// shortest intervals.
    private static let intervalsDrawnMax: Int64 = 1 << 24

    /// Starts a timeline.
    ///
    /// - Parameters:
    ///   - start: The time of the timeline's zero; may be before the link's start, and later than the current time: until
    ///     then the first conditions apply.
    ///   - seed: The random seed of the flaps' jitter.
    ///   - streamName: The name of the random stream.
    public init(_ timeline: Timeline, startingAt start: Instant, seed: UInt64, name streamName: String = "timeline") {
        self.timeline = timeline
        self.seed = seed
        self.streamName = streamName
        // Adding a day to either bound stays within 64 bits.
        roundStart = start.sinceStart.count.clamped(to: -Instant.end.sinceStart.count...Instant.end.sinceStart.count)
        self.start = roundStart
        conditions = .clear
        rampStart = .clear
        name = ""
        random = RandomStream(seed: seed, streamName)
        begin(0, at: roundStart)
    }

    /// Advances the time. Returns whether the conditions have changed.
    ///
    /// The cost is linear in the number of entries and independent of the elapsed time: rounds, steps of ramps and
    /// intervals of flaps are skipped by arithmetic. Only the lengths of intervals with jitter are drawn one by one.
    public mutating func advance(to now: Instant) -> Bool {
        let limit = min(now, .end).sinceStart.count
        guard let deadline = nextDeadline, deadline.sinceStart.count <= limit else { return false }
        skipRounds(upTo: limit)
        while let change = nextDeadline?.sinceStart.count, change <= limit {
            if change >= entryEnd {
                beginNext(at: change)
            } else {
                step(upTo: min(limit, entryEnd - 1))
            }
        }
        return true
    }

    /// Begins the round that is current at `limit`. No state carries over from one round to the next.
    private mutating func skipRounds(upTo limit: Int64) {
        guard let length = timeline.repeatsAfter?.count else { return }
        let passed = (limit - roundStart) / length
        guard passed > 0 else { return }
        round += Int(passed)
        roundStart += passed * length
        begin(0, at: roundStart)
    }

    /// The start of the next entry.
    private var entryEnd: Int64 {
        if index + 1 < timeline.entries.count { return roundStart + timeline.entries[index + 1].start.count }
        return timeline.repeatsAfter.map { roundStart + $0.count } ?? .max
    }

    private mutating func beginNext(at now: Int64) {
        if index + 1 < timeline.entries.count {
            begin(index + 1, at: now)
        } else {
            round += 1
            roundStart = now
            begin(0, at: now)
        }
    }

    private mutating func begin(_ newIndex: Int, at now: Int64) {
        index = newIndex
        nextInterval = 0
        switch timeline.entries[index].phase {
        case .hold(let link):
            apply(link)
            schedule(.max)
        case .ramp(let link, let length):
            rampStart = conditions
            name = link.name
            changeCount += 1
            conditions = rampStart.interpolated(to: link.conditions, 0, of: 1)
            schedule(now + length.count / Self.rampSteps(length))
        case .flap:
            random = RandomStream(seed: seed, "\(streamName)/round/\(round)/entry/\(index)")
            nextDeadline = Instant(Nanoseconds(now))
            step(upTo: now)
        }
    }

    /// Applies the steps of a ramp, or begins the intervals of a flap, that are due up to `limit`, which lies within
    /// the entry. At least one is due.
    private mutating func step(upTo limit: Int64) {
        switch timeline.entries[index].phase {
        case .hold: break
        case .ramp(let link, let length):
            let count = Self.rampSteps(length)
            let start = roundStart + timeline.entries[index].start.count
            let taken = min(count, (limit - start) / (length.count / count))
            conditions = rampStart.interpolated(to: link.conditions, taken, of: count)
            schedule(taken == count ? .max : start + length.count / count * (taken + 1))
        case .flap(let intervals, let jitter): beginIntervals(of: intervals, jitter, upTo: limit)
        }
    }

    private mutating func beginIntervals(
        of intervals: [Timeline.Interval], _ jitter: Probability, upTo limit: Int64
    ) {
        guard var next = nextDeadline?.sinceStart.count else { return }
        // The sum fits: at most ``Timeline/entriesMax`` days.
        let cycle = intervals.reduce(0) { $0 + $1.length.count }
        let cycles = (limit - next) / cycle
        if jitter == .zero || cycles > Self.intervalsDrawnMax / Int64(intervals.count) {
            // Without jitter, skipping whole cycles changes nothing. With jitter, the phase is arbitrary after so many
            // cycles.
            next += cycles * cycle
        }
        var interval = nextInterval
        var last = interval
        while next <= limit {
            let length = intervals[interval].length.count
            let span = length / 1_000_000 * Int64(jitter.partsPerMillion)
            let varied = span == 0 ? length : length + random.integer(upToMagnitude: span)
            next += max(1_000_000, varied)
            last = interval
            interval = interval + 1 == intervals.count ? 0 : interval + 1
        }
        nextInterval = interval
        apply(intervals[last].link)
        schedule(next)
    }

    private static func rampSteps(_ length: Nanoseconds) -> Int64 {
        min(rampStepsMax, max(1, length.count / rampStepMin))
    }

    private mutating func apply(_ link: Timeline.NamedConditions) {
        conditions = link.conditions
        name = link.name
        changeCount += 1
    }

    // MARK: Position

    /// The position of a run at one moment.
    public struct Position: Hashable, Sendable {
        /// The time since the start of the timeline, earlier rounds included; negative before the start.
        public let elapsed: Nanoseconds
        /// The time since the start of the current round.
        public let time: Nanoseconds
        /// The name of the current conditions; during a ramp, of its target.
        public let name: String
        /// Whether a ramp is changing the conditions.
        public let isRamping: Bool
        /// The time until the next entry or interval begins; `nil` if none follows. Steps of a ramp do not count.
        public let nextChange: Nanoseconds?
        /// The name of the conditions that follow; `nil` if none follow.
        public let nextName: String?
    }

    /// Returns the position at `now`, up to which the run has advanced.
    public func position(at now: Instant) -> Position {
        let now = min(now, .end).sinceStart.count
        let time = max(0, now.subtractingSaturating(roundStart))
        let end = entryEnd
        var change = end
        var isRamping = false
        var next = index + 1 < timeline.entries.count ? timeline.entries[index + 1].name : timeline.entries[0].name
        switch timeline.entries[index].phase {
        case .hold: break
        case .ramp(_, let length): isRamping = time < timeline.entries[index].start.count + length.count
        case .flap(let intervals, _):
            if let deadline = nextDeadline?.sinceStart.count, deadline < end {
                change = deadline
                next = intervals[nextInterval].link.name
            }
        }
        let hasNext = change < .max
        return Position(
            elapsed: Nanoseconds(now.subtractingSaturating(start)), time: Nanoseconds(time), name: name,
            isRamping: isRamping, nextChange: hasNext ? Nanoseconds(max(0, change.subtractingSaturating(now))) : nil,
            nextName: hasNext ? next : nil)
    }

    /// Sets the deadline to a time within the entry or to the end of the entry.
    private mutating func schedule(_ time: Int64) {
        let next = min(time, entryEnd)
        nextDeadline = next == .max ? nil : Instant(Nanoseconds(next))
    }
}

extension Timeline.Entry {
    /// The name of the first conditions of the entry, or of the target of its ramp.
    fileprivate var name: String {
        switch phase {
        case .hold(let link), .ramp(let link, _): link.name
        case .flap(let intervals, _): intervals.first?.link.name ?? ""
        }
    }
}

extension Conditions {
    /// Returns the conditions after `step` of `count` equal steps towards `target`.
    fileprivate func interpolated(to target: Conditions, _ step: Int64, of count: Int64) -> Conditions {
        func between(_ from: Int64, _ to: Int64) -> Int64 {
            from + to.subtractingSaturating(from).scaledSaturating(by: step, over: count)
        }
        func probability(_ from: Probability, _ to: Probability) -> Probability {
            Probability(partsPerMillion: Int32(between(Int64(from.partsPerMillion), Int64(to.partsPerMillion)))) ?? to
        }
        func direction(_ from: DirectionConditions, _ to: DirectionConditions) -> DirectionConditions {
            var result = to
            if let old = from.rate, let new = to.rate {
                result.rate = Rate(bitsPerSecond: between(old.bitsPerSecond, new.bitsPerSecond))
            }
            result.delay = Nanoseconds(between(from.delay.count, to.delay.count))
            result.loss = probability(from.loss, to.loss)
            result.duplication = probability(from.duplication, to.duplication)
            result.reordering = probability(from.reordering, to.reordering)
            return result
        }
        return Conditions(
            up: direction(up, target.up), down: direction(down, target.down),
            dnsDelay: Nanoseconds(between(dnsDelay.count, target.dnsDelay.count)),
            connectionPolicy: target.connectionPolicy == .open || step == count
                ? target.connectionPolicy : connectionPolicy,
            datagrams: target.datagrams)
    }
}
