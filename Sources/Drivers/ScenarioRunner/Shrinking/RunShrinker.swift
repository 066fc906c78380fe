internal import ConfigFiles
internal import LinkModel
public import Scenario
internal import Worlds

/// The search for the smallest scenario that fails as a run does, in virtual time.
public struct RunShrinker: Sendable {
    /// The default of the time that a search may take.
    public static let timeMax = Duration.seconds(10)

    /// The greatest number of runs of a search.
    public var runsMax = Shrinker.runsMax
    /// The greatest time of a search.
    public var timeMax = Self.timeMax
    /// The description of the check to keep; `nil` for the first violation of the run.
    public var check: String?
    private let worlds: RunWorlds

    /// Creates a search.
    public init(worlds: RunWorlds = .standard) { self.worlds = worlds }

    /// Shrinks a failing run. Blocks.
    ///
    /// - Parameter isCancelled: Returns whether the search is to end with what it has found.
    public func shrink(_ run: PlannedRun, isCancelled: @escaping @Sendable () -> Bool = { false }) -> ShrunkRun? {
        let clock = ContinuousClock()
        let start = clock.now
        let simulate = worlds.simulated
        let (timeMax, check) = (timeMax, check)
        var scenario = run.scenario
        scenario.seed = run.seed
        scenario.seedOrigin = .file
        let environment = Shrinker.Environment(
            run: { candidate, isControl in
                var planned = PlannedRun(
                    index: 0, source: run.source, scenario: candidate, world: .simulated, seed: candidate.seed,
                    mutants: isControl ? [] : run.mutants)
                planned.storage = .collections
                guard let result = try? simulate(planned, nil) else { return nil }
                return Shrinker.Observation(verdict: result.verdict, history: result.history)
            },
            isValid: { candidate in
                guard let text = try? ScenarioWriter.text(FailureFile.named(candidate, "candidate")) else {
                    return false
                }
                return (try? ScenarioFile(parsing: text, file: "candidate.yaml")) != nil
            },
            isTooLarge: { candidate in
                let text = try? ScenarioWriter.text(FailureFile.named(candidate, "candidate"))
                return text.map { $0.utf8.count > ScenarioFile.bytesMax } ?? false
            },
            hasTime: { clock.now - start < timeMax && !isCancelled() }, wifi: Self.profile("wifi") ?? Self.clear,
            unnamedLink: ProfileCatalogue.unnamed, profile: Self.profile, hasOtherBehavior: !run.mutants.isEmpty)
        let result = Shrinker.shrink(
            scenario, runsMax: runsMax,
            choosing: { violations in
                violations.first { $0.description == check } ?? violations.first
            }, in: environment)
        return result.map { ShrunkRun(run: run, result: $0, wallTime: clock.now - start) }
    }

    private static let clear = Timeline.NamedConditions(ProfileCatalogue.unnamed, .clear)

    private static func profile(_ name: String) -> Timeline.NamedConditions? {
        ProfileCatalogue.builtIn.first { $0.id == name }.map { Timeline.NamedConditions($0.id, $0.conditions) }
    }
}

/// A run with the smallest scenario that was found.
public struct ShrunkRun: Sendable {
    /// The original run.
    public let run: PlannedRun
    /// The result of the search.
    public let result: Shrinker.Result
    /// The real time of the search.
    public let wallTime: Duration
}
