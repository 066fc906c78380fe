internal import Determinism
internal import LinkModel

/// Numbers with units: `780 kbit/s`, `100 ms`, `0.5 %`, `50 packets`.
///
/// Decimals are exact, without floating point.
enum Quantity {
    /// The reason why a text is not the expected quantity.
    struct ParseError: Error {
        let message: String
    }

    /// Returns a link rate; `nil` for `none`.
    static func rate(_ text: String) throws(ParseError) -> Rate? {
        let expected = "a rate such as '780 kbit/s', '40 Mbit/s' or 'none'"
        if text == "none" { return nil }
        let (number, unit) = try split(text, expected: expected)
        let scale: Int64
        switch unit {
        case "bit/s", "bps", "bit": scale = 1
        case "kbit/s", "kbps", "kbit": scale = 1000
        case "Mbit/s", "Mbps", "mbit/s", "mbps", "mbit", "Mbit": scale = 1_000_000
        case "Gbit/s", "Gbps", "gbit/s", "gbps", "gbit", "Gbit": scale = 1_000_000_000
        case "KB/s", "kB/s", "MB/s", "B/s", "KiB/s", "MiB/s":
            throw ParseError(message: "'\(text)' counts bytes per second; expected bits per second, \(expected)")
        case "": throw ParseError(message: "'\(text)' has no unit; expected \(expected)")
        default: throw ParseError(message: "unknown unit '\(unit)'; expected \(expected)")
        }
        guard let bits = number.scaled(by: scale), let rate = Rate(bitsPerSecond: bits) else {
            throw ParseError(
                message: number.digits == 0
                    ? "'\(text)' stops all traffic; for an outage write 'loss: 100 %', for no limit 'none'"
                    : "'\(text)' is out of range; expected 100 bit/s to 100 Gbit/s")
        }
        return rate
    }

    /// Returns a delay, 0 to ``LinkModel/DirectionConditions/delayMax``.
    static func delay(_ text: String) throws(ParseError) -> Nanoseconds {
        let expected = "a time such as '100 ms' or '1.5 s'"
        if text == "0" { return .zero }
        let (number, unit) = try split(text, expected: expected)
        let scale: Int64
        switch unit {
        case "us", "µs": scale = 1000
        case "ms": scale = 1_000_000
        case "s": scale = 1_000_000_000
        case "": throw ParseError(message: "'\(text)' has no unit; expected \(expected)")
        default: throw ParseError(message: "unknown unit '\(unit)'; expected \(expected)")
        }
        guard let count = number.scaled(by: scale), Nanoseconds(count) <= DirectionConditions.delayMax else {
            throw ParseError(message: "'\(text)' is out of range; expected 0 ms to 600 s")
        }
        return Nanoseconds(count)
    }

    /// Returns a connection policy.
    static func connectionPolicy(_ text: String) throws(ParseError) -> ConnectionPolicy { try word(text) }

    /// Returns the treatment of datagrams.
    static func datagramPolicy(_ text: String) throws(ParseError) -> DatagramConditions.Policy { try word(text) }

    private static func word<Word: CaseIterable & RawRepresentable<String>>(
        _ text: String
    ) throws(ParseError) -> Word {
        guard let word = Word(rawValue: text) else {
            let known = Word.allCases.map(\.rawValue)
            throw ParseError(
                message: "'\(text.prefix(40))' is unknown; expected one of \(known.joined(separator: ", "))"
                    + NearestName.hint(text, in: known))
        }
        return word
    }

    /// Returns the size of the largest packet, in bytes.
    static func mtu(_ text: String) throws(ParseError) -> Int? {
        let number = text.hasSuffix(" bytes") ? String(text.dropLast(" bytes".count)) : text
        guard number.utf8.count <= 5, let bytes = Int(number), DatagramConditions.mtuAllowed.contains(bytes) else {
            let allowed = DatagramConditions.mtuAllowed
            throw ParseError(
                message: "'\(text.prefix(40))' must be a number of bytes from \(allowed.lowerBound) to "
                    + "\(allowed.upperBound), such as 1280")
        }
        return bytes
    }

    /// Returns a time that is not 0.
    static func positiveTime(_ text: String) throws(ParseError) -> Nanoseconds? {
        let time = try delay(text)
        guard time >= .milliseconds(1) else {
            throw ParseError(message: "'\(text.prefix(40))' is out of range; expected 1 ms to 600 s")
        }
        return time
    }

    /// Returns a probability given in percent.
    static func probability(_ text: String) throws(ParseError) -> Probability {
        let expected = "a percentage such as '0 %', '1.5 %' or '100 %'"
        if text == "0" { return .zero }
        let (number, unit) = try split(text, expected: expected)
        guard unit == "%" else { throw unitError(text, unit, expected) }
        guard let millionths = number.scaled(by: 10_000), millionths <= 1_000_000,
            let probability = Probability(partsPerMillion: Int32(millionths))
        else {
            throw ParseError(message: "'\(text)' is out of range; expected 0 % to 100 %")
        }
        return probability
    }

