internal import LiveWorld
public import Scenario
public import Worlds

/// The functions that run scenarios; tests replace them.
public struct RunWorlds: Sendable {
    /// Runs a scenario in virtual time. Blocks until its end.
    public typealias Simulated =
        @Sendable (PlannedRun, _ onEvent: (@Sendable (History.Entry) -> Void)?) throws(SetupError) -> RunResult
    /// Runs a scenario in real time. Ends with the cancellation of its task.
    public typealias Live =
        @Sendable (PlannedRun, _ onEvent: (@Sendable (History.Entry) -> Void)?) async throws -> RunResult

    /// Runs a scenario in virtual time step by step, until `onStep` returns `false`. Blocks until its end.
    public typealias Traced =
        @Sendable (PlannedRun, _ onStep: @escaping (SimulatedStep) -> Bool) throws(SetupError) -> RunResult

    /// Runs a scenario in virtual time.
    public let simulated: Simulated
    /// Runs a scenario in real time.
    public let live: Live
    /// Runs a scenario in virtual time step by step.
    public let traced: Traced

    /// Creates worlds.
    public init(
        simulated: @escaping Simulated, live: @escaping Live, traced: @escaping Traced = Self.runStepByStep
    ) {
        self.simulated = simulated
        self.live = live
        self.traced = traced
    }

    /// Runs a scenario in virtual time step by step.
    public static let runStepByStep: Traced = { (run, onStep) throws(SetupError) -> RunResult in
        try SimulatedRun.run(
            run.scenario, behavior: run.mutants.behavior, seed: run.seed, storage: run.storage, onStep: onStep)
    }

    /// The worlds of this package.
    public static let standard = RunWorlds(
        simulated: { (run, onEvent) throws(SetupError) -> RunResult in
            try SimulatedRun.run(
                run.scenario, behavior: run.mutants.behavior, seed: run.seed, storage: run.storage, onEvent: onEvent)
        },
        live: { run, onEvent in
            try await LiveRun.run(run.scenario, behavior: run.mutants.behavior, seed: run.seed) { onEvent?($0) }
        })
}
