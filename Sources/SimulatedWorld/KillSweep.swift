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
    /// The number of these in which the client was killed before it had received the reply of a fault. A fault replies a
    /// limited number of times, so that the server executes the repeated request: such runs are not compared.
    public private(set) var lostReplies = 0
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
            let boundaries = Set((whole.commitActions[device] ?? []).flatMap { [$0, $0 + 1] })
            for action in boundaries.sorted() {
                boundary += 1
                guard boundary % max(1, every) == 0 else { continue }
                let kill = SimulatedRun.Kill(device: device, beforeAction: action, restartsAfter: Self.restartDelay)
                let result = try SimulatedRun.run(scenario, seed: seed, kill: kill)
                kills += 1
                if Self.hasLostReply(scenario, result.history) {
                    lostReplies += 1
                    continue
                }
                let found = FinalState(result.history).differences(from: expected)
                if found.isEmpty { continue }
                differences.append(
                    Difference(
                        scenario: scenario.fullName, seed: seed ?? scenario.seed, kill: kill, differences: found))
            }
        }
    }

    /// Returns whether a client has not received the reply of a fault.
    private static func hasLostReply(_ scenario: Scenario, _ history: History) -> Bool {
        var replies: Set<Int> = []
        for entry in history.entries {
            switch entry.event {
            case .fault(let index, let exchange, _):
                if case .reply? = scenario.faults.indices.contains(index) ? scenario.faults[index].action : nil {
                    replies.insert(exchange)
                }
            case .responseReceived(let exchange, _): replies.remove(exchange)
            default: continue
            }
        }
        return !replies.isEmpty
    }
}
