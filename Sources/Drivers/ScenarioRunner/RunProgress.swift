/// The progress of a batch of runs, and when to report it. Durations count from the start of the batch.
public struct RunProgress: Sendable {
    /// The runs of the plan.
    public let planned: Int
    /// The runs that have ended.
    public private(set) var done = 0
    /// Those of them that did not pass.
    public private(set) var failed = 0
    /// The runs that have begun and not ended.
    public private(set) var running = 0
    private var pace: ReportPace

    /// Creates the progress of a plan.
    ///
    /// - Parameter isRewritten: Whether a report replaces the last one on the same line of a terminal.
    public init(planned: Int, isRewritten: Bool) {
        self.planned = planned
        pace = ReportPace(isRewritten: isRewritten)
    }

    /// Records the start of a run.
    public mutating func runStarted() { running += 1 }

    /// Records the end of a run.
    public mutating func runEnded(passed: Bool) {
        running -= 1
        done += 1
        if !passed { failed += 1 }
    }

    /// Returns the report that is due; `nil` if none is.
    public mutating func report(at time: Duration) -> String? {
        done < planned && pace.isDue(at: time) ? line(at: time) : nil
    }

    /// Returns the progress in one line.
    public func line(at time: Duration) -> String {
        var text = "\(done) of \(planned) done, \(failed) failed, \(running) running"
        guard let rate = ReportPace.rate(done, in: time) else { return text }
        let perMinute = ReportPace.decimal(rate * 60)
        text += rate >= 0.095 ? ", \(ReportPace.decimal(rate)) runs/s" : ", \(perMinute) runs/min"
        return text + ", \(ReportPace.left(Double(planned - done) / rate)) left"
    }
}
