internal import CommandSupport
internal import Determinism
internal import Scenario
internal import Synchronization
internal import Wire
internal import Worlds

/// The exploration of a scenario with each mutant: the number of seeds to the first that detects it.
///
/// A seed detects a mutant if a check fails that passes without the mutant. Each mutant must be detected by the invariant
/// that the gallery names.
struct GalleryExploration: Sendable {
    /// The result of a mutant.
    struct Result: Sendable {
        let mutant: RunMutant
        /// The first seed that detects the mutant by any check, with its number from 1; `nil` if none does.
        var first: (seed: UInt64, number: Int, check: String)?
        /// The first seed in which the invariant of the gallery fails, with its number from 1.
        var named: (seed: UInt64, number: Int)?
        var duration = Duration.zero
        /// The smallest scenario that detects the mutant; `nil` if none does, or nothing is shrunk.
        var shrunk: ShrunkRun?

        /// Whether the smallest scenario is small enough; `true` if nothing is shrunk.
        var isSmall: Bool {
            guard let scenario = shrunk?.result.scenario else { return true }
            return scenario.steps.count <= MutationTest.stepsMax && scenario.faults.count <= MutationTest.faultsMax
        }

        /// Whether the mutant is detected as it must be.
        var isDetected: Bool { named != nil }
    }

    let seed: SeedRun
    let seeds: SeedRange
    let mutants: [RunMutant]
    let console: Console
    let isJSON: Bool
    /// Whether the runs that detect mutants are shrunk.
    let shrinks: Bool
    /// The greatest time of the search for the smallest scenario of a mutant.
    private static let shrinkTimeMax = RunShrinker.timeMax

    /// Explores with each mutant, and returns the exit status. Throws only if the task is cancelled.
    func run(jobs: Int, isQuiet: Bool) async throws -> Int32 {
        let own = OwnFailures()
        let workers = SeedWorkers(jobs: jobs, count: mutants.count) { [self] index in search(mutants[index], own) }
        let clock = ContinuousClock()
        let start = clock.now
        var (detected, small) = (0, 0)
        let width = mutants.map(\.name.count).max() ?? 0
        if isJSON {
            console.print(
                JSONText.object([
                    ("type", JSONText.string("all_mutants")), ("version", "\(ExplorationReport.version)"),
                    ("source", JSONText.string(seed.source)), ("seeds", JSONText.string("\(seeds)")),
                ]))
        } else {
            console.print(Self.row(["mutant", "seeds", "named", "steps", "faults", "s", "detected by"], width))
        }
        let monitor = RunMonitor(planned: mutants.count, console)
        try await monitor.reportProgress(isHidden: isQuiet) {
            var ordered = OrderedResults<Result>()
            for await (index, value) in workers.results() {
                monitor.runStarted()
                monitor.runEnded(passed: value.isDetected)
                for result in ordered.add(value, at: index) {
                    detected += result.isDetected ? 1 : 0
                    small += result.isDetected && result.isSmall ? 1 : 0
                    console.print(isJSON ? Self.json(result) : Self.line(result, width))
                }
            }
            try Task.checkCancellation()
        }
        let seconds = ReportPace.decimal((clock.now - start) / .seconds(1))
        let status = small == mutants.count ? RunStatus.passed : RunStatus.failed
        if isJSON {
            console.print(
                JSONText.object([
                    ("type", JSONText.string("gallery_end")), ("mutants", "\(mutants.count)"),
                    ("detected", "\(detected)"),
                    ("exit_status", "\(status)"),
                ]))
        } else {
            let all = TextTable.count(mutants.count, "mutant")
            console.print(
                "\(detected) of \(all) detected within \(TextTable.count(Int(clamping: seeds.count), "seed")), "
                    + "\(seconds) s")
            if shrinks {
                console.print(
                    "\(small) shrunk to at most \(MutationTest.stepsMax) steps and \(MutationTest.faultsMax) faults")
            }
        }
        return status
    }

    /// The checks that fail without a mutant, of the seeds in which a mutant has failed. The first seeds detect most
    /// mutants, so that few runs serve all.
    private final class OwnFailures: Sendable {
        private let known = Mutex<[UInt64: Set<String>]>([:])

        func checks(of seed: UInt64, _ run: () -> Set<String>) -> Set<String> {
            if let checks = known.withLock({ $0[seed] }) { return checks }
            // Two threads may run the same seed; both get the same checks.
            let checks = run()
            known.withLock { $0[seed] = checks }
            return checks
        }
    }

