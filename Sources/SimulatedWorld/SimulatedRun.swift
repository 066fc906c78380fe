//  SimulatedWorld: runs of scenarios in virtual time.
//
//  Owns: the queue of events, virtual time, devices with their in-memory stores and links, the server's connections,
//  writers, and the random streams of a run.
//
//  Does not own: the plan and the meaning of histories (ScenarioModel), the effects of a network (Impairment), the
//  client (SyncEngine), the server's responses (NotesService), files (ConfigFiles).

public import ScenarioModel
public import SyncEngine

/// A run of a scenario in virtual time. Scenario and seed determine everything: the same run has the same digest in
/// every process and on every machine.
public enum SimulatedRun {
    /// The reason why a scenario could not be run.
    public struct SetupError: Error, CustomStringConvertible {
        /// What failed, where and why.
        public let description: String
    }

    /// A kill of a device's client before one of its actions, in addition to those of the scenario. The client starts
    /// again after ``SimulatedRun/restartDelay``.
    public struct Kill: Hashable, Sendable {
        /// The device.
        public let device: String
        /// The number of actions that the device's clients have executed before, since 0 s of the scenario.
        public let action: Int

        /// Creates a kill.
        public init(device: String, beforeAction action: Int) {
            self.device = device
            self.action = action
        }
    }

    /// The result of a run.
    public struct Result: Sendable {
        /// The verdict.
        public let verdict: Verdict
        /// The events.
        public let history: History
        /// The rolling digest over all events.
        public let digest: UInt64
        /// The digest as 16 hexadecimal digits.
        public var digestText: String {
            let text = String(digest, radix: 16)
            return String(repeating: "0", count: 16 - text.utf8.count) + text
        }
        /// The number of events that the world has executed.
        public let eventCount: Int
        /// The number of actions that the clients of each device have executed since 0 s.
        public let actionCounts: [String: Int]
    }

    /// Runs a scenario.
    ///
    /// - Parameters:
    ///   - mutant: A deliberate defect of the clients.
    ///   - seed: The random seed; the scenario's by default.
    ///   - kill: A kill in addition to those of the scenario.
    ///   - onLine: Called with a line per event.
    public static func run(
        _ scenario: Scenario, mutant: Mutant? = nil, seed: UInt64? = nil, kill: Kill? = nil,
        onLine: ((String) -> Void)? = nil
    ) throws(SetupError) -> Result {
        let seed = seed ?? scenario.seed
        let scenario = scenario.materialized(seed: seed)
        let world = try World(scenario, seed: seed, mutant: mutant, kill: kill, onLine: onLine)
        try world.run()
        var counts: [String: Int] = [:]
        for device in world.devices { counts[device.name] = device.actionCount }
        return Result(
            verdict: Verdict(scenario, world.recorder.history), history: world.recorder.history,
            digest: world.recorder.digest, eventCount: world.eventCount, actionCounts: counts)
    }
}
