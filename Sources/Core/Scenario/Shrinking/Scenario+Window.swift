internal import Determinism
internal import LinkModel

/// Parts of a run in time.
extension Scenario {
    /// The time of the last step at a fixed time or the last change of a network.
    var lastPlannedTime: Nanoseconds {
        let times = steps.map { step in if case .at(let time) = step.trigger { time } else { Nanoseconds.zero } }
        return max(times.max() ?? .zero, plannedEnd)
    }

    /// Returns the scenario of a part of its run; `nil` if it refers to marks outside of it.
    ///
    /// Times count from the beginning of the part. What devices and server are at that time is a part of the scenario as far
    /// as it can be: the links, the notes that earlier steps have created, and the faults with the numbers of the later
    /// requests. The clients do not have what they had stored, so that the run need not be the same. After the part, the
    /// restore phase begins when nothing more can happen.
    ///
    /// - Parameters:
    ///   - start: The beginning; its periodic workload must have become steps unless it is zero.
    ///   - end: The end; `nil` for that of the scenario, with its restore phase.
    ///   - history: The history of a run of the scenario.
    func window(from start: Nanoseconds, to end: Nanoseconds?, _ history: History) -> Scenario? {
        guard start == .zero || workload.allSatisfy(\.isReaction) else { return nil }
        let last = end ?? Nanoseconds(.max)
        var result = self
        if end != nil { result.restoreAt = nil }
        let times = steps.indices.map { time(ofStep: $0, history) }
        let kept = steps.indices.filter { (start...max(start, last)).contains(times[$0]) }.map { steps[$0] }
        result.devices = devices.map { device in
            let first = device.network.lastIndex { $0.start <= start } ?? 0
            return device.replacing(\.network, device.network[first...].filter { $0.start <= last })
        }
        guard start > .zero else {
            result.steps = kept
            return result.repaired(history)
        }
        result.notes = notes(at: start, times)
        result.faults = remainingFaults(at: start, history)
        let marks = Set(kept.compactMap(\.mark))
        result.steps = kept.compactMap { step in
            guard case .after(let mark, let delay) = step.trigger, !marks.contains(mark) else { return step }
            return history.time(of: mark).map { step.replacing(\.trigger, .at($0 + delay)) }
        }
        guard result.referencedMarks.isSubset(of: marks) else { return nil }
        return ScenarioMapping(time: { max(.zero, $0 - start) })(result).repaired(history)
    }

    /// Returns the time at which a step is due or was performed; the greatest one for a step that was not.
    func time(ofStep step: Int, _ history: History) -> Nanoseconds {
        if case .at(let time) = steps[step].trigger { return time }
        return history.index(ofStep: step).map { history.entries[$0].time } ?? Nanoseconds(.max)
    }

    /// The notes that the steps before a time leave on the server, as if each of them took effect.
    private func notes(at start: Nanoseconds, _ times: [Nanoseconds]) -> [SeedNote] {
        var found = notes
        let earlier = steps.indices.filter { times[$0] < start }.sorted { (times[$0], $0) < (times[$1], $1) }
        for index in earlier {
            switch steps[index].action?.action {
            case .create(let row, let title, let text)? where !found.contains(where: { $0.row == row }):
                found.append(SeedNote(row: row, title: title, text: text, revision: 1))
            case .delete(let row)?, .deleteStale(let row)?: found.removeAll { $0.row == row }
            default: break
            }
        }
        return found
    }

    /// The faults that can still apply at a time.
    private func remainingFaults(at start: Nanoseconds, _ history: History) -> [Fault] {
        let names = Set(devices.map(\.name))
        var matches = faults.map { _ in 0 }
        var fired = matches
        for entry in history.entries where entry.time < start {
            switch entry.event {
            case .request(_, let actor, let method, let row, _, _, _) where names.contains(actor):
                for (index, fault) in faults.enumerated() where fault.matches(actor, method, row) {
                    matches[index] += 1
                }
            case .fault(let index, _, _) where fired.indices.contains(index): fired[index] += 1
            default: break
            }
        }
        return faults.enumerated().compactMap { index, fault in
            let most = fault.times.upperBound - fired[index]
            guard most > 0 else { return nil }
            let least = max(0, fault.times.lowerBound - fired[index])
            return fault.replacing(\.nth, max(1, fault.nth - matches[index])).replacing(\.times, least...most)
        }
    }
}

extension Scenario.Workload {
    /// Whether the entry reacts to states of devices.
    fileprivate var isReaction: Bool { if case .when = trigger { true } else { false } }
}
