/// The dates of notes. The stored form is ISO 8601 in UTC with milliseconds: `2026-03-01T08:30:00.000Z`.
public enum NoteDate {
    /// A parsed date.
    public struct Parsed: Hashable, Sendable {
        /// Seconds since 1970 of the local time.
        let localSeconds: Int
        let milliseconds: Int
        /// Whether the text has a fraction of a second other than 0.
        let hasFraction: Bool
        /// Minutes ahead of UTC; `nil` if the text has no offset.
        public let offset: Int?

        /// Returns the stored form; `nil` without an offset, unless Berlin time is assumed.
        public func stored(assumingBerlin: Bool = false) -> String? {
            guard
                let ahead = offset.map({ $0 * 60 }) ?? (assumingBerlin ? NoteDate.berlinOffset(localSeconds) : nil)
            else { return nil }
            let seconds = localSeconds - ahead
            // The conversion to UTC can lead to the years 0 and 10000.
            guard NoteDate.range.contains(seconds) else { return nil }
            return NoteDate.format(seconds: seconds, milliseconds: milliseconds) + "Z"
        }

        /// The date as sent, with milliseconds if there is a fraction, and `Z` for the offset 0.
        public var echo: String {
            var text = NoteDate.format(seconds: localSeconds, milliseconds: milliseconds)
            if !hasFraction { text.removeLast(4) }
            switch offset {
            case nil: return text
            case 0?: return text + "Z"
            case let minutes?:
                let (sign, size) = (minutes < 0 ? "-" : "+", abs(minutes))
                return text + sign + NoteDate.padded(size / 60, 2) + ":" + NoteDate.padded(size % 60, 2)
            }
        }
    }

    /// Parses a date and time; `nil` if the text is not one.
    public static func parse(_ text: String) -> Parsed? {
        var reader = Reader(text.utf8)
        guard let year = reader.number(4), reader.take("-"), let month = reader.number(2), reader.take("-"),
            let day = reader.number(2), reader.take("T") || reader.take("t") || reader.take(" "),
            let hour = reader.number(2), reader.take(":"), let minute = reader.number(2),
            (1...9999).contains(year), (1...12).contains(month), (1...daysIn(month, year)).contains(day),
            hour <= 23, minute <= 59
        else { return nil }
        var second = 0
        var millisecond = 0
        var hasFraction = false
        if reader.take(":") {
            guard let value = reader.number(2), value <= 60 else { return nil }
            second = min(value, 59)
            if reader.take(".") || reader.take(",") {
                guard let fraction = reader.fraction() else { return nil }
                (millisecond, hasFraction) = fraction
            }
        }
        var offset: Int?
        if reader.take("Z") || reader.take("z") {
            offset = 0
        } else if !reader.isAtEnd {
            let sign = reader.take("+") ? 1 : reader.take("-") ? -1 : 0
            guard sign != 0, let hours = reader.number(2), hours <= 23 else { return nil }
            _ = reader.take(":")
            guard let minutes = reader.number(2), minutes <= 59 else { return nil }
            offset = sign * (hours * 60 + minutes)
        }
        guard reader.isAtEnd else { return nil }
        let minutes = (daysSinceEpoch(year, month, day) * 24 + hour) * 60 + minute
        return Parsed(
            localSeconds: minutes * 60 + second, milliseconds: millisecond, hasFraction: hasFraction, offset: offset)
    }

    /// Returns the stored form of a date; `nil` if the text is not a date with an offset.
    public static func normalised(_ text: String) -> String? { parse(text)?.stored() }

    /// Returns a stored date without milliseconds if they are 0, the form of the original server.
    public static func brief(_ stored: String) -> String {
        stored.hasSuffix(".000Z") ? stored.dropLast(5) + "Z" : stored
    }

    /// Returns milliseconds since 1970 of a stored date; `nil` if the text is not one.
    public static func milliseconds(stored: String) -> Int? {
        parse(stored).flatMap { $0.offset == 0 ? $0.localSeconds * 1000 + $0.milliseconds : nil }
    }

    private static let range = daysSinceEpoch(1, 1, 1) * 86_400..<daysSinceEpoch(10_000, 1, 1) * 86_400

