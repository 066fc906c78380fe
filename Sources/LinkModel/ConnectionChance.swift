/// What all chance of one connection goes by.
public struct ConnectionChance: Hashable, Sendable {
    /// How many connections there had been before it.
    public let number: Int
    /// Where its chance comes from.
    public let seed: UInt64

    /// Pairs a number and a seed.
    public init(number: Int, seed: UInt64) {
        self.number = number
        self.seed = seed
    }
}
