internal import CommandSupport
public import Determinism
public import Scenario
internal import Worlds

/// A run as it is reported: without its history, and without texts of notes that are not to be shown.
public struct RunSummary: Sendable {
    /// The result of a run.
    public enum Result: String, Sendable {
        case pass, fail, inconclusive
        /// There is no verdict: the run could not take place, or its events are not deterministic.
        case error
    }

    /// A check as it is reported.
    public struct Check: Sendable {
        /// The outcome of a check.
        public enum Outcome: String, Sendable { case pass, fail, inconclusive }

        /// The check in one line.
        public let description: String
        /// The location in the scenario's file.
        public let location: SourceLocation
        /// The outcome.
        public let outcome: Outcome
        /// The reason of an outcome other than `pass`.
        public let reason: String
        /// The time of the failure.
        public let time: Nanoseconds?
        /// What to do if the outcome is `inconclusive`.
        public let advice: String
    }

    /// The run.
    public let run: RunIdentity
    /// The result.
    public let result: Result
    /// The checks in order.
    public let checks: [Check]
    /// The expectations that could not be evaluated, which do not count as passed.
    public let impossible: [ImpossibleCheck]
    /// The invariants that were checked, and those that were not, in lines.
    let invariantLines: [String]
    /// The digest of all events; `nil` if the run did not take place.
    public let digest: String?
    /// The number of events that the world has executed.
    public let eventCount: Int
    /// The length of the history: virtual time, or real time of a live run.
    public let duration: Nanoseconds
    /// The real time that the run took.
    public let wallTime: Duration
    /// Whether a repetition had the same events; `nil` if the run was not repeated.
    public let isReproducible: Bool?
    /// The reason why the run could not take place, or the first difference between repetitions; in lines.
    public let errors: [String]
    /// The explanation of a result other than `pass`; at most one screen.
    public let screen: [String]
    /// A line per event, if it is wanted.
    public private(set) var trace: [String]
    /// The run with its history as a JSON object, if it is wanted and the run took place.
    private(set) var document: String?
    /// The run for other programs, if ``document`` is wanted for a folder.
    private(set) var views: [ReportFile] = []
    /// The exit status of this run alone.
    public let exitStatus: Int32

    /// Creates the summary of a run.
    ///
    /// - Parameters:
    ///   - showsText: Whether texts of notes that are not part of the scenario file are shown.
    ///   - isTraced: Whether ``trace`` is wanted.
    ///   - isDocumented: Whether the run with its history is wanted.
    ///   - hasViews: Whether the files for other programs are wanted.
    ///   - notes: Further lines of the explanation.
    public init(
        _ finished: FinishedRun, showsText: Bool, isTraced: Bool, isDocumented: Bool = false, hasViews: Bool = false,
        notes: [String] = []
    ) {
        self.init(finished, showsText: showsText, isTraced: isTraced, explainedBy: notes)
        if isDocumented {
            document = RunDocument.json(finished, self, TextDisplay(finished.run.scenario, showsAll: showsText))
        }
        if hasViews { views = ReportFile.views(of: finished) }
    }

    private init(_ finished: FinishedRun, showsText: Bool, isTraced: Bool, explainedBy notes: [String]) {
        let run = finished.run
        self.run = RunIdentity(run)
        wallTime = finished.wallTime
        guard let result = finished.result else {
            let (reason, status) = Self.obstacle(finished.outcome)
            exitStatus = status
            self.result = status == RunStatus.inconclusive ? .inconclusive : .error
            (impossible, invariantLines) = ([], run.scenario.invariants.summary(unchecked: []))
            (checks, screen, trace, errors) = ([], [], [], reason.split(separator: "\n").map(String.init))
            (digest, eventCount, duration, isReproducible) = (nil, 0, .zero, nil)
            return
        }
        let history = result.history
        let texts = TextDisplay(run.scenario, showsAll: showsText)
        let scenario = run.scenario
        checks = result.verdict.checks.map { Self.check($0, scenario, history, texts) }
        impossible = result.verdict.impossible
        invariantLines = scenario.invariants.summary(unchecked: result.verdict.unchecked)
        digest = result.digestText
        eventCount = result.eventCount
        duration = history.entries.last?.time ?? .zero
        trace = isTraced ? RunTrace.lines(run, result) : []
        let repetition = Repetition(finished, digest: result.digestText)
        (errors, isReproducible) = (repetition.errors, repetition.isReproducible)
        if case .different = finished.repetition {
            (self.result, exitStatus) = (.error, RunStatus.notDeterministic)
        } else {
            switch result.verdict.result {
            case .pass: (self.result, exitStatus) = (.pass, RunStatus.passed)
            case .fail: (self.result, exitStatus) = (.fail, RunStatus.failed)
            case .inconclusive: (self.result, exitStatus) = (.inconclusive, RunStatus.inconclusive)
            }
        }
        if let index = FailureScreen.mainCheck(checks) {
            let context = FailureContext(result.verdict.checks[index], scenario, history)
            screen = FailureScreen.lines(
                run, checks, history, context, texts, repetition: repetition.line, outputs: result.outputs, notes: notes
            )
        } else if self.result == .inconclusive {
            screen = ["?     \(run.title): no expectation could be evaluated"]
        } else {
            screen = []
        }
    }

