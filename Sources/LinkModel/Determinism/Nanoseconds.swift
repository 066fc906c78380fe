/// A span of modelled time in whole nanoseconds.
///
/// Integers, so that a run repeats bit for bit on every machine. Sums, differences and multiples that do not fit into 64
/// bits (some 292 years) count as the longest span that does.
public struct Nanoseconds: Hashable, Comparable, Sendable, AdditiveArithmetic {
    /// The span as a count of nanoseconds.
    public var count: Int64

    /// Creates a span of `count` nanoseconds.
    public init(_ count: Int64) {
        self.count = count
    }

    /// Creates a span of a measured one, to the nanosecond towards zero.
    public init(_ measured: Duration) {
        let (seconds, attoseconds) = measured.components
        count = seconds.multipliedSaturating(by: 1_000_000_000).addingSaturating(attoseconds / 1_000_000_000)
    }

    /// No time at all.
    public static let zero = Nanoseconds(0)

    /// A span of whole microseconds.
    public static func microseconds(_ count: Int64) -> Nanoseconds {
        Nanoseconds(count.multipliedSaturating(by: 1_000))
    }

    /// A span of whole milliseconds.
    public static func milliseconds(_ count: Int64) -> Nanoseconds {
        Nanoseconds(count.multipliedSaturating(by: 1_000_000))
    }

    /// A span of whole seconds.
    public static func seconds(_ count: Int64) -> Nanoseconds {
        Nanoseconds(count.multipliedSaturating(by: 1_000_000_000))
    }

    /// The span in milliseconds, for people; nothing is decided by it.
    public var inMilliseconds: Double { Double(count) / 1e6 }

    /// The span in seconds, for people; nothing is decided by it.
    public var inSeconds: Double { Double(count) / 1e9 }

    public static func + (left: Nanoseconds, right: Nanoseconds) -> Nanoseconds {
        Nanoseconds(left.count.addingSaturating(right.count))
    }

    public static func - (left: Nanoseconds, right: Nanoseconds) -> Nanoseconds {
        Nanoseconds(left.count.subtractingSaturating(right.count))
    }

    public static func < (left: Nanoseconds, right: Nanoseconds) -> Bool { left.count < right.count }
}

/// A point of modelled time, counted from the moment the link was made.
public struct Instant: Hashable, Comparable, Sendable {
    /// What has passed since the link was made.
    public var sinceStart: Nanoseconds

    /// Creates the point that lies `sinceStart` after the link was made.
    public init(_ sinceStart: Nanoseconds) {
        self.sinceStart = sinceStart
    }

    /// The moment the link was made.
    public static let start = Instant(.zero)

    /// Later than everything.
    public static let never = Instant(Nanoseconds(.max))

    /// The end of modelled time, some 146 years after the start. What would happen later never happens, so that sums of
    /// times and spans stay within 64 bits.
    public static let end = Instant(Nanoseconds(.max / 2))

    /// The count of nanoseconds, within modelled time.
    var bounded: Int64 { sinceStart.count.clamped(to: 0...Instant.end.sinceStart.count) }

    public static func + (left: Instant, right: Nanoseconds) -> Instant { Instant(left.sinceStart + right) }

    public static func - (left: Instant, right: Instant) -> Nanoseconds { left.sinceStart - right.sinceStart }

    public static func < (left: Instant, right: Instant) -> Bool { left.sinceStart < right.sinceStart }
}
