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
    private var nextReport = firstReport
    private let interval: Duration

    /// The time before which nothing is reported.
    static let firstReport = Duration.seconds(2)

    /// Creates the progress of a plan.
    ///
    /// - Parameter isRewritten: Whether a report replaces the last one on the same line of a terminal.
    public init(planned: Int, isRewritten: Bool) {
        self.planned = planned
        interval = isRewritten ? .milliseconds(250) : .seconds(10)
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
        guard time >= nextReport, done < planned else { return nil }
        nextReport = time + interval
        return line(at: time)
    }

    /// Returns the progress in one line.
    public func line(at time: Duration) -> String {
        var text = "\(done) of \(planned) done, \(failed) failed, \(running) running"
        let seconds = time / .seconds(1)
        guard done > 0, seconds > 0 else { return text }
        let rate = Double(done) / seconds
        text += rate >= 0.095 ? ", \(Self.decimal(rate)) runs/s" : ", \(Self.decimal(rate * 60)) runs/min"
        return text + ", \(Self.left(Double(planned - done) / rate)) left"
    }

    private static func decimal(_ value: Double) -> String {
        let tenths = Int(min(value * 10, 1e9).rounded())
        return "\(tenths / 10).\(tenths % 10)"
    }

    private static func left(_ seconds: Double) -> String {
        let whole = Int(min(seconds, 1e9).rounded(.up))
        return whole < 120 ? "\(whole) s" : "\((whole + 59) / 60) min"
    }
}
