public import Determinism

extension Scenario {
    /// The time of the last planned event: a change of a link's conditions, or the end of a traffic window.
    public var plannedEnd: Nanoseconds {
        var end = devices.flatMap(\.network).map(\.start).max() ?? .zero
        for expectation in expectations {
            if case .traffic(let traffic) = expectation.kind, case .time(let time)? = traffic.between?.to {
                end = max(end, time)
            }
        }
        return end
    }

    /// Returns whether an `eventually` expectation that does not hold yet can still be met.
    public func hasOpenExpectations(_ history: History, at now: Nanoseconds) -> Bool {
        var evaluator = ExpectationEvaluator(self, history)
        for expectation in expectations {
            guard case .eventually(_, _, let window) = expectation.kind else { continue }
            let end: Nanoseconds
            switch window {
            case .by(let time): end = time
            case .after(let mark, let within):
                guard let time = history.time(of: mark) else { continue }
                end = time + within
            }
            if now < end, case .fail = evaluator.outcome(of: expectation) { return true }
        }
        return false
    }
}
