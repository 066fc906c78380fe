public import Determinism
public import ScenarioModel
public import ScenarioWorld

/// Runs of a scenario with a kill at each commit boundary of each device: before the commit, and after it before anything
/// else. The client starts again at once, as a supervisor would start it. Requests may be repeated; the final state must
/// be that of the run without the kill (I11).
public struct KillSweep: Sendable {
    /// A run whose final state differs from that of the run without the kill.
    public struct Difference: Sendable, CustomStringConvertible {
        /// The name of the scenario with its variant.
        public let scenario: String
        /// The random seed.
        public let seed: UInt64
        /// The kill.
        public let kill: SimulatedRun.Kill
        /// The differences in words.
        public let differences: [String]

        public var description: String {
            "\(scenario), seed \(seed): a kill of \(kill.device) before its action \(kill.action): "
                + differences.joined(separator: "; ")
        }
    }

    /// The time between a kill and the next start of the client.
    public static let restartDelay = Nanoseconds.milliseconds(10)

    /// The number of runs with a kill.
    public private(set) var kills = 0
    /// The runs with another final state.
    public private(set) var differences: [Difference] = []

    /// Runs a scenario and all its kills.
    ///
    /// - Parameters:
    ///   - every: The distance of the boundaries that are tried: 1 tries all.
    public init(_ scenario: Scenario, seed: UInt64? = nil, every: Int = 1) throws(SetupError) {
        let whole = try SimulatedRun.run(scenario, seed: seed)
        let expected = FinalState(whole.history)
        var boundary = 0
        for device in scenario.devices.map(\.name) {
            for commit in whole.commitActions[device] ?? [] {
                for action in [commit, commit + 1] {
                    boundary += 1
                    guard boundary % max(1, every) == 0 else { continue }
                    let kill = SimulatedRun.Kill(
                        device: device, beforeAction: action, restartsAfter: Self.restartDelay)
                    let result = try SimulatedRun.run(scenario, seed: seed, kill: kill)
                    kills += 1
                    let found = FinalState(result.history).differences(from: expected)
                    if found.isEmpty { continue }
                    differences.append(
                        Difference(
                            scenario: scenario.fullName, seed: seed ?? scenario.seed, kill: kill, differences: found))
                }
            }
        }
    }
}
