internal import LinkModel

/// A loss process fitted to the fates of consecutive packets by maximum likelihood.
///
/// Three processes are compared by the Bayesian information criterion (Schwarz, 1978): independent losses, the chain of
/// Gilbert in which every packet of the bad state is lost, and that of Gilbert and Elliott with a loss probability in each
/// state, by the algorithm of Baum and Welch.
struct BurstFit {
    /// The probabilities of a ``BurstLoss/gilbertElliott(becomesBad:becomesGood:lossInBad:lossInGood:)``.
    struct Chain: Hashable {
        var becomesBad: Double
        var becomesGood: Double
        var lossInBad: Double
        var lossInGood: Double

        /// The mean probability of a loss.
        var meanLoss: Double {
            let bad = becomesBad / max(1e-12, becomesBad + becomesGood)
            return bad * lossInBad + (1 - bad) * lossInGood
        }
    }

    /// The chain; `nil` if the losses are independent.
    let chain: Chain?
    /// The factor by which bursts increase the variance of the number of losses.
    let inflation: Double

    /// The longest sequence that is fitted; of a longer one, the first part.
    private static let countMax = 50_000
    private static let iterationsMax = 60
    /// The losses below which no chain is fitted.
    private static let lossesMin = 12

    /// Fits the fates of packets in the order in which they were sent: lost, arrived, or unknown.
    init(_ fates: [Bool?]) {
        let fates = fates.prefix(Self.countMax)
        let known = fates.compactMap { $0 }
        let losses = known.count { $0 }
        guard losses >= Self.lossesMin, losses < known.count else {
            chain = nil
            inflation = 1
            return
        }
        let share = Double(losses) / Double(known.count)
        let size = Statistic.logarithm(Double(known.count))
        func likelihood(_ share: Double, _ hits: Int, of total: Int) -> Double {
            (hits == 0 ? 0 : Double(hits) * Statistic.logarithm(share))
                + (hits == total ? 0 : Double(total - hits) * Statistic.logarithm(1 - share))
        }
        // Scores are relative to independent losses, which have one parameter.
        var best: (chain: Chain?, score: Double) = (nil, 0)
        func offer(_ chain: Chain, parameters: Double, gain: Double) {
            let score = -2 * gain + (parameters - 1) * size
            if score < best.score { best = (chain, score) }
        }

        // Gilbert's chain is a Markov chain of the fates themselves.
        var (good, bad, toBad, toGood) = (0, 0, 0, 0)
        for (before, after) in zip(fates, fates.dropFirst()) {
            guard let before, let after else { continue }
            if before {
                bad += 1
                if !after { toGood += 1 }
            } else {
                good += 1
                if after { toBad += 1 }
            }
        }
        guard good > 0, bad > 0, toBad > 0, toGood > 0 else {
            chain = nil
            inflation = 1
            return
        }
        let gilbert = Chain(
            becomesBad: Double(toBad) / Double(good), becomesGood: Double(toGood) / Double(bad), lossInBad: 1,
            lossInGood: 0)
        // Of pairs, the second fate depends on the first one.
        let later = toBad + bad - toGood
        offer(
            gilbert, parameters: 2,
            gain: likelihood(gilbert.becomesBad, toBad, of: good) + likelihood(gilbert.becomesGood, toGood, of: bad)
                - likelihood(Double(later) / Double(good + bad), later, of: good + bad))
        let independent = likelihood(share, losses, of: known.count)
        for lossInBad in [0.4, 0.8] {
            for hasGoodLosses in [false, true] {
                let start = Chain(
                    becomesBad: max(1e-4, gilbert.becomesBad / 2),
                    becomesGood: min(0.9, gilbert.becomesGood / 2 + 0.02),
                    lossInBad: lossInBad, lossInGood: hasGoodLosses ? share / 4 : 0)
                let fit = Self.maximize(start, fates)
                offer(fit.chain, parameters: hasGoodLosses ? 4 : 3, gain: fit.likelihood - independent)
            }
        }
        chain = best.chain
        // The correlation of consecutive fates is (1 - p - r)^n times that of the states.
        let memory = best.chain.map { max(0, 1 - $0.becomesBad - $0.becomesGood) } ?? 0
        inflation = (1 + memory) / max(0.001, 1 - memory)
    }

