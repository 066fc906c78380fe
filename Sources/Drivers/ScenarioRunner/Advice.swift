internal import Scenario

/// What to do about a check that is inconclusive.
enum Advice {
    /// Returns advice for an inconclusive check, in a sentence without its period.
    static func text(_ subject: Verdict.Subject, _ cause: Verdict.Cause) -> String {
        switch cause {
        case .lateness: "repeat the run on an idle machine, with --jobs 1, or in simulation (without --live)"
        case .faultNotFired:
            "check 'request', 'nth' and 'to' of the fault with --trace, or add 'times: { min: 0 }' to it"
        case .stateNotReached:
            "give the scenario more time or a slower link, or use 'eventually' if the state is required"
        case .markNotSet: "see the step that sets the mark: its trigger did not occur; --trace lists the events"
        case .noteNotPresent: "create the note in a step, or begin the window after the note appears ('since')"
        case .tooFewRequests: "add a fault or an outage that causes a retry, or widen the pattern 'request'"
        case .noOutage: "give the device an outage inside the window 'between', or use a number instead of 'budget'"
        case .serverNotRead: "see why the run ended early; a larger 'limit' may help"
        case .other:
            if case .step = subject {
                "see when its trigger occurs with --trace; a larger 'within' or 'limit' may help"
            } else {
                "list the events with --trace"
            }
        }
    }
}
