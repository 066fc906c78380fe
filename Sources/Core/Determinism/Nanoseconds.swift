/// A span of time in whole nanoseconds.
///
/// Integers make runs reproducible bit for bit on every machine. Results that do not fit into 64 bits (some 292 years)
/// saturate.
public struct Nanoseconds: Hashable, Comparable, Sendable, AdditiveArithmetic {
    /// The number of nanoseconds.
    public var count: Int64

    /// Creates a span of `count` nanoseconds.
    @inlinable
    public init(_ count: Int64) {
        self.count = count
    }

    /// Creates a span from a measured duration, truncated to nanoseconds.
    public init(_ measured: Duration) {
        let (seconds, attoseconds) = measured.components
        count = seconds.multipliedSaturating(by: 1_000_000_000).addingSaturating(attoseconds / 1_000_000_000)
    }

    /// The empty span.
    public static let zero = Nanoseconds(0)

    /// Returns a span of whole microseconds.
    public static func microseconds(_ count: Int64) -> Nanoseconds {
        Nanoseconds(count.multipliedSaturating(by: 1_000))
    }

    /// Returns a span of whole milliseconds.
    public static func milliseconds(_ count: Int64) -> Nanoseconds {
        Nanoseconds(count.multipliedSaturating(by: 1_000_000))
    }

    /// Returns a span of whole seconds.
    public static func seconds(_ count: Int64) -> Nanoseconds {
        Nanoseconds(count.multipliedSaturating(by: 1_000_000_000))
    }

    /// The span in milliseconds, for display only.
    public var inMilliseconds: Double { Double(count) / 1e6 }

    /// The span in seconds, for display only.
    public var inSeconds: Double { Double(count) / 1e9 }

    public static func + (left: Nanoseconds, right: Nanoseconds) -> Nanoseconds {
        Nanoseconds(left.count.addingSaturating(right.count))
    }

    public static func - (left: Nanoseconds, right: Nanoseconds) -> Nanoseconds {
        Nanoseconds(left.count.subtractingSaturating(right.count))
    }

    @inlinable
    public static func < (left: Nanoseconds, right: Nanoseconds) -> Bool { left.count < right.count }
}
