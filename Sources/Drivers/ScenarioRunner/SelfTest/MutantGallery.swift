public import Scenario
public import Worlds

/// The mutants with their defects, and the checks that must detect them.
public enum MutantGallery {
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

    /// A mutant with its description.
    public struct Entry: Sendable {
        /// The mutant.
        public let mutant: RunMutant
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

        init(
            _ mutant: RunMutant, _ defect: String, origin: String, by detector: Detector, in runs: [String]
        ) {
            self.mutant = mutant
            self.defect = defect
            self.origin = origin
            self.detector = detector
            self.runs = runs
            if case .invariant(let invariant) = detector {
                self.invariant = invariant
            } else {
                invariant = MutantGallery.invariant(of: mutant)
            }
        }
    }

    /// The entries in the order of the mutants.
    public static let entries: [Entry] = RunMutant.allCases.map(entry)

    /// Returns the entry of a mutant.
    public static func entry(of mutant: RunMutant) -> Entry {
        switch mutant {
        case .client(let mutant): entry(of: mutant)
        case .server(let mutant): entry(of: mutant)
        case .pattern(let mutant): entry(of: mutant)
        case .reader(let mutant): entry(of: mutant)
        case .field(let mutant): entry(of: mutant)
        }
    }
}
