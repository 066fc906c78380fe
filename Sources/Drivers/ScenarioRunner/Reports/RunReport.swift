internal import Scenario

/// The results of a batch, from which all reports are made.
public struct RunReport: Sendable {
    /// The verdicts of one scenario in both worlds that differ.
    public struct Difference: Sendable {
        /// The scenario with its variant.
        public let name: String
        /// The scenario's file.
        public let source: String
        /// The difference, in lines.
        public let lines: [String]
    }

    /// The runs in the order of the plan.
    public internal(set) var runs: [RunSummary] = []
    /// The runs that must fail, which do not count.
    public internal(set) var canaries: [RunSummary] = []
    /// The files that were rejected.
    public internal(set) var rejections: [ScenarioSelection.Rejection]
    /// The scenarios whose verdicts differ between the worlds.
    public internal(set) var differences: [Difference] = []
    /// Whether a report could not be written.
    public internal(set) var hasWriteError = false

    /// Creates a report.
    public init(
        runs: [RunSummary] = [], rejections: [ScenarioSelection.Rejection] = [], differences: [Difference] = []
    ) {
        self.runs = runs
        self.rejections = rejections
        self.differences = differences
    }

    /// The number of runs with a result.
    public func count(_ result: RunSummary.Result) -> Int { runs.count { $0.result == result } }

    /// The exit status: the worst of all runs, files and comparisons.
    public var exitStatus: Int32 {
        RunStatus.worst(
            of: runs.map(\.exitStatus)
                + canaries.map { $0.result == .fail ? RunStatus.passed : RunStatus.notDeterministic }
                + rejections.map { _ in RunStatus.invalidFile }
                + differences.map { _ in RunStatus.failed } + (hasWriteError ? [RunStatus.unavailable] : []))
    }
}

extension RunSummary {
    /// The reason of a result other than `pass`, in a line: the check and its reason, or the error.
    var cause: String {
        guard let main = mainCheck, errors.isEmpty else { return errors.joined(separator: " ") }
        return "\(main.description): \(main.reason)"
    }

    /// The check that failed, or the first that is inconclusive.
    var mainCheck: Check? { FailureScreen.mainCheck(checks).map { checks[$0] } }

    /// The location of that check, or the file.
    var location: SourceLocation { mainCheck?.location ?? SourceLocation(file: run.source) }
}
