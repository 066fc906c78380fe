public import Determinism
internal import LinkModel

/// The scenarios of an exploration: a pure function from a scenario and a seed to a scenario.
///
/// A seed draws a configuration first (``configuration(seed:)``), and then the network, the faults and the actions under
/// it. Every element has a random stream of its own (`swarm/act/17`, `swarm/network/A/3`, `swarm/fault/reset/0`), so that
/// the absence of one does not change another. A class of faults that is off takes its faults away, and no more.
///
/// A run has two parts: ``length`` of actions under faults, then the restore phase with no fault left, in which all devices
/// but a departed one must converge.
public struct Swarm: Sendable {
    /// The scenario that is varied.
    public let base: Scenario
    /// The parts that are drawn; the others are those of the scenario.
    public let parts: Set<Scenario.Exploration.Part>
    /// The links.
    let links: SwarmLinks
    /// The classes that most seeds have: those towards which the exploration leans.
    public var leaning: Set<SwarmClass> = []

    /// The time in which actions and faults take place.
    public static let length = Nanoseconds.seconds(600)
    /// The number of actions, besides kills and steps of clocks.
    public static let actions = 200
    /// The time after which the script ends in any case.
    static let limit = Nanoseconds.seconds(660)
    /// The location of everything that is drawn.
    static let location = SourceLocation(file: "exploration", line: 1, column: 1)

    /// Creates the scenarios of an exploration.
    ///
    /// - Parameter parts: The parts that are drawn; `nil` for those that the scenario gives, or else all. Then a scenario
    ///   with apps keeps its own steps.
    public init(_ base: Scenario, links: SwarmLinks, parts: [Scenario.Exploration.Part]? = nil) {
        self.base = base
        self.links = links
        let all = Scenario.Exploration.Part.allCases.filter { $0 != .workload || base.apps.isEmpty }
        self.parts = Set(parts ?? base.exploration?.vary ?? all)
    }

    /// The expectations of each run: those of the exploration, and each state that the scenario requires to be reached.
    public var expectations: [Expectation] {
        base.expectations.filter(\.isSometimes) + (base.exploration?.expectations ?? [])
    }

    /// Returns the scenario of a seed. Its steps are those that run: there is nothing left to draw but jitter, chances of
    /// faults, and reactions.
    public func scenario(seed: UInt64) -> Scenario { scenario(configuration(seed: seed)) }

    /// Returns the scenario of a configuration.
    public func scenario(_ configuration: SwarmConfiguration) -> Scenario {
        let draws = SwarmDraws(seed: configuration.seed)
        var scenario = base
        scenario.seed = configuration.seed
        scenario.seedOrigin = .file
        scenario.exploration = nil
        // What a plan of the file's own must lead to says nothing of another plan.
        scenario.expectations = expectations
        scenario.contract = configuration.contract
        scenario.tokenLife = configuration.tokenLife
        scenario.policy = configuration.policy
        if parts.contains(.network) || parts.contains(.workload) {
            scenario.restoreAt = Self.length
            scenario.limit = Self.limit
        }
        if parts.contains(.workload), !base.apps.isEmpty {
            scenario.steps = appSteps(configuration, draws)
            scenario.workload = []
        } else if parts.contains(.workload) {
            scenario.notes = notes(configuration)
            scenario.steps = steps(configuration, draws)
            scenario.workload = reactions(configuration)
        } else {
            scenario = scenario.materialized(seed: configuration.seed)
            // What the plan of the file expects may not be possible under other conditions.
            scenario.steps = scenario.steps.map { $0.replacing(\.isOptional, true) }
        }
        scenario.devices = devices(configuration, draws)
        if parts.contains(.faults) { scenario.faults = faults(configuration, draws) }
        return scenario
    }

    private func devices(_ configuration: SwarmConfiguration, _ draws: SwarmDraws) -> [Scenario.Device] {
        let networks = parts.contains(.network) ? networks(configuration, draws) : base.devices.map(\.network)
        let isKilled = configuration.classes.contains { $0.kills }
        return zip(base.devices, networks).map { device, network in
            let delay = restartDelay(of: device.name, draws)
            var drawn = device.replacing(\.network, network)
            if isKilled { drawn.restartsAfter = delay }
            if configuration.classes.contains(.firstPull) { drawn.startsSynced = false }
            if configuration.departed == device.name { drawn.isRestored = false }
            return drawn
        }
    }

    /// Returns the time after which a client that was killed starts again.
    func restartDelay(of device: String, _ draws: SwarmDraws) -> Nanoseconds {
        var random = draws.stream("restart/\(device)")
        return .milliseconds(10 + random.integer(below: 1 + (1 << (3 + random.integer(below: 12)))))
    }

    /// The devices that can be away in the end: one must be left.
    var canDepart: Bool { base.devices.count(where: \.isRestored) > 1 }
}

/// The random streams of a seed of an exploration.
struct SwarmDraws: Sendable {
    let seed: UInt64

    /// Returns the stream of an element.
    func stream(_ name: String) -> RandomStream { RandomStream(seed: seed, "swarm/\(name)") }
}

extension RandomStream {
    /// Returns one of some values.
    ///
    /// - Precondition: There is one.
    mutating func pick<Value>(_ values: [Value]) -> Value { values[Int(integer(below: Int64(values.count)))] }
}

extension Expectation {
    /// Whether it asks for a state that a run must reach at least once.
    public var isSometimes: Bool {
        switch kind {
        case .sometimes, .sometimesFault, .sometimesTraffic: true
        default: false
        }
    }
}
