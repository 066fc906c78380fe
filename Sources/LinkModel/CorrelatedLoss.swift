/// Losses of which one makes the next more likely, for one connection and direction.
public struct CorrelatedLoss: Sendable, Hashable {
    /// The chance of a loss, 0 to 1.
    public let rate: Double
    /// What is added to it after a loss.
    public let correlation: Double
    private var hasLost = false
    private var coins: RandomStream

    /// Creates a process that draws from `coins`; figures beyond 0 and 1 count as these.
    public init(rate: Double, correlation: Double, coins: RandomStream) {
        self.rate = min(1, max(0, rate))
        self.correlation = min(1, max(0, correlation))
        self.coins = coins
    }

    /// Whether the next packet is lost.
    public mutating func losesNext() -> Bool {
        hasLost = coins.chance(min(1, hasLost ? rate + correlation : rate))
        return hasLost
    }
}
