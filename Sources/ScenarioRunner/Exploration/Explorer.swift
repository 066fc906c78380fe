public import CommandSupport
internal import ConfigFiles
internal import Determinism
internal import Foundation
public import ScenarioModel
public import ScenarioWorld
internal import Synchronization

/// A search for failing runs over seeds: `slowlane explore` without arguments and signals.
public struct Explorer: Sendable {
    /// What to explore, and what to print.
    public struct Options: Sendable {
        /// The built-in name or the path of the scenario.
        public var scenario: String
        /// The variant; `nil` for the scenario itself.
        public var variant: String?
        /// The seeds; `nil` for as many as the scenario gives, from 0.
        public var seeds: SeedRange?
        /// The only seed; `nil` for a range.
        public var seed: UInt64?
        /// Whether the seeds begin at the number of the current commit.
        public var isFromCommit = false
        /// The time after which no seed is begun; `nil` for no limit.
        public var time: Duration?
        /// The parts that are drawn; `nil` for those that the scenario gives, or else all.
        public var parts: [Scenario.Exploration.Part]?
        /// Deliberate defects of the reference clients and the server.
        public var mutants: [RunMutant] = []
        /// The number of threads; `nil` for the number of processors.
        public var jobs: Int?
        /// Whether JSON lines are printed.
        public var isJSON = false
        /// Whether results only are printed.
        public var isQuiet = false
        /// Whether the configuration of every seed is printed.
        public var isVerbose = false
        /// Whether the table of what was reached is printed.
        public var showsCoverage = false
        /// Whether texts of notes are printed.
        public var showsText = false
        /// Called with the first failure of each class. What it returns is printed below the failure.
        public var onFailure: (@Sendable (SeedFailure) -> [String])?

        /// Creates the options for a scenario.
        public init(scenario: String) { self.scenario = scenario }
    }

    /// The number of seeds if neither the arguments nor the scenario give one.
    public static let seedsByDefault: UInt64 = 200

    let options: Options
    let console: Console
    let worlds: RunWorlds

    /// Creates an exploration.
    public init(_ options: Options, console: Console, worlds: RunWorlds = .standard) {
        self.options = options
        self.console = console
        self.worlds = worlds
    }

    /// The plan of an exploration.
    struct Plan {
        let seed: SeedRun
        let seeds: SeedRange
        /// Whether the time ends the exploration, not the number of seeds.
        let isTimed: Bool
    }

    var jobs: Int { options.jobs ?? ProcessInfo.processInfo.activeProcessorCount }

    /// Explores, and returns the exit status. Throws only if the task is cancelled.
    public func run() async throws -> Int32 {
        switch plan() {
        case .failure(let end): return end.status
        case .success(let plan): return try await explore(plan)
        }
    }

    // MARK: The plan

    struct PlanEnd: Error { let status: Int32 }

    /// Reads the scenario and determines the seeds. Prints the reason if that is not possible.
    func plan() -> Result<Plan, PlanEnd> {
        func fail(_ status: Int32, _ message: String) -> Result<Plan, PlanEnd> {
            console.error(message)
            return .failure(PlanEnd(status: status))
        }
        var selection: ScenarioSelection
        do {
            selection = try ScenarioSelection([options.scenario])
        } catch {
            return fail(RunStatus.usage, "\(error)")
        }
        let found = selection.takeRuns(ofVariant: options.variant ?? "none", tags: [], needsSeed: false)
        for rejection in selection.rejections { console.print(rejection.description, to: .progress) }
        if !selection.rejections.isEmpty { return .failure(PlanEnd(status: RunStatus.invalidFile)) }
        guard let (source, runs) = found.first, found.count == 1 else {
            return found.isEmpty
                ? fail(RunStatus.nothingSelected, "the argument selects no scenario")
                : fail(RunStatus.usage, "the argument selects \(found.count) scenarios; explore one at a time")
        }
        guard let base = runs.first else {
            return fail(RunStatus.usage, "the scenario has no variant '\(options.variant ?? "")'")
        }
        if runs.count > 1 {
            return fail(RunStatus.usage, "the scenario has a matrix of \(runs.count) runs; explore needs one run")
        }
        if let reason = base.realTimeReason {
            return fail(RunStatus.usage, "'\(base.name)' cannot be explored: \(reason), so that it needs real time")
        }
        do throws(CommitSeed.Failure) {
            guard let seeds = try self.seeds(of: base) else {
                return fail(RunStatus.usage, "the seeds go beyond the greatest number, \(UInt64.max)")
            }
            let swarm = Swarm(base, links: .builtIn, parts: options.parts)
            let run = SeedRun(
                swarm: swarm, source: source.name, mutants: options.mutants, arguments: arguments(source.name),
                showsText: options.showsText, worlds: worlds)
            return .success(Plan(seed: run, seeds: seeds, isTimed: options.seed == nil && options.time != nil))
        } catch {
            return fail(RunStatus.usage, "'--seed commit' needs the commit of a git repository: \(error)")
        }
    }

