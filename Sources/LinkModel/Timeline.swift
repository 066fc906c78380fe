/// Conditions over time: held, changing evenly, or going back and forth.
public struct Timeline: Hashable, Sendable {
    /// Conditions with the name people gave them.
    public struct Named: Hashable, Sendable {
        /// What a status line calls them.
        public let name: String
        /// What holds.
        public let conditions: Conditions

        /// Names conditions.
        public init(_ name: String, _ conditions: Conditions) {
            self.name = name
            self.conditions = conditions
        }
    }

    /// What begins at some time, and lasts until the next entry.
    public enum Phase: Hashable, Sendable {
        /// These conditions.
        case hold(Named)
        /// From what holds so far evenly to these, which are reached after `over`. Rate, delay, loss, duplication and
        /// reordering change in up to 100 steps; everything else, and a rate on a side that has no cap, at once. What
        /// becomes of connections (``Conditions/access``) changes at once if they are let through to the server, and
        /// at the end of the ramp if they are not: until then there is something to be felt of it.
        case ramp(to: Named, over: Nanoseconds)
        /// One after the other, again and again, each for its time give or take the share `jitter` of it.
        case flap([Interval], jitter: Loss)
    }

    /// A part of a ``Phase/flap(_:jitter:)``.
    public struct Interval: Hashable, Sendable {
        /// What holds.
        public let link: Named
        /// For how long.
        public let length: Nanoseconds

        /// Creates a part.
        public init(_ link: Named, _ length: Nanoseconds) {
            self.link = link
            self.length = length
        }
    }

    /// A phase with its beginning.
    public struct Entry: Hashable, Sendable {
        /// When it begins, from the start of the timeline.
        public let start: Nanoseconds
        /// What begins.
        public let phase: Phase

        /// Creates an entry.
        public init(at start: Nanoseconds, _ phase: Phase) {
            self.start = start
            self.phase = phase
        }
    }

    /// What begins when; the first entry at zero, each later than the one before it.
    public let entries: [Entry]
    /// After so long it starts over; `nil` is never.
    public let repeatsAfter: Nanoseconds?

    /// A timeline is no longer than a day.
    public static let timeMax = Nanoseconds.seconds(86_400)
    /// A timeline has no more entries than these, and a flap no more parts.
    public static let entriesMax = 10_000
    /// The shortest part of a flap, and the shortest repetition.
    public static let intervalMin = Nanoseconds.milliseconds(10)

    /// Why entries are no timeline, and which entry is to blame.
    public struct Refusal: Error, Hashable, Sendable {
        /// The entry; `nil` if it is all of them, or the repetition.
        public let index: Int?
        /// What is wrong and what was expected.
        public let message: String
    }

    /// Creates a timeline.
    public init(_ entries: [Entry], repeatsAfter: Nanoseconds? = nil) throws(Refusal) {
        guard let first = entries.first else { throw Refusal(index: nil, message: "it has no entries") }
        guard entries.count <= Timeline.entriesMax else {
            throw Refusal(index: Timeline.entriesMax, message: "more than \(Timeline.entriesMax) entries")
        }
        guard first.start == .zero else { throw Refusal(index: 0, message: "the first entry must be at 0s") }
        if case .ramp = first.phase {
            throw Refusal(index: 0, message: "the first entry cannot be a ramp: there is nothing to begin from")
        }
        for (index, entry) in entries.enumerated() {
            if index > 0, entry.start <= entries[index - 1].start {
                throw Refusal(index: index, message: "goes back in time; expected later than the entry before it")
            }
            if entry.start > Timeline.timeMax { throw Refusal(index: index, message: "later than 24 hours") }
            switch entry.phase {
            case .hold: break
            case .ramp(_, let length):
                guard length > .zero else { throw Refusal(index: index, message: "the ramp takes no time") }
                let end = index + 1 < entries.count ? entries[index + 1].start : repeatsAfter ?? .init(.max)
                if length > Timeline.timeMax || entry.start + length > end {
                    throw Refusal(index: index, message: "the ramp is not over when the next entry begins")
                }
            case .flap(let intervals, _):
                guard !intervals.isEmpty, intervals.count <= Timeline.entriesMax else {
                    throw Refusal(index: index, message: "a flap has 1 to \(Timeline.entriesMax) parts")
                }
                if intervals.contains(where: { $0.length < Timeline.intervalMin || $0.length > Timeline.timeMax }) {
                    throw Refusal(index: index, message: "a part of a flap lasts from 10 ms to 24 hours")
                }
            }
        }
        if let repeatsAfter {
            guard repeatsAfter > entries[entries.count - 1].start, repeatsAfter >= Timeline.intervalMin else {
                throw Refusal(index: nil, message: "it repeats before its last entry begins")
            }
            guard repeatsAfter <= Timeline.timeMax else {
                throw Refusal(index: nil, message: "it repeats after more than 24 hours")
            }
        }
        self.entries = entries
        self.repeatsAfter = repeatsAfter
    }

