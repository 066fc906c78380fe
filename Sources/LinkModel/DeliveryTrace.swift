/// When a link could send, as recorded on a real one: the trace files of Mahimahi (Netravali et al., USENIX ATC 2015).
///
/// Each opportunity is a millisecond at which 1500 bytes may leave; several may fall on one. Bytes count, so a packet may
/// take parts of two, and small packets share one. What nobody uses is lost. After the last it begins again.
public struct DeliveryTrace: Hashable, Sendable {
    /// The milliseconds of the opportunities, in order.
    private let stamps: [UInt32]

    /// What leaves at one opportunity, in bytes.
    public static let bytesEach = 1500
    /// A trace has no more opportunities than these.
    public static let countMax = 4_000_000
    /// A trace is no longer than a day.
    public static let millisecondsMax: UInt32 = 86_400_000

    /// Why a list of stamps is no trace.
    public enum Refusal: Error, Hashable, Sendable {
        /// There is none, or all are 0: time would not pass.
        case isEmpty
        /// The stamp at `index` is earlier than the one before it.
        case goesBack(index: Int)
        /// The stamp at `index` is later than ``DeliveryTrace/millisecondsMax``.
        case isTooLate(index: Int)
        /// More than ``DeliveryTrace/countMax``.
        case isTooLong
    }

    /// Creates a trace from milliseconds that never go back.
    public init(milliseconds: [UInt32]) throws(Refusal) {
        guard milliseconds.count <= DeliveryTrace.countMax else { throw .isTooLong }
        var last: UInt32 = 0
        for (index, stamp) in milliseconds.enumerated() {
            if stamp < last { throw .goesBack(index: index) }
            if stamp > DeliveryTrace.millisecondsMax { throw .isTooLate(index: index) }
            last = stamp
        }
        guard last > 0 else { throw .isEmpty }
        stamps = milliseconds
    }

    /// How many opportunities there are.
    public var count: Int { stamps.count }

    /// How long it lasts before it begins again.
    public var length: Nanoseconds { .milliseconds(Int64(stamps[stamps.count - 1])) }

    /// What leaves at most in a second on average, in bits.
    public var averageBitsPerSecond: Int64 {
        Int64(stamps.count) * Int64(DeliveryTrace.bytesEach) * 8_000 / Int64(stamps[stamps.count - 1])
    }

    /// The first opportunity after `time`, a count of nanoseconds since the link was made.
    func first(after time: Int64) -> Place {
        let length = length.count
        var round = time / length
        let within = time % length
        // The last stamp of a round and the first moment of the next are the same time.
        var low = 0
        var high = stamps.count
        while low < high {
            let middle = (low + high) / 2
            if Int64(stamps[middle]) * 1_000_000 <= within { low = middle + 1 } else { high = middle }
        }
        if low == stamps.count {
            round += 1
            low = 0
        }
        return Place(round: round, index: low)
    }

    /// The opportunity that comes next.
    func following(_ place: Place) -> Place {
        place.index + 1 < stamps.count
            ? Place(round: place.round, index: place.index + 1) : Place(round: place.round + 1, index: 0)
    }

    /// When an opportunity is. A full queue on a trace of an opportunity a day reaches beyond 64 bits.
    func time(_ place: Place) -> Int64 {
        place.round.multipliedSaturating(by: length.count).addingSaturating(Int64(stamps[place.index]) * 1_000_000)
    }

    /// One opportunity of the endless trace.
    struct Place: Hashable, Sendable {
        var round: Int64
        var index: Int
    }
}

/// Where a direction of a link stands in its trace.
struct TraceCursor: Sendable {
    private var place: DeliveryTrace.Place?
    /// What the opportunity at `place` still has room for.
    private var bytesLeft = 0

    /// Sends `bytes` after everything before, which is gone at `busyUntil`; gives when the last of them leaves.
    mutating func send(_ bytes: Int, on trace: DeliveryTrace, busyUntil: Int64, at now: Int64) -> Int64 {
        var current: DeliveryTrace.Place
        if let place, busyUntil > now {
            current = place
        } else {
            // Nothing is waiting: opportunities up to now have passed.
            current = trace.first(after: now)
            bytesLeft = DeliveryTrace.bytesEach
        }
        var rest = bytes
        while rest > bytesLeft {
            rest -= bytesLeft
            current = trace.following(current)
            bytesLeft = DeliveryTrace.bytesEach
        }
        bytesLeft -= rest
        place = current
        return trace.time(current)
    }
}
