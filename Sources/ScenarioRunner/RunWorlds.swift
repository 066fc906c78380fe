internal import LiveWorld
public import ScenarioModel
public import ScenarioWorld
internal import SimulatedWorld
internal import SyncEngine

/// An event of a run as it is reported while the run lasts.
public enum RunEvent: Sendable {
    /// An event of the history.
    case entry(History.Entry)
    /// A line of text.
    case line(String)
}

/// The functions that run scenarios; tests replace them.
public struct RunWorlds: Sendable {
    /// Runs a scenario in virtual time. Blocks until its end.
    public typealias Simulated =
        @Sendable (PlannedRun, _ onEvent: (@Sendable (RunEvent) -> Void)?) throws(SetupError) -> RunResult
    /// Runs a scenario in real time. Ends with the cancellation of its task.
    public typealias Live =
        @Sendable (PlannedRun, _ onEvent: (@Sendable (RunEvent) -> Void)?) async throws -> RunResult

    /// Runs a scenario in virtual time.
    public let simulated: Simulated
    /// Runs a scenario in real time.
    public let live: Live

    /// Creates worlds.
    public init(simulated: @escaping Simulated, live: @escaping Live) {
        self.simulated = simulated
        self.live = live
    }

    /// The worlds of this package.
    public static let standard = RunWorlds(
        simulated: { (run, onEvent) throws(SetupError) -> RunResult in
            try SimulatedRun.run(
                run.scenario, mutant: run.mutant, seed: run.seed,
                onEvent: onEvent.map { onEvent in { (entry: History.Entry) in onEvent(.entry(entry)) } })
        },
        live: { run, onEvent in try await liveResult(run) { onEvent?($0) } })

    private static func liveResult(
        _ run: PlannedRun, _ onEvent: @escaping @Sendable (RunEvent) -> Void
    ) async throws -> RunResult {
        do {
            let (verdict, history) = try await LiveRun.run(run.scenario, mutant: run.mutant, seed: run.seed) {
                onEvent(.line($0))
            }
            return RunResult(
                verdict: verdict, history: history, digest: history.digest, eventCount: history.entries.count)
        } catch let error as LiveRun.SetupError {
            throw SetupError(error.description)
        }
    }
}
