/// The number and the seed that determine the random streams of one connection.
public struct ConnectionSeed: Hashable, Sendable {
    /// The number of the connection, from 0.
    public let number: Int
    /// The random seed.
    public let seed: UInt64

    /// Creates the seed of a connection.
    public init(number: Int, seed: UInt64) {
        self.number = number
        self.seed = seed
    }
}
