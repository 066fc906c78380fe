internal import Determinism
internal import LinkModel

/// Removal of steps, faults, devices and writers.
extension Shrinker {
    private var history: History { observation.history }

    /// Removes what comes after the violation, and lets the restore phase begin when nothing more can happen.
    mutating func cutTail() -> Bool {
        let end = violation.context.time
        let candidate = current.window(from: .zero, to: end, history)
        guard let candidate else { return false }
        let isShorter = candidate.steps.count < current.steps.count || candidate.plannedEnd < current.plannedEnd
        if isShorter || current.restoreAt != nil, attempt(candidate) { return true }
        guard isShorter, let restoreAt = current.restoreAt else { return false }
        var kept = candidate
        kept.restoreAt = restoreAt
        return attempt(kept)
    }

    /// Removes the reactions of users.
    mutating func removeWorkload() -> Bool {
        if current.workload.isEmpty { return false }
        var candidate = current
        candidate.workload = []
        return attempt(candidate.repaired(history))
    }

    // MARK: Classes

    /// Removes classes of parts: what does not concern the subject, devices, writers, kinds of faults and actions, and
    /// networks.
    mutating func removeClasses() -> Bool {
        var hasChanged = focusOnSubject()
        for name in current.devices.map(\.name) + current.writers.map(\.name) {
            hasChanged = attempt(current.removing(actor: name, history)) || hasChanged
        }
        if !current.faults.isEmpty {
            hasChanged = remove(faults: { _ in true }) || hasChanged
            for kind in Set(current.faults.map(\.action.name)).sorted() where kinds(of: current.faults).count > 1 {
                hasChanged = remove(faults: { $0.action.name == kind }) || hasChanged
            }
            for point in Scenario.Fault.Point.allCases where points(of: current.faults).count > 1 {
                hasChanged = remove(faults: { $0.point == point }) || hasChanged
            }
        }
        for row in current.referencedRows {
            hasChanged = remove(steps: { $0.referencedRows.contains(row) }) || hasChanged
        }
        let processSteps: [Scenario.Action] = [.kill, .start]
        hasChanged = remove(steps: { $0.action.map { processSteps.contains($0.action) } ?? false }) || hasChanged
        hasChanged = remove(steps: { $0.action?.action == .sync }) || hasChanged
        return removeNetworks() || hasChanged
    }

    private func kinds(of faults: [Scenario.Fault]) -> Set<String> { Set(faults.map(\.action.name)) }
    private func points(of faults: [Scenario.Fault]) -> Set<Scenario.Fault.Point> { Set(faults.map(\.point)) }

    /// Leaves the steps of the notes, and of the devices, that the violation concerns.
    private mutating func focusOnSubject() -> Bool {
        let (rows, actors) = (violation.context.rows, violation.context.actors)
        var hasChanged = false
        if !rows.isEmpty {
            hasChanged = remove(steps: { step in
                let own = step.referencedRows
                return !own.isEmpty && rows.isDisjoint(with: own)
            })
        }
        if !actors.isEmpty {
            let others = (current.devices.map(\.name) + current.writers.map(\.name)).filter { !actors.contains($0) }
            hasChanged =
                remove(steps: { $0.action.map { others.contains($0.actor) } ?? false }) || hasChanged
        }
        return hasChanged
    }

    private mutating func remove(steps isRemoved: (Scenario.Step) -> Bool) -> Bool {
        let removed = current.steps.indices.filter { isRemoved(current.steps[$0]) }
        return !removed.isEmpty && attemptRemoval(current.removing(steps: Set(removed), history))
    }

    /// Runs a candidate with fewer steps; then with faults of earlier requests, because fewer steps send fewer.
    private mutating func attemptRemoval(_ candidate: Scenario?) -> Bool {
        attempt(candidate) || attempt(candidate?.advancingFaults(since: current))
    }

    private mutating func remove(faults isRemoved: (Scenario.Fault) -> Bool) -> Bool {
        let removed = current.faults.indices.filter { isRemoved(current.faults[$0]) }
        return !removed.isEmpty && attempt(current.removing(steps: [], faults: Set(removed), history))
    }

    private mutating func removeNetworks() -> Bool {
        let whole = [Scenario.NetworkEntry(at: .zero, .hold(wifi), isSignalled: true)]
        func isWhole(_ device: Scenario.Device) -> Bool { device.network.count == 1 && device.network[0].isPlain(wifi) }
        if current.devices.allSatisfy(isWhole) { return false }
        var all = current
        all.devices = current.devices.map { $0.replacing(\.network, whole) }
        if attempt(all) { return true }
        var hasChanged = false
        for index in current.devices.indices where !isWhole(current.devices[index]) {
            var candidate = current
            candidate.devices[index].network = whole
            hasChanged = attempt(candidate) || hasChanged
        }
        return hasChanged
    }

    // MARK: Single parts

    /// A step or a fault.
    private enum Unit {
        case step(Int)
        case fault(Int)
    }

    /// The steps in the order of their times, then the faults.
    private var units: [Unit] {
        let steps = current.steps.indices.sorted { left, right in
            (current.time(ofStep: left, history), left) < (current.time(ofStep: right, history), right)
        }
        return steps.map { .step($0) } + current.faults.indices.map { .fault($0) }
    }

    private func removing(_ units: some Sequence<Unit>) -> Scenario? {
        var (steps, faults): (Set<Int>, Set<Int>) = ([], [])
        for unit in units {
            switch unit {
            case .step(let index): steps.insert(index)
            case .fault(let index): faults.insert(index)
            }
        }
        return current.removing(steps: steps, faults: faults, history)
    }

    /// Removes chunks of steps and faults, of half of them down to one; then pairs, if few are left.
    mutating func removeUnits() -> Bool {
        var hasChanged = Self.removeChunks(
            count: { $0.units.count }, &self,
            attempt: { shrinker, range in shrinker.attemptRemoval(shrinker.removing(shrinker.units[range])) })
        let count = units.count
        guard count > 2, count <= Self.pairsMax else { return hasChanged }
        for first in 0..<count {
            for second in first + 1..<count where units.count == count {
                let all = units
                hasChanged = attemptRemoval(removing([all[first], all[second]])) || hasChanged
            }
        }
        return hasChanged
    }

    /// Tries to remove ranges of a list, from its end: of half of its length, a quarter, and so on.
    static func removeChunks(
        count: (Shrinker) -> Int, _ shrinker: inout Shrinker, attempt: (inout Shrinker, Range<Int>) -> Bool
    ) -> Bool {
        var hasChanged = false
        var size = max(1, count(shrinker) / 2)
        while true {
            var end = count(shrinker)
            while end > 0 {
                let start = max(0, end - size)
                if attempt(&shrinker, start..<end) { hasChanged = true }
                end = min(start, count(shrinker))
            }
            if size == 1 { return hasChanged }
            size /= 2
        }
    }
}

extension Scenario.NetworkEntry {
    /// Whether the entry has a link without further settings.
    func isPlain(_ link: Timeline.NamedConditions) -> Bool {
        phase == .hold(link) && signalling == .always && interface == nil
    }
}
