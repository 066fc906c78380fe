/// A failed check of a run, as the shrinker compares it: two runs fail in the same way if the same rule fails for the same
/// kinds of subjects.
public struct Violation: Sendable {
    /// The rule that failed.
    public enum Rule: Hashable, Sendable {
        /// An invariant.
        case invariant(Scenario.Invariant)
        /// An expectation, by its location and section.
        case expectation(SourceLocation, section: String)
        /// The end of the run, by the kind of its reason.
        case end(History.Reason.Kind)
    }

    /// The kind of the actors that a check concerns.
    private enum ActorKind: Hashable, Sendable { case none, device, writer }

    /// The rule.
    public let rule: Rule
    /// The check in one line.
    public let description: String
    /// The check in one line; of an invariant its name alone.
    public let title: String
    /// The reason.
    public let reason: String
    /// The time, devices and notes.
    public let context: FailureContext
    private let actorKind: ActorKind

    /// Creates the violation of a failed check; `nil` for a step that failed, which is an error of the scenario.
    init?(_ check: Verdict.Check, _ scenario: Scenario, _ history: History) {
        guard case .fail(let reason) = check.outcome else { return nil }
        switch check.subject {
        case .invariant(let invariant): rule = .invariant(invariant)
        case .expectation(let index):
            rule = .expectation(check.location, section: scenario.expectations[index].kind.section)
        case .end(let reason): rule = .end(reason.kind)
        case .fault, .step: return nil
        }
        description = check.description
        title = check.title
        self.reason = reason
        context = FailureContext(check, scenario, history)
        let writers = Set(scenario.writers.map(\.name))
        actorKind =
            context.actors.isEmpty ? .none : context.actors.allSatisfy(writers.contains) ? .writer : .device
    }

    /// Whether any scenario shows the violation: a correct client keeps invariants whatever the steps are, but fails an
    /// expectation whose steps are missing.
    var holdsForEveryScenario: Bool { if case .invariant = rule { true } else { false } }

    /// Returns whether both are violations of the same rule by the same kinds of subjects.
    func isSame(as other: Violation) -> Bool {
        guard rule == other.rule else { return false }
        guard case .invariant = rule else { return true }
        return actorKind == other.actorKind && context.rows.isEmpty == other.context.rows.isEmpty
    }

    /// Returns the violations of a run: those of invariants first, then those of expectations in their order.
    public static func all(in verdict: Verdict, _ scenario: Scenario, _ history: History) -> [Violation] {
        let found = verdict.checks.compactMap { Violation($0, scenario, history) }
        return found.filter(\.holdsForEveryScenario) + found.filter { !$0.holdsForEveryScenario }
    }

    /// Returns the violation of a run that is the same as another one; `nil` if there is none.
    static func first(
        like other: Violation, in verdict: Verdict, _ scenario: Scenario, _ history: History
    ) -> Violation? {
        for check in verdict.checks {
            if let found = Violation(check, scenario, history), found.isSame(as: other) { return found }
        }
        return nil
    }

    /// A name of the violation for files, in kebab-case: the rule and the subject, such as `no-lost-write-n3`.
    public var fileName: String {
        let start =
            switch rule {
            case .invariant(let invariant): invariant.rawValue
            case .expectation(_, let section): section
            case .end: "end"
            }
        let subjects = context.rows.sorted().prefix(1) + (context.rows.isEmpty ? context.actors.sorted().prefix(1) : [])
        let name = ([start] + subjects).joined(separator: "-").lowercased()
        let safe = name.utf8.map { byte -> UInt8 in
            (97...122).contains(byte) || (48...57).contains(byte) ? byte : UInt8(ascii: "-")
        }
        return String(decoding: safe.prefix(100), as: UTF8.self)
    }
}

extension Expectation.Kind {
    /// The section of a scenario file that has the expectation.
    var section: String {
        switch self {
        case .traffic: "traffic"
        case .always: "always"
        case .sometimes, .sometimesFault, .sometimesTraffic: "sometimes"
        case .eventually: "eventually"
        case .serverRow, .serverCount: "server"
        case .finally: "finally"
        case .agree: "agree"
        case .threshold: "threshold"
        }
    }
}
