public import CommandSupport
internal import ConfigFiles
internal import Foundation
public import Scenario

/// A batch of runs with its output: `slowlane run` without arguments and signals.
public struct RunSession: Sendable {
    /// The form of the results on standard output.
    public enum Output: Hashable, Sendable {
        /// Text for readers.
        case text
        /// The events of every run, a line each.
        case trace
        /// JSON lines.
        case json
        /// Test Anything Protocol.
        case tap
    }

    /// What to run, and what to print.
    public struct Options: Sendable {
        /// Built-in names, files, folders and glob patterns.
        public var scenarios: [String]
        /// The variant to run; `nil` for all.
        public var variant: String?
        /// The worlds in which each scenario runs; `nil` for virtual time, or real time if the scenario runs in no
        /// other.
        public var worlds: [RunWorld]?
        /// The programs that are the clients of devices, by the devices' names.
        public var clients: [String: Scenario.Program] = [:]
        /// Whether the limits of the runs are printed in place of runs.
        public var isDryRun = false
        /// The tags of which a run must have one; all runs if empty.
        public var tags: [String] = []
        /// Returns whether the time limit has passed; asked when the task is cancelled.
        public var hasTimedOut: @Sendable () -> Bool = { false }
        /// The random seed; `nil` for that of the scenario.
        public var seed: UInt64?
        /// Deliberate defects of the reference clients and the server.
        public var mutants: [RunMutant] = []
        /// The maximum number of runs at a time; `nil` for the default of the worlds.
        public var jobs: Int?
        /// Whether every run in virtual time is repeated.
        public var checksDeterminism = false
        /// Whether results only are printed.
        public var isQuiet = false
        /// Whether texts of notes are printed that are not part of the scenario file.
        public var showsText = false
        /// Whether runs in virtual time that fail are shrunk.
        public var shrinks = false
        /// The form of the results on standard output.
        public var output = Output.text
        /// The shard of the batch to run; `nil` for all of it.
        public var shard: Shard?
        /// The path of the file for the results as JSON lines.
        public var resultsPath: String?
        /// The folder for the pages of the runs.
        public var reportFolder: String?
        /// The path of the JUnit XML file.
        public var junitPath: String?
        /// Whether annotations for GitHub Actions are printed.
        public var isOnGitHub = false
        /// The path of the file to which GitHub's summary is appended.
        public var githubSummaryPath: String?

        /// Whether the text has no lines of runs.
        var hidesRuns = false

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

    /// Runs the selected scenarios and returns the exit status. Throws only if the task is cancelled.
    public func run() async throws -> Int32 {
        switch select() {
        case .none(let status): return status
        case .some(let plan, let selection): return try await run(plan, selection)
        }
    }

    /// Runs the selected scenarios, and again whenever their files change, until the task is cancelled. Returns an exit
    /// status if the arguments select nothing that could be watched.
    public func watch() async throws -> Int32 {
        while true {
            guard case .some(_, let watched) = select() else { return try await run() }
            var watcher = FileWatcher(
                files: (watched.sources.map(\.name) + watched.rejections.map(\.name))
                    .filter { !ScenarioCatalogue.names.contains($0) }, folders: watched.folders)
            // The files are read again, so that a change since the first reading is not lost.
            guard case .some(let plan, let selection) = select() else { continue }
            _ = try await run(plan, selection)
            if !options.isQuiet { console.print("waiting for changes (Ctrl-C ends)", to: .progress) }
            while !watcher.hasChanged() { try await Task.sleep(for: FileWatcher.interval) }
            // Editors truncate a file before they write it.
            var checks = 0
            repeat {
                try await Task.sleep(for: FileWatcher.settlingInterval)
                checks += 1
            } while watcher.hasChanged() && checks < FileWatcher.settlingChecksMax
        }
    }

    private enum Selected {
        case none(status: Int32)
        case some([PlannedRun], ScenarioSelection)
    }

    /// Reads the files and plans the runs. Rejected files are reported; so is an empty plan.
    private func select() -> Selected {
        var selection: ScenarioSelection
        do {
            selection = try ScenarioSelection(options.scenarios)
        } catch {
            console.error(error)
            return .none(status: RunStatus.usage)
        }
        let plan = selection.plan(
            variant: options.variant, tags: options.tags, worlds: options.worlds, seed: options.seed,
            mutants: options.mutants, clients: options.clients)
        for name in options.clients.keys.sorted()
        where !plan.isEmpty && !plan.contains(where: { $0.scenario.devices.contains { $0.name == name } }) {
            console.error("no scenario has a device '\(name)'")
            return .none(status: RunStatus.usage)
        }
        if plan.isEmpty && selection.rejections.isEmpty {
            if selection.sources.isEmpty {
                console.error("the arguments select no scenario: no *.yaml or *.yml file with the key 'scenario'")
                return .none(status: RunStatus.nothingSelected)
            }
            if !options.tags.isEmpty {
                let tags = options.tags.map { "'\($0)'" }.joined(separator: " or ")
                console.error("no selected scenario has the tag \(tags)")
                return .none(status: RunStatus.nothingSelected)
            }
            console.error("no scenario has a variant '\(options.variant ?? "")'")
            return .none(status: RunStatus.usage)
        }
        return .some(plan, selection)
    }

    // MARK: Runs

    /// The number of runs at a time.
    private func jobs(for plan: [PlannedRun]) -> Int {
        if printsEvents(of: plan) { return 1 }
        if let jobs = options.jobs { return jobs }
        // Live runs disturb each other's times.
        return plan.contains { $0.world == .live } ? 1 : ProcessInfo.processInfo.activeProcessorCount
    }

