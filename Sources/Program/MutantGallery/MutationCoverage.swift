public import Scenario
public import ScenarioRunner
public import Worlds

/// Mutations of scenarios: each fault is removed, and each expectation is removed with each mutant of the client and the
/// server.
///
/// A scenario must not pass without one of its faults. An expectation is noticed if a mutant violates it, so that without it
/// the mutant would be detected by fewer checks or not at all. A violation is a failure; a `sometimes`, which cannot fail, is
/// violated if it is inconclusive.
public struct MutationCoverage: Sendable {
    /// A part of a scenario's file. Runs of several variants share those that the variants do not replace.
    public struct Part: Hashable, Comparable, Sendable, CustomStringConvertible {
        /// The kind of a part.
        public enum Kind: String, CaseIterable, Sendable {
            case fault, traffic, always, sometimes, eventually, finally, thresholds
        }

        /// The name of the scenario without its variant.
        public let scenario: String
        /// The kind.
        public let kind: Kind
        /// The part in one line.
        public let text: String
        /// Its location in the file.
        public let location: SourceLocation

        public var description: String { "\(location): \(scenario): \(text)" }

        public static func < (left: Part, right: Part) -> Bool {
            let (first, second) = (left.location, right.location)
            return (left.scenario, first.line ?? 0, first.column ?? 0, left.text)
                < (right.scenario, second.line ?? 0, second.column ?? 0, right.text)
        }
    }

    /// What the runs of a scenario have shown of a part.
    public struct Finding: Sendable {
        /// Whether a fault has applied.
        public var isFired = false
        /// The runs that pass without a fault, although it applies in them.
        public var passesWithout: [String] = []
        /// The mutants that violate an expectation.
        public var mutants: Set<RunMutant> = []
        /// Those that no other check of the run detects.
        public var onlyHere: Set<RunMutant> = []

        /// Whether the scenario needs the part.
        public func isNeeded(_ kind: Part.Kind) -> Bool {
            kind == .fault ? isFired && passesWithout.isEmpty : !mutants.isEmpty
        }
    }

    /// The findings of all parts.
    public private(set) var findings: [Part: Finding] = [:]
    /// The mutants that fail the scenario.
    public private(set) var killers: Set<RunMutant> = []

    /// Creates an examination of no run.
    public init() {}

    /// Examines a run of a scenario that passes.
    public init(_ scenario: Scenario, mutants: [RunMutant] = MutantGallery.mutants) throws(SetupError) {
        try examineFaults(scenario)
        let parts = Dictionary(
            scenario.expectations.map { (Key("\($0)", $0.location), Part($0, scenario.name)) }
        ) { first, _ in first }
        for part in parts.values { findings[part] = Finding() }
        for mutant in mutants {
            let verdict = try SimulatedRun.run(scenario, behavior: [mutant].behavior).verdict
            if verdict.result == .fail { killers.insert(mutant) }
            var failures = 0
            var violated: Set<Part> = []
            for check in verdict.checks {
                let part = parts[Key(check.description, check.location)]
                switch check.outcome {
                case .pass: continue
                case .inconclusive:
                    if let part, part.kind == .sometimes { violated.insert(part) }
                case .fail:
                    failures += 1
                    if let part { violated.insert(part) }
                }
            }
            for part in violated {
                findings[part]?.mutants.insert(mutant)
                if failures == 1, part.kind != .sometimes { findings[part]?.onlyHere.insert(mutant) }
            }
        }
    }

    private mutating func examineFaults(_ scenario: Scenario) throws(SetupError) {
        if scenario.faults.isEmpty { return }
        let history = try SimulatedRun.run(scenario).history
        for (index, fault) in scenario.faults.enumerated() {
            let part = Part(
                scenario: scenario.name, kind: .fault,
                text: "\(fault.action) at \(fault.point.rawValue) of \(fault.request)", location: fault.location)
            var finding = Finding()
            finding.isFired = history.entries.contains {
                if case .fault(index, _, _) = $0.event { true } else { false }
            }
            if finding.isFired {
                var without = scenario
                without.faults.remove(at: index)
                if try SimulatedRun.run(without).verdict.result == .pass {
                    finding.passesWithout = [scenario.fullName]
                }
            }
            findings[part] = finding
        }
    }

    /// Adds the examination of another run.
    public mutating func add(_ other: MutationCoverage) {
        killers.formUnion(other.killers)
        findings.merge(other.findings) { left, right in
            var sum = left
            sum.isFired = left.isFired || right.isFired
            sum.passesWithout += right.passesWithout
            sum.mutants.formUnion(right.mutants)
            sum.onlyHere.formUnion(right.onlyHere)
            return sum
        }
    }

    private struct Key: Hashable {
        let text: String
        let location: SourceLocation

        init(_ text: String, _ location: SourceLocation) {
            self.text = text
            self.location = location
        }
    }
}

extension MutationCoverage.Part {
    fileprivate init(_ expectation: Expectation, _ scenario: String) {
        let kind: Kind
        switch expectation.kind {
        case .traffic: kind = .traffic
        case .always: kind = .always
        case .sometimes, .sometimesFault, .sometimesTraffic: kind = .sometimes
        case .eventually: kind = .eventually
        case .serverRow, .serverCount, .finally, .agree: kind = .finally
        case .threshold: kind = .thresholds
        }
        self.init(scenario: scenario, kind: kind, text: "\(expectation)", location: expectation.location)
    }
}
