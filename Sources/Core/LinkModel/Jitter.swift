public import Determinism

/// A delay that varies from packet to packet.
public struct Jitter: Hashable, Sendable {
    /// The distribution of the variation.
    public enum Distribution: String, Hashable, Sendable, CaseIterable {
        /// Uniform from -span to +span.
        case uniform
        /// Approximately normal (the sum of twelve uniform draws) with a standard deviation of span, truncated at 6
        /// standard deviations.
        case normal
        /// Pareto with exponent 3, shifted to mean 0, with a standard deviation of span, truncated at 4 standard
        /// deviations, as in netem's table of that name. The delay shrinks by at most 0.58 spans.
        case pareto
    }

    /// The scale of the variation.
    public var span: Nanoseconds
    /// The distribution of the variation.
    public var distribution: Distribution
    /// Whether a packet may overtake an earlier packet with a longer delay; otherwise it arrives after that packet.
    public var mayOvertake: Bool

    /// Creates a jitter.
    public init(span: Nanoseconds, distribution: Distribution = .uniform, mayOvertake: Bool = false) {
        self.span = span
        self.distribution = distribution
        self.mayOvertake = mayOvertake
    }

    /// Returns a random offset in nanoseconds.
    func draw(_ stream: inout RandomStream) -> Int64 {
        guard span > .zero else { return 0 }
        let span = min(span, DirectionConditions.spanMax).count
        switch distribution {
        case .uniform: return stream.integer(upToMagnitude: span)
        case .normal:
            var sum: Int64 = 0
            for _ in 0..<12 { sum += stream.integer(below: 2 * span) - span }
            return sum / 2
        case .pareto:
            // 1 / U^(1/3) has the same distribution as 1 / max of three uniform draws, which needs no root. In units of
            // 1/65536, its mean is 3/2 and its standard deviation is sqrt(3/4).
            let largest =
                max(
                    stream.integer(below: 1 << 32),
                    max(stream.integer(below: 1 << 32), stream.integer(below: 1 << 32))) + 1
            let deviation: Int64 = 56_756
            let offset = min((1 << 48) / largest - 98_304, 4 * deviation)
            return offset.scaledSaturating(by: span, over: deviation)
        }
    }
}