    /// Whether the plan is one scenario, whose events are printed while it runs.
    private func printsEvents(of plan: [PlannedRun]) -> Bool {
        plan.count <= options.worldsMax && options.shard == nil
    }

    private func run(_ plan: [PlannedRun], _ selection: ScenarioSelection) async throws -> Int32 {
        if options.isDryRun { return dryRun(plan, selection) }
        guard reportsCanBeWritten() else { return RunStatus.unavailable }
        announceLiveRuns(of: plan)
        let (plan, part) = shard(of: plan)
        for rejection in selection.rejections { console.errors(rejection.description) }
        let printsEvents = printsEvents(of: plan) && !options.isQuiet
        let startDate = Date()
        var failed: [PlannedRun] = []
        var resultCount = 0
        var output = RunOutput(
            options, console, selection.rejections, runs: plan.count, showsChecks: printsEvents, part: part)
        output.begin()
        do {
            try await run(plan, printsEvents: printsEvents) { summary in
                output.add(summary)
                // The results come in the order of the plan.
                let run = plan[resultCount]
                resultCount += 1
                if summary.result == .fail, run.world == .simulated, !run.isCanary { failed.append(run) }
            }
        } catch {
            output.interrupt()
            guard options.hasTimedOut() else { throw error }
            output.writeReports(startedAt: startDate)
            console.error("time limit: \(output.resultCount) of \(TextTable.count(plan.count, "run")) ended in time")
            return RunStatus.timedOut
        }
        let status = output.end(startedAt: startDate)
        if options.shrinks { try await shrink(failed) }
        return status
    }

    /// Executes the runs, and reports the progress.
    private func run(
        _ plan: [PlannedRun], printsEvents: Bool, onResult: (RunSummary) -> Void
    ) async throws {
        let runner = ScenarioRunner(
            worlds: worlds, jobs: jobs(for: plan), checksDeterminism: options.checksDeterminism)
        let monitor = RunMonitor(planned: plan.count, console)
        var onEvent: (@Sendable (PlannedRun, History.Entry) -> Void)?
        if printsEvents { onEvent = { run, event in monitor.printEvent(event, of: run) } }
        let (showsText, isTraced, isDocumented) = (
            options.showsText, options.output == .trace, options.reportFolder != nil
        )
        try await monitor.reportProgress(isHidden: options.isQuiet || printsEvents) {
            try await runner.run(
                plan, onStart: { monitor.runStarted($0, isAnnounced: printsEvents) },
                onEvent: onEvent,
                transform: { finished in
                    let summary = RunSummary(
                        finished, showsText: showsText, isTraced: isTraced, isDocumented: isDocumented,
                        hasViews: isDocumented)
                    monitor.runEnded(passed: summary.hasPassed)
                    return summary
                },
                onResult: onResult)
        }
    }

    /// Returns whether the files of the reports can be written; prints the reason if not. Runs may take minutes, and
    /// their results would be lost.
    private func reportsCanBeWritten() -> Bool {
        for path in [options.junitPath, options.resultsPath].compactMap({ $0 }) {
            guard let obstacle = FileFailure.obstacle(toWriting: path) else { continue }
            console.error("cannot write \(path): \(obstacle)")
            return false
        }
        return true
    }

    /// Prints why runs are live although no world was chosen.
    private func announceLiveRuns(of plan: [PlannedRun]) {
        guard options.worlds == nil, !options.isQuiet else { return }
        for run in plan where run.world == .live {
            console.print("\(run.scenario.fullName) runs live: \(run.scenario.realTimeReason ?? "")", to: .progress)
        }
    }

    /// Returns the runs of the shard, if there is one, and its part of the batch.
    private func shard(of plan: [PlannedRun]) -> ([PlannedRun], BatchPart?) {
        guard let shard = options.shard else { return (plan, nil) }
        let divided = BatchPart.divide(plan, shard)
        if !options.isQuiet {
            let count = TextTable.count(divided.runs.count - 1, "run")
            console.print("shard \(shard): \(count) of \(divided.part.runCount), and a canary", to: .progress)
        }
        return (divided.runs, divided.part)
    }

    /// The maximum number of failing runs that are shrunk.
    private static let shrunkMax = 3

    /// Shrinks failing runs.
    private func shrink(_ runs: [PlannedRun]) async throws {
        var shrinkOptions = ShrinkSession.Options(scenarios: [])
        shrinkOptions.isJSON = options.output == .json
        shrinkOptions.isQuiet = options.isQuiet
        shrinkOptions.showsText = options.showsText
        let session = ShrinkSession(shrinkOptions, console: console, worlds: worlds)
        for run in runs.prefix(Self.shrunkMax) { _ = try await session.shrink(run) }
        if runs.count > Self.shrunkMax {
            let count = TextTable.count(runs.count - Self.shrunkMax, "more failing run")
            console.print("\(count) not shrunk ('slowlane shrink' shrinks one)", to: .progress)
        }
    }

    /// Prints what each run does not do exactly.
    private func dryRun(_ plan: [PlannedRun], _ selection: ScenarioSelection) -> Int32 {
        for rejection in selection.rejections { console.errors(rejection.description) }
        for run in plan {
            console.print(run.title)
            for line in WorldLimits.lines(run) { console.print("  " + line) }
        }
        return selection.rejections.isEmpty ? RunStatus.passed : RunStatus.invalidFile
    }
}

extension RunSession.Options {
    /// The maximum number of runs of one scenario.
    var worldsMax: Int { worlds?.count ?? 1 }
}
