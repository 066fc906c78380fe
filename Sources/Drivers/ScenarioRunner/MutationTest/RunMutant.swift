public import Scenario
public import Worlds

/// A mutant of a run: a deliberate defect of a client, an app or the server, as a change of their behaviour. The program has a
/// gallery of them.
public struct RunMutant: Hashable, Sendable, CustomStringConvertible {
    /// The part of a run that has a defect.
    public enum Part: Hashable, Sendable {
        /// The reference clients.
        case client
        /// The server.
        case server
        /// An app.
        case app(Scenario.App)
    }

    /// The check that must detect a mutant.
    public enum Detector: Hashable, Sendable, CustomStringConvertible {
        /// An invariant, in any scenario.
        case invariant(Scenario.Invariant)
        /// An expectation of a built-in scenario, by its description.
        case expectation(scenario: String, String)

        /// The detector in one line.
        public var description: String {
            switch self {
            case .invariant(let invariant): invariant.title
            case .expectation(let scenario, let check): "\(scenario): \(check)"
            }
        }

        /// Returns whether a failed check of a scenario is this one.
        func matches(_ check: Verdict.Check, ofScenario name: String) -> Bool {
            switch self {
            case .invariant(let invariant): check.subject == .invariant(invariant)
            case .expectation(let scenario, let expected): name == scenario && check.description == expected
            }
        }
    }

    /// The name in kebab-case, such as `no-backoff`.
    public let name: String
    /// The part of the run that has the defect.
    public let part: Part
    /// What is wrong, in one sentence.
    public let defect: String
    /// Where such a defect was found, or the rule that it breaks.
    public let origin: String
    /// The check that must detect it.
    public let detector: Detector
    /// The invariant by which an exploration must detect it: that of ``detector``, or, if that is an expectation of one
    /// scenario, the invariant whose rule the defect breaks in any scenario.
    public let invariant: Scenario.Invariant
    /// Runs that detect it, by their full names, of at least two scenarios. They are made first.
    public let runs: [String]
    private let change: @Sendable (inout RunBehavior) -> Void

    /// Creates a mutant.
    ///
    /// - Parameters:
    ///   - broken: The invariant by which an exploration must detect the mutant if `detector` is an expectation.
    ///   - change: Gives a behaviour the defect.
    public init(
        _ name: String, of part: Part, _ defect: String, origin: String, by detector: Detector,
        broken: Scenario.Invariant, in runs: [String], change: @escaping @Sendable (inout RunBehavior) -> Void
    ) {
        self.name = name
        self.part = part
        self.defect = defect
        self.origin = origin
        self.detector = detector
        self.runs = runs
        self.change = change
        if case .invariant(let invariant) = detector { self.invariant = invariant } else { invariant = broken }
    }

    public var description: String { name }

    /// The app that has the defect; `nil` for another part.
    public var app: Scenario.App? { if case .app(let app) = part { app } else { nil } }

    /// Returns whether the clients or the server of a scenario can have the defect.
    func concerns(_ scenario: Scenario) -> Bool {
        if let app { scenario.apps.contains(app) } else { scenario.apps.isEmpty }
    }

    /// Names are unique.
    public static func == (left: RunMutant, right: RunMutant) -> Bool { left.name == right.name }

    public func hash(into hasher: inout Hasher) { hasher.combine(name) }

    fileprivate func apply(to behavior: inout RunBehavior) { change(&behavior) }
}

extension Sequence<RunMutant> {
    /// The behaviour of a run with these mutants.
    public var behavior: RunBehavior { reduce(into: RunBehavior()) { $1.apply(to: &$0) } }
}
