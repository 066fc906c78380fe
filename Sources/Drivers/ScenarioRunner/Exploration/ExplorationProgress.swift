/// The progress of an exploration, and when to report it. Durations count from its start.
public struct ExplorationProgress: Sendable {
    /// The end of an exploration.
    public enum Plan: Hashable, Sendable {
        /// After a number of seeds.
        case seeds(UInt64)
        /// After a time.
        case time(Duration)
    }

    private let plan: Plan
    private var done: UInt64 = 0
    private var failed = 0
    private var states = 0
    private var pace: ReportPace

    /// Creates the progress.
    ///
    /// - Parameter isRewritten: Whether a report replaces the last one on the same line of a terminal.
    public init(_ plan: Plan, isRewritten: Bool) {
        self.plan = plan
        pace = ReportPace(isRewritten: isRewritten)
    }

    /// Records the results so far.
    public mutating func update(done: UInt64, failed: Int, states: Int) {
        self.done = done
        self.failed = failed
        self.states = states
    }

    /// Returns the report that is due; `nil` if none is.
    public mutating func report(at time: Duration) -> String? { pace.isDue(at: time) ? line(at: time) : nil }

    /// Returns the progress in one line.
    public func line(at time: Duration) -> String {
        let rate = ReportPace.rate(Int(clamping: done), in: time)
        var text = "\(done) seeds"
        if case .seeds(let count) = plan { text = "\(done) of \(count) seeds" }
        text += rate.map { ", \(ReportPace.decimal($0)) seeds/s" } ?? ""
        text += ", \(states) states reached, \(failed) failed"
        switch plan {
        case .seeds(let count):
            if let rate { text += ", \(ReportPace.left(Double(count - min(done, count)) / rate)) left" }
        case .time(let limit): text += ", \(ReportPace.left(max(0, (limit - time) / .seconds(1)))) left"
        }
        return text
    }
}
