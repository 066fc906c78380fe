/// A point of modelled time, relative to the start of the model.
public struct Instant: Hashable, Comparable, Sendable {
    /// The time since the start.
    public var sinceStart: Nanoseconds

    /// Creates the instant `sinceStart` after the start.
    @inlinable
    public init(_ sinceStart: Nanoseconds) {
        self.sinceStart = sinceStart
    }

    /// The start of modelled time.
    public static let start = Instant(.zero)

    /// An instant after all others.
    public static let never = Instant(Nanoseconds(.max))

    /// The end of modelled time, some 146 years after the start. Later events are discarded, so that sums of times and
    /// spans fit into 64 bits.
    public static let end = Instant(Nanoseconds(endCount))

    /// The nanoseconds since the start, clamped to modelled time.
    package var bounded: Int64 { sinceStart.count.clamped(to: 0...Instant.end.sinceStart.count) }

    /// The nanoseconds from the start to the end of modelled time.
    @inlinable
    package static var endCount: Int64 { .max / 2 }

    public static func + (left: Instant, right: Nanoseconds) -> Instant { Instant(left.sinceStart + right) }

    public static func - (left: Instant, right: Instant) -> Nanoseconds { left.sinceStart - right.sinceStart }

    @inlinable
    public static func < (left: Instant, right: Instant) -> Bool { left.sinceStart < right.sinceStart }
}