    /// Returns why a run has no result, and its exit status.
    private static func obstacle(_ outcome: FinishedRun.Outcome) -> (reason: String, status: Int32) {
        switch outcome {
        case .unavailable(let text): (text, RunStatus.unavailable)
        case .unusable(let text): (text, RunStatus.inconclusive)
        case .invalid(let text): (text, RunStatus.invalidFile)
        case .result: ("", RunStatus.passed)
        }
    }

    /// What the repetition of a run has shown.
    private struct Repetition {
        var errors: [String] = []
        var isReproducible: Bool?
        /// The repetition in a line of the explanation.
        let line: String

        init(_ finished: FinishedRun, digest: String) {
            let run = finished.run
            switch finished.repetition {
            case .different(let difference):
                errors = ["\(run.title): not deterministic: " + difference.lines[0]] + difference.lines.dropFirst()
                isReproducible = false
                line = "not reproducible: the repetition has other events"
            case .same:
                isReproducible = true
                line = "reproducible: repeated with the same digest \(digest)"
            case .simulated(let other):
                line =
                    "reproducible: in simulation (without --live) the same seed gives '\(other.rawValue)'; a live run "
                    + "differs from run to run"
            case .none:
                line =
                    run.scenario.realTimeReason.map {
                        "a live run differs from run to run, and a simulated one is not possible: \($0)"
                    } ?? ""
            }
        }
    }

    /// Creates a summary of a run that another process has reported.
    init(
        run: RunIdentity, result: Result, checks: [Check], impossible: [ImpossibleCheck], digest: String?,
        eventCount: Int,
        duration: Nanoseconds, wallTime: Duration, isReproducible: Bool?, errors: [String], screen: [String],
        exitStatus: Int32
    ) {
        (self.run, self.result, self.checks, self.impossible) = (run, result, checks, impossible)
        (self.digest, self.eventCount, self.duration, self.wallTime) = (digest, eventCount, duration, wallTime)
        (self.isReproducible, self.errors, self.screen, self.exitStatus) = (isReproducible, errors, screen, exitStatus)
        (invariantLines, trace) = ([], [])
    }

    private static func check(
        _ check: Verdict.Check, _ scenario: Scenario, _ history: History, _ texts: TextDisplay
    ) -> Check {
        let (outcome, reason): (Check.Outcome, String) =
            switch check.outcome {
            case .pass: (.pass, "")
            case .fail(let reason): (.fail, reason)
            case .inconclusive(let reason, _): (.inconclusive, reason)
            }
        var advice = ""
        if case .inconclusive(_, let cause) = check.outcome { advice = Advice.text(check.subject, cause) }
        return Check(
            description: TextTable.singleLine(check.description), location: check.location, outcome: outcome,
            reason: reason.isEmpty ? "" : texts.hidingTexts(of: history, in: reason),
            time: outcome == .pass ? nil : FailureContext(check, scenario, history).time,
            advice: advice)
    }

    /// Whether the run passed.
    public var hasPassed: Bool { result == .pass }

    /// The summary without its trace and its history, which are the largest parts.
    var withoutHistory: RunSummary {
        var summary = self
        summary.trace = []
        summary.document = nil
        summary.views = []
        return summary
    }

    /// The checks with their outcomes, reasons and advice, in lines.
    public var checkLines: [String] {
        var lines: [String] = []
        for check in checks {
            let mark =
                switch check.outcome {
                case .pass: "ok  "
                case .fail: "FAIL"
                case .inconclusive: "?   "
                }
            lines.append("  \(mark)  \(check.description)")
            if check.outcome != .pass { lines.append("        \(check.reason) (\(check.location))") }
            if !check.advice.isEmpty { lines.append("        to do: \(check.advice)") }
        }
        for check in impossible {
            lines.append("  --    \(check.description)")
            lines.append("        not possible: \(check.reason) (\(check.location))")
        }
        return lines + invariantLines.map { "  -     \($0)" }
    }

    /// The expectations that could not be evaluated, in one line each, for reports.
    var impossibleLines: [String] {
        impossible.map { "\($0.description): not possible: \($0.reason) (\($0.location))" }
    }

    /// The result in one line, for a batch.
    public var line: String {
        var text = "\(run.fullName): \(result.rawValue), seed \(run.seed), \(run.world.rawValue)"
        if let digest { text += ", digest \(digest), \(TimeFormat.seconds(duration))" }
        if !impossible.isEmpty { text += ", \(TextTable.count(impossible.count, "check")) not possible" }
        return text
    }
}
