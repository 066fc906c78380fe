internal import Determinism
internal import LinkModel

/// Guesses of small scenarios. Single removals do not find them if each removed step shifts the requests that faults hit.
extension Shrinker {
    /// The numbers of steps before and after a moment that are left.
    private static let stepsBefore = [1, 2, 3, 5, 8]
    private static let stepsAfter = [0, 1, 2]
    /// The greatest number of a request in a guess.
    private static let requestsMax = 3
    /// The maximum number of moments, and of guesses, of one search.
    private static let momentsMax = 3
    private static let guessesMax = 200
    /// The number of steps and faults up to which there is nothing to guess.
    private static let stepsMin = 4
    private static let faultsMin = 2

    /// Leaves a few steps around a moment at which a fault has fired, a client was killed, or the rule is violated, and one
    /// or two faults of the first requests.
    mutating func isolate() -> Bool {
        guard current.steps.count > Self.stepsMin || current.faults.count > Self.faultsMin else { return false }
        let limit = runs + Self.guessesMax
        let moments = moments
        let origin = current
        let order = timedSteps
        for isOnGoodNetwork in [false, true] {
            for before in Self.stepsBefore {
                for after in Self.stepsAfter {
                    for moment in moments {
                        for isOfSubject in [true, false] {
                            let kept = kept(order, around: moment.time, before, after, isOfSubject: isOfSubject)
                            let removed = Set(origin.steps.indices).subtracting(kept)
                            if removed.isEmpty { continue }
                            for faults in faultSets(origin, moment) {
                                if runs >= limit { return false }
                                var candidate = origin.removing(steps: removed, observation.history)
                                candidate?.faults = faults
                                candidate?.restoreAt = nil
                                if isOnGoodNetwork { candidate?.useEverywhere(wifi) }
                                if attempt(candidate?.repaired(observation.history)) { return true }
                            }
                        }
                    }
                }
            }
        }
        return false
    }

    /// A moment around which steps are left, and the faults that have fired up to then, the last one first.
    private struct Moment {
        let time: Nanoseconds
        let faults: [Int]
    }

    /// The moments: when the last faults have fired, when a client was last killed, and that of the violation.
    private var moments: [Moment] {
        var fired: [(time: Nanoseconds, fault: Int)] = []
        var kill: Nanoseconds?
        let history = observation.history
        for entry in history.entries[..<history.restoreIndex] where entry.time <= violation.context.time {
            switch entry.event {
            case .fault(let index, _, _): fired.append((entry.time, index))
            case .stopped: kill = entry.time
            default: break
            }
        }
        func moment(_ time: Nanoseconds) -> Moment {
            var faults: [Int] = []
            for (at, fault) in fired.reversed() where at <= time && !faults.contains(fault) { faults.append(fault) }
            return Moment(time: time, faults: faults)
        }
        var times = [violation.context.time]
        if let kill { times.append(kill) }
        for (time, _) in fired.reversed() where !times.contains(time) { times.append(time) }
        return times.prefix(Self.momentsMax).map(moment)
    }

    /// The steps at fixed times, in their order.
    private var timedSteps: [(time: Nanoseconds, step: Int)] {
        current.steps.indices.compactMap { index in
            if case .at(let time) = current.steps[index].trigger { (time, index) } else { nil }
        }.sorted { ($0.time, $0.step) < ($1.time, $1.step) }
    }

    private func kept(
        _ order: [(time: Nanoseconds, step: Int)], around time: Nanoseconds, _ before: Int, _ after: Int,
        isOfSubject: Bool
    ) -> Set<Int> {
        let (rows, actors) = (violation.context.rows, violation.context.actors)
        let steps = order.filter { entry in
            let step = current.steps[entry.step]
            if !isOfSubject { return true }
            // The subject of some rules is a device.
            if rows.isEmpty { return step.action.map { actors.isEmpty || actors.contains($0.actor) } ?? true }
            let own = step.referencedRows
            return own.isEmpty || !rows.isDisjoint(with: own)
        }
        let first = steps.filter { $0.time <= time }.suffix(before).map(\.step)
        return Set(first + steps.filter { $0.time > time }.prefix(after).map(\.step))
    }

    /// Returns sets of faults for a guess: none, the last ones before a moment, and the same for the first requests.
    private func faultSets(_ scenario: Scenario, _ moment: Moment) -> [[Scenario.Fault]] {
        guard let last = moment.faults.first.map({ scenario.faults[$0] }) else { return [[]] }
        func numbered(_ fault: Scenario.Fault) -> [Scenario.Fault] {
            guard fault.probability == nil else { return [fault] }
            return (1...Self.requestsMax).map { fault.replacing(\.nth, $0) }
        }
        var sets: [[Scenario.Fault]] = [[]] + numbered(last).map { [$0] }
        if moment.faults.count > 1 {
            let second = scenario.faults[moment.faults[1]]
            for number in numbered(second).prefix(2) { sets += numbered(last).prefix(2).map { [number, $0] } }
        }
        return sets
    }

    // MARK: Fewer faults

    /// Replaces faults of the same requests, effect and point by one that applies several times.
    mutating func mergeFaults() -> Bool {
        var hasChanged = false
        var first = 0
        while first < current.faults.count {
            let fault = current.faults[first]
            let alike = current.faults.indices.filter { index in
                let other = current.faults[index]
                return other.probability == nil && fault.probability == nil && other.request == fault.request
                    && other.device == fault.device && other.point == fault.point && other.action == fault.action
                    && other.bytes == fault.bytes && other.side == fault.side
            }
            first += 1
            guard alike.count > 1 else { continue }
            let numbers = alike.map { current.faults[$0].nth }
            guard let least = numbers.min(), let most = numbers.max() else { continue }
            let others = Set(alike.dropFirst())
            // Faults of different requests become one of all requests up to the last. Of faults of the same request, each
            // later one applies to a later request.
            let sum = alike.reduce(Int64(0)) { $0.addingSaturating(Int64(current.faults[$1].times.upperBound)) }
            let span = Int64(most - least)
            for count in Set([span + 1, sum, sum.addingSaturating(span)]).sorted() where count >= alike.count {
                let times = Int(count)
                var candidate = current
                candidate.faults[alike[0]].nth = least
                candidate.faults[alike[0]].times = times...times
                candidate.faults = candidate.faults.enumerated().filter { !others.contains($0.offset) }.map(\.element)
                if attempt(candidate) {
                    hasChanged = true
                    break
                }
            }
        }
        return hasChanged
    }
}

extension Scenario {
    /// Lets every device have one link.
    fileprivate mutating func useEverywhere(_ link: Timeline.NamedConditions) {
        devices = devices.map { $0.replacing(\.network, [.init(at: .zero, .hold(link), isSignalled: true)]) }
    }
}
