/// A named stream of random numbers, determined by the seed of the run and the name alone.
///
/// Each consumer has its own stream (`link/A/up/conn/7/loss`), so that the draws of one do not shift those of another.
/// The generator is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), keyed with the FNV-1a hash of the name.
public struct RandomStream: Sendable, Hashable {
    private var state: UInt64

    /// Creates the stream with a name, derived from a seed.
    public init(seed: UInt64, _ name: String) {
        state = RandomStream.mix(seed &+ 0x9E37_79B9_7F4A_7C15) ^ FNV1a.digest(name.utf8)
        _ = next()
    }

    /// Returns the next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return RandomStream.mix(state)
    }

    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns `true` with the given probability, exact to 53 bits: at 0 never, at 1 always.
    public mutating func bool(probability: Double) -> Bool {
        Double(next() >> 11) * 0x1p-53 < probability
    }

    /// Returns an integer from 0 to `bound` - 1.
    ///
    /// - Precondition: `bound` is positive.
    public mutating func integer(below bound: Int64) -> Int64 {
        precondition(bound > 0)
        return Int64(next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// Returns an integer from -`span` to `span`.
    ///
    /// - Precondition: `span` is not negative.
    public mutating func integer(upToMagnitude span: Int64) -> Int64 {
        precondition(span >= 0)
        // 2 span + 1 fits into 64 unsigned bits, and the difference into 64 signed bits.
        let count = next().multipliedFullWidth(by: 2 * UInt64(span) + 1).high
        return Int64(bitPattern: count &- UInt64(span))
    }

    /// Returns an exponentially distributed integer, at most `Int64.max / 4`. The algorithm only compares uniform
    /// numbers (von Neumann, 1951), so that the result is the same on every machine.
    public mutating func exponential(mean: Int64) -> Int64 {
        var whole: Int64 = 0
        while true {
            let first = next()
            var previous = first
            var isAccepted = true
            while true {
                let following = next()
                if following >= previous { break }
                previous = following
                isAccepted.toggle()
            }
            if isAccepted {
                let fraction = Int64(first.multipliedFullWidth(by: UInt64(mean)).high)
                let (product, overflow) = whole.multipliedReportingOverflow(by: mean)
                return overflow ? .max / 4 : min(product.addingSaturating(fraction), .max / 4)
            }
            whole += 1
        }
    }
}
