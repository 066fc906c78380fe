import Field
import Testing

/// Calendar days and submission periods.
@Suite struct FieldCalendarTests {
    private static let hour = 3_600_000
    /// 29 March 2026, 01:00 UTC, and 25 October 2026, 01:00 UTC: clocks in central Europe change.
    private static let (spring, autumn) = (1_774_746_000_000, 1_792_890_000_000)
    private let berlin = FieldCalendar(
        offset: hour, changes: [.init(start: spring, offset: 2 * hour), .init(start: autumn, offset: hour)])

    @Test func aDayBeginsAtMidnight() {
        let midnight = 20_000 * 24 * Self.hour
        #expect(FieldCalendar.utc.day(of: midnight) == 20_000 && FieldCalendar.utc.day(of: midnight - 1) == 19_999)
        #expect(FieldCalendar.utc.day(of: -1) == -1)
        #expect(FieldCalendar.utc.isStale(readAt: midnight - 60_000, now: midnight + 60_000))
        #expect(!FieldCalendar.utc.isStale(readAt: midnight, now: midnight + 24 * Self.hour - 1))
        // A clock that was set back is of another day, too.
        #expect(FieldCalendar.utc.isStale(readAt: midnight, now: midnight - 1))
    }

    /// Days on which clocks change have 23 and 25 hours: not midnight and 24 hours.
    @Test(arguments: [(spring, 23), (autumn, 25)]) func aDayIsNotAlwaysTwentyFourHours(_ change: Int, _ hours: Int) {
        let day = berlin.day(of: change)
        let times = (-48..<48).map { change + $0 * Self.hour }.filter { berlin.day(of: $0) == day }
        #expect(times.count == hours)
        let start = times[0]
        #expect(berlin.day(of: start - 1) == day - 1 && berlin.day(of: start + hours * Self.hour) == day + 1)
    }

    @Test func aPeriodContainsItsStartAndNotItsEnd() {
        let period = SubmissionPeriod(containing: 25, length: 10)
        #expect(period.start == 20 && period.end == 30)
        #expect(SubmissionPeriod(containing: 20, length: 10) == period)
        #expect(SubmissionPeriod(containing: 30, length: 10) != period)
        #expect(SubmissionPeriod(containing: -1, length: 10).start == -10)
    }
}
