internal import Determinism
internal import LinkModel

extension Scenario {
    /// The parts of a scenario whose draws a materialised scenario has as explicit values.
    public struct DrawnParts: OptionSet, Hashable, Sendable {
        public let rawValue: Int

        /// Creates a set from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Reactions of the workload, as steps at the times at which they were due.
        public static let reactions = DrawnParts(rawValue: 1)
        /// Faults with a probability, with a drawn point, or that need not fire: those that fired, each once.
        public static let faults = DrawnParts(rawValue: 2)
        /// Flaps, and outages that are signalled sometimes, as entries of the network.
        public static let networks = DrawnParts(rawValue: 4)
        /// All parts. The periodic entries of the workload are steps in any case.
        public static let all: DrawnParts = [.reactions, .faults, .networks]
    }

    /// Returns the scenario of a run with the values that the run has drawn: steps in place of the workload, faults that
    /// fired in place of probabilities, entries of the network in place of flaps. Packets, delays of retries and
    /// identifiers still depend on the seed.
    ///
    /// - Parameters:
    ///   - seed: The random seed of the run.
    ///   - history: The events of the run in virtual time.
    ///   - parts: The parts that are made explicit.
    public func materialized(seed: UInt64, history: History, parts: DrawnParts = .all) -> Scenario {
        var result = materialized(seed: seed)
        result.seed = seed
        result.seedOrigin = .file
        result.variant = nil
        result.parameters = []
        if parts.contains(.reactions), !result.workload.isEmpty {
            result.steps += ReactionReplay.steps(of: result, seed: seed, history)
            result.workload = []
        }
        if parts.contains(.faults) { result.faults = FiredFaults(result, history).faults }
        if parts.contains(.networks) {
            let end = history.restoreIndex < history.entries.count ? history.entries[history.restoreIndex].time : limit
            result.devices = result.devices.map { $0.materialized(seed: seed, until: end) }
        }
        return result
    }
}

// MARK: - Reactions

/// The reactions of a workload in a run, derived from the states of devices that its history has.
private enum ReactionReplay {
    /// Returns the reactions that started and were possible, as steps.
    static func steps(of scenario: Scenario, seed: UInt64, _ history: History) -> [Scenario.Step] {
        var reactions = ReactiveWorkload(scenario, seed: seed)
        var waiting: [String: [(due: ReactiveWorkload.Due, isAtOnce: Bool)]] = [:]
        var started: [(due: ReactiveWorkload.Due, isAtOnce: Bool, isPossible: Bool)] = []
        var last: [String: Int] = [:]
        var isStep = false
        func take(at time: Nanoseconds, isAtOnce: Bool) {
            while let due = reactions.takeDue(at: time) { waiting[due.actor, default: []].append((due, isAtOnce)) }
        }
        for entry in history.entries[..<history.restoreIndex] {
            take(at: entry.time, isAtOnce: false)
            switch entry.event {
            case .device(let device, let state):
                reactions.stateChanged(device, state, at: entry.time)
                take(at: entry.time, isAtOnce: true)
            case .notice(let actor, .reactionImpossible):
                if let index = last[actor] { started[index].isPossible = false }
            case .action(let actor, let action) where !isStep:
                if let index = waiting[actor]?.firstIndex(where: { $0.due.action == action }),
                    let (due, isAtOnce) = waiting[actor]?[index]
                {
                    waiting[actor]?.removeSubrange(...index)
                    last[actor] = started.count
                    started.append((due, isAtOnce, true))
                }
            default: break
            }
            if case .step = entry.event { isStep = true } else { isStep = false }
        }
        let location = scenario.locations["workload"] ?? SourceLocation(file: scenario.name)
        return started.filter(\.isPossible).map { due, isAtOnce, _ in
            // A step comes before the facts of its time, so one at the time of the state would come too early.
            let time = isAtOnce ? due.planned + Nanoseconds(1) : due.planned
            return Scenario.Step(
                trigger: .at(time), action: (actor: due.actor, action: due.action), mark: nil, location: location)
        }
    }
}

// MARK: - Faults

/// The faults of a run, with those that were drawn as faults of the requests at which they fired.
private struct FiredFaults {
    /// The faults in the order of the scenario's.
    let faults: [Scenario.Fault]

    init(_ scenario: Scenario, _ history: History) {
        let devices = Set(scenario.devices.map(\.name))
        var counts = scenario.faults.map { _ in 0 }
        // The number of each exchange among the matches of each fault.
        var numbers: [Int: [Int]] = [:]
        var fired: [[(number: Int, point: Scenario.Fault.Point?)]] = scenario.faults.map { _ in [] }
        for entry in history.entries[..<history.restoreIndex] {
            switch entry.event {
            case .request(let id, let actor, let method, let row, _, _, _) where devices.contains(actor):
                for (index, fault) in scenario.faults.enumerated() where fault.matches(actor, method, row) {
                    counts[index] += 1
                }
                numbers[id] = counts
            case .fault(let index, let exchange, let point):
                guard fired.indices.contains(index), let number = numbers[exchange]?[index] else { continue }
                fired[index].append((number, point))
            default: break
            }
        }
        faults = scenario.faults.enumerated().flatMap { index, fault -> [Scenario.Fault] in
            let isDrawn = fault.probability != nil || fault.point == .any || !fault.mustFire
            guard isDrawn else { return [fault] }
            return fired[index].map { number, point in
                var fixed = fault.replacing(\.nth, number).replacing(\.point, point ?? fault.point)
                (fixed.probability, fixed.times) = (nil, 1...1)
                return fixed
            }
        }
    }
}

extension Scenario.Fault {
    /// Returns whether a request of a device is one that the fault may apply to.
    func matches(_ actor: String, _ method: String, _ row: String?) -> Bool {
        (device == nil || device == actor) && (request.method == nil || request.method == method)
            && (request.row == nil || request.row == row)
    }
}

// MARK: - Networks

extension Scenario.Device {
    /// Returns the device with a network without draws; unchanged if it has none, or would have too many entries.
    fileprivate func materialized(seed: UInt64, until end: Nanoseconds) -> Scenario.Device {
        let isDrawn = network.contains { entry in
            if case .flap = entry.phase { return true }
            return entry.signalling == .sometimes
        }
        guard isDrawn, let timeline = try? Timeline(network.map { Timeline.Entry(at: $0.start, $0.phase) }) else {
            return self
        }
        var run = TimelineRun(timeline, startingAt: .start, seed: seed, name: "link/\(name)/timeline")
        var signalling = OutageSignalling()
        var entries: [Scenario.NetworkEntry] = []
        var now = Nanoseconds.zero
        while true {
            let isSignalled = signalling.update(self, isOutage: run.conditions.canBeSignalled, at: now, seed: seed)
            guard let current = network.last(where: { $0.start <= now }) else { return self }
            entries.append(
                Scenario.NetworkEntry(
                    at: now, .hold(Timeline.NamedConditions(run.name, run.conditions)),
                    signalling: run.conditions.canBeSignalled && !isSignalled ? .never : .always,
                    interface: current.start == now ? current.interface : nil, location: current.location))
            guard let next = run.nextDeadline?.sinceStart, next < end else { break }
            guard entries.count < Timeline.entriesMax else { return self }
            now = next
            _ = run.advance(to: Instant(next))
        }
        return replacing(\.network, entries)
    }
}
