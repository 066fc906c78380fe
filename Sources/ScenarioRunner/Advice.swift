/// What to do about a check that is inconclusive.
public enum Advice {
    /// Returns advice for the reason of an inconclusive check, in a sentence without its period.
    public static func text(check: String, reason: String, _ world: RunWorld) -> String {
        if reason.contains("but the run was late by") {
            return "repeat the run on an idle machine, with --jobs 1, or in simulation (without --live)"
        }
        if reason.contains("the fault never fired") {
            return "check 'request', 'nth' and 'to' of the fault with --trace, or add 'times: { min: 0 }' to it"
        }
        if reason.contains("the state was never reached") {
            return "give the scenario more time or a slower link, or use 'eventually' if the state is required"
        }
        if reason.contains("was never set") {
            return "see the step that sets the mark: its trigger did not occur; --trace lists the events"
        }
        if reason.contains("was never present") {
            return "create the note in a step, or begin the window after the note appears ('since')"
        }
        if reason.contains("fewer than 2 matching requests") {
            return "add a fault or an outage that causes a retry, or widen the pattern 'request'"
        }
        if reason.contains("there was no outage") {
            return "give the device an outage inside the window 'between', or use a number instead of 'budget'"
        }
        if reason.contains("notes were not read") {
            return "see why the run ended early; a larger 'limit' may help"
        }
        if check.hasPrefix("step:") {
            return "see when its trigger occurs with --trace; a larger 'within' or 'limit' may help"
        }
        return "list the events with --trace"
    }
}