    /// All conditions it names, for checks.
    public var links: [Named] {
        entries.flatMap { entry in
            switch entry.phase {
            case .hold(let link), .ramp(let link, _): [link]
            case .flap(let intervals, _): intervals.map(\.link)
            }
        }
    }
}

/// A timeline being followed: what holds, and when that changes.
public struct TimelineRun: Sendable {
    /// The timeline.
    public let timeline: Timeline
    /// What holds.
    public private(set) var current: Conditions
    /// What that is called; during a ramp what it leads to.
    public private(set) var name: String
    /// When something else holds.
    public private(set) var nextChange: Instant?
    /// Whether what holds has come out of what held before by a ramp: it is still the same link.
    public var isRamping: Bool {
        if case .ramp = timeline.entries[index].phase { true } else { false }
    }

    private let seed: UInt64
    private let streamName: String
    private var roundStart: Int64
    private var round = 0
    private var index = 0
    /// Where inside the entry: steps of a ramp that have been taken; the part of a flap that begins next.
    private var steps = 0
    private var rampFrom: Conditions
    private var chance: RandomStream

    /// The most steps of a ramp, and the shortest.
    private static let rampStepsMax: Int64 = 100
    private static let rampStepMin: Int64 = 10_000_000
    /// The most parts of a varied flap whose lengths are drawn at once to find where it stands: two days of the shortest.
    private static let partsDrawnMax: Int64 = 1 << 24

    /// Begins to follow a timeline.
    ///
    /// - Parameters:
    ///   - start: When its zero is; may lie before the link's own beginning.
    ///   - seed: Where the chance of its flaps comes from.
    ///   - streamName: What that stream is called.
    public init(_ timeline: Timeline, startingAt start: Instant, seed: UInt64, name streamName: String = "timeline") {
        self.timeline = timeline
        self.seed = seed
        self.streamName = streamName
        // Far enough from both ends that what a day adds stays within 64 bits.
        roundStart = start.sinceStart.count.clamped(to: -Instant.end.sinceStart.count...Instant.end.sinceStart.count)
        current = .clear
        rampFrom = .clear
        name = ""
        chance = RandomStream(seed: seed, streamName)
        begin(0, at: roundStart)
    }

    /// Lets time pass; gives whether something else holds now.
    ///
    /// Takes as long as the timeline has entries, however much time has passed: rounds, the steps of ramps and the parts of
    /// flaps are skipped by arithmetic. Only the lengths of a varied flap's parts have to be drawn one by one.
    public mutating func advance(to now: Instant) -> Bool {
        let limit = min(now, .end).sinceStart.count
        guard let change = nextChange, change.sinceStart.count <= limit else { return false }
        skipRounds(upTo: limit)
        while let change = nextChange?.sinceStart.count, change <= limit {
            if change >= entryEnd {
                beginNext(at: change)
            } else {
                step(upTo: min(limit, entryEnd - 1))
            }
        }
        return true
    }

    /// Begins the round that holds at `limit`; a round leaves nothing to the next one.
    private mutating func skipRounds(upTo limit: Int64) {
        guard let length = timeline.repeatsAfter?.count else { return }
        let passed = (limit - roundStart) / length
        guard passed > 0 else { return }
        round += Int(passed)
        roundStart += passed * length
        begin(0, at: roundStart)
    }

    /// When the entry after the current one begins.
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

