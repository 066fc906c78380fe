public import ScenarioModel
public import ScenarioWorld

/// What a scenario does not check: faults without which it passes as well, and expectations that hold for every mutant.
public struct Vacuity: Sendable {
    /// A part of a scenario that no run needs.
    public struct Finding: Sendable, CustomStringConvertible {
        /// The kind of a finding.
        public enum Kind: String, Sendable {
            /// The fault does not apply.
            case silentFault = "fault never fires"
            /// Without the fault the scenario passes.
            case idleFault = "passes without fault"
            /// No mutant violates the expectation.
            case idleExpectation = "no mutant fails"
        }

        /// The name of the scenario with its variant.
        public let scenario: String
        /// The kind.
        public let kind: Kind
        /// The fault or expectation in one line.
        public let subject: String
        /// Its location in the file.
        public let location: SourceLocation

        public var description: String { "\(location): \(scenario): \(kind.rawValue): \(subject)" }
    }

    /// The findings.
    public private(set) var findings: [Finding] = []
    /// The number of faults and expectations that were tried.
    public private(set) var subjects = 0
    /// The mutants that fail the scenario.
    public private(set) var killers: [RunMutant] = []

    /// Examines a scenario that passes.
    public init(_ scenario: Scenario, mutants: [RunMutant] = RunMutant.allCases) throws(SetupError) {
        let history = try SimulatedRun.run(scenario).history
        for (index, fault) in scenario.faults.enumerated() {
            subjects += 1
            let subject = "\(fault.action) at \(fault.point.rawValue) of \(fault.request)"
            let fires = history.entries.contains { if case .fault(index, _, _) = $0.event { true } else { false } }
            guard fires else {
                add(.silentFault, subject, fault.location, scenario)
                continue
            }
            var without = scenario
            without.faults.remove(at: index)
            if try SimulatedRun.run(without).verdict.result == .pass {
                add(.idleFault, subject, fault.location, scenario)
            }
        }
        var violated: Set<String> = []
        for mutant in mutants {
            let verdict = try SimulatedRun.run(scenario, mutants: [mutant]).verdict
            if verdict.result == .fail { killers.append(mutant) }
            for check in verdict.checks where check.outcome != .pass {
                violated.insert(Self.key(check.description, check.location))
            }
        }
        for expectation in scenario.expectations where Self.concernsDevice(expectation) {
            subjects += 1
            let text = "\(expectation)"
            if violated.contains(Self.key(text, expectation.location)) { continue }
            add(.idleExpectation, text, expectation.location, scenario)
        }
    }

    private static func key(_ text: String, _ location: SourceLocation) -> String { "\(location) \(text)" }

    private mutating func add(
        _ kind: Finding.Kind, _ subject: String, _ location: SourceLocation, _ scenario: Scenario
    ) {
        findings.append(
            Finding(scenario: scenario.fullName, kind: kind, subject: subject, location: location))
    }

    /// Whether an expectation is about what a device shows.
    private static func concernsDevice(_ expectation: Expectation) -> Bool {
        switch expectation.kind {
        case .always, .sometimes, .eventually, .finally: true
        default: false
        }
    }
}