    /// Returns the UTC offset of Berlin in seconds. The rule of 1996 (summer time from the last Sunday in March, 2:00,
    /// to the last Sunday in October, 3:00) is applied to every year.
    private static func berlinOffset(_ localSeconds: Int) -> Int {
        let (year, _, _) = civil(floored(localSeconds, 86_400))
        func lastSunday(_ month: Int, hour: Int) -> Int {
            let last = daysSinceEpoch(year, month, 31)
            return (last - ((last + 4) % 7 + 7) % 7) * 86_400 + hour * 3600
        }
        return (lastSunday(3, hour: 2)..<lastSunday(10, hour: 3)).contains(localSeconds) ? 7200 : 3600
    }

    /// Returns the stored form of a time.
    ///
    /// - Parameter count: Milliseconds since 1970, clamped to the years 1 to 9999: the format has four digits for the year.
    public static func text(millisecondsSince1970 count: Int) -> String {
        let count = min(max(count, range.lowerBound * 1000), range.upperBound * 1000 - 1)
        let seconds = floored(count, 1000)
        return format(seconds: seconds, milliseconds: count - seconds * 1000) + "Z"
    }

    /// - Parameter seconds: Seconds since 1970, of the years 1 to 9999.
    private static func format(seconds: Int, milliseconds: Int) -> String {
        let days = floored(seconds, 86_400)
        let rest = seconds - days * 86_400
        let (year, month, day) = civil(days)
        // Dates are a large part of what servers and clients write, so that the digits go straight into the text.
        return String(unsafeUninitializedCapacity: 23) { text in
            var end = 0
            func add(_ value: Int, _ digits: Int, _ separator: Unicode.Scalar?) {
                var rest = value
                for index in stride(from: end + digits - 1, through: end, by: -1) {
                    text[index] = UInt8(ascii: "0") + UInt8(rest % 10)
                    rest /= 10
                }
                end += digits
                guard let separator else { return }
                text[end] = UInt8(ascii: separator)
                end += 1
            }
            add(year, 4, "-")
            add(month, 2, "-")
            add(day, 2, "T")
            add(rest / 3600, 2, ":")
            add(rest / 60 % 60, 2, ":")
            add(rest % 60, 2, ".")
            add(milliseconds, 3, nil)
            return end
        }
    }

    private static func padded(_ value: Int, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// Returns the quotient rounded down.
    private static func floored(_ value: Int, _ divisor: Int) -> Int {
        value >= 0 ? value / divisor : (value - divisor + 1) / divisor
    }

    private static func daysIn(_ month: Int, _ year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    // Conversions of the proleptic Gregorian calendar, in eras of 400 years that begin on March 1.

    private static func daysSinceEpoch(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let position = (5 * dayOfYear + 2) / 153
        let month = position < 10 ? position + 3 : position - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * position + 2) / 5 + 1)
    }

    private struct Reader {
        private var rest: Substring.UTF8View

        init(_ bytes: String.UTF8View) { rest = bytes[...] }

        var isAtEnd: Bool { rest.isEmpty }

        mutating func take(_ character: Character) -> Bool {
            guard let first = rest.first, first == character.asciiValue else { return false }
            rest.removeFirst()
            return true
        }

        mutating func number(_ digits: Int) -> Int? {
            var value = 0
            for _ in 0..<digits {
                guard let byte = rest.first, (48...57).contains(byte) else { return nil }
                value = value * 10 + Int(byte) - 48
                rest.removeFirst()
            }
            return value
        }

        /// Returns the milliseconds of a fraction, truncated, and whether any digit is not 0.
        mutating func fraction() -> (Int, Bool)? {
            var value = 0
            var digits = 0
            var isZero = true
            while let byte = rest.first, (48...57).contains(byte) {
                if byte != 48 { isZero = false }
                if digits < 3 { value = value * 10 + Int(byte) - 48 }
                digits += 1
                rest.removeFirst()
            }
            guard digits > 0 else { return nil }
            for _ in digits..<max(3, digits) { value *= 10 }
            return (value, !isZero)
        }
    }
}
