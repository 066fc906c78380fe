public import CommandSupport
internal import ConfigFiles
internal import Foundation
internal import Scenario
internal import Worlds

/// The proof that scenarios detect defects: every scenario passes, and fails with mutants. `slowlane mutation-test` without
/// arguments and signals.
public struct MutationTest: Sendable {
    /// What to prove, and how to print it.
    public struct Options: Sendable {
        /// Files and folders with scenarios; the built-in ones if empty. Those of a user prove a mutant if one of them
        /// fails, whichever check it is.
        public var scenarios: [String] = []
        /// The mutants.
        public var mutants: [RunMutant] = []
        /// Whether each mutant runs in all scenarios, also after its proof.
        public var isExhaustive = false
        /// Whether the run that detects each mutant is shrunk, in place of the proof.
        public var shrinks = false
        /// The maximum number of runs at a time; `nil` for the number of processors.
        public var jobs: Int?
        /// Whether JSON lines are printed.
        public var isJSON = false
        /// Whether results only are printed.
        public var isQuiet = false

        /// Creates the default options.
        public init() {}
    }

    let options: Options
    let console: Console
    let worlds: RunWorlds

    /// Creates a self-test.
    public init(_ options: Options, console: Console, worlds: RunWorlds = .standard) {
        self.options = options
        self.console = console
        self.worlds = worlds
    }

    var jobs: Int { options.jobs ?? ProcessInfo.processInfo.activeProcessorCount }

    /// Prints the mutants.
    public func list() {
        for mutant in options.mutants {
            if options.isJSON {
                console.print(MutationTestReport.json(mutant))
            } else {
                for line in MutationTestReport.lines(mutant) { console.print(line) }
            }
        }
    }

    /// Runs the scenarios without and with mutants, and returns the exit status. Throws only if the task is cancelled.
    public func run() async throws -> Int32 {
        var selection: ScenarioSelection
        do {
            selection = try ScenarioSelection(
                options.scenarios.isEmpty ? ScenarioCatalogue.names : options.scenarios)
        } catch {
            console.error(error)
            return RunStatus.usage
        }
        var plan = selection.plan(worlds: nil)
        for rejection in selection.rejections { console.errors(rejection.description) }
        if !selection.rejections.isEmpty { return RunStatus.invalidFile }
        for run in plan where run.world == .live && !options.isQuiet {
            console.print("\(run.scenario.fullName): not run, because it must run live", to: .progress)
        }
        plan = plan.filter { $0.world == .simulated }
        guard !plan.isEmpty else {
            console.error("the arguments select no scenario that runs in simulation")
            return RunStatus.nothingSelected
        }
        return try await options.shrinks ? shrink(plan) : run(plan)
    }

    private func run(_ plan: [PlannedRun]) async throws -> Int32 {
        let clock = ContinuousClock()
        let start = clock.now
        var report = MutationTestReport(runs: plan, mutants: options.mutants)
        if options.isJSON { console.print(report.start(program: SlowlaneVersion.current)) }
        let failures = try await unmutated(plan)
        report.unmutated = (failures.map(\.summary), clock.now - start)
        if options.isJSON {
            console.print(report.unmutatedJSON)
        } else {
            for line in report.unmutatedLines { console.print(line) }
        }
        let failed = Set(failures.map(\.index))
        try await mutated(plan.filter { !failed.contains($0.index) }) { proof in
            report.add(proof)
            if options.isJSON {
                console.print(MutationTestReport.json(proof))
            } else {
                for line in report.lines(proof) { console.print(line) }
            }
        }
        report.duration = clock.now - start
        if options.isJSON { console.print(report.end) } else { for line in report.endLines { console.print(line) } }
        return report.exitStatus
    }

    // MARK: Runs

    /// Runs the plan without mutants, and returns the runs that do not pass.
    private func unmutated(_ plan: [PlannedRun]) async throws -> [(index: Int, summary: RunSummary)] {
        let monitor = RunMonitor(planned: plan.count, console)
        var failures: [(index: Int, summary: RunSummary)] = []
        try await monitor.reportProgress(isHidden: options.isQuiet) {
            try await ScenarioRunner(worlds: worlds, jobs: jobs).run(
                plan, onStart: { monitor.runStarted($0, isAnnounced: false) },
                transform: { finished in
                    let summary = RunSummary(finished, showsText: false, isTraced: false)
                    monitor.runEnded(passed: summary.hasPassed)
                    return summary
                },
                onResult: { summary in
                    if !summary.hasPassed { failures.append((summary.run.index, summary)) }
                })
        }
        return failures
    }

    /// Proves the mutants, several at a time, and calls `onResult` with the proofs in order.
    private func mutated(_ plan: [PlannedRun], onResult: (MutantProof) -> Void) async throws {
        let mutants = options.mutants
        let monitor = RunMonitor(planned: mutants.count, console)
        var ordered = OrderedResults<MutantProof>()
        var next = 0
        try await monitor.reportProgress(isHidden: options.isQuiet) {
            try await withThrowingTaskGroup(of: (Int, MutantProof).self) { group in
                while true {
                    while next < mutants.count && next - ordered.count < jobs {
                        let index = next
                        next += 1
                        group.addTask {
                            monitor.runStarted()
                            let proof = try await prove(mutants[index], plan)
                            monitor.runEnded(passed: proof.isProven)
                            return (index, proof)
                        }
                    }
                    guard let (index, proof) = try await group.next() else { break }
                    for proof in ordered.add(proof, at: index) { onResult(proof) }
                }
            }
        }
    }

    /// Runs the scenarios with a mutant until it is proven.
    private func prove(_ mutant: RunMutant, _ plan: [PlannedRun]) async throws -> MutantProof {
        let clock = ContinuousClock()
        let start = clock.now
        var proof = MutantProof(mutant, needsDetector: options.scenarios.isEmpty)
        for run in Self.ordered(plan, for: mutant) {
            if proof.isProven && !options.isExhaustive { break }
            try Task.checkCancellation()
            let run = run.with(mutant)
            let simulate = worlds.simulated
            do {
                let result = try await BlockingThread.run { try simulate(run, nil) }
                proof.add(run.scenario, result.verdict)
            } catch let error as SetupError {
                proof.add(run.scenario, failure: error.description)
            }
        }
        proof.duration = clock.now - start
        return proof
    }

    /// Returns the runs in the order in which they are made: those that the mutant names come first.
    static func ordered(_ plan: [PlannedRun], for mutant: RunMutant) -> [PlannedRun] {
        let first = mutant.runs.compactMap { name in plan.first { $0.scenario.fullName == name } }
        let indices = Set(first.map(\.index))
        return first + plan.filter { !indices.contains($0.index) }
    }
}

extension PlannedRun {
    /// Returns the run with a mutant.
    func with(_ mutant: RunMutant) -> PlannedRun {
        PlannedRun(
            index: index, source: source, scenario: scenario, world: world, seed: seed, mutants: [mutant],
            clients: clients)
    }
}
