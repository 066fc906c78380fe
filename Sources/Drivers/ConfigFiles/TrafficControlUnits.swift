internal import Determinism
internal import LinkModel

/// Rates and times with the units of `tc` (tc(8), "PARAMETERS"); case does not matter, as there.
///
/// `bit` counts bits and `bps` counts bytes: `1mbps` is 8 Mbit/s. A number without a unit is an error here; tc reads it
/// as bits per second or microseconds.
enum TrafficControlUnits {
    /// The factors of the prefixes: SI and IEC.
    private static let prefixes: [(name: String, factor: Int64)] = [
        ("", 1), ("k", 1000), ("m", 1_000_000), ("g", 1_000_000_000), ("t", 1_000_000_000_000),
        ("ki", 1 << 10), ("mi", 1 << 20), ("gi", 1 << 30), ("ti", 1 << 40),
    ]

    /// Bits per second of each unit of rate. `bit/s` is the unit of profile files; tc does not have it.
    private static let rates = Dictionary(
        uniqueKeysWithValues: prefixes.flatMap { prefix in
            [
                ("\(prefix.name)bit", prefix.factor), ("\(prefix.name)bit/s", prefix.factor),
                ("\(prefix.name)bps", 8 * prefix.factor),
            ]
        })

    /// Nanoseconds of each unit of time. `ns` is newer than the manual page of iproute2 6.1.
    private static let times: [String: Int64] = [
        "s": 1_000_000_000, "sec": 1_000_000_000, "secs": 1_000_000_000,
        "ms": 1_000_000, "msec": 1_000_000, "msecs": 1_000_000,
        "us": 1000, "usec": 1000, "usecs": 1000, "µs": 1000,
        "ns": 1, "nsec": 1, "nsecs": 1,
    ]

    /// Returns a rate, rounded down to whole bits per second; `nil` for `none`.
    static func rate(_ text: String) throws(Quantity.ParseError) -> Rate? {
        let expected = "a tc rate such as '780kbit' (bits per second) or '100kbps' (bytes per second)"
        if text == "none" { return nil }
        let (number, unit) = try Quantity.split(text, expected: expected)
        guard let scale = rates[unit.lowercased()] else { throw Quantity.unitError(text, unit, expected) }
        if number.digits == 0 {
            throw Quantity.ParseError(message: "'\(text)' stops all traffic; for an outage write 'loss 100%'")
        }
        guard let bits = number.roundedDown(by: scale), let rate = Rate(bitsPerSecond: bits) else {
            throw Quantity.ParseError(message: "'\(text)' is out of range; expected 100bit to 100gbit")
        }
        return rate
    }

    /// Returns a time, rounded down to whole nanoseconds.
    static func time(_ text: String) throws(Quantity.ParseError) -> Nanoseconds {
        let expected = "a tc time such as '100ms' or '1.5s'"
        if text == "0" { return .zero }
        let (number, unit) = try Quantity.split(text, expected: expected)
        guard let scale = times[unit.lowercased()] else { throw Quantity.unitError(text, unit, expected) }
        guard let count = number.roundedDown(by: scale), Nanoseconds(count) <= DirectionConditions.delayMax else {
            throw Quantity.ParseError(message: "'\(text)' is out of range; expected 0ms to 600s")
        }
        return Nanoseconds(count)
    }
}
