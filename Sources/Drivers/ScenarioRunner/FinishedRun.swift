public import Scenario
public import Worlds

/// A run that has ended.
public struct FinishedRun: Sendable {
    /// The result of a run, or the reason why there is none.
    public enum Outcome: Sendable {
        /// The run took place.
        case result(RunResult)
        /// The scenario could not be set up; its file has an error that only the run detects.
        case invalid(String)
        /// The system refused a port, a file or memory.
        case unavailable(String)
        /// A program of the user's did not keep to its protocol, so there is no verdict.
        case unusable(String)
    }

    /// The result of a repetition, in virtual time.
    public enum Repetition: Sendable {
        /// The run was not repeated.
        case none
        /// The repetition had the same events.
        case same
        /// The repetition had other events.
        case different(RunDifference)
        /// The result in virtual time of a live run that did not pass.
        case simulated(Verdict.Result)
    }

    /// The planned run.
    public let run: PlannedRun
    /// Its outcome.
    public let outcome: Outcome
    /// The comparison with its repetition.
    public let repetition: Repetition
    /// The real time that the run took, without its repetition.
    public let wallTime: Duration

    /// The result; `nil` if there is none.
    public var result: RunResult? { if case .result(let result) = outcome { result } else { nil } }
}