    /// Runs the seeds with a mutant until it is detected.
    private func search(_ mutant: RunMutant, _ ownFailures: OwnFailures) -> Result {
        let clock = ContinuousClock()
        let start = clock.now
        var result = Result(mutant: mutant)
        let wanted = mutant.invariant.checkDescription
        for number in 0..<Int(clamping: seeds.count) where !result.isDetected {
            let value = seeds.first + UInt64(number)
            let failed = failedChecks(value, [mutant])
            guard !failed.isEmpty, result.first == nil || failed.contains(wanted) else { continue }
            let own = ownFailures.checks(of: value) { Set(failedChecks(value, [])) }
            let found = failed.filter { !own.contains($0) }
            guard let check = found.first(where: { $0 == wanted }) ?? found.first else { continue }
            if result.first == nil { result.first = (value, number + 1, check) }
            if check == wanted { result.named = (value, number + 1) }
        }
        if shrinks { result.shrunk = shrunk(result) }
        result.duration = clock.now - start
        return result
    }

    /// Shrinks the run that detects a mutant as the gallery says, or else the first that detects it.
    private func shrunk(_ result: Result) -> ShrunkRun? {
        guard let first = result.first else { return nil }
        var shrinker = RunShrinker(worlds: seed.worlds)
        shrinker.check = result.named == nil ? first.check : result.mutant.invariant.checkDescription
        shrinker.timeMax = Self.shrinkTimeMax
        return shrinker.shrink(run(result.named?.seed ?? first.seed, [result.mutant]))
    }

    private func run(_ value: UInt64, _ mutants: [RunMutant]) -> PlannedRun {
        var run = PlannedRun(
            index: 0, source: seed.source, scenario: seed.swarm.scenario(seed: value), world: .simulated, seed: value,
            mutants: mutants)
        run.storage = .collections
        return run
    }

    /// Returns the checks of a seed that fail, by their descriptions.
    private func failedChecks(_ value: UInt64, _ mutants: [RunMutant]) -> [String] {
        guard let result = try? seed.worlds.simulated(run(value, mutants), nil) else { return [] }
        return result.verdict.checks.compactMap { check in
            if case .fail = check.outcome { check.description } else { nil }
        }
    }

    // MARK: Output

    private static func row(_ columns: [String], _ width: Int) -> String {
        let widths = [width, 5, 5, 5, 6, 6]
        var text = ""
        for (column, width) in zip(columns, widths) {
            let padding = String(repeating: " ", count: max(0, width - column.count))
            text += (text.isEmpty ? column + padding : padding + column) + "  "
        }
        return text + columns[columns.count - 1]
    }

    private static func line(_ result: Result, _ width: Int) -> String {
        var check = result.first.map { TextTable.singleLine($0.check) } ?? "NOT DETECTED"
        let invariant = result.mutant.invariant
        if result.named == nil {
            check += "; NOT by \(invariant.rawValue) (\(invariant.number))"
        } else if result.first?.check != invariant.checkDescription {
            check += "; by \(invariant.rawValue) (\(invariant.number)) later"
        }
        let seconds = ReportPace.decimal(result.duration / .seconds(1))
        return row(
            [
                result.mutant.name, result.first.map { "\($0.number)" } ?? "-",
                result.named.map { "\($0.number)" } ?? "-",
                result.shrunk.map { "\($0.result.scenario.steps.count)" } ?? "-",
                result.shrunk.map { "\($0.result.scenario.faults.count)" } ?? "-", seconds,
                check + (result.isSmall ? "" : "; TOO LARGE"),
            ], width)
    }

    private static func json(_ result: Result) -> String {
        JSONText.object([
            ("type", JSONText.string("detection")), ("mutant", JSONText.string(result.mutant.name)),
            ("detector", JSONText.string(result.mutant.detector.description)),
            ("invariant", JSONText.string(result.mutant.invariant.rawValue)),
            ("check", JSONText.string(result.first?.check)),
            ("first_seed", JSONText.string(result.first.map { "\($0.seed)" })),
            ("seeds", result.first.map { "\($0.number)" } ?? "null"),
            ("named_seeds", result.named.map { "\($0.number)" } ?? "null"),
            ("detected", result.isDetected ? "true" : "false"),
            ("steps", result.shrunk.map { "\($0.result.scenario.steps.count)" } ?? "null"),
            ("faults", result.shrunk.map { "\($0.result.scenario.faults.count)" } ?? "null"),
            ("small", result.isSmall ? "true" : "false"),
            ("wall_ms", "\(Int64((result.duration / .milliseconds(1)).rounded()))"),
        ])
    }
}

extension Explorer {
    /// Explores the scenario with each of the chosen mutants, or else with each mutant of a gallery that concerns it, and
    /// returns the exit status. Throws only if the task is cancelled.
    public func run(gallery: [RunMutant]) async throws -> Int32 {
        switch plan() {
        case .failure(let end): return end.status
        case .success(let plan):
            let mutants =
                options.mutants.isEmpty
                ? gallery.filter { $0.concerns(plan.seed.swarm.base) } : options.mutants
            return try await GalleryExploration(
                seed: plan.seed, seeds: plan.seeds, mutants: mutants, console: console, isJSON: options.isJSON,
                shrinks: options.shrinksGallery
            ).run(jobs: jobs, isQuiet: options.isQuiet)
        }
    }
}
