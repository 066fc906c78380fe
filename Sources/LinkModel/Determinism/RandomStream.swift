/// A source of chance with a stable name: what it gives follows from the run's seed and the name alone.
///
/// Every consumer has a stream of its own (`link/A/up/conn/7/loss`), so that what one of them draws shifts nothing for
/// the others. SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), keyed by FNV-1a over the name.
public struct RandomStream: Sendable, Hashable {
    private var state: UInt64

    /// The stream of a name under a seed.
    public init(seed: UInt64, _ name: String) {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 {
            hash ^= UInt64(byte)
            hash &*= 0x0000_0100_0000_01B3
        }
        state = RandomStream.mix(seed &+ 0x9E37_79B9_7F4A_7C15) ^ hash
        _ = next()
    }

    /// The next 64 bits.
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

    /// True with the given chance, exact to a millionth.
    public mutating func chance(_ probability: Loss) -> Bool {
        below(1_000_000) < Int64(probability.partsPerMillion)
    }

    /// A number from 0 up to, not including, `bound`.
    public mutating func below(_ bound: Int64) -> Int64 {
        precondition(bound > 0)
        return Int64(next().multipliedFullWidth(by: UInt64(bound)).high)
    }

    /// True with the given chance from 0 to 1, exact to 53 bits; never below, always from 1 on.
    public mutating func chance(_ probability: Double) -> Bool {
        Double(next() >> 11) * 0x1p-53 < probability
    }

    /// A whole number from -`span` to `span`.
    public mutating func symmetric(_ span: Int64) -> Int64 {
        precondition(span >= 0)
        // 2 span + 1 fits into 64 bits without a sign; so does the difference, with one.
        let count = next().multipliedFullWidth(by: 2 * UInt64(span) + 1).high
        return Int64(bitPattern: count &- UInt64(span))
    }
}
