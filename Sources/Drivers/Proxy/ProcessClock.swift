public import Determinism
public import LinkModel
internal import NIOCore

/// The monotonic clock of this process, in nanoseconds since 1970.
///
/// The wall clock is read once, so that a step of the wall clock does not change the differences of times.
public enum ProcessClock {
    private static let anchor: (deadline: NIODeadline, unixNanoseconds: Int64) = (
        .now(), PacketEvent.unixNanosecondsNow
    )

    /// The current time.
    public static var now: Int64 { unixNanoseconds(of: .now()) }

    static func unixNanoseconds(of deadline: NIODeadline) -> Int64 {
        anchor.unixNanoseconds + (deadline - anchor.deadline).nanoseconds
    }
}

extension TimelineStart {
    /// The position of the timeline now, by the wall clock. A later step of that clock does not move the timeline.
    public var offsetNow: Nanoseconds { offset(at: PacketEvent.unixNanosecondsNow) }
}
