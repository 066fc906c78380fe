public import Determinism
public import Scenario

/// Runs of a scenario with a kill at each commit boundary of each device: before the commit, and after it before anything
/// else. The client starts again at once, as a supervisor would start it. Requests may be repeated; the final state must
/// be that of the run without the kill (I11), and no invariant may be violated.
///
/// Random actions of several clients have no single final state: the server may execute two of them in another order
/// after a kill. Of scenarios with a workload only the invariants are checked, convergence among them.
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
    /// The number of these whose fault replied once more, because the killed client had lost the reply: a fault replies
    /// a limited number of times, and a server that rejects a request rejects its repetition, too.
    public private(set) var repeatedReplies = 0
    /// Whether final states are compared.
    public let comparesStates: Bool
    /// The runs with another final state, or with a violated invariant.
    public private(set) var differences: [Difference] = []

    /// Runs a scenario and all its kills.
    ///
    /// - Parameters:
    ///   - every: The distance of the boundaries that are tried: 1 tries all.
    public init(_ scenario: Scenario, seed: UInt64? = nil, every: Int = 1) throws(SetupError) {
        comparesStates = scenario.workload.isEmpty
        let whole = try SimulatedRun.run(scenario, seed: seed)
        let expected = FinalState(whole.history)
        let lostBefore = Self.lostReplies(scenario, whole.history)
        var boundary = 0
        for device in scenario.devices.map(\.name) {
            let boundaries = Set((whole.commitActions[device] ?? []).flatMap { [$0, $0 + 1] })
            for action in boundaries.sorted() {
                boundary += 1
                guard boundary % max(1, every) == 0 else { continue }
                let kill = SimulatedRun.Kill(device: device, beforeAction: action, restartsAfter: Self.restartDelay)
                var result = try SimulatedRun.run(scenario, seed: seed, kill: kill)
                kills += 1
                var found = differences(result, from: expected)
                let lost = Self.lostReplies(scenario, result.history).filter { $1 > lostBefore[$0] ?? 0 }
                if !found.isEmpty, !lost.isEmpty {
                    repeatedReplies += 1
                    var repeating = scenario
                    for (index, count) in lost {
                        repeating.faults[index] = scenario.faults[index].repeated(count - (lostBefore[index] ?? 0))
                    }
                    result = try SimulatedRun.run(repeating, seed: seed, kill: kill)
                    found = differences(result, from: expected)
                }
                if found.isEmpty { continue }
                differences.append(
                    Difference(
                        scenario: scenario.fullName, seed: seed ?? scenario.seed, kill: kill, differences: found))
            }
        }
    }

    /// Returns the differences of a run from the final state of the run without a kill, and violated invariants.
    private func differences(_ result: RunResult, from expected: FinalState) -> [String] {
        var found = comparesStates ? FinalState(result.history).differences(from: expected) : []
        for check in result.verdict.checks {
            guard case .invariant = check.subject, case .fail(let reason) = check.outcome else { continue }
            found.append("\(check.description): \(reason)")
        }
        return found
    }

    /// Returns how many replies of each fault a client has not stored the results of: it has not received them, or it
    /// was killed before its next commit.
    private static func lostReplies(_ scenario: Scenario, _ history: History) -> [Int: Int] {
        var actors: [Int: String] = [:]
        // The exchanges with a reply of a fault, until the next commit after it.
        var pending: [Int: Int] = [:]
        var received: Set<Int> = []
        var lost: [Int: Int] = [:]
        for entry in history.entries {
            switch entry.event {
            case .request(let exchange, let actor, _, _, _, _, _): actors[exchange] = actor
            case .fault(let index, let exchange, _):
                if scenario.faults.indices.contains(index), scenario.faults[index].action.response != nil {
                    pending[exchange] = index
                }
            case .responseReceived(let exchange, _): received.insert(exchange)
            case .commit(let device, _):
                pending = pending.filter { !received.contains($0.key) || actors[$0.key] != device }
            case .stopped(let device):
                for (exchange, index) in pending where actors[exchange] == device {
                    lost[index, default: 0] += 1
                    pending[exchange] = nil
                }
            default: continue
            }
        }
        return lost
    }
}

extension Scenario.Fault {
    /// Returns the fault with a greater maximum number of times.
    fileprivate func repeated(_ count: Int) -> Scenario.Fault {
        var copy = self
        copy.times = times.lowerBound...max(times.upperBound, times.upperBound &+ count)
        return copy
    }
}
