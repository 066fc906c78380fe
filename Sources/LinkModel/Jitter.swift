/// A delay that varies from packet to packet.
public struct Jitter: Hashable, Sendable {
    /// How the variation is spread.
    public enum Distribution: String, Hashable, Sendable, CaseIterable {
        /// Evenly from -span to +span.
        case uniform
        /// Bell-shaped with a standard deviation of span, cut at 6 of them (a sum of twelve even draws).
        case normal
        /// A long tail to the right: Pareto's with the exponent 3, mean 0 and a standard deviation of span, cut at 4 of
        /// them, as in netem's table of that name. No packet is faster by more than 0.58 spans.
        case pareto
    }

    /// How far.
    public var span: Nanoseconds
    /// How it is spread.
    public var distribution: Distribution
    /// Whether a packet may overtake one that was given a longer delay; otherwise it waits for it.
    public var mayOvertake: Bool

    /// Creates a jitter.
    public init(span: Nanoseconds, distribution: Distribution = .uniform, mayOvertake: Bool = false) {
        self.span = span
        self.distribution = distribution
        self.mayOvertake = mayOvertake
    }

    func draw(_ stream: inout RandomStream) -> Int64 {
        guard span > .zero else { return 0 }
        let span = min(span, DirectionConditions.spanMax).count
        switch distribution {
        case .uniform: return stream.symmetric(span)
        case .normal:
            var sum: Int64 = 0
            for _ in 0..<12 { sum += stream.below(2 * span) - span }
            return sum / 2
        case .pareto:
            // 1 / U^(1/3) has the same distribution as 1 / max of three even draws, which needs no root. In 1/65536:
            // the mean of it is 3/2, the standard deviation the root of 3/4.
            let largest = max(stream.below(1 << 32), max(stream.below(1 << 32), stream.below(1 << 32))) + 1
            let deviation: Int64 = 56_756
            let offset = min((1 << 48) / largest - 98_304, 4 * deviation)
            return offset.scaledSaturating(by: span, over: deviation)
        }
    }
}
