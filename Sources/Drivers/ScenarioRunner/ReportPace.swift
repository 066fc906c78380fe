/// When reports of progress are due, and the numbers in them.
struct ReportPace: Sendable {
    /// The time before which nothing is reported.
    static let firstReport = Duration.seconds(2)

    private var next = firstReport
    private let interval: Duration

    /// Creates the pace of reports.
    ///
    /// - Parameter isRewritten: Whether a report replaces the last one on the same line of a terminal.
    init(isRewritten: Bool) { interval = isRewritten ? .milliseconds(250) : .seconds(10) }

    /// Returns whether a report is due; if so, the next one is due after the interval.
    mutating func isDue(at time: Duration) -> Bool {
        guard time >= next else { return false }
        next = time + interval
        return true
    }

    /// Returns the number per second; `nil` if it is not known yet.
    static func rate(_ count: Int, in time: Duration) -> Double? {
        let seconds = time / .seconds(1)
        return count > 0 && seconds > 0 ? Double(count) / seconds : nil
    }

    /// Returns a number with one decimal.
    static func decimal(_ value: Double) -> String {
        let tenths = Int(min(value * 10, 1e9).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    /// Returns the time that is left.
    static func left(_ seconds: Double) -> String {
        let whole = Int(min(seconds, 1e9).rounded(.up))
        return whole < 120 ? "\(whole) s" : "\((whole + 59) / 60) min"
    }
}
