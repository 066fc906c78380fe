internal import Determinism
internal import Scenario
internal import Worlds

/// The result of one seed of an exploration, without its history.
struct ExploredSeed: Sendable {
    /// The comparison with a repetition.
    enum Repetition: Sendable {
        /// The run was not repeated.
        case none
        /// The repetition had the same events.
        case same
        /// The repetition had other events; where, in lines.
        case different([String])
    }

    let seed: UInt64
    /// The failed checks in order; empty if the seed passes.
    let failures: [SeedFailure]
    /// The drawn configuration in lines.
    let configuration: [String]
    /// The states that the scenario asks for (`sometimes`) and that were reached, by their descriptions.
    let reached: Set<String>
    /// What the run has reached.
    let cells: Set<CoverageCell>
    let eventCount: Int
    /// The digest of the run; `nil` if it is not wanted, or if the run could not take place.
    let digest: String?
    let repetition: Repetition
    /// A line per event, if it is wanted.
    var trace: [String] = []
    /// The reason why the run could not take place.
    let error: String?

    /// One in this many passing seeds is repeated.
    static let repetitionInterval: UInt64 = 20
}

/// The run of one seed: draws the scenario, runs it, and repeats it if it must be.
struct SeedRun: Sendable {
    private(set) var swarm: Swarm
    /// The name or path of the scenario.
    let source: String
    let mutants: [RunMutant]
    /// The arguments that repeat a seed, without the seed.
    private(set) var arguments: [[String]]
    let showsText: Bool
    /// Whether a line per event is wanted.
    var isTraced = false
    /// Whether the digests of the runs are wanted.
    var givesDigests = true
    let worlds: RunWorlds

    /// Returns the run with a swarm that leans towards classes of faults.
    func leaning(_ classes: [SwarmClass]) -> SeedRun {
        var run = self
        run.swarm.leaning = Set(classes)
        if !classes.isEmpty {
            run.arguments.append(["--bias", classes.map(\.rawValue).joined(separator: ",")])
        }
        return run
    }

    /// Returns the planned run of a seed.
    func planned(_ seed: UInt64) -> PlannedRun { planned(swarm.configuration(seed: seed)) }

    private func planned(_ configuration: SwarmConfiguration) -> PlannedRun {
        var run = PlannedRun(
            index: 0, source: source, scenario: swarm.scenario(configuration), world: .simulated,
            seed: configuration.seed, mutants: mutants, replay: arguments + [["--seed", "\(configuration.seed)"]])
        run.storage = .collections
        return run
    }

    /// Returns whether a seed is repeated although it passes.
    static func isRepeated(_ seed: UInt64) -> Bool { seed % ExploredSeed.repetitionInterval == 0 }

    /// Runs a seed. Blocks until its end.
    ///
    /// - Parameter isRepeated: Whether the run is repeated even if it passes.
    func run(_ seed: UInt64, isRepeated: Bool) -> ExploredSeed {
        let configuration = swarm.configuration(seed: seed)
        let run = planned(configuration)
        let clock = ContinuousClock()
        let start = clock.now
        do throws(SetupError) {
            let result = try worlds.simulated(run, nil)
            let wallTime = clock.now - start
            let hasFailed = result.verdict.checks.contains { if case .fail = $0.outcome { true } else { false } }
            var repetition = FinishedRun.Repetition.none
            var repeated = ExploredSeed.Repetition.none
            if hasFailed || isRepeated {
                // The repetition has the other store.
                var other = run
                other.storage = .sqlite
                let second = try worlds.simulated(other, nil)
                repetition = .same
                repeated = .same
                if let difference = RunDifference(result, second) {
                    repetition = .different(difference)
                    repeated = .different(difference.lines + (try DeterminismProbe.lines(run, worlds)))
                }
            }
            let finished = FinishedRun(
                run: run, outcome: .result(result), repetition: repetition, wallTime: wallTime)
            return ExploredSeed(
                seed: seed, failures: hasFailed ? failures(finished, result) : [], configuration: configuration.lines,
                reached: Self.reached(run.scenario, result.verdict),
                cells: RunCoverage.cells(run.scenario, result.history), eventCount: result.eventCount,
                digest: givesDigests ? result.digestText : nil,
                repetition: repeated,
                trace: isTraced ? RunSummary(finished, showsText: showsText, isTraced: true).trace : [], error: nil)
        } catch {
            return ExploredSeed(
                seed: seed, failures: [], configuration: configuration.lines, reached: [], cells: [], eventCount: 0,
                digest: nil,
                repetition: .none, error: error.description)
        }
    }

    private func failures(_ finished: FinishedRun, _ result: RunResult) -> [SeedFailure] {
        let scenario = finished.run.scenario
        let texts = TextDisplay(scenario, showsAll: showsText)
        let screen = RunSummary(finished, showsText: showsText, isTraced: false).screen
        return result.verdict.checks.compactMap { check in
            guard case .fail(let reason) = check.outcome else { return nil }
            let context = FailureContext(check, scenario, result.history)
            return SeedFailure(
                run: finished.run, group: FailureGroup(check, context), check: check.description,
                actors: context.actors.sorted(), rows: context.rows.sorted(),
                reason: texts.hidingTexts(of: result.history, in: reason), screen: screen)
        }
    }

    /// Returns the descriptions of the states that were reached.
    private static func reached(_ scenario: Scenario, _ verdict: Verdict) -> Set<String> {
        let wanted = Set(scenario.expectations.filter(\.isSometimes).map(\.description))
        return Set(verdict.checks.filter { $0.outcome == .pass }.map(\.description)).intersection(wanted)
    }
}
