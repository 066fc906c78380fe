/// Dates in header fields (RFC 9110, 5.6.7): written as IMF-fixdate, such as `Sun, 06 Nov 1994 08:49:37 GMT`; the two obsolete
/// forms are read, too.
public enum HTTPDate {
    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"]
    /// The days from 1 March of year 0 to 1 January 1970.
    private static let daysBefore1970: Int64 = 719_468
    /// The last second of the year 9999: the format has four digits for the year.
    private static let lastSecond: Int64 = 253_402_300_799

    /// Returns a time as text.
    ///
    /// - Parameter unixTime: Seconds since 1970, clamped to the years 1970 to 9999.
    public static func text(unixTime: Int64) -> String {
        let seconds = min(max(0, unixTime), lastSecond)
        let (days, secondOfDay) = seconds.quotientAndRemainder(dividingBy: 86_400)
        // Years that begin in March end with the leap day, so that whole groups of years have equal lengths.
        var day = days + daysBefore1970
        var year = day / 146_097 * 400
        day %= 146_097
        let centuries = min(day / 36_524, 3)
        year += centuries * 100
        day -= centuries * 36_524
        year += day / 1461 * 4
        day %= 1461
        let years = min(day / 365, 3)
        year += years
        day -= years * 365
        // The months from March have 31, 30, 31, 30, 31 days, and again: 153 days in five months.
        let month = (5 * day + 2) / 153
        let dayOfMonth = day - (153 * month + 2) / 5 + 1
        if month >= 10 { year += 1 }
        let (hour, minute, second) = (secondOfDay / 3600, secondOfDay / 60 % 60, secondOfDay % 60)
        // Each response has a date, so that its characters go straight into the text.
        return String(unsafeUninitializedCapacity: 29) { text in
            var end = 0
            func add(_ name: String) {
                for byte in name.utf8 {
                    text[end] = byte
                    end += 1
                }
            }
            func add(_ number: Int64) {
                text[end] = UInt8(ascii: "0") + UInt8(number / 10)
                text[end + 1] = UInt8(ascii: "0") + UInt8(number % 10)
                end += 2
            }
            add(weekdays[Int((days + 4) % 7)])
            add(", ")
            add(dayOfMonth)
            add(" ")
            add(months[Int(month)])
            add(" ")
            add(year / 100)
            add(year % 100)
            add(" ")
            add(hour)
            add(":")
            add(minute)
            add(":")
            add(second)
            add(" GMT")
            return end
        }
    }

    // MARK: Reading

    /// Returns the seconds since 1970 of a date; `nil` if it is none.
    public static func seconds(_ text: String) -> Int64? {
        guard text.utf8.count <= 64 else { return nil }
        let parts = Array(text.utf8).split {
            $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: "-")
        }
        // IMF-fixdate and RFC 850: weekday, day, month, year, time, GMT. asctime: weekday, month, day, time, year.
        if parts.count == 6, parts[5].elementsEqual("GMT".utf8) {
            return seconds(day: parts[1], month: parts[2], year: parts[3], time: parts[4])
        }
        if parts.count == 5 { return seconds(day: parts[2], month: parts[1], year: parts[4], time: parts[3]) }
        return nil
    }

    private typealias Part = ArraySlice<UInt8>

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
        return days(year: year, monthFromMarch: Int64(month), day: day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ text: Part, digits: ClosedRange<Int>) -> Int64? {
        guard digits.contains(text.count), text.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return text.reduce(0) { $0 * 10 + Int64($1 - 48) }
    }

    /// Returns the days since 1970-01-01 of a date of the Gregorian calendar.
    private static func days(year: Int64, monthFromMarch month: Int64, day: Int64) -> Int64 {
        let shifted = month < 10 ? year : year - 1
        let dayOfYear = (153 * month + 2) / 5 + day - 1
        let leapDays = shifted / 4 - shifted / 100 + shifted / 400
        return shifted * 365 + leapDays + dayOfYear - daysBefore1970
    }
}
