/// Dates as the contract has them: ISO 8601, in UTC with milliseconds: `2026-03-01T08:30:00.000Z`.
public enum NoteDate {
    /// The stored form of a date with an offset; `nil` if it is none, or says no offset.
    public static func normalised(_ text: String) -> String? {
        var reader = Reader(text.utf8)
        guard let year = reader.number(4), reader.take("-"), let month = reader.number(2), reader.take("-"),
            let day = reader.number(2), reader.take("T") || reader.take("t") || reader.take(" "),
            let hour = reader.number(2), reader.take(":"), let minute = reader.number(2),
            (1...9999).contains(year), (1...12).contains(month), (1...daysIn(month, year)).contains(day),
            hour <= 23, minute <= 59
        else { return nil }
        var second = 0
        var millisecond = 0
        if reader.take(":") {
            guard let value = reader.number(2), value <= 60 else { return nil }
            second = min(value, 59)
            if reader.take(".") || reader.take(",") {
                guard let fraction = reader.fraction() else { return nil }
                millisecond = fraction
            }
        }
        var offset = 0
        if !(reader.take("Z") || reader.take("z")) {
            let sign = reader.take("+") ? 1 : reader.take("-") ? -1 : 0
            guard sign != 0, let hours = reader.number(2), hours <= 23 else { return nil }
            _ = reader.take(":")
            guard let minutes = reader.number(2), minutes <= 59 else { return nil }
            offset = sign * (hours * 60 + minutes)
        }
        guard reader.isAtEnd else { return nil }
        let minutes = (daysSinceEpoch(year, month, day) * 24 + hour) * 60 + minute - offset
        let seconds = minutes * 60 + second
        // In UTC it may be of the year 0 or 10000.
        guard (daysSinceEpoch(1, 1, 1) * 86_400..<daysSinceEpoch(10_000, 1, 1) * 86_400).contains(seconds) else {
            return nil
        }
        return format(seconds: seconds, milliseconds: millisecond)
    }

    /// The stored form of a moment, from whole milliseconds since 1970.
    public static func text(millisecondsSince1970 count: Int) -> String {
        let seconds = count >= 0 ? count / 1000 : (count - 999) / 1000
        return format(seconds: seconds, milliseconds: count - seconds * 1000)
    }

    private static func format(seconds: Int, milliseconds: Int) -> String {
        let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
        let rest = seconds - days * 86_400
        let (year, month, day) = civil(days)
        func padded(_ value: Int, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(rest / 3600, 2)):"
            + "\(padded(rest / 60 % 60, 2)):\(padded(rest % 60, 2)).\(padded(milliseconds, 3))Z"
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

        /// Milliseconds of a fraction; further digits are cut off.
        mutating func fraction() -> Int? {
            var value = 0
            var digits = 0
            while let byte = rest.first, (48...57).contains(byte) {
                if digits < 3 { value = value * 10 + Int(byte) - 48 }
                digits += 1
                rest.removeFirst()
            }
            guard digits > 0 else { return nil }
            for _ in digits..<max(3, digits) { value *= 10 }
            return value
        }
    }
}