    private mutating func begin(_ new: Int, at now: Int64) {
        index = new
        steps = 0
        switch timeline.entries[index].phase {
        case .hold(let link):
            put(link)
            schedule(.max)
        case .ramp(let link, let length):
            rampFrom = current
            name = link.name
            current = rampFrom.interpolated(to: link.conditions, 0, of: 1)
            schedule(now + length.count / Self.rampSteps(length))
        case .flap:
            chance = RandomStream(seed: seed, "\(streamName)/round/\(round)/entry/\(index)")
            nextChange = Instant(Nanoseconds(now))
            step(upTo: now)
        }
    }

    /// Takes the steps of a ramp, or begins the parts of a flap, that are due up to `limit`; at least one is, and `limit` lies
    /// within the entry.
    private mutating func step(upTo limit: Int64) {
        switch timeline.entries[index].phase {
        case .hold: break
        case .ramp(let link, let length):
            let count = Self.rampSteps(length)
            let start = roundStart + timeline.entries[index].start.count
            let taken = min(count, (limit - start) / (length.count / count))
            steps = Int(taken)
            current = rampFrom.interpolated(to: link.conditions, taken, of: count)
            schedule(taken == count ? .max : start + length.count / count * (taken + 1))
        case .flap(let intervals, let jitter): beginParts(of: intervals, jitter, upTo: limit)
        }
    }

    private mutating func beginParts(of intervals: [Timeline.Interval], _ jitter: Loss, upTo limit: Int64) {
        guard var next = nextChange?.sinceStart.count else { return }
        // No more than ``Timeline/entriesMax`` days.
        let cycle = intervals.reduce(0) { $0 + $1.length.count }
        let cycles = (limit - next) / cycle
        if jitter == .none || cycles > Self.partsDrawnMax / Int64(intervals.count) {
            // Whole cycles end where they began. After so many varied ones nobody knows where they would.
            next += cycles * cycle
        }
        var part = steps
        var last = part
        while next <= limit {
            let length = intervals[part].length.count
            let span = length / 1_000_000 * Int64(jitter.partsPerMillion)
            let varied = span == 0 ? length : length + chance.symmetric(span)
            next += max(1_000_000, varied)
            last = part
            part = part + 1 == intervals.count ? 0 : part + 1
        }
        steps = part
        put(intervals[last].link)
        schedule(next)
    }

    private static func rampSteps(_ length: Nanoseconds) -> Int64 {
        min(rampStepsMax, max(1, length.count / rampStepMin))
    }

    private mutating func put(_ link: Timeline.Named) {
        current = link.conditions
        name = link.name
    }

    private mutating func schedule(_ inside: Int64) {
        let next = min(inside, entryEnd)
        nextChange = next == .max ? nil : Instant(Nanoseconds(next))
    }
}

extension Conditions {
    /// What holds after `step` of `count` even steps towards `target`.
    fileprivate func interpolated(to target: Conditions, _ step: Int64, of count: Int64) -> Conditions {
        func between(_ from: Int64, _ to: Int64) -> Int64 {
            from + to.subtractingSaturating(from).scaledSaturating(by: step, over: count)
        }
        func loss(_ from: Loss, _ to: Loss) -> Loss {
            Loss(partsPerMillion: Int32(between(Int64(from.partsPerMillion), Int64(to.partsPerMillion)))) ?? to
        }
        func direction(_ from: DirectionConditions, _ to: DirectionConditions) -> DirectionConditions {
            var result = to
            if let old = from.rate, let new = to.rate {
                result.rate = Rate(bitsPerSecond: between(old.bitsPerSecond, new.bitsPerSecond))
            }
            result.delay = Nanoseconds(between(from.delay.count, to.delay.count))
            result.loss = loss(from.loss, to.loss)
            result.duplication = loss(from.duplication, to.duplication)
            result.reordering = loss(from.reordering, to.reordering)
            return result
        }
        return Conditions(
            up: direction(up, target.up), down: direction(down, target.down),
            dnsDelay: Nanoseconds(between(dnsDelay.count, target.dnsDelay.count)),
            access: target.access == .open || step == count ? target.access : access)
    }
}
