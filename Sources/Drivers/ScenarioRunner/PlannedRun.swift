internal import CommandSupport
internal import ConfigFiles
public import Scenario
internal import Worlds

/// A world in which scenarios run.
public enum RunWorld: String, Hashable, Sendable {
    /// In virtual time.
    case simulated
    /// In real time over real sockets.
    case live
}

/// A run to be made: a scenario with all that determines the run.
public struct PlannedRun: Sendable {
    /// The position in the plan, from 0.
    public internal(set) var index: Int
    /// The built-in name or the path by which the scenario was selected.
    public let source: String
    /// The scenario, or one of its variants, with the steps of its workload.
    public let scenario: Scenario
    /// The world.
    public let world: RunWorld
    /// The random seed.
    public let seed: UInt64
    /// Deliberate defects of the reference clients and the server.
    public let mutants: [RunMutant]
    /// The devices whose clients are not those of the file.
    public let clients: Set<String>
    /// Where the notes of the server are in virtual time. Has no influence on the result.
    var storage = ServerStorage.sqlite
    /// A digest of the bytes of the scenario's file, and of all files that it names; 0 for a scenario without a file.
    var fileDigest: UInt64 = 0
    /// Whether the run must fail.
    let isCanary: Bool
    /// The arguments that repeat the run, an option together with its value; `nil` for those of `slowlane run`.
    let replay: [[String]]?

    /// Creates a run.
    public init(
        index: Int, source: String, scenario: Scenario, world: RunWorld, seed: UInt64? = nil, mutants: [RunMutant] = [],
        clients: Set<String> = []
    ) {
        self.init(
            index: index, source: source, scenario: scenario, world: world, seed: seed, mutants: mutants,
            clients: clients, isCanary: false)
    }

    /// Creates a run.
    ///
    /// - Parameters:
    ///   - isCanary: Whether the run must fail.
    ///   - replay: The arguments that repeat the run; `nil` for those of `slowlane run`.
    init(
        index: Int, source: String, scenario: Scenario, world: RunWorld, seed: UInt64?, mutants: [RunMutant] = [],
        clients: Set<String> = [], isCanary: Bool = false, replay: [[String]]? = nil
    ) {
        self.replay = replay
        self.index = index
        self.source = source
        self.seed = seed ?? scenario.seed
        // Histories and verdicts refer to these steps.
        self.scenario = scenario.materialized(seed: self.seed)
        self.world = world
        self.mutants = mutants
        self.clients = clients
        self.isCanary = isCanary
    }

    /// The names of the mutants, separated by commas; `nil` if there are none.
    var mutantNames: String? { mutants.isEmpty ? nil : mutants.map(\.name).joined(separator: ",") }

    /// Scenario, variant, seed and world in one line.
    public var title: String {
        let origin = scenario.seedOrigin == .commit && seed == scenario.seed ? " (commit)" : ""
        return "\(TextTable.singleLine(scenario.fullName)), seed \(seed)\(origin), \(world.rawValue)"
    }
}

extension ScenarioSelection {
    /// Returns the runs of all selected scenarios in order; those of one scenario in several worlds are adjacent. A file
    /// that uses features that the worlds do not execute, or needs a commit for its seed where there is none, becomes one
    /// of ``rejections``.
    ///
    /// - Parameters:
    ///   - variant: The variant's name, `none` for the scenario itself, `nil` for all.
    ///   - tags: Only runs with at least one of them; all if empty.
    ///   - worlds: The worlds; `nil` for virtual time, or real time if the scenario runs in no other.
    ///   - clients: The programs that are the clients of devices, by the devices' names.
    public mutating func plan(
        variant: String? = nil, tags: [String] = [], worlds: [RunWorld]?, seed: UInt64? = nil,
        mutants: [RunMutant] = [], clients: [String: Scenario.Program] = [:]
    ) -> [PlannedRun] {
        var plan: [PlannedRun] = []
        for (source, scenarios) in takeRuns(ofVariant: variant, tags: tags, needsSeed: seed == nil) {
            let scenarios = scenarios.map { $0.replacingClients(clients) }
            if let problem = Self.problem(scenarios, source.name) {
                reject(problem)
                continue
            }
            for scenario in scenarios {
                let isLive = scenario.realTimeReason != nil
                let chosen = worlds ?? [isLive ? .live : .simulated]
                // Without a simulated run there is nothing to compare a live one with; the simulated run reports why.
                for world in isLive && chosen.contains(.simulated) ? [.simulated] : chosen {
                    var run = PlannedRun(
                        index: plan.count, source: source.name, scenario: scenario, world: world, seed: seed,
                        mutants: mutants, clients: Set(clients.keys))
                    run.fileDigest = source.file.digest
                    plan.append(run)
                }
            }
        }
        return plan
    }

    /// Returns the first fault that other clients than those of the file make impossible.
    private static func problem(_ scenarios: [Scenario], _ source: String) -> Rejection? {
        for scenario in scenarios {
            for fault in scenario.faults {
                guard let reason = scenario.impossibility(of: fault) else { continue }
                return Rejection(
                    name: source, description: "\(fault.location): \(reason)", location: fault.location, message: reason
                )
            }
        }
        return nil
    }
}
