public import Determinism

/// Traces from rates over time, and the other way round.
extension DeliveryTrace {
    /// A rate from a time on.
    public struct Step: Hashable, Sendable {
        /// The time since the start of the trace.
        public let start: Nanoseconds
        /// The rate in bit/s; 0 for none.
        public let bitsPerSecond: Int64

        /// Creates a step.
        public init(at start: Nanoseconds, bitsPerSecond: Int64) {
            self.start = start
            self.bitsPerSecond = bitsPerSecond
        }
    }

    /// Creates a trace whose rate is that of the steps: in each millisecond, the opportunities that have become due. A trace
    /// repeats after its last opportunity, so that one at the end is added if no other is there.
    ///
    /// - Parameters:
    ///   - steps: The steps in ascending order of time, the first one at 0.
    ///   - end: The length of the trace.
    public init(steps: [Step], until end: Nanoseconds) throws(DeliveryTraceError) {
        guard end <= .milliseconds(Int64(DeliveryTrace.millisecondsMax)) else { throw .tooLate(index: steps.count) }
        let milliseconds = end.count / 1_000_000
        /// A bit for a millisecond has 1000 units; an opportunity is due at 12 000 000.
        let due = Int64(DeliveryTrace.bytesPerOpportunity) * 8_000
        var times: [UInt32] = []
        var credit: Int64 = 0
        for (index, step) in steps.enumerated() {
            let next = index + 1 < steps.count ? min(steps[index + 1].start.count, end.count) : end.count
            if index > 0, step.start < steps[index - 1].start { throw .descending(index: index) }
            let rate = step.bitsPerSecond.clamped(to: 0...Rate.allowed.upperBound)
            var time = max(0, step.start.count / 1_000_000)
            let stop = next / 1_000_000
            while time < stop {
                time += 1
                credit += rate
                while credit >= due {
                    credit -= due
                    guard times.count < DeliveryTrace.countMax else { throw .tooManyOpportunities }
                    times.append(UInt32(time))
                }
            }
        }
        if let last = times.last, Int64(last) < milliseconds { times.append(UInt32(milliseconds)) }
        try self.init(milliseconds: times)
    }

    /// The times of the opportunities in milliseconds.
    public var milliseconds: [UInt32] { (0..<count).map { UInt32(time(at: $0)) } }

    /// Returns the rates of consecutive windows in bit/s.
    ///
    /// - Parameter window: The length of a window, at least a millisecond.
    public func rates(window: Nanoseconds) -> [Int64] {
        let width = max(1, window.count / 1_000_000)
        let length = self.length.count / 1_000_000
        var counts = [Int64](repeating: 0, count: Int((length + width - 1) / width))
        // The opportunity at the end of a window belongs to it.
        for index in 0..<count { counts[Int(max(0, time(at: index) - 1) / width)] += 1 }
        return counts.map { $0 * Int64(DeliveryTrace.bytesPerOpportunity) * 8_000 / width }
    }

    /// The longest time between two opportunities.
    public var longestGap: Nanoseconds {
        var (last, longest) = (Int64(0), Int64(0))
        for index in 0..<count {
            longest = max(longest, time(at: index) - last)
            last = time(at: index)
        }
        return .milliseconds(longest)
    }

    /// Returns the part between two times, which starts at 0.
    public func part(from start: Nanoseconds, to end: Nanoseconds) throws(DeliveryTraceError) -> DeliveryTrace {
        let (first, last) = (start.count / 1_000_000, end.count / 1_000_000)
        var times = milliseconds.filter { Int64($0) > first && Int64($0) <= last }.map { UInt32(Int64($0) - first) }
        // The end of the part is its length, unless the trace ends before.
        let length = min(last, self.length.count / 1_000_000) - first
        if let latest = times.last, length > Int64(latest) { times.append(UInt32(length)) }
        return try DeliveryTrace(milliseconds: times)
    }

    /// Returns the trace with another rate, in thousandths of this one, at the same times.
    public func scaled(byThousandths factor: Int64) throws(DeliveryTraceError) -> DeliveryTrace {
        var times: [UInt32] = []
        var credit: Int64 = 0
        for stamp in milliseconds {
            credit += factor.clamped(to: 0...1_000_000)
            guard times.count + Int(credit / 1000) <= DeliveryTrace.countMax else { throw .tooManyOpportunities }
            for _ in 0..<credit / 1000 { times.append(stamp) }
            credit %= 1000
        }
        if let last = times.last, Int64(last) < length.count / 1_000_000 {
            times.append(UInt32(length.count / 1_000_000))
        }
        return try DeliveryTrace(milliseconds: times)
    }

    /// Returns the trace several times in a row.
    public func repeated(_ times: Int) throws(DeliveryTraceError) -> DeliveryTrace {
        let length = self.length.count / 1_000_000
        guard times <= DeliveryTrace.countMax / count else { throw .tooManyOpportunities }
        guard length * Int64(times) <= Int64(DeliveryTrace.millisecondsMax) else { throw .tooLate(index: count) }
        let own = milliseconds
        return try DeliveryTrace(
            milliseconds: (0..<max(1, times)).flatMap { round in own.map { UInt32(Int64($0) + Int64(round) * length) } }
        )
    }
}
