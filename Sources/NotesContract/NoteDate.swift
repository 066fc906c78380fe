/// Dates as the contract has them: ISO 8601, in UTC with milliseconds: `2026-03-01T08:30:00.000Z`.
public enum NoteDate {
    /// A date as somebody wrote it.
    public struct Typed: Hashable, Sendable {
        /// Seconds since 1970 of what the clock on their wall said.
        let wallSeconds: Int
        let milliseconds: Int
        /// Whether there was a fraction of a second other than 0.
        let hasFraction: Bool
        /// Minutes ahead of UTC; `nil` if they did not say.
        public let offset: Int?

        /// The stored form; `nil` without an offset, unless it is to be read as the time in Berlin.
        public func stored(orInBerlin isBerlin: Bool = false) -> String? {
            guard let ahead = offset.map({ $0 * 60 }) ?? (isBerlin ? NoteDate.berlinAhead(wallSeconds) : nil) else {
                return nil
            }
            let seconds = wallSeconds - ahead
            // In UTC it may be of the year 0 or 10000.
            guard NoteDate.range.contains(seconds) else { return nil }
            return NoteDate.format(seconds: seconds, milliseconds: milliseconds) + "Z"
        }

        /// As it was written, with milliseconds if there is a fraction, and `Z` for no offset.
        public var echo: String {
            var text = NoteDate.format(seconds: wallSeconds, milliseconds: milliseconds)
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

    /// Reads a date and time; `nil` if it is none.
    public static func read(_ text: String) -> Typed? {
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
        return Typed(
            wallSeconds: minutes * 60 + second, milliseconds: millisecond, hasFraction: hasFraction, offset: offset)
    }

    /// The stored form of a date with an offset; `nil` if it is none, or says no offset.
    public static func normalised(_ text: String) -> String? { read(text)?.stored() }

    /// A stored date without its milliseconds if they are 0, as the original server shows it.
    public static func brief(_ stored: String) -> String {
        stored.hasSuffix(".000Z") ? stored.dropLast(5) + "Z" : stored
    }

    /// Milliseconds since 1970 of a stored date; `nil` if it is none.
    public static func milliseconds(stored: String) -> Int? {
        read(stored).flatMap { $0.offset == 0 ? $0.wallSeconds * 1000 + $0.milliseconds : nil }
    }

    /// A moment as HTTP writes it (RFC 9110, 5.6.7): `Sun, 01 Mar 2026 08:00:00 GMT`.
    public static func httpDate(secondsSince1970 seconds: Int) -> String {
        let days = floored(seconds, 86_400)
        let rest = seconds - days * 86_400
        let (year, month, day) = civil(days)
        let weekday = ((days + 4) % 7 + 7) % 7
        return "\(weekdays[weekday]), \(padded(day, 2)) \(months[month - 1]) \(padded(year, 4)) "
            + "\(padded(rest / 3600, 2)):\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2)) GMT"
    }

    /// Seconds since 1970 of a moment as HTTP writes it; `nil` if it is none, or in one of the two old forms.
    public static func seconds(httpDate text: String) -> Int? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[5] == "GMT", words[0].hasSuffix(","),
            let month = months.firstIndex(of: String(words[2])),
            let typed = read("\(words[3])-\(padded(month + 1, 2))-\(words[1])T\(words[4])Z")
        else { return nil }
        return typed.wallSeconds
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
    private static let range = daysSinceEpoch(1, 1, 1) * 86_400..<daysSinceEpoch(10_000, 1, 1) * 86_400

    /// How many seconds Berlin was ahead of UTC, by the rule of 1996 (summer time from the last Sunday in March, 2:00,
    /// to the last Sunday in October, 3:00) applied to every year.
    private static func berlinAhead(_ wallSeconds: Int) -> Int {
        let (year, _, _) = civil(floored(wallSeconds, 86_400))
        func lastSunday(_ month: Int, hour: Int) -> Int {
            let last = daysSinceEpoch(year, month, 31)
            return (last - ((last + 4) % 7 + 7) % 7) * 86_400 + hour * 3600
        }
        return (lastSunday(3, hour: 2)..<lastSunday(10, hour: 3)).contains(wallSeconds) ? 7200 : 3600
    }

    /// The stored form of a moment, from whole milliseconds since 1970.
    public static func text(millisecondsSince1970 count: Int) -> String {
        let seconds = floored(count, 1000)
        return format(seconds: seconds, milliseconds: count - seconds * 1000) + "Z"
    }

    private static func format(seconds: Int, milliseconds: Int) -> String {
        let days = floored(seconds, 86_400)
        let rest = seconds - days * 86_400
        let (year, month, day) = civil(days)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(rest / 3600, 2)):"
            + "\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2)).\(padded(milliseconds, 3))"
    }

    private static func padded(_ value: Int, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// Divided and rounded down.
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

    // Days of the proleptic Gregorian calendar, counted in eras of 400 years that begin in March.

    private static func daysSinceEpoch(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    private static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let position = (5 * ofYear + 2) / 153
        let month = position < 10 ? position + 3 : position - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * position + 2) / 5 + 1)
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

        /// Milliseconds of a fraction, further digits are cut off; and whether any digit is not 0.
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
