public import Determinism

/// The result of a run, measured against its scenario.
public struct Verdict: Sendable {
    /// The outcome of one check.
    public enum Outcome: Hashable, Sendable {
        /// The expectation held.
        case pass
        /// The expectation failed, for this reason.
        case fail(String)
        /// The run did not show whether it holds, for this reason.
        case inconclusive(String)
    }

    /// A check and its outcome: an expectation, a fault that must fire, or the end of the run.
    public struct Check: Sendable {
        /// The check in one line.
        public let description: String
        /// The location in the scenario's file.
        public let location: SourceLocation
        /// The outcome.
        public let outcome: Outcome
    }

    /// The result of the run.
    public enum Result: String, Sendable {
        case pass, fail, inconclusive

        /// The exit status: 0 pass, 1 fail, 3 inconclusive.
        public var exitStatus: Int32 {
            switch self {
            case .pass: 0
            case .fail: 1
            case .inconclusive: 3
            }
        }

        /// Returns the worst result; `fail` is worse than `inconclusive`, and `pass` if there are none.
        public static func worst(of results: some Sequence<Result>) -> Result {
            results.reduce(.pass) { $0 == .fail || $1 == .pass ? $0 : $1 }
        }
    }

    /// The checks in order.
    public let checks: [Check]
    /// The worst outcome of all checks; `fail` is worse than `inconclusive`.
    public let result: Result

    /// The length from which a host pause makes time-dependent failures inconclusive.
    public static let hostPauseMax = Nanoseconds.seconds(1)

    /// Returns the outcome; `inconclusive` instead of a failure in a run with a long host pause.
    private static func excused(_ outcome: Outcome, _ history: History) -> Outcome {
        guard case .fail(let reason) = outcome, history.longestHostPause >= hostPauseMax else { return outcome }
        return .inconclusive(
            "\(reason); but the host was paused for \(TimeFormat.seconds(history.longestHostPause))")
    }

    /// Evaluates a run.
    public init(_ scenario: Scenario, _ history: History) {
        var evaluator = ExpectationEvaluator(scenario, history)
        var checks = scenario.expectations.map {
            let outcome = evaluator.outcome(of: $0)
            // The final state does not depend on the host's speed, unless the run was aborted.
            let dependsOnTime = $0.kind.dependsOnTime || history.wasAborted
            return Check(
                description: $0.description, location: $0.location,
                outcome: dependsOnTime ? Self.excused(outcome, history) : outcome)
        }
        for (index, fault) in scenario.faults.enumerated() where fault.mustFire {
            let hasFired = history.entries.contains {
                if case .fault(index, _) = $0.event { return true }
                return false
            }
            if !hasFired {
                checks.append(
                    Check(
                        description: "fault: response \(fault.nth) to \(fault.request) is lost",
                        location: fault.location, outcome: .inconclusive("the fault never fired")))
            }
        }
        for entry in history.entries {
            guard case .aborted(let reason) = entry.event else { continue }
            checks.append(
                Check(
                    description: "the run ends", location: SourceLocation(file: scenario.name, line: 1, column: 1),
                    outcome: Self.excused(.fail(reason), history)))
        }
        self.checks = checks
        result = Result.worst(
            of: checks.map { check -> Result in
                switch check.outcome {
                case .pass: .pass
                case .fail: .fail
                case .inconclusive: .inconclusive
                }
            })
    }
}
