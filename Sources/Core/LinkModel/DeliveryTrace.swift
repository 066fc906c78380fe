public import Determinism

/// The opportunities for transmission on a recorded link, in Mahimahi's trace format (Netravali et al., USENIX ATC
/// 2015).
///
/// An opportunity is a millisecond at which 1500 bytes may leave; several may have the same time. The trace counts
/// bytes, so that a packet may use parts of two opportunities and small packets share one. Unused opportunities expire.
/// The trace repeats after its last opportunity.
public struct DeliveryTrace: Hashable, Sendable {
    /// The times of the opportunities in milliseconds, in order.
    private let times: [UInt32]

    /// The bytes that leave at one opportunity.
    public static let bytesPerOpportunity = 1500
    /// The maximum number of opportunities of a trace.
    public static let countMax = 4_000_000
    /// The longest trace: a day.
    public static let millisecondsMax: UInt32 = 86_400_000

    /// Creates a trace from times in milliseconds, in ascending order.
    public init(milliseconds: [UInt32]) throws(DeliveryTraceError) {
        guard milliseconds.count <= DeliveryTrace.countMax else { throw .tooManyOpportunities }
        var last: UInt32 = 0
        for (index, stamp) in milliseconds.enumerated() {
            if stamp < last { throw .descending(index: index) }
            if stamp > DeliveryTrace.millisecondsMax { throw .tooLate(index: index) }
            last = stamp
        }
        guard last > 0 else { throw .isEmpty }
        times = milliseconds
    }

    /// The number of opportunities.
    public var count: Int { times.count }

    /// The time after which the trace repeats.
    public var length: Nanoseconds { .milliseconds(Int64(times[times.count - 1])) }

    /// Returns the time of an opportunity in milliseconds.
    func time(at index: Int) -> Int64 { Int64(times[index]) }

    /// The average rate.
    public var averageBitsPerSecond: Int64 {
        Int64(times.count) * Int64(DeliveryTrace.bytesPerOpportunity) * 8_000 / Int64(times[times.count - 1])
    }

    /// Returns the first opportunity after `time`, in nanoseconds since the link was created.
    func first(after time: Int64) -> Opportunity {
        let length = length.count
        var round = time / length
        let within = time % length
        // The last opportunity of a round is at the time at which the next round starts.
        var low = 0
        var high = times.count
        while low < high {
            let middle = (low + high) / 2
            if Int64(times[middle]) * 1_000_000 <= within { low = middle + 1 } else { high = middle }
        }
        if low == times.count {
            round += 1
            low = 0
        }
        return Opportunity(round: round, index: low)
    }

    /// Returns the next opportunity.
    func following(_ opportunity: Opportunity) -> Opportunity {
        opportunity.index + 1 < times.count
            ? Opportunity(round: opportunity.round, index: opportunity.index + 1)
            : Opportunity(round: opportunity.round + 1, index: 0)
    }

    /// Returns the time of an opportunity. The arithmetic saturates: with a full queue and one opportunity a day, the
    /// time would exceed 64 bits.
    func time(of opportunity: Opportunity) -> Int64 {
        opportunity.round.multipliedSaturating(by: length.count)
            .addingSaturating(Int64(times[opportunity.index]) * 1_000_000)
    }

    /// A position in the repeated trace.
    struct Opportunity: Hashable, Sendable {
        var round: Int64
        var index: Int
    }
}

/// The reason why a list of times is not a valid ``DeliveryTrace``.
public enum DeliveryTraceError: Error, Hashable, Sendable {
    /// The list is empty, or all times are 0.
    case isEmpty
    /// The time at `index` is before its predecessor.
    case descending(index: Int)
    /// The time at `index` exceeds ``DeliveryTrace/millisecondsMax``.
    case tooLate(index: Int)
    /// The list exceeds ``DeliveryTrace/countMax``.
    case tooManyOpportunities
}

/// The position of a direction of a link in its trace.
struct TraceCursor: Sendable {
    private var current: DeliveryTrace.Opportunity?
    /// The unused bytes of `current`.
    private var bytesLeft = 0

    /// Transmits `bytes` after the queued bytes, which have all left at `busyUntil`. Returns the time at which the last
    /// byte leaves.
    mutating func send(_ bytes: Int, on trace: DeliveryTrace, busyUntil: Int64, at now: Int64) -> Int64 {
        var opportunity: DeliveryTrace.Opportunity
        if let current, busyUntil > now {
            opportunity = current
        } else {
            // The queue is empty: opportunities up to now have expired.
            opportunity = trace.first(after: now)
            bytesLeft = DeliveryTrace.bytesPerOpportunity
        }
        var rest = bytes
        while rest > bytesLeft {
            rest -= bytesLeft
            opportunity = trace.following(opportunity)
            bytesLeft = DeliveryTrace.bytesPerOpportunity
        }
        bytesLeft -= rest
        current = opportunity
        return trace.time(of: opportunity)
    }
}