    /// Returns a queue limit in packets or bytes.
    static func queue(_ text: String) throws(ParseError) -> QueueLimit {
        let expected = "a queue such as '50 packets' or '64 KB'"
        let (number, unit) = try split(text, expected: expected)
        if unit == "packets" || unit == "packet" {
            guard let count = number.scaled(by: 1), let limit = QueueLimit(packets: Int(count)) else {
                throw ParseError(message: "'\(text)' is out of range; expected 1 to 100000 packets, a whole number")
            }
            return limit
        }
        let scales: [String: Int64] = [
            "B": 1, "bytes": 1, "kB": 1000, "KB": 1000, "MB": 1_000_000, "KiB": 1024, "MiB": 1_048_576,
        ]
        guard let scale = scales[unit] else { throw unitError(text, unit, expected) }
        guard let count = number.scaled(by: scale), let limit = QueueLimit(bytes: Int(count)) else {
            throw ParseError(message: "'\(text)' is out of range; expected 1 B to 150 MB, whole bytes")
        }
        return limit
    }

    /// Returns jitter: a span, a distribution, and whether packets may overtake; `nil` for no jitter.
    static func jitter(_ text: String) throws(ParseError) -> Jitter? {
        let names = Jitter.Distribution.allCases.map(\.rawValue)
        var rest = text
        var mayOvertake = false
        if rest.hasSuffix(" overtaking") {
            mayOvertake = true
            rest = String(rest.dropLast(" overtaking".count))
        }
        var distribution = Jitter.Distribution.uniform
        if let word = rest.split(separator: " ").last, rest.contains(" "),
            let named = Jitter.Distribution(rawValue: String(word))
        {
            distribution = named
            rest = String(rest.dropLast(word.count + 1))
        }
        let span: Nanoseconds
        do {
            span = try delay(rest)
        } catch {
            throw ParseError(
                message: error.message
                    + ", optionally followed by one of \(names.joined(separator: ", ")) and by 'overtaking', as in "
                    + "'20 ms normal overtaking'")
        }
        return span > .zero ? Jitter(span: span, distribution: distribution, mayOvertake: mayOvertake) : nil
    }

    /// Returns burst loss in netem's syntax: `gemodel 1% 25% 70% 0%` or `timed 20s 800ms 100%`.
    static func bursts(_ text: String) throws(ParseError) -> BurstLoss? {
        if text == "none" { return nil }
        let expected = "expected a burst loss such as 'gemodel 1% 25% 70% 0%' or 'timed 20s 800ms 100%'"
        do {
            let conditions = try NetemExpression.parse("loss \(text)")
            if let bursts = conditions.bursts, conditions.loss == .zero { return bursts }
        } catch {
            throw ParseError(message: "\(error.message); \(expected)")
        }
        throw ParseError(message: "'\(abbreviated(text))' is not a burst loss; \(expected)")
    }

