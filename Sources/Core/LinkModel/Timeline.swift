public import Determinism

/// Conditions over time: constant, ramping or alternating.
public struct Timeline: Hashable, Sendable {
    /// Conditions with a display name.
    public struct NamedConditions: Hashable, Sendable {
        /// The display name.
        public let name: String
        /// The conditions.
        public let conditions: Conditions

        /// Names conditions.
        public init(_ name: String, _ conditions: Conditions) {
            self.name = name
            self.conditions = conditions
        }
    }

    /// The behaviour from an entry's start to the start of the next entry.
    public enum Phase: Hashable, Sendable {
        /// Constant conditions.
        case hold(NamedConditions)
        /// A linear change from the current conditions to `to`, which is reached after `over`. Rate, delay, loss,
        /// duplication and reordering change in up to 100 steps; everything else changes at once, and so does a rate if
        /// only one end of the ramp has a limit. The ``Conditions/connectionPolicy`` changes at once if it is
        /// ``ConnectionPolicy/open``, and otherwise at the end of the ramp, so that connections experience the ramp
        /// before they are aborted.
        case ramp(to: NamedConditions, over: Nanoseconds)
        /// The intervals in order, repeated. Each length varies at random by up to ±`jitter`, a fraction of it.
        case flap([Interval], jitter: Probability)

        /// All conditions of the phase.
        public var links: [NamedConditions] {
            switch self {
            case .hold(let link), .ramp(let link, _): [link]
            case .flap(let intervals, _): intervals.map(\.link)
            }
        }
    }

    /// One interval of a ``Phase/flap(_:jitter:)``.
    public struct Interval: Hashable, Sendable {
        /// The conditions of the interval.
        public let link: NamedConditions
        /// The length of the interval.
        public let length: Nanoseconds

        /// Creates an interval.
        public init(_ link: NamedConditions, _ length: Nanoseconds) {
            self.link = link
            self.length = length
        }
    }

    /// A phase with its start.
    public struct Entry: Hashable, Sendable {
        /// The start, relative to the start of the timeline.
        public let start: Nanoseconds
        /// The phase.
        public let phase: Phase

        /// Creates an entry.
        public init(at start: Nanoseconds, _ phase: Phase) {
            self.start = start
            self.phase = phase
        }
    }

    /// The entries in order of time; the first starts at zero.
    public let entries: [Entry]
    /// The time after which the timeline repeats; `nil` means never.
    public let repeatsAfter: Nanoseconds?

    /// The longest timeline: a day.
    public static let timeMax = Nanoseconds.seconds(86_400)
    /// The maximum number of entries of a timeline, and of intervals of a flap.
    public static let entriesMax = 10_000
    /// The shortest interval of a flap, and the shortest repetition.
    public static let intervalMin = Nanoseconds.milliseconds(10)

    /// Creates a timeline.
    public init(_ entries: [Entry], repeatsAfter: Nanoseconds? = nil) throws(TimelineError) {
        guard let first = entries.first else { throw TimelineError(index: nil, message: "the timeline has no entries") }
        guard entries.count <= Timeline.entriesMax else {
            throw TimelineError(index: Timeline.entriesMax, message: "more than \(Timeline.entriesMax) entries")
        }
        guard first.start == .zero else { throw TimelineError(index: 0, message: "the first entry must be at 0s") }
        if case .ramp = first.phase {
            throw TimelineError(index: 0, message: "the first entry cannot be a ramp: no conditions precede it")
        }
        for (index, entry) in entries.enumerated() {
            if index > 0, entry.start <= entries[index - 1].start {
                throw TimelineError(index: index, message: "the entry must start after the entry before it")
            }
            if entry.start > Timeline.timeMax { throw TimelineError(index: index, message: "later than 24 hours") }
            switch entry.phase {
            case .hold: break
            case .ramp(_, let length):
                guard length > .zero else { throw TimelineError(index: index, message: "the ramp has no length") }
                let end = index + 1 < entries.count ? entries[index + 1].start : repeatsAfter ?? .init(.max)
                if length > Timeline.timeMax || entry.start + length > end {
                    throw TimelineError(index: index, message: "the ramp ends after the next entry begins")
                }
            case .flap(let intervals, _):
                guard !intervals.isEmpty, intervals.count <= Timeline.entriesMax else {
                    throw TimelineError(index: index, message: "a flap has 1 to \(Timeline.entriesMax) intervals")
                }
                if intervals.contains(where: { $0.length < Timeline.intervalMin || $0.length > Timeline.timeMax }) {
                    throw TimelineError(index: index, message: "an interval of a flap lasts from 10 ms to 24 hours")
                }
            }
        }
        if let repeatsAfter {
            guard repeatsAfter > entries[entries.count - 1].start, repeatsAfter >= Timeline.intervalMin else {
                throw TimelineError(index: nil, message: "the timeline repeats before its last entry begins")
            }
            guard repeatsAfter <= Timeline.timeMax else {
                throw TimelineError(index: nil, message: "the timeline repeats after more than 24 hours")
            }
        }
        self.entries = entries
        self.repeatsAfter = repeatsAfter
    }

    /// All conditions of the timeline, for validation.
    public var links: [NamedConditions] { entries.flatMap(\.phase.links) }
}

/// The reason why entries do not form a valid ``Timeline``.
public struct TimelineError: Error, Hashable, Sendable {
    /// The index of the entry; `nil` if the error concerns the whole timeline or its repetition.
    public let index: Int?
    /// The cause and the expected form.
    public let message: String
}
