public import Determinism

/// Formats of times for output.
public enum TimeFormat {
    /// Returns a time with one decimal: `12.3 s`.
    public static func seconds(_ time: Nanoseconds) -> String {
        let tenths = time.count.addingSaturating(50_000_000) / 100_000_000
        return "\(tenths / 10).\(tenths % 10) s"
    }

    /// Returns a time with three decimals: `12.345 s`.
    public static func milliseconds(_ time: Nanoseconds) -> String {
        let thousandths = time.count.addingSaturating(500_000) / 1_000_000
        let decimals = String((thousandths % 1000).magnitude)
        return "\(thousandths / 1000)." + String(repeating: "0", count: 3 - decimals.utf8.count) + decimals + " s"
    }

    /// Returns a time without a zero decimal: `60 s`, `1.5 s`.
    public static func short(_ time: Nanoseconds) -> String {
        time.count % 1_000_000_000 == 0 ? "\(time.count / 1_000_000_000) s" : seconds(time)
    }

    /// Returns a time with its sign: `+6 s`, `-1.5 s`.
    static func signed(_ time: Nanoseconds) -> String {
        time < .zero ? "-" + short(Nanoseconds(0 &- time.count)) : "+" + short(time)
    }

    /// Returns a duration: `42 ms` below a second, otherwise `12.3 s`.
    public static func duration(_ time: Nanoseconds) -> String {
        time < .seconds(1) ? "\((time.count + 500_000) / 1_000_000) ms" : seconds(time)
    }
}

/// Quoting of user text for output.
enum Quoting {
    /// Returns the text, in quotes if it is empty or contains whitespace or commas.
    static func quoted(_ text: String) -> String {
        text.isEmpty || text.contains(where: { $0.isWhitespace || $0 == "," }) ? "'\(text)'" : text
    }
}
