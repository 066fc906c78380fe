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
        case inconclusive(String, Cause = .other)
    }

    /// What makes a check inconclusive, as far as there is advice about it.
    public enum Cause: Hashable, Sendable {
        /// The run was late.
        case lateness
        /// A fault never fired.
        case faultNotFired
        /// The state of a `sometimes` was never reached.
        case stateNotReached
        /// A mark was never set.
        case markNotSet
        /// A note was never present.
        case noteNotPresent
        /// Fewer than two requests match.
        case tooFewRequests
        /// There was no outage.
        case noOutage
        /// The server's notes were not read.
        case serverNotRead
        /// Anything else.
        case other
    }

    /// What a check is about. The indices are those of the scenario that was run.
    public enum Subject: Hashable, Sendable {
        /// An expectation.
        case expectation(Int)
        /// A fault that must fire.
        case fault(Int)
        /// A step that failed, was not performed, or whose mark was never set.
        case step(Int)
        /// An invariant that is violated.
        case invariant(Scenario.Invariant)
        /// The end of the run, which was aborted for this reason.
        case end(History.Reason)
    }

    /// A check and its outcome: an expectation, a fault that must fire, an invariant that is violated, or the end of the
    /// run.
    public struct Check: Sendable {
        /// What the check is about.
        public let subject: Subject
        /// The check in one line.
        public let description: String
        /// The location in the scenario's file.
        public let location: SourceLocation
        /// The outcome.
        public let outcome: Outcome

        /// The check in one line; of an invariant its name alone.
        public var title: String {
            if case .invariant(let invariant) = subject { invariant.title } else { description }
        }
    }

    /// The result of the run.
    public enum Result: String, Sendable {
        case pass, fail, inconclusive

        /// Returns the worst result; `fail` is worse than `inconclusive`, and `pass` if there are none.
        public static func worst(of results: some Sequence<Result>) -> Result {
            results.reduce(.pass) { $0 == .fail || $1 == .pass ? $0 : $1 }
        }
    }

    /// The checks in order.
    public let checks: [Check]
    /// The worst outcome of all checks; `fail` is worse than `inconclusive`. It is `inconclusive` if no expectation could
    /// be evaluated.
    public let result: Result
    /// The expectations that were not evaluated, in order, and the invariant that the run leaves undecided.
    public let impossible: [ImpossibleCheck]
    /// The invariants that were not checked, although the scenario does not drop them.
    public let unchecked: [UncheckedInvariant]

    /// The description of the check that a run ends by itself.
    private static let endDescription = "the run ends"

    /// The limit on lateness as an excuse. An expectation that holds only with bounds moved by the lateness passes if
    /// the lateness is below the limit, and is inconclusive otherwise.
    public static let hostPauseMax = Nanoseconds.seconds(1)

    /// The divisor of the time limit: host pauses explain a failure in an aborted run only if they take at least a
    /// tenth of the limit.
    private static let limitPart: Int64 = 10

    /// Returns the outcome of a check of an aborted run. A failure becomes `inconclusive` if the host was paused for a
    /// considerable part of the time limit, because the abort may have caused the failure.
    private static func excused(_ outcome: Outcome, _ scenario: Scenario, _ lateness: Lateness) -> Outcome {
        let paused = lateness.delay(from: .zero, to: scenario.limit)
        guard case .fail(let reason) = outcome, paused >= hostPauseMax, paused.count >= scenario.limit.count / limitPart
        else { return outcome }
        return .inconclusive("\(reason); but the run was late by \(TimeFormat.seconds(paused))", .lateness)
    }

    /// Returns the checks of faults that have fired less often than they must.
    private static func faults(_ scenario: Scenario, _ history: History) -> [Check] {
        var checks: [Check] = []
        for (index, fault) in scenario.faults.enumerated() where fault.mustFire {
            let count = history.entries.count {
                if case .fault(index, _, _) = $0.event { true } else { false }
            }
            if count >= fault.times.lowerBound { continue }
            let reason =
                count == 0 ? "the fault never fired" : "the fault fired \(count) of \(fault.times.lowerBound) times"
            checks.append(
                Check(
                    subject: .fault(index),
                    description: "fault: \(fault.action) at \(fault.point.rawValue) of \(fault.request)",
                    location: fault.location, outcome: .inconclusive(reason, count == 0 ? .faultNotFired : .other)))
        }
        return checks
    }

    /// Evaluates a run.
    public init(_ scenario: Scenario, _ history: History) {
        var evaluator = ExpectationEvaluator(scenario, history)
        let wasAborted = history.wasAborted
        var impossible = scenario.impossibleChecks(history)
        var checks: [Check] = []
        for (index, expectation) in scenario.expectations.enumerated() where impossible[index] == nil {
            let outcome = evaluator.outcome(of: expectation)
            if outcome == .pass, let reason = evaluator.undecidedReason(of: expectation) {
                impossible[index] = ImpossibleCheck(
                    description: expectation.description, location: expectation.location, reason: reason)
                continue
            }
            checks.append(
                Check(
                    subject: .expectation(index), description: expectation.description, location: expectation.location,
                    outcome: wasAborted ? Self.excused(outcome, scenario, evaluator.lateness) : outcome))
        }
        checks += Self.faults(scenario, history)
        checks += Self.steps(scenario, history)
        let invariantsLocation =
            scenario.locations["invariants"] ?? SourceLocation(file: scenario.name, line: 1, column: 1)
        for invariant in scenario.invariants.members {
            guard let reason = evaluator.violation(of: invariant)?.reason else { continue }
            checks.append(
                Check(
                    subject: .invariant(invariant), description: invariant.checkDescription,
                    location: invariantsLocation,
                    outcome: wasAborted ? Self.excused(.fail(reason), scenario, evaluator.lateness) : .fail(reason)))
        }
        for entry in history.entries {
            guard case .aborted(let reason) = entry.event else { continue }
            checks.append(
                Check(
                    subject: .end(reason), description: Self.endDescription,
                    location: SourceLocation(file: scenario.name, line: 1, column: 1),
                    outcome: Self.excused(.fail(reason.description), scenario, evaluator.lateness)))
        }
        self.checks = checks
        unchecked = evaluator.facts.unchecked
        // What the run did, not what the scenario is, leaves it undecided: readers of reports must see it.
        let undecided = unchecked.filter { $0.invariant == .noDuplicateEffect }.map {
            ImpossibleCheck(
                description: $0.invariant.checkDescription, location: invariantsLocation, reason: $0.reason)
        }
        self.impossible = impossible.sorted { $0.key < $1.key }.map(\.value) + undecided
        let hasEvaluatedNone = !impossible.isEmpty && impossible.count == scenario.expectations.count
        result = Result.worst(
            of: (hasEvaluatedNone ? [.inconclusive] : [])
                + checks.map { check -> Result in
                    switch check.outcome {
                    case .pass: .pass
                    case .fail: .fail
                    case .inconclusive: .inconclusive
                    }
                })
    }

    /// Returns a check for each step that failed, was not performed, or whose mark was never set.
    private static func steps(_ scenario: Scenario, _ history: History) -> [Check] {
        var reasons: [Int: Outcome] = [:]
        for entry in history.entries {
            switch entry.event {
            case .stepFailed(let step, let reason, let location): reasons[step] = .fail("\(location): \(reason)")
            case .missed(let step, let reason):
                reasons[step] = reasons[step] ?? .inconclusive(reason.description, cause(of: reason))
            default: break
            }
        }
        return scenario.steps.enumerated().compactMap { index, step in
            var outcome = reasons[index]
            if let mark = step.mark, outcome == nil, history.index(of: mark) == nil {
                outcome = .inconclusive("mark '\(mark)' was never set", .markNotSet)
            }
            return outcome.map {
                Check(subject: .step(index), description: step.description, location: step.location, outcome: $0)
            }
        }
    }

    private static func cause(of reason: History.Reason) -> Cause {
        if case .markNotSet = reason { .markNotSet } else { .other }
    }
}
