public import Determinism

/// A loss process of one connection and direction in which a loss makes the next one more likely.
public struct CorrelatedLoss: Sendable, Hashable {
    /// The probability of a loss, 0 to 1.
    public let rate: Double
    /// The increase of the probability after a loss.
    public let correlation: Double
    private var lastWasLost = false
    private var random: RandomStream

    /// Creates a loss process. Both parameters are clamped to the range 0 to 1.
    public init(rate: Double, correlation: Double, random: RandomStream) {
        self.rate = min(1, max(0, rate))
        self.correlation = min(1, max(0, correlation))
        self.random = random
    }

    /// Returns whether the next packet is lost.
    public mutating func losesNext() -> Bool {
        lastWasLost = random.bool(probability: min(1, lastWasLost ? rate + correlation : rate))
        return lastWasLost
    }
}