    /// Returns packet numbers: `3, 7, 12-15`.
    static func packetNumbers(_ text: String) throws(ParseError) -> PacketNumbers? {
        if text == "none" { return nil }
        var ranges: [ClosedRange<Int>] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false).prefix(PacketNumbers.rangesMax + 1) {
            let word = part.trimmed
            let ends = word.split(separator: "-", omittingEmptySubsequences: false).map { Int($0.trimmed) }
            guard ends.count <= 2, let first = ends.first ?? nil, let last = ends.last ?? nil, first <= last else {
                throw ParseError(
                    message:
                        "'\(abbreviated(word))' is not a packet number; expected numbers from 1, as in '3, 7, 12-15'")
            }
            ranges.append(first...last)
        }
        guard let numbers = PacketNumbers(ranges) else {
            throw ParseError(
                message:
                    "expected 1 to \(PacketNumbers.rangesMax) packet numbers or ranges within 1 to \(PacketNumbers.numberMax)"
            )
        }
        return numbers
    }

    /// Returns a time or duration of a timeline: `20s`, `3m20s`, `1h`, `200 ms`, up to ``LinkModel/Timeline/timeMax``.
    static func time(_ text: String) throws(ParseError) -> Nanoseconds {
        try time(text, max: Timeline.timeMax, "24 hours", expected: "a time such as '20s', '3m20s' or '200ms'")
    }

    /// The greatest shift of a clock: a year.
    static let shiftMax = Nanoseconds.seconds(366 * 86_400)

    /// Returns the size of a shift of a clock: `6h`, `1d12h`, up to 366 days.
    static func shift(_ text: String) throws(ParseError) -> Nanoseconds {
        try time(text, max: shiftMax, "366 days", expected: "a shift such as '6h', '2d' or '30m'")
    }

    private static func time(
        _ text: String, max: Nanoseconds, _ maxText: String, expected: String
    ) throws(ParseError) -> Nanoseconds {
        var rest = text
        var total: Int64 = 0
        var lastScale = Int64.max
        repeat {
            let piece = rest.prefix { !$0.isLetter }
            guard !piece.isEmpty else {
                throw ParseError(message: "'\(abbreviated(text))' is not a number with a unit; expected \(expected)")
            }
            let unit = rest.dropFirst(piece.count).prefix { $0.isLetter }
            let (number, _) = try split(String(piece), expected: expected)
            let scales: [Substring: Int64] = [
                "d": max > Timeline.timeMax ? 86_400_000_000_000 : 0, "h": 3_600_000_000_000, "m": 60_000_000_000,
                "s": 1_000_000_000, "ms": 1_000_000,
            ].filter { $0.value > 0 }
            guard let scale = scales[unit] else { throw unitError(text, String(unit), expected) }
            guard scale < lastScale, let count = number.scaled(by: scale), count <= max.count else {
                throw ParseError(
                    message: "'\(abbreviated(text))' is out of range; expected \(expected), up to \(maxText)")
            }
            lastScale = scale
            total += count
            rest = String(rest.dropFirst(piece.count + unit.count)).trimmed
        } while !rest.isEmpty
        guard total <= max.count else {
            throw ParseError(message: "'\(abbreviated(text))' is more than \(maxText)")
        }
        return Nanoseconds(total)
    }

    /// Returns a number of bytes: `500`, `64 KB`, `2MB`, at most 1 TB.
    static func size(_ text: String) throws(ParseError) -> Int {
        let expected = "a number of bytes, such as '500', '64 KB' or '2MB'"
        let (number, unit) = try split(text, expected: expected)
        let scales: [String: Int64] = [
            "": 1, "B": 1, "bytes": 1, "kB": 1000, "KB": 1000, "MB": 1_000_000, "GB": 1_000_000_000, "KiB": 1024,
            "MiB": 1_048_576, "GiB": 1_073_741_824,
        ]
        guard let scale = scales[unit] else { throw unitError(text, unit, expected) }
        guard let count = number.scaled(by: scale), count <= 1_000_000_000_000 else {
            throw ParseError(message: "'\(abbreviated(text))' is out of range; expected whole bytes up to 1000 GB")
        }
        return Int(count)
    }

    static func unitError(_ text: String, _ unit: String, _ expected: String) -> ParseError {
        ParseError(
            message: unit.isEmpty
                ? "'\(abbreviated(text))' has no unit; expected \(expected)"
                : "unknown unit '\(abbreviated(unit))'; expected \(expected)")
    }

    /// A non-negative decimal number: `digits` / 10^`decimals`.
    struct Decimal {
        var digits: Int64 = 0
        var decimals = 0

        private var divisor: Int64 { (0..<decimals).reduce(1) { product, _ in product * 10 } }

        /// Returns the number times `scale`; `nil` if that is not a whole number or overflows.
        func scaled(by scale: Int64) -> Int64? {
            let (product, overflow) = digits.multipliedReportingOverflow(by: scale)
            return overflow || product % divisor != 0 ? nil : product / divisor
        }

        /// Returns the number times `scale`, rounded down; `nil` if that overflows.
        func roundedDown(by scale: Int64) -> Int64? {
            let (product, overflow) = digits.multipliedReportingOverflow(by: scale)
            return overflow ? nil : product / divisor
        }
    }

    /// Splits `12.5 kbit/s` into its number and its unit.
    static func split(_ text: String, expected: String) throws(ParseError) -> (Decimal, unit: String) {
        var number = Decimal()
        var rest = Substring(text)
        var digitCount = 0
        var hasPoint = false
        if rest.first == "-" { throw ParseError(message: "'\(abbreviated(text))' is negative; expected \(expected)") }
        while let character = rest.first {
            if let digit = character.wholeNumberValue, character.isASCII {
                digitCount += 1
                if digitCount > 12 {
                    throw ParseError(message: "'\(abbreviated(text))' has too many digits; expected \(expected)")
                }
                number.digits = number.digits * 10 + Int64(digit)
                if hasPoint { number.decimals += 1 }
            } else if character == "." && !hasPoint && digitCount > 0 {
                hasPoint = true
            } else {
                break
            }
            rest.removeFirst()
        }
        guard digitCount > 0, !hasPoint || number.decimals > 0 else {
            throw ParseError(message: "'\(abbreviated(text))' is not a number with a unit; expected \(expected)")
        }
        while rest.first == " " { rest.removeFirst() }
        return (number, abbreviated(String(rest)))
    }

    /// Returns a text, shortened for a message.
    private static func abbreviated(_ text: String) -> String {
        text.count > 40 ? text.prefix(40) + "…" : text
    }
}

extension StringProtocol {
    /// The text without spaces at both ends.
    var trimmed: String {
        var rest = Substring(self)
        while rest.first == " " { rest.removeFirst() }
        while rest.last == " " { rest.removeLast() }
        return String(rest)
    }
}
