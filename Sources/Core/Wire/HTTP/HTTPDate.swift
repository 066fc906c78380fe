/// The format of dates in header fields, IMF-fixdate (RFC 9110, 5.6.7).
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
        return "\(weekdays[Int((days + 4) % 7)]), \(two(dayOfMonth)) \(months[Int(month)]) \(year) "
            + "\(two(hour)):\(two(minute)):\(two(second)) GMT"
    }

    private static func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
