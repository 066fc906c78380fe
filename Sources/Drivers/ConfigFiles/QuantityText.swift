public import Determinism
public import LinkModel

/// Texts of quantities, which ``Quantity`` reads back as the same values.
public enum QuantityText {
    /// Returns a time of a timeline, such as `3m20s`, `14m31.204s` or `250ms`; exact to the nanosecond.
    public static func time(_ time: Nanoseconds) -> String {
        let (hours, minutes, rest) = split(time)
        var text = hours > 0 ? "\(hours)h" : ""
        if minutes > 0 { text += "\(minutes)m" }
        guard rest > 0 || text.isEmpty else { return text }
        // Nanoseconds need a unit of milliseconds: the reader multiplies the digits in 64 bits.
        let isExactInSeconds = rest >= 1_000_000_000 && rest % 1_000_000 == 0 || rest == 0
        if isExactInSeconds { return text + decimal(rest, decimals: 9) + "s" }
        let (seconds, part) = rest.quotientAndRemainder(dividingBy: 1_000_000_000)
        return text + (seconds > 0 ? "\(seconds)s" : "") + decimal(part, decimals: 6) + "ms"
    }

    private static func split(_ time: Nanoseconds) -> (hours: Int64, minutes: Int64, rest: Int64) {
        let minute: Int64 = 60_000_000_000
        let count = max(0, time.count)
        return (count / (60 * minute), count / minute % 60, count % minute)
    }

    /// Returns a shift with its sign, such as `+6h`.
    static func signedTime(_ time: Nanoseconds) -> String {
        time < .zero ? "-" + self.time(.zero - time) : "+" + self.time(time)
    }

    /// Returns `count` / 10^`decimals` as a decimal number.
    private static func decimal(_ count: Int64, decimals: Int) -> String {
        var scale: Int64 = 1
        for _ in 0..<decimals { scale *= 10 }
        var fraction = String(count % scale + scale).dropFirst()
        while fraction.last == "0" { fraction.removeLast() }
        return fraction.isEmpty ? "\(count / scale)" : "\(count / scale).\(fraction)"
    }

    /// Returns a delay in milliseconds.
    public static func delay(_ time: Nanoseconds) -> String { decimal(time.count, decimals: 6) + " ms" }

    /// Returns a probability in percent.
    public static func percentage(_ value: Probability) -> String {
        decimal(Int64(value.partsPerMillion), decimals: 4) + "%"
    }

    /// Returns jitter.
    public static func jitter(_ jitter: Jitter) -> String {
        delay(jitter.span) + (jitter.distribution == .uniform ? "" : " \(jitter.distribution.rawValue)")
            + (jitter.mayOvertake ? " overtaking" : "")
    }

    /// Returns burst loss in netem's syntax.
    public static func bursts(_ bursts: BurstLoss) -> String {
        switch bursts {
        case .gilbertElliott(let becomesBad, let becomesGood, let inBad, let inGood):
            "gemodel " + [becomesBad, becomesGood, inBad, inGood].map(percentage).joined(separator: " ")
        case .timed(let good, let bad, let inBad, let inGood):
            "timed \(decimal(good.count, decimals: 6))ms \(decimal(bad.count, decimals: 6))ms "
                + [inBad, inGood].map(percentage).joined(separator: " ")
        }
    }
}
