public import CommandSupport
internal import ConfigFiles
internal import Determinism
internal import Foundation
public import Scenario
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
        /// What the exploration leans towards.
        public var bias = Bias.none
        /// The part of the seeds to run; `nil` for all.
        public var shard: Shard?
        /// The path of the file of results, which `slowlane merge-reports` reads.
        public var resultsPath: String?
        /// Called with the first failure of each class, on a thread of its own. What it returns is printed below the
        /// failure.
        public var onFailure: (@Sendable (SeedFailure) -> FailureAddition)?
        /// Whether the runs that detect mutants of the gallery are shrunk.
        public var shrinksGallery = false
        /// Whether every event of ``seed`` is printed.
        public var isTraced = false

        /// Creates the options for a scenario.
        public init(scenario: String) { self.scenario = scenario }
    }

    /// What an exploration leans towards.
    public enum Bias: Hashable, Sendable {
        /// Every class of faults is on in half of the seeds.
        case none
        /// These classes are on in most seeds.
        case classes([SwarmClass])
        /// After each block of seeds, the classes with faults that no seed has applied to a change yet are on in most seeds
        /// of the next block.
        case automatic
    }

    /// The number of seeds of a block, after which the exploration decides what it leans towards.
    static let blockSeeds = 50

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
        /// A digest of the bytes of the scenario's file, and of all files that it names.
        let fileDigest: UInt64
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
        for rejection in selection.rejections { console.errors(rejection.description) }
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
            return fail(RunStatus.usage, "'\(base.name)' cannot be explored: \(reason), so that it must run live")
        }
        do throws(CommitSeed.Failure) {
            guard let seeds = try self.seeds(of: base) else {
                return fail(RunStatus.usage, "the seeds go beyond the greatest number, \(UInt64.max)")
            }
            let swarm = Swarm(base, links: .builtIn, parts: options.parts)
            let run = SeedRun(
                swarm: swarm, source: source.name, mutants: options.mutants, arguments: arguments(source.name),
                showsText: options.showsText, isTraced: options.isTraced, givesDigests: options.resultsPath != nil,
                worlds: worlds)
            return .success(
                Plan(
                    seed: run, seeds: seeds, fileDigest: source.file.digest,
                    isTimed: options.seed == nil && options.time != nil))
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
        let report = self.report(plan)
        let file: ExplorationResultsWriter?
        do {
            file = try options.resultsPath.map {
                try ExplorationResultsWriter($0, report, options.shard, seeds: plan.seeds, fileDigest: plan.fileDigest)
            }
        } catch {
            console.error("\(error)")
            return RunStatus.unavailable
        }
        if options.isJSON {
            console.print(report.startJSON)
        } else if !options.isQuiet {
            console.print(report.startLine, to: .progress)
        }
        let start = ContinuousClock.now
        var tally = ExplorationTally()
        var writeError: ExplorationResultsWriter.Failure?
        try await runSeeds(of: plan, &tally) { writeError = writeError ?? file?.error(adding: $0) }
        // What all seeds must reach together is decided with the merged results.
        let status = tally.exitStatus(options.seed != nil || options.shard != nil ? [] : report.wanted)
        for line in endLines(report, tally, status, duration: .now - start) { console.print(line) }
        if let file {
            let isCanaryFailed = options.shard.map { Canary.hasFailed(worlds, seed: UInt64($0.index)) } ?? true
            if !isCanaryFailed { console.error("the canary, a run that must fail, did not") }
            if let error = writeError ?? file.error(endingWith: isCanaryFailed) {
                console.error("\(error)")
                return RunStatus.unavailable
            }
        }
        return status
    }

    /// Runs the seeds in blocks until all have run or the time is over, and reports the progress.
    ///
    /// - Parameter onSeed: Called with each result, in the order of the seeds.
    private func runSeeds(
        of plan: Plan, _ tally: inout ExplorationTally, onSeed: (ExploredSeed) -> Void
    ) async throws {
        let isSingle = options.seed != nil
        let timed: ExplorationProgress.Plan = options.time.map { .time($0) } ?? .seeds(plan.seeds.count)
        let progress = Mutex(ExplorationProgress(timed, isRewritten: console.hasStatusLine))
        let isOver = Mutex(false)
        let current = Mutex<SeedWorkers<ExploredSeed?>?>(nil)
        let ticker = ProgressTicker(console) { [options] time in
            if let limit = options.time, time >= limit {
                isOver.withLock { $0 = true }
                current.withLock { $0?.stop() }
            }
            return options.isQuiet || isSingle ? nil : progress.withLock { $0.report(at: time) }
        }
        let count = Int(clamping: plan.seeds.count)
        try await ticker.run(isHidden: options.time == nil && (options.isQuiet || isSingle)) {
            var position = 0
            while position < count, !isOver.withLock({ $0 }) {
                let size = options.bias == .automatic ? min(Self.blockSeeds, count - position) : count
                let first = plan.seeds.first + UInt64(position)
                let workers = self.workers(leaning(plan.seed, tally, from: first), first: first, count: size)
                current.withLock { $0 = workers }
                var ordered = OrderedResults<ExploredSeed?>()
                for await (index, value) in workers.results() {
                    for case let seed? in ordered.add(value, at: index) {
                        onSeed(seed)
                        try await add(seed, to: &tally)
                    }
                    let (failed, states) = (tally.failed, tally.cells.count)
                    let done = UInt64(position + ordered.count)
                    progress.withLock { $0.update(done: done, failed: failed, states: states) }
                }
                try Task.checkCancellation()
                position += size
            }
        }
    }

    /// Returns the last lines of the output.
    private func endLines(
        _ report: ExplorationReport, _ tally: ExplorationTally, _ status: Int32, duration: Duration
    ) -> [String] {
        if options.isJSON {
            return (options.showsCoverage ? [report.coverageJSON(tally)] : []) + [
                report.endJSON(tally, duration: duration, status: status)
            ]
        }
        return (options.showsCoverage ? report.coverageLines(tally) : []) + report.endLines(tally, duration: duration)
    }

    /// Returns the threads that run the seeds of a block.
    private func workers(_ run: SeedRun, first: UInt64, count: Int) -> SeedWorkers<ExploredSeed?> {
        let (isSingle, shard) = (options.seed != nil, options.shard)
        return SeedWorkers(jobs: jobs, count: count) { index -> ExploredSeed? in
            let seed = first + UInt64(index)
            // The assignment of a seed does not depend on the other seeds.
            if let shard, !shard.contains(seed: seed) { return nil }
            return run.run(seed, isRepeated: isSingle || SeedRun.isRepeated(seed))
        }
    }

    /// Returns the runs of the block that begins at a seed, and prints what they lean towards.
    private func leaning(_ run: SeedRun, _ tally: ExplorationTally, from first: UInt64) -> SeedRun {
        let classes: [SwarmClass]
        switch options.bias {
        case .none: return run
        case .classes(let named): classes = named
        case .automatic:
            classes = tally.seeds == 0 ? [] : run.swarm.incompleteClasses { tally.cells[$0] != nil }
            if !classes.isEmpty {
                let names = classes.map(\.rawValue).joined(separator: ",")
                console.print("from seed \(first): --bias \(names)", to: .progress)
            }
        }
        return run.leaning(classes)
    }

    /// Adds the result of the next seed, and prints what is new.
    private func add(_ seed: ExploredSeed, to tally: inout ExplorationTally) async throws {
        let first = tally.add(seed)
        let problems = ExplorationReport.problemLines(seed)
        if options.isJSON {
            if !problems.isEmpty { console.print(ExplorationReport.problemJSON(seed)) }
            for failure in seed.failures { console.print(ExplorationReport.json(failure, seed)) }
        } else {
            for line in seed.trace { console.print(line) }
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
            let addition = try await BlockingThread.run { onFailure(failure) }
            if options.isJSON {
                if let json = addition.json { console.print(json) }
            } else {
                for line in addition.lines { console.print(line) }
            }
        }
    }

    /// Returns the report of an exploration.
    private func report(_ plan: Plan) -> ExplorationReport {
        let swarm = plan.seed.swarm
        let isEndless = plan.isTimed && options.seeds == nil
        return ExplorationReport(
            fullName: swarm.base.fullName, name: swarm.base.name, variant: swarm.base.variant,
            source: plan.seed.source,
            parts: Scenario.Exploration.Part.allCases.filter(swarm.parts.contains).map(\.rawValue),
            wanted: swarm.expectations.filter(\.isSometimes).map(\.description),
            possibleFaults: swarm.possibleFaults.sorted { "\($0)" < "\($1)" }, first: plan.seeds.first,
            count: isEndless ? nil : plan.seeds.count, isFromCommit: options.isFromCommit,
            mutants: options.mutants.map(\.name))
    }
}
