/// A number with the interval in which it lies with a probability of some 95 %.
public struct Estimate: Hashable, Sendable {
    /// The most likely value.
    public var value: Double
    /// The lower end of the interval.
    public var low: Double
    /// The upper end of the interval.
    public var high: Double

    /// Creates an estimate. An interval that does not contain the value is widened to it.
    public init(_ value: Double, low: Double, high: Double) {
        self.value = value
        self.low = min(low, value)
        self.high = max(high, value)
    }

    /// Creates an estimate with an interval of the same size on both sides.
    public init(_ value: Double, plusMinus margin: Double) {
        self.init(value, low: value - margin, high: value + margin)
    }
}

/// Elementary statistics. The standard library has no logarithm.
enum Statistic {
    /// The factor of a 95 % interval of a normal distribution.
    static let deviations95 = 1.96

    /// Returns the share `count` / `total` with Wilson's interval (Wilson, 1927).
    ///
    /// - Parameter inflation: The factor by which the variance exceeds that of independent trials.
    static func share(_ count: Int, of total: Int, inflation: Double = 1) -> Estimate? {
        guard total > 0, count >= 0, count <= total else { return nil }
        let size = Double(total) / max(1, inflation)
        let share = Double(count) / Double(total)
        let square = deviations95 * deviations95
        let center = (share + square / (2 * size)) / (1 + square / size)
        let margin =
            deviations95 / (1 + square / size)
            * (share * (1 - share) / size + square / (4 * size * size)).squareRoot()
        return Estimate(share, low: max(0, center - margin), high: min(1, center + margin))
    }

    /// Returns the value below which a share of the sorted values lies; `nil` without values.
    static func quantile<Value>(_ share: Double, ofSorted values: [Value]) -> Value? {
        guard let last = values.indices.last else { return nil }
        return values[min(last, max(0, Int((Double(last) * share).rounded())))]
    }

    /// Returns the index of the first of the sorted values that exceeds another one.
    static func firstIndex(above value: Int64, in values: [Int64]) -> Int {
        var (low, high) = (0, values.count)
        while low < high {
            let middle = (low + high) / 2
            if values[middle] <= value { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Returns the mean and the standard deviation.
    static func moments(_ values: [Double]) -> (mean: Double, deviation: Double)? {
        guard !values.isEmpty else { return nil }
        let mean = values.reduce(0, +) / Double(values.count)
        let squares = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
        return (mean, (squares / Double(max(1, values.count - 1))).squareRoot())
    }

    /// Returns the natural logarithm of a positive, finite number.
    static func logarithm(_ value: Double) -> Double {
        guard value > 0, value.isFinite else { return value > 0 ? .infinity : -.infinity }
        // ln m = 2 artanh((m - 1) / (m + 1)), with m from 1 to 2.
        let ratio = (value.significand - 1) / (value.significand + 1)
        var (sum, power) = (0.0, ratio)
        for odd in stride(from: 1.0, through: 33, by: 2) {
            sum += power / odd
            power *= ratio * ratio
        }
        return 2 * sum + Double(value.exponent) * 0.693_147_180_559_945_3
    }
}
