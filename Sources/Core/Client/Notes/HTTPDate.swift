/// HTTP dates (RFC 9110, 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, and the two obsolete forms.
enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Returns the seconds since 1970 of a date; `nil` if it is none.
    static func seconds(_ text: String) -> Int64? {
        guard text.utf8.count <= 64 else { return nil }
        let parts = text.utf8.split {
            $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "-")
        }
        // IMF-fixdate and RFC 850: weekday, day, month, year, time, GMT. asctime: weekday, month, day, time, year.
        if parts.count == 6, parts[5].elementsEqual("GMT".utf8) {
            return seconds(day: parts[1], month: parts[2], year: parts[3], time: parts[4])
        }
        if parts.count == 5 { return seconds(day: parts[2], month: parts[1], year: parts[4], time: parts[3]) }
        return nil
    }

    private typealias Part = Substring.UTF8View

    private static func seconds(day: Part, month: Part, year: Part, time: Part) -> Int64? {
        let clock = time.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
            .map { number($0, digits: 2...2) }
        guard let day = number(day, digits: 1...2),
            let month = months.firstIndex(where: { month.elementsEqual($0.utf8) }),
            var year = number(year, digits: 2...4), clock.count == 3, let hour = clock[0], let minute = clock[1],
            let second = clock[2], (1...31).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        // RFC 850 has two digits; the date is not far from now.
        if year < 100 { year += year < 70 ? 2000 : 1900 }
        return days(year: year, month: month + 1, day: day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ text: Part, digits: ClosedRange<Int>) -> Int64? {
        guard digits.contains(text.count), text.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return text.reduce(0) { $0 * 10 + Int64($1 - 48) }
    }

    /// Returns the days since 1970-01-01 of a date of the Gregorian calendar.
    private static func days(year: Int64, month: Int, day: Int64) -> Int64 {
        // Years begin in March, so that the leap day is the last of its year.
        let shifted = month > 2 ? year : year - 1
        let monthFromMarch = Int64((month + 9) % 12)
        let dayOfYear = (153 * monthFromMarch + 2) / 5 + day - 1
        let leapDays = shifted / 4 - shifted / 100 + shifted / 400
        return shifted * 365 + leapDays + dayOfYear - 719_468
    }
}
