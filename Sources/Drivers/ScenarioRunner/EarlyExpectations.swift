internal import Determinism
public import Scenario
internal import Worlds

/// `eventually` expectations that hold at 0 s, so that a client that does nothing satisfies them.
public enum EarlyExpectations {
    private static let message =
        "'eventually' holds at 0 s, before any step; begin its window at a mark with 'after' and 'within', or require a "
        + "state that only a step brings about"

    /// Returns the warnings of a scenario, found by a run in virtual time that ends with the events of 0 s. A scenario with
    /// programs, which runs only in real time, has none.
    public static func warnings(_ scenario: Scenario) -> [(location: SourceLocation, message: String)] {
        var start = scenario
        start.expectations = scenario.expectations.compactMap { expectation -> Expectation? in
            guard case .eventually(let device, let condition, .by) = expectation.kind else { return nil }
            return Expectation(.eventually(device: device, condition, .by(.zero)), location: expectation.location)
        }
        if start.expectations.isEmpty || scenario.realTimeReason != nil { return [] }
        func isAtStart(_ step: SimulatedStep) -> Bool {
            if case .event(let entry) = step { entry.time == .zero } else { true }
        }
        guard let run = try? SimulatedRun.run(start, onStep: isAtStart) else { return [] }
        let early = run.verdict.checks.filter { check in
            if case .expectation = check.subject { check.outcome == .pass } else { false }
        }
        return early.map { ($0.location, message) }
    }
}
