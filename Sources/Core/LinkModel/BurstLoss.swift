public import Determinism

/// Losses in bursts: a Markov chain with a good and a bad state (Gilbert 1960, Elliott 1963).
public enum BurstLoss: Hashable, Sendable {
    /// The state changes per packet, with the parameters of netem's `gemodel p r 1-h 1-k`: the probabilities of the
    /// transitions to bad and to good, and of a loss in the bad and in the good state. The state advances with packets
    /// only: it stays bad while a sender waits for its retransmission timer.
    case gilbertElliott(
        becomesBad: Probability, becomesGood: Probability, lossInBad: Probability, lossInGood: Probability)
    /// The states last for exponentially distributed times with the given means, independently of the traffic.
    case timed(good: Nanoseconds, bad: Nanoseconds, lossInBad: Probability, lossInGood: Probability)
}

/// The state of a ``BurstLoss`` chain in one direction of a link.
struct BurstLossProcess: Sendable {
    private var isBad = false
    private var transitions: RandomStream
    /// The random stream of the per-packet chain, whose state all connections share.
    private var losses: RandomStream
    /// The shortest mean time in a state, in nanoseconds: about one packet on a fast link.
    private static let meanMin: Int64 = 10_000
    /// The maximum number of transitions that are simulated one by one.
    private static let transitionsMax: Int64 = 10_000
    /// The end of the current timed state. With `.min` the next packet starts a good state.
    private var stateEnd: Int64 = 0

    init(seed: UInt64, name: String) {
        transitions = RandomStream(seed: seed, "\(name)/bursts")
        losses = RandomStream(seed: seed, "\(name)/bursts/loss")
    }

    /// Restarts in the good state with the next packet.
    mutating func restart() {
        isBad = false
        stateEnd = .min
    }

    mutating func losesPacket(_ bursts: BurstLoss, _ flowLosses: inout RandomStream, at now: Int64) -> Bool {
        switch bursts {
        case .gilbertElliott(let becomesBad, let becomesGood, let lossInBad, let lossInGood):
            isBad =
                isBad ? !transitions.bool(probability: becomesGood) : transitions.bool(probability: becomesBad)
            return losses.bool(probability: isBad ? lossInBad : lossInGood)
        case .timed(let good, let bad, let lossInBad, let lossInGood):
            let good = good.count.clamped(to: Self.meanMin...DirectionConditions.spanMax.count)
            let bad = bad.count.clamped(to: Self.meanMin...DirectionConditions.spanMax.count)
            if stateEnd == .min {
                isBad = false
                stateEnd = now + max(1, transitions.exponential(mean: good))
            } else if (now - stateEnd) / (good + bad) > Self.transitionsMax {
                // After a long pause the state has its stationary distribution.
                isBad = transitions.integer(below: good + bad) < bad
                // The remaining time in a state has the distribution of its whole time.
                stateEnd = now + max(1, transitions.exponential(mean: isBad ? bad : good))
            }
            while stateEnd <= now {
                if stateEnd > 0 { isBad.toggle() }
                // The sum fits: modelled time ends at half the range, and a draw is at most a quarter.
                stateEnd += max(1, transitions.exponential(mean: isBad ? bad : good))
            }
            return flowLosses.bool(probability: isBad ? lossInBad : lossInGood)
        }
    }
}
