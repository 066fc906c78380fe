public import Determinism

/// The absolute start of a timeline. Proxies with the same start are at the same position at the same time, on all
/// machines whose clocks agree.
public struct TimelineStart: Hashable, Sendable, CustomStringConvertible {
    /// The start as it was given.
    public let description: String
    /// The start in nanoseconds since 1970.
    public let unixNanoseconds: Int64

    /// The years of a start.
    private static let years: ClosedRange<Int64> = 1970...2199
    /// The largest number of bytes of a start.
    private static let bytesMax = 40

    /// The text of errors about a start.
    public static let expected =
        "a time of RFC 3339 in the years \(years.lowerBound) to \(years.upperBound), such as 2026-03-01T12:00:00Z"

    /// Parses a time of RFC 3339 (a date, a time and an offset from UTC); returns `nil` for any other text.
    public init?(_ text: String) {
        guard text.utf8.count <= Self.bytesMax else { return nil }
        var rest = Array(text.utf8)[...]
        func take(_ bytes: String) -> Bool {
            guard let first = rest.first, bytes.utf8.contains(first) else { return false }
            rest.removeFirst()
            return true
        }
        func number(_ digits: Int, _ range: ClosedRange<Int64>) -> Int64? {
            let taken = rest.prefix(digits)
            guard taken.count == digits, taken.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            rest.removeFirst(digits)
            let value = taken.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
            return range.contains(value) ? value : nil
        }
        guard let year = number(4, Self.years), take("-"), let month = number(2, 1...12), take("-"),
            let day = number(2, 1...Self.days(month, of: year)), take("Tt"), let hour = number(2, 0...23), take(":"),
            let minute = number(2, 0...59), take(":"), let second = number(2, 0...60)
        else { return nil }
        var nanoseconds: Int64 = 0
        if take(".") {
            let digits = Array(rest.prefix { (0x30...0x39).contains($0) })
            guard !digits.isEmpty else { return nil }
            rest.removeFirst(digits.count)
            for place in 0..<9 {
                nanoseconds = nanoseconds * 10 + (place < digits.count ? Int64(digits[place] - 0x30) : 0)
            }
        }
        var ahead: Int64 = 0
        if !take("Zz") {
            let isBehind = take("-")
            guard isBehind || take("+"), let hours = number(2, 0...23), take(":"), let minutes = number(2, 0...59)
            else { return nil }
            ahead = (hours * 60 + minutes) * (isBehind ? -60 : 60)
        }
        guard rest.isEmpty else { return nil }
        let days = Self.days(before: year, month) + day - 1
        description = text
        unixNanoseconds = (days * 86_400 + (hour * 60 + minute) * 60 + second - ahead) * 1_000_000_000 + nanoseconds
    }

    /// Returns the position of the timeline at a time of the wall clock: negative before the start, and beyond the
    /// timeline's length after its first round.
    ///
    /// - Parameter now: The time in nanoseconds since 1970.
    public func offset(at now: Int64) -> Nanoseconds { Nanoseconds(now.subtractingSaturating(unixNanoseconds)) }

    private static func days(_ month: Int64, of year: Int64) -> Int64 {
        switch month {
        case 2: isLeap(year) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    private static func isLeap(_ year: Int64) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    /// Returns the days from 1970 to the first day of a month.
    private static func days(before year: Int64, _ month: Int64) -> Int64 {
        let years = (years.lowerBound..<year).reduce(Int64(0)) { $0 + (isLeap($1) ? 366 : 365) }
        return (1..<month).reduce(years) { $0 + days($1, of: year) }
    }
}
