/// Losses that come in bursts: a chain of a good and a bad state (Gilbert 1960, Elliott 1963).
public enum Bursts: Hashable, Sendable {
    /// The state changes with each packet, in netem's arguments `gemodel p r 1-h 1-k`: the chances to become bad, to
    /// become good again, of a loss while bad and while good. When all that is sent is a backed-off retransmission the
    /// bad state lasts until enough of them have been lost.
    case perPacket(becomesBad: Loss, becomesGood: Loss, lossInBad: Loss, lossInGood: Loss)
    /// The states last for exponentially distributed times of the given means, whatever is sent.
    case timed(good: Nanoseconds, bad: Nanoseconds, lossInBad: Loss, lossInGood: Loss)
}

/// Where the chain of ``Bursts`` stands in one direction of a link.
struct BurstState: Sendable {
    private var isBad = false
    private var changes: RandomStream
    /// The losses of the chain that moves with the packets; it has one state for all connections, so one stream too.
    private var coins: RandomStream
    /// A state lasts no shorter on average than a packet of a fast link.
    private static let sojournMin: Int64 = 10_000
    /// More changes of state than these are not followed one by one.
    private static let roundsMax: Int64 = 10_000
    /// Until when the timed state lasts; `.min` is to be drawn with the next packet.
    private var until: Int64 = 0

    init(seed: UInt64, name: String) {
        changes = RandomStream(seed: seed, "\(name)/bursts")
        coins = RandomStream(seed: seed, "\(name)/bursts/loss")
    }

    /// Begins anew, in the good state, with the next packet.
    mutating func restart() {
        isBad = false
        until = .min
    }

    mutating func losesPacket(_ bursts: Bursts, _ connectionCoins: inout RandomStream, at now: Int64) -> Bool {
        switch bursts {
        case .perPacket(let becomesBad, let becomesGood, let lossInBad, let lossInGood):
            isBad = isBad ? !changes.chance(becomesGood) : changes.chance(becomesBad)
            return coins.chance(isBad ? lossInBad : lossInGood)
        case .timed(let good, let bad, let lossInBad, let lossInGood):
            let good = good.count.clamped(to: Self.sojournMin...DirectionConditions.spanMax.count)
            let bad = bad.count.clamped(to: Self.sojournMin...DirectionConditions.spanMax.count)
            if until == .min {
                isBad = false
                until = now + max(1, changes.exponential(mean: good))
            } else if (now - until) / (good + bad) > Self.roundsMax {
                // After a silence so long the state is as likely as ever.
                isBad = changes.below(good + bad) < bad
                until = now
            }
            while until <= now {
                if until > 0 { isBad.toggle() }
                // Up to the end of modelled time, and a quarter of all there is.
                until += max(1, changes.exponential(mean: isBad ? bad : good))
            }
            return connectionCoins.chance(isBad ? lossInBad : lossInGood)
        }
    }
}

extension RandomStream {
    /// An exponentially distributed number, from comparisons of uniform ones only (von Neumann, 1951), so that every
    /// machine draws the same.
    mutating func exponential(mean: Int64) -> Int64 {
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