    /// Improves a chain until its likelihood grows no more (Baum and Welch, 1970).
    private static func maximize(_ start: Chain, _ fates: ArraySlice<Bool?>) -> (chain: Chain, likelihood: Double) {
        let count = fates.count
        var chain = start
        var likelihood = -Double.infinity
        /// The probability of the bad state given the fates so far, and the scale of each step.
        var forward = [Double](repeating: 0, count: count)
        var scale = [Double](repeating: 1, count: count)
        for _ in 0..<iterationsMax {
            func emission(_ fate: Bool?, _ loss: Double) -> Double { fate.map { $0 ? loss : 1 - loss } ?? 1 }
            var bad = chain.becomesBad / (chain.becomesBad + chain.becomesGood)
            // The product of the scales, in parts that fit into a number.
            var (sum, product) = (0.0, 1.0)
            for (index, fate) in fates.enumerated() {
                let before =
                    index == 0 ? bad : bad * (1 - chain.becomesGood) + (1 - bad) * chain.becomesBad
                let inBad = before * emission(fate, chain.lossInBad)
                let inGood = (1 - before) * emission(fate, chain.lossInGood)
                scale[index] = max(1e-100, inBad + inGood)
                bad = inBad / scale[index]
                forward[index] = bad
                product *= scale[index]
                if product < 1e-150 {
                    sum += Statistic.logarithm(product)
                    product = 1
                }
            }
            sum += Statistic.logarithm(product)
            if sum - likelihood < 0.01 {
                likelihood = max(likelihood, sum)
                break
            }
            likelihood = sum
            // Backwards, with the expected numbers of states, transitions and losses.
            var (backBad, backGood) = (1.0, 1.0)
            var (states, losses) = ((bad: 0.0, good: 0.0), (bad: 0.0, good: 0.0))
            var (toBad, toGood, fromBad, fromGood) = (0.0, 0.0, 0.0, 0.0)
            var index = count - 1
            for fate in fates.reversed() {
                let atBad = forward[index] * backBad
                let atGood = (1 - forward[index]) * backGood
                if let fate {
                    states = (states.bad + atBad, states.good + atGood)
                    if fate { losses = (losses.bad + atBad, losses.good + atGood) }
                }
                guard index > 0 else { break }
                let bad = emission(fate, chain.lossInBad) * backBad / scale[index]
                let good = emission(fate, chain.lossInGood) * backGood / scale[index]
                let (wasBad, wasGood) = (forward[index - 1], 1 - forward[index - 1])
                toBad += wasGood * chain.becomesBad * bad
                toGood += wasBad * chain.becomesGood * good
                backBad = (1 - chain.becomesGood) * bad + chain.becomesGood * good
                backGood = chain.becomesBad * bad + (1 - chain.becomesBad) * good
                fromBad += wasBad * backBad
                fromGood += wasGood * backGood
                index -= 1
            }
            func ratio(_ part: Double, _ whole: Double, _ range: ClosedRange<Double>) -> Double {
                whole > 0 ? min(range.upperBound, max(range.lowerBound, part / whole)) : range.lowerBound
            }
            chain.becomesBad = ratio(toBad, fromGood, 1e-6...0.999)
            chain.becomesGood = ratio(toGood, fromBad, 1e-4...0.999)
            chain.lossInBad = ratio(losses.bad, states.bad, 1e-6...0.9999)
            if chain.lossInGood > 0 { chain.lossInGood = ratio(losses.good, states.good, 1e-6...0.5) }
        }
        return (chain, likelihood)
    }
}
