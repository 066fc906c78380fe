internal import Determinism
internal import LinkModel

/// Smaller scenarios. What a removed part leaves without a meaning is removed with it: changes of a note that is never
/// created, starts of a client that runs, faults of a device that does not exist.
///
/// A result of `nil` means that the expectations refer to a removed part. All functions take the history of a run of the
/// scenario, from which the times of removed marks come.
extension Scenario {
    /// Returns the scenario without some of its steps and faults.
    func removing(steps removedSteps: Set<Int>, faults removedFaults: Set<Int> = [], _ history: History) -> Scenario? {
        var result = self
        result.steps = steps.enumerated().filter { !removedSteps.contains($0.offset) }.map(\.element)
        result.faults = faults.enumerated().filter { !removedFaults.contains($0.offset) }.map(\.element)
        return result.repaired(history)
    }

    /// Returns the scenario without a device or writer.
    func removing(actor name: String, _ history: History) -> Scenario? {
        var result = self
        result.devices.removeAll { $0.name == name }
        result.writers.removeAll { $0.name == name }
        guard !result.devices.isEmpty else { return nil }
        result.steps.removeAll { step in
            if case .when(name, _, _) = step.trigger { return true }
            return step.action?.actor == name
        }
        result.workload = workload.compactMap { entry in
            if case .when(name, _, _) = entry.trigger { return nil }
            let actors = entry.actors.filter { $0 != name }
            guard !actors.isEmpty else { return nil }
            return entry.replacing(\.actors, actors)
        }
        result.faults.removeAll { fault in
            if case .kill(name?) = fault.action { return true }
            return fault.device == name
        }
        result.expectations = expectations.map { expectation in
            guard case .agree(let names) = expectation.kind, names.count > 2 else { return expectation }
            return Expectation(.agree(names.filter { $0 != name }), location: expectation.location)
        }
        if result.expectations.contains(where: { $0.kind.referencedActors.contains(name) }) { return nil }
        return result.repaired(history)
    }

    // MARK: Repairs

    /// Returns the scenario without what has no meaning.
    func repaired(_ history: History) -> Scenario? {
        var result = self
        // Each removal can leave something else without a meaning.
        for _ in 0...steps.count {
            let count = result.steps.count
            result.removeUnknownRows()
            result.replaceUnknownMarks(history, in: self)
            for device in result.devices { result.removeImpossibleSteps(of: device.name) }
            if result.steps.count == count { break }
        }
        let rows = result.rows
        let hasReactions = !result.workload.isEmpty
        for kind in result.expectations.map(\.kind) {
            if !hasReactions, kind.referencedRows.contains(where: { !rows.contains($0) }) { return nil }
        }
        return result.resolvingMarks(history, in: self)
    }

    private mutating func removeUnknownRows() {
        let known = rows
        // Reactions create notes of their own.
        guard workload.isEmpty else { return }
        steps.removeAll { $0.referencedRows.contains { !known.contains($0) } }
        faults.removeAll { fault in fault.request.row.map { !known.contains($0) } ?? false }
    }

    /// Replaces triggers by marks that no step sets by the times of the marks in a run of `original`.
    private mutating func replaceUnknownMarks(_ history: History, in original: Scenario) {
        let known = Set(steps.compactMap(\.mark))
        steps = steps.compactMap { step in
            guard case .after(let mark, let delay) = step.trigger, !known.contains(mark) else { return step }
            guard let time = history.time(of: mark) else { return nil }
            return step.replacing(\.trigger, .at(time + delay))
        }
    }

    /// Removes steps at fixed times that contradict whether the client of a device runs.
    private mutating func removeImpossibleSteps(of device: String) {
        if faults.contains(where: { $0.mayKill(device) }) { return }
        let own = steps.indices.filter { steps[$0].action?.actor == device }
        func isProcessStep(_ step: Int) -> Bool {
            steps[step].action?.action == .kill || steps[step].action?.action == .start
        }
        var timed: [(time: Nanoseconds, step: Int)] = []
        for step in own {
            if case .at(let time) = steps[step].trigger {
                timed.append((time, step))
            } else if isProcessStep(step) {
                return
            }
        }
        var isRunning = true
        var removed: Set<Int> = []
        for (_, step) in timed.sorted(by: { ($0.time, $0.step) < ($1.time, $1.step) }) {
            switch steps[step].action?.action {
            case .start?:
                if isRunning { removed.insert(step) }
                isRunning = true
            case .kill?, .signOut?:
                if !isRunning { removed.insert(step) }
                isRunning = false
            case .upgrade?: break
            case .signIn?: isRunning = true
            default: if !isRunning { removed.insert(step) }
            }
        }
        if removed.isEmpty { return }
        steps = steps.enumerated().filter { !removed.contains($0.offset) }.map(\.element)
    }

    /// Returns the scenario with times in place of marks that no step sets; `nil` if a time is not known.
    private func resolvingMarks(_ history: History, in original: Scenario) -> Scenario? {
        let known = Set(steps.compactMap(\.mark))
        guard !referencedMarks.isSubset(of: known) else { return self }
        func time(_ mark: String, isStart: Bool) -> Nanoseconds? {
            guard isStart, let step = original.steps.firstIndex(where: { $0.mark == mark }),
                let index = history.index(ofStep: step)
            else { return history.time(of: mark) }
            return history.entries[index].time
        }
        func resolved(_ reference: TimeReference?, isStart: Bool) -> TimeReference? {
            guard case .mark(let mark)? = reference, !known.contains(mark) else { return reference }
            return time(mark, isStart: isStart).map { .time($0) }
        }
        func resolved(_ condition: StateCondition) -> StateCondition? {
            let since = resolved(condition.since, isStart: false)
            let until = resolved(condition.until, isStart: true)
            guard (since == nil) == (condition.since == nil), (until == nil) == (condition.until == nil) else {
                return nil
            }
            return condition.replacing(\.since, since).replacing(\.until, until)
        }
        var result = self
        var kinds: [Expectation] = []
        for expectation in expectations {
            let kind: Expectation.Kind?
            switch expectation.kind {
            case .traffic(let traffic) where traffic.between != nil:
                guard let from = resolved(traffic.between?.from, isStart: true),
                    let to = resolved(traffic.between?.to, isStart: true)
                else { return nil }
                kind = .traffic(traffic.replacing(\.between, (from, to)))
            case .always(let device, let condition): kind = resolved(condition).map { .always(device: device, $0) }
            case .finally(let device, let condition): kind = resolved(condition).map { .finally(device: device, $0) }
            case .eventually(let device, let condition, .after(let mark, let within)) where !known.contains(mark):
                kind = history.time(of: mark).map { .eventually(device: device, condition, .by($0 + within)) }
            default: kind = expectation.kind
            }
            guard let kind, Set(kind.referencedMarks).isSubset(of: known) else { return nil }
            kinds.append(Expectation(kind, location: expectation.location))
        }
        result.expectations = kinds
        return result
    }
}
