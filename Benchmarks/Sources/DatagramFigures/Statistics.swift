import Foundation

/// A figure and its verdict.
struct Check {
    let figure: String
    let expected: String
    let found: String
    let holds: Bool
}

/// The figures of a setting.
struct Checks {
    /// The smallest probability of a result under the formula that is accepted: with some 50 figures, a correct link fails in one
    /// of 20 000 runs.
    static let probabilityMin = 1e-6

    var all: [Check] = []

    mutating func exact(_ figure: String, _ expected: String, _ found: String, _ holds: Bool) {
        all.append(Check(figure: figure, expected: expected, found: found, holds: holds))
    }

    /// A number of events with a normal distribution.
    mutating func normal(_ figure: String, _ found: Double, mean: Double, deviation: Double, digits: Int = 0) {
        let score = (found - mean) / deviation
        let probability = Statistics.chiSquareTail(score * score, degrees: 1)
        exact(
            figure, Self.text(mean, digits), "\(Self.text(found, digits)) (p \(Self.probability(probability)))",
            probability >= Self.probabilityMin)
    }

    /// Counts in classes with the given probabilities, which sum up to 1.
    mutating func chiSquare(_ figure: String, _ counts: [Int], _ probabilities: [Double]) {
        let total = Double(counts.reduce(0, +))
        var (statistic, classes) = (0.0, 0)
        var (found, expected) = (0.0, 0.0)
        for (index, count) in counts.enumerated() {
            found += Double(count)
            expected += total * probabilities[index]
            // Small classes are joined; the last one takes the rest.
            let left = total * probabilities[(index + 1)...].reduce(0, +)
            guard expected >= 10 && (left >= 10 || index == counts.count - 1) || index == counts.count - 1 else {
                continue
            }
            if expected > 0 { statistic += (found - expected) * (found - expected) / expected }
            classes += 1
            (found, expected) = (0, 0)
        }
        let probability = Statistics.chiSquareTail(statistic, degrees: max(1, classes - 1))
        exact(
            figure, "chi-square, \(classes - 1) degrees",
            "\(Self.text(statistic, 1)) (p \(Self.probability(probability)))", probability >= Self.probabilityMin)
    }

    static func text(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

    static func probability(_ value: Double) -> String { String(format: value < 0.001 ? "%.1e" : "%.3f", value) }
}

enum Statistics {
    /// The probability that a variable with a chi-square distribution exceeds a value.
    static func chiSquareTail(_ value: Double, degrees: Int) -> Double {
        gammaTail(Double(degrees) / 2, value / 2)
    }

    /// The regularised upper incomplete gamma function: by its series below a + 1, by its continued fraction above
    /// (Abramowitz and Stegun, 6.5.29 and 6.5.31).
    static func gammaTail(_ a: Double, _ x: Double) -> Double {
        if x <= 0 { return 1 }
        let scale = exp(a * log(x) - x - lgamma(a))
        if x < a + 1 {
            var (term, sum, n) = (1 / a, 1 / a, a)
            while term > sum * 1e-15 {
                n += 1
                term *= x / n
                sum += term
            }
            return max(0, 1 - sum * scale)
        }
        // Evaluated from the end: x + (1 - a) / (1 + 1 / (x + (2 - a) / (1 + 2 / ...))).
        var fraction = x
        for n in stride(from: 2000.0, to: 0, by: -1) { fraction = x + (n - a) / (1 + n / fraction) }
        return min(1, scale / fraction)
    }

    /// Returns the counts of the lengths 1, 2, ... of runs of `true` that have ended; the last class has all longer ones.
    static func runs(_ events: [Bool], of value: Bool, classes: Int) -> [Int] {
        var counts = [Int](repeating: 0, count: classes)
        var length = 0
        // A run at the start has begun before.
        var hasBegun = false
        for event in events {
            if event == value {
                length += hasBegun ? 1 : 0
            } else {
                if length > 0 { counts[min(length, classes) - 1] += 1 }
                length = 0
                hasBegun = true
            }
        }
        return counts
    }

    /// The probabilities of the lengths of runs that end with probability `end` at each step.
    static func geometric(_ end: Double, classes: Int) -> [Double] {
        (1...classes).map { pow(1 - end, Double($0 - 1)) * ($0 == classes ? 1 : end) }
    }

    /// The probabilities of the classes between edges, given the distribution function.
    static func classes(_ edges: [Double], _ distribution: (Double) -> Double) -> [Double] {
        let values = [0] + edges.map(distribution) + [1]
        return zip(values, values.dropFirst()).map { $1 - $0 }
    }

    /// The mean of values that depend on their neighbours, and its standard deviation from the means of 500 blocks.
    static func blockMean(_ values: [Double]) -> (mean: Double, deviation: Double) {
        let size = max(1, values.count / 500)
        let means = stride(from: 0, to: values.count - size + 1, by: size)
            .map { values[$0..<($0 + size)].reduce(0, +) / Double(size) }
        let mean = means.reduce(0, +) / Double(means.count)
        let variance = means.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(means.count - 1)
        return (mean, (variance / Double(means.count)).squareRoot())
    }
}
