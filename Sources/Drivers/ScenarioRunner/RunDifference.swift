public import Scenario
public import Worlds

/// The first difference between two runs that should be equal.
public struct RunDifference: Sendable {
    /// The digests of both runs.
    public let digests: (String, String)
    /// The number of events that the worlds have executed.
    public let eventCounts: (Int, Int)
    /// The index of the first event that differs; `nil` if the histories are equal.
    public let index: Int?
    /// The events at that index; `nil` where a history has ended.
    public let entries: (History.Entry?, History.Entry?)

    /// Compares two runs; returns `nil` if they are equal.
    public init?(_ first: RunResult, _ second: RunResult) {
        index = first.history.firstDifference(from: second.history)
        guard index != nil || first.eventCount != second.eventCount else { return nil }
        digests = (first.digestText, second.digestText)
        eventCounts = (first.eventCount, second.eventCount)
        func entry(_ history: History, _ index: Int?) -> History.Entry? {
            guard let index, index < history.entries.count else { return nil }
            return history.entries[index]
        }
        entries = (entry(first.history, index), entry(second.history, index))
    }

    /// The difference in lines.
    public var lines: [String] {
        guard let index else {
            return [
                "digests \(digests.0) and \(digests.1), \(eventCounts.0) and \(eventCounts.1) internal events; the "
                    + "histories are equal"
            ]
        }
        func line(_ entry: History.Entry?) -> String { entry.map(RunTrace.line) ?? "(the run has ended)" }
        return [
            "digests \(digests.0) and \(digests.1); the first event that differs has index \(index):",
            "  run 1: \(line(entries.0))",
            "  run 2: \(line(entries.1))",
        ]
    }
}
