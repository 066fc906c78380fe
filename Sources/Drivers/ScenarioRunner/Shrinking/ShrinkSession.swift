public import CommandSupport
internal import ConfigFiles
internal import Scenario
internal import Wire

/// The search for the smallest scenarios that fail as given runs do, with its output: `slowlane shrink` without arguments
/// and signals.
public struct ShrinkSession: Sendable {
    /// What to shrink, and what to print.
    public struct Options: Sendable {
        /// Built-in names, files, folders and glob patterns.
        public var scenarios: [String]
        /// The variant; `nil` for all.
        public var variant: String?
        /// The random seed; `nil` for that of the scenario.
        public var seed: UInt64?
        /// Deliberate defects of the reference clients and the server.
        public var mutants: [RunMutant] = []
        /// The folder of the files.
        public var folder = FailureFile.folder
        /// The greatest number of runs of a search.
        public var runsMax = Shrinker.runsMax
        /// The greatest time of a search.
        public var timeMax = RunShrinker.timeMax
        /// Whether JSON lines are printed.
        public var isJSON = false
        /// Whether results only are printed.
        public var isQuiet = false
        /// Whether texts of notes are printed that are not part of the scenario file.
        public var showsText = false

        /// Creates the options for scenarios.
        public init(scenarios: [String]) { self.scenarios = scenarios }
    }

    private let options: Options
    private let console: Console
    private let worlds: RunWorlds

    /// Creates a session.
    public init(_ options: Options, console: Console, worlds: RunWorlds = .standard) {
        self.options = options
        self.console = console
        self.worlds = worlds
    }

    /// Shrinks the runs that fail, and returns the exit status. Throws only if the task is cancelled.
    public func run() async throws -> Int32 {
        var selection: ScenarioSelection
        do {
            selection = try ScenarioSelection(options.scenarios)
        } catch {
            console.error(error)
            return RunStatus.usage
        }
        let plan = selection.plan(
            variant: options.variant, worlds: nil, seed: options.seed, mutants: options.mutants)
        for rejection in selection.rejections { console.errors(rejection.description) }
        if !selection.rejections.isEmpty { return RunStatus.invalidFile }
        for run in plan where run.world == .live {
            console.error("\(run.scenario.fullName) cannot be shrunk: \(run.scenario.realTimeReason ?? "")")
        }
        let simulated = plan.filter { $0.world == .simulated }
        guard !simulated.isEmpty else {
            console.error("the arguments select no scenario that runs in simulation")
            return RunStatus.nothingSelected
        }
        var statuses: [Int32] = []
        for run in simulated { statuses.append(try await shrink(run)) }
        if statuses.contains(RunStatus.notDeterministic) { return RunStatus.notDeterministic }
        if statuses.contains(RunStatus.unavailable) { return RunStatus.unavailable }
        return statuses.contains(RunStatus.passed) ? RunStatus.passed : RunStatus.failed
    }

    /// What a search has led to.
    struct Outcome: Sendable {
        /// The lines of the result.
        var lines: [String] = []
        /// What prevents a result, or contradicts it.
        var error: String?
        /// The path of the file.
        var path: String?
        /// The exit status.
        var status: Int32
    }

    /// Shrinks a run, writes the file, and prints the failure of its scenario. Returns the exit status: 0, or 1 if the run
    /// does not fail.
    func shrink(_ run: PlannedRun) async throws -> Int32 {
        if !options.isQuiet { console.print("shrinking \(run.title)", to: .progress) }
        let outcome = try await outcome(of: run)
        for line in outcome.lines { console.print(line) }
        if let error = outcome.error { console.error(error) }
        return outcome.status
    }

    /// Shrinks a run, and writes the file.
    func outcome(of run: PlannedRun) async throws -> Outcome {
        var shrinker = RunShrinker(worlds: worlds)
        (shrinker.runsMax, shrinker.timeMax) = (options.runsMax, options.timeMax)
        guard let shrunk = try await BlockingThread.run({ [shrinker] in shrinker.shrink(run) }) else {
            return Outcome(
                error: "\(run.title): violates no invariant and no expectation, so there is nothing to shrink",
                status: RunStatus.failed)
        }
        let path: String
        let scenario: Scenario
        do {
            path = try FailureFile(shrunk).write(to: options.folder)
            scenario = try ScenarioCatalogue.scenario(path.contains("/") ? path : "./\(path)").scenario
        } catch {
            return Outcome(error: "\(error)", status: RunStatus.unavailable)
        }
        let replay = PlannedRun(
            index: 0, source: path, scenario: scenario, world: .simulated, mutants: run.mutants)
        let notes = [
            "shrunk from \(ShrunkRun.size(shrunk.result.original)) to \(ShrunkRun.size(shrunk.result.scenario)) "
                + "(\(TextTable.count(shrunk.result.runs, "run")), \(shrunk.seconds)): \(path)"
                + (shrunk.result.isComplete ? "" : "; a limit ended the search"),
            "origin: \(ReplayCommand.arguments(run).map(ReplayCommand.quoted).joined(separator: " "))",
        ]
        var summaries: [RunSummary] = []
        let showsText = options.showsText
        try await ScenarioRunner(worlds: worlds, jobs: 1).run(
            [replay],
            transform: { RunSummary($0, showsText: showsText, isTraced: false, notes: notes) },
            onResult: { summaries.append($0) })
        let description = shrunk.result.violation.description
        let isSame = summaries.contains { summary in
            summary.result == .fail
                && summary.checks.contains { $0.outcome == .fail && $0.description == description }
        }
        var outcome = Outcome(path: path, status: RunStatus.passed)
        outcome.lines =
            options.isJSON ? [Self.json(shrunk, path, isSame: isSame)] : summaries.flatMap { $0.screen + $0.errors }
        if !isSame {
            outcome.error = "\(path) does not fail as the run does: \(description) (please report)"
            outcome.status = RunStatus.notDeterministic
        }
        return outcome
    }

    private static func json(_ shrunk: ShrunkRun, _ path: String, isSame: Bool) -> String {
        let (run, result) = (shrunk.run, shrunk.result)
        func size(_ scenario: Scenario) -> String {
            JSONText.object([
                ("steps", "\(scenario.steps.count)"), ("faults", "\(scenario.faults.count)"),
                ("network_entries", "\(scenario.devices.map(\.network.count).reduce(0, +))"),
            ])
        }
        return JSONText.object([
            ("type", JSONText.string("shrunk")), ("version", "\(JSONLinesReport.version)"),
            ("scenario", JSONText.string(run.scenario.name)), ("variant", JSONText.string(run.scenario.variant)),
            ("source", JSONText.string(run.source)), ("seed", JSONText.string("\(run.seed)")),
            ("mutant", JSONText.string(run.mutantNames)), ("check", JSONText.string(result.violation.description)),
            ("file", JSONText.string(path)), ("original", size(result.original)), ("shrunk", size(result.scenario)),
            ("runs", "\(result.runs)"), ("complete", result.isComplete ? "true" : "false"),
            ("reproducible", isSame ? "true" : "false"),
            ("wall_ms", "\(Int64((shrunk.wallTime / .milliseconds(1)).rounded()))"),
        ])
    }
}
