internal import Scenario

/// The runs of a mutant, and what they prove.
struct MutantProof: Sendable {
    /// A run that fails because of the mutant.
    struct Detection: Sendable {
        /// The full name of the run.
        let run: String
        /// The name of its scenario.
        let scenario: String
        /// The failed check: that of the gallery if it is among them, or the first.
        let check: String
        /// The check; of an invariant its name alone.
        let title: String
        /// The check's location.
        let location: SourceLocation
        /// Whether it is the check of the gallery.
        let isExpected: Bool
    }

    let mutant: RunMutant
    /// Whether the check of the gallery and a second scenario must detect the mutant; otherwise any check of any run.
    let needsDetector: Bool
    private(set) var detections: [Detection] = []
    /// The number of runs.
    private(set) var runCount = 0
    /// The runs that could not be set up.
    private(set) var failures: [String] = []
    var duration = Duration.zero

    /// The number of scenarios that must detect a mutant.
    static let scenariosMin = 2

    init(_ mutant: RunMutant, needsDetector: Bool) {
        self.mutant = mutant
        self.needsDetector = needsDetector
    }

    /// Records a run.
    mutating func add(_ scenario: Scenario, _ verdict: Verdict) {
        runCount += 1
        let failed = verdict.checks.filter { if case .fail = $0.outcome { true } else { false } }
        let expected = failed.first { mutant.detector.matches($0, ofScenario: scenario.name) }
        guard let check = expected ?? failed.first else { return }
        detections.append(
            Detection(
                run: scenario.fullName, scenario: scenario.name, check: check.description, title: check.title,
                location: check.location,
                isExpected: expected != nil))
    }

    /// Records a run that could not be set up.
    mutating func add(_ scenario: Scenario, failure: String) {
        runCount += 1
        failures.append("\(scenario.fullName): \(failure)")
    }

    /// The detection by the check of the gallery, or the first one.
    var mainDetection: Detection? { detections.first(where: \.isExpected) ?? detections.first }

    /// The number of scenarios that detect the mutant.
    var scenarioCount: Int { Set(detections.map(\.scenario)).count }

    /// Whether the mutant is detected as it must be.
    var isProven: Bool {
        guard needsDetector else { return !detections.isEmpty }
        return scenarioCount >= Self.scenariosMin && detections.contains(where: \.isExpected)
    }

    /// The reason why the mutant is not proven.
    var problem: String {
        if detections.isEmpty { return "no check failed" }
        if scenarioCount < Self.scenariosMin { return "one scenario only detects it: \(detections[0].scenario)" }
        return "the check that must detect it did not fail: \(mutant.detector)"
    }
}
