internal import CommandSupport
internal import Scenario
internal import Wire
internal import Worlds

/// The mutants with the smallest scenarios that detect them.
extension MutationTest {
    /// The greatest number of steps and of faults that a shrunk scenario may have.
    static let stepsMax = 10
    static let faultsMax = 2

    /// The shrunk run that detects a mutant.
    struct ShrunkMutant: Sendable {
        let mutant: RunMutant
        /// The search; `nil` if no run detects the mutant.
        var shrunk: ShrunkRun?

        /// Whether the shrunk scenario is small enough.
        var isSmall: Bool {
            guard let scenario = shrunk?.result.scenario else { return false }
            return scenario.steps.count <= stepsMax && scenario.faults.count <= faultsMax
        }

        var check: String {
            TextTable.singleLine(shrunk?.result.violation.title ?? "not detected")
        }
    }

    /// Shrinks the first run that detects each mutant, and returns the exit status.
    func shrink(_ plan: [PlannedRun]) async throws -> Int32 {
        let mutants = options.mutants
        let monitor = RunMonitor(planned: mutants.count, console)
        var results: [ShrunkMutant] = []
        if !options.isJSON { console.print(Self.row(["mutant", "steps", "faults", "runs", "time", "violation"])) }
        var ordered = OrderedResults<ShrunkMutant>()
        var next = 0
        try await monitor.reportProgress(isHidden: options.isQuiet) {
            try await withThrowingTaskGroup(of: (Int, ShrunkMutant).self) { group in
                while true {
                    while next < mutants.count && next - ordered.count < jobs {
                        let index = next
                        next += 1
                        group.addTask {
                            monitor.runStarted()
                            let found = try await shrink(mutants[index], plan)
                            monitor.runEnded(passed: found.isSmall)
                            return (index, found)
                        }
                    }
                    guard let (index, found) = try await group.next() else { break }
                    for found in ordered.add(found, at: index) {
                        results.append(found)
                        console.print(options.isJSON ? Self.json(found) : Self.row(found))
                    }
                }
            }
        }
        let small = results.count(where: \.isSmall)
        if !options.isJSON {
            console.print(
                "\(small) of \(TextTable.count(results.count, "mutant")) with at most \(Self.stepsMax) steps and "
                    + "\(Self.faultsMax) faults")
        }
        return small == results.count ? RunStatus.passed : RunStatus.failed
    }

    /// Shrinks the first run that detects a mutant as the gallery says, or else the first that detects it.
    private func shrink(_ mutant: RunMutant, _ plan: [PlannedRun]) async throws -> ShrunkMutant {
        let simulate = worlds.simulated
        var other: (run: PlannedRun, check: String?)?
        for run in Self.ordered(plan, for: mutant) {
            try Task.checkCancellation()
            let run = run.with(mutant)
            let verdict = try? await BlockingThread.run { try simulate(run, nil) }.verdict
            let failed = (verdict?.checks ?? []).filter { if case .fail = $0.outcome { true } else { false } }
            if failed.isEmpty { continue }
            let expected = failed.first { mutant.detector.matches($0, ofScenario: run.scenario.name) }
            if let expected {
                return ShrunkMutant(mutant: mutant, shrunk: try await shrink(run, expected.description))
            }
            other = other ?? (run, nil)
            // A user's scenarios need not have the check of the gallery.
            if !options.scenarios.isEmpty { break }
        }
        guard let other else { return ShrunkMutant(mutant: mutant) }
        return ShrunkMutant(mutant: mutant, shrunk: try await shrink(other.run, other.check))
    }

    private func shrink(_ run: PlannedRun, _ check: String?) async throws -> ShrunkRun? {
        var shrinker = RunShrinker(worlds: worlds)
        shrinker.check = check
        // The number of runs ends a search, so that equal arguments give equal tables.
        shrinker.timeMax = .seconds(3600)
        return try await BlockingThread.run { [shrinker] in shrinker.shrink(run) }
    }

    // MARK: Output

    private static func row(_ columns: [String]) -> String {
        let widths = [32, 6, 6, 6, 8]
        return columns.enumerated().map { index, text in
            guard index < widths.count else { return text }
            let space = String(repeating: " ", count: max(0, widths[index] - text.count))
            return index == 0 ? text + space : space + text
        }.joined(separator: "  ")
    }

    private static func row(_ found: ShrunkMutant) -> String {
        guard let shrunk = found.shrunk else {
            return row([found.mutant.name, "-", "-", "-", "-", "NOT DETECTED"])
        }
        let scenario = shrunk.result.scenario
        return row([
            found.mutant.name, "\(scenario.steps.count)", "\(scenario.faults.count)", "\(shrunk.result.runs)",
            shrunk.seconds,
            "\(found.check), in \(shrunk.run.scenario.fullName)" + (found.isSmall ? "" : " TOO LARGE"),
        ])
    }

    private static func json(_ found: ShrunkMutant) -> String {
        let scenario = found.shrunk?.result.scenario
        return JSONText.object([
            ("type", JSONText.string("shrunk_mutant")), ("version", "\(JSONLinesReport.version)"),
            ("mutant", JSONText.string(found.mutant.name)),
            ("run", JSONText.string(found.shrunk?.run.scenario.fullName)),
            ("check", JSONText.string(found.shrunk?.result.violation.description)),
            ("steps", scenario.map { "\($0.steps.count)" } ?? "null"),
            ("faults", scenario.map { "\($0.faults.count)" } ?? "null"),
            ("runs", "\(found.shrunk?.result.runs ?? 0)"), ("small", found.isSmall ? "true" : "false"),
            ("wall_ms", "\(Int64(((found.shrunk?.wallTime ?? .zero) / .milliseconds(1)).rounded()))"),
        ])
    }
}
