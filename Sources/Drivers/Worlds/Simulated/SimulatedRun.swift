//  Worlds/Simulated: runs of scenarios in virtual time.
//
//  Owns: the queue of events, virtual time, devices with their in-memory stores and links, the server's connections.
//
//  Does not own: the plan and the meaning of histories (Scenario), the effects of a network (Impairment), the
//  client (SyncEngine), the server's responses (NotesService), files (ConfigFiles).

public import Determinism
public import Scenario

/// A run of a scenario in virtual time. Scenario and seed determine everything: the same run has the same digest in
/// every process and on every machine.
public enum SimulatedRun {
    /// A kill of a device's client before one of its actions, in addition to those of the scenario.
    public struct Kill: Hashable, Sendable {
        /// The device.
        public let device: String
        /// The number of actions that the device's clients have executed before, since 0 s of the scenario.
        public let action: Int
        /// The time between the kill and the next start of the client.
        public let restartsAfter: Nanoseconds

        /// Creates a kill.
        public init(device: String, beforeAction action: Int, restartsAfter: Nanoseconds = .seconds(1)) {
            self.device = device
            self.action = action
            self.restartsAfter = restartsAfter
        }
    }

    /// Runs a scenario.
    ///
    /// - Parameters:
    ///   - behavior: The behaviour of the clients and the server.
    ///   - seed: The random seed; the scenario's by default.
    ///   - kill: A kill in addition to those of the scenario.
    ///   - storage: Where the server's notes are; has no influence on the run.
    ///   - onEvent: Called with each event of the history.
    ///   - onStep: Called with each event of the history and each event of the world; the run is aborted if it returns
    ///     `false`.
    public static func run(
        _ scenario: Scenario, behavior: RunBehavior = RunBehavior(), seed: UInt64? = nil, kill: Kill? = nil,
        storage: ServerStorage = .sqlite,
        onEvent: ((History.Entry) -> Void)? = nil, onStep: ((SimulatedStep) -> Bool)? = nil
    ) throws(SetupError) -> RunResult {
        if let reason = scenario.realTimeReason {
            throw SetupError("\(scenario.name) cannot run in simulation: \(reason); run it with --live")
        }
        let seed = seed ?? scenario.seed
        let scenario = scenario.materialized(seed: seed)
        let world = try SimulatedWorld(
            scenario, seed: seed, behavior: behavior, kill: kill, storage: storage, onEvent: onEvent, onStep: onStep)
        try world.run()
        var counts: [String: Int] = [:]
        var commits: [String: [Int]] = [:]
        for device in world.devices {
            counts[device.name] = device.actionCount
            commits[device.name] = device.commitActions
        }
        return RunResult(
            verdict: Verdict(scenario, world.recorder.history), history: world.recorder.history,
            eventCount: world.eventCount, actionCounts: counts, commitActions: commits)
    }
}