    /// Returns the arguments that repeat a seed.
    private func arguments(_ source: String) -> [[String]] {
        var groups = [["slowlane", "explore", source.hasPrefix("-") ? "./\(source)" : source]]
        if let variant = options.variant { groups.append(["--variant", variant]) }
        if let parts = options.parts { groups.append(["--vary", parts.map(\.rawValue).joined(separator: ",")]) }
        for mutant in options.mutants { groups.append(["--mutant", mutant.name]) }
        return groups
    }

    private func seeds(of base: Scenario) throws(CommitSeed.Failure) -> SeedRange? {
        if let seed = options.seed { return SeedRange(first: seed, count: 1) }
        let fallback = UInt64(clamping: base.exploration?.seeds ?? Int(Self.seedsByDefault))
        // With a time, the number of seeds is a limit only if it is given.
        let most = options.time == nil ? fallback : SeedRange.countMax
        let range = options.seeds ?? SeedRange(first: 0, count: most)
        guard options.isFromCommit else { return range }
        let commit = try CommitSeed.seed(ofFolder: ".")
        return range?.beginning(at: commit &+ (range?.first ?? 0))
    }

    // MARK: Runs

    private func explore(_ plan: Plan) async throws -> Int32 {
        let (run, seeds) = (plan.seed, plan.seeds)
        let report = ExplorationReport(
            swarm: run.swarm, source: run.source, first: seeds.first,
            count: plan.isTimed && options.seeds == nil ? nil : seeds.count, isFromCommit: options.isFromCommit,
            mutants: options.mutants.map(\.name))
        if options.isJSON {
            console.print(report.startJSON)
        } else if !options.isQuiet {
            console.print(report.startLine, to: .progress)
        }
        let isSingle = options.seed != nil
        let workers = SeedWorkers(jobs: jobs, count: Int(clamping: seeds.count)) { index in
            let seed = seeds.first + UInt64(index)
            return run.run(seed, isRepeated: isSingle || SeedRun.isRepeated(seed))
        }
        let timed: ExplorationProgress.Plan = options.time.map { .time($0) } ?? .seeds(seeds.count)
        let progress = Mutex(ExplorationProgress(timed, isRewritten: console.hasStatusLine))
        let ticker = ProgressTicker(console) { [options] time in
            if let limit = options.time, time >= limit { workers.stop() }
            return options.isQuiet || isSingle ? nil : progress.withLock { $0.report(at: time) }
        }
        let clock = ContinuousClock()
        let start = clock.now
        var tally = ExplorationTally()
        try await ticker.run(isHidden: options.time == nil && (options.isQuiet || isSingle)) {
            var ordered = OrderedResults<ExploredSeed>()
            for await (index, value) in workers.results() {
                for seed in ordered.add(value, at: index) { add(seed, to: &tally) }
                let (failed, states) = (tally.failed, tally.cells.count)
                progress.withLock { $0.update(done: UInt64(ordered.count), failed: failed, states: states) }
            }
            try Task.checkCancellation()
        }
        let duration = clock.now - start
        if options.isJSON {
            if options.showsCoverage { console.print(report.coverageJSON(tally)) }
            console.print(report.endJSON(tally, duration: duration))
        } else {
            if options.showsCoverage { for line in report.coverageLines(tally) { console.print(line) } }
            for line in report.endLines(tally, duration: duration) { console.print(line) }
        }
        return isSingle
            ? tally.exitStatus(run.swarm.base.withoutExpectations) : tally.exitStatus(run.swarm.base)
    }

    /// Adds the result of the next seed, and prints what is new.
    private func add(_ seed: ExploredSeed, to tally: inout ExplorationTally) {
        let first = tally.add(seed)
        let problems = ExplorationReport.problemLines(seed)
        if options.isJSON {
            if !problems.isEmpty { console.print(ExplorationReport.problemJSON(seed)) }
            for failure in seed.failures { console.print(ExplorationReport.json(failure, seed)) }
        } else {
            for line in problems { console.print(line) }
            if options.isVerbose || options.seed != nil {
                for line in seed.configuration { console.print(line) }
            }
            // The screen explains the first failed check of the seed, and lists the others.
            if let failure = first.first {
                for line in failure.screen { console.print(line) }
                let isPrinted = options.isVerbose || options.seed != nil
                for line in isPrinted ? [] : seed.configuration { console.print("  " + line) }
            }
        }
        guard let onFailure = options.onFailure else { return }
        for failure in first {
            for line in onFailure(failure) { console.print(line, to: options.isJSON ? .progress : .result) }
        }
    }
}

extension Scenario {
    /// The scenario without what a single seed need not reach.
    fileprivate var withoutExpectations: Scenario {
        var scenario = self
        scenario.expectations = []
        return scenario
    }
}
