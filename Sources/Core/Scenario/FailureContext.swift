public import Determinism

/// The time at which a check failed, and the devices and notes that it concerns.
public struct FailureContext: Hashable, Sendable {
    /// The time of the first event that shows the failure, or the end of the check's window.
    public let time: Nanoseconds
    /// The devices and writers; empty if the check concerns all.
    public let actors: Set<String>
    /// The notes; empty if the check concerns all.
    public let rows: Set<String>

    /// Creates the context of a check.
    public init(_ check: Verdict.Check, _ scenario: Scenario, _ history: History) {
        var evaluator = ExpectationEvaluator(scenario, history)
        var found = Found(time: history.entries.last?.time ?? .zero)
        switch check.subject {
        case .expectation(let index): found.set(scenario.expectations[index].kind, &evaluator)
        case .step(let index): found.set(step: index, scenario, history)
        case .fault(let index):
            let fault = scenario.faults[index]
            found.actors = fault.device.map { [$0] } ?? []
            found.rows = fault.request.row.map { [$0] } ?? []
            found.time = evaluator.restoreTime
        case .invariant(let invariant):
            if let violation = evaluator.violation(of: invariant) { found.set(violation, history) }
        case .end:
            let aborted = history.entries.first { if case .aborted = $0.event { true } else { false } }
            if let aborted { found.time = aborted.time }
        }
        (time, actors, rows) = (found.time, found.actors, found.rows)
    }

    private struct Found {
        var time: Nanoseconds
        var actors: Set<String> = []
        var rows: Set<String> = []

        mutating func set(_ kind: Expectation.Kind, _ evaluator: inout ExpectationEvaluator) {
            switch kind {
            case .traffic(let traffic):
                actors = traffic.from.map { [$0] } ?? []
                rows = traffic.request.row.map { [$0] } ?? []
                time = evaluator.failureTime(of: traffic)
            case .always(let device, let condition):
                set(device, condition)
                let from = condition.since.map { evaluator.effect(of: $0) } ?? .time(.zero)
                let to = condition.until.flatMap { evaluator.end(of: $0) }
                if let from, let first = evaluator.firstMismatch(device, condition, from: from, to: to).mismatch {
                    time = first.time
                }
            case .sometimesTraffic(let traffic):
                actors = traffic.from.map { [$0] } ?? []
                rows = traffic.request.row.map { [$0] } ?? []
                time = evaluator.failureTime(of: traffic)
            case .sometimesFault(let pattern):
                rows = pattern.request?.row.map { [$0] } ?? []
                time = evaluator.restoreTime
            case .threshold: break
            case .sometimes(let device, let condition):
                set(device, condition)
                time = condition.until.flatMap { evaluator.start(of: $0) }.map { evaluator.time(of: $0) } ?? time
            case .eventually(let device, let condition, .by(let end)):
                set(device, condition)
                time = min(end, evaluator.restoreTime)
            case .eventually(let device, let condition, .after(let mark, let within)):
                set(device, condition)
                if let start = evaluator.history.time(of: mark) { time = min(start + within, evaluator.restoreTime) }
            case .finally(let device, let condition): set(device, condition)
            case .serverRow(let row, _, _, _): rows = [row]
            case .serverCount: break
            case .agree(let names):
                actors = Set(names.filter { $0 != "server" })
                rows = Set(evaluator.disagreement(names)?.rows ?? [])
            }
        }

        mutating func set(_ violation: InvariantViolation, _ history: History) {
            actors = violation.actor.map { [$0] } ?? []
            rows = violation.row.map { [$0] } ?? []
            if let index = violation.index, history.entries.indices.contains(index) {
                time = history.entries[index].time
            }
        }

        private mutating func set(_ device: String, _ condition: StateCondition) {
            actors = device == Scenario.anyDevice ? [] : [device]
            rows = condition.row.map { [$0] } ?? []
        }

        mutating func set(step: Int, _ scenario: Scenario, _ history: History) {
            if let action = scenario.steps[step].action {
                actors = [action.actor]
                rows = action.action.row.map { [$0] } ?? []
            } else if case .when(let device, let condition, _) = scenario.steps[step].trigger {
                set(device, condition)
            }
            for entry in history.entries {
                switch entry.event {
                case .stepFailed(step, _, at: _), .missed(step, _):
                    time = entry.time
                    return
                default: continue
                }
            }
        }
    }
}

extension ExpectationEvaluator {
    /// The time at which windows with an end are over.
    var restoreTime: Nanoseconds {
        restoreIndex < history.entries.count ? history.entries[restoreIndex].time : history.entries.last?.time ?? .zero
    }

    /// Returns the time of the first request that a condition does not allow, or the end of its window.
    mutating func failureTime(of traffic: Expectation.Traffic) -> Nanoseconds {
        guard let (from, to) = window(of: traffic) else { return restoreTime }
        let end = min(to.map { time(of: $0) } ?? restoreTime, restoreTime)
        let found = matching(traffic, from: from, to: to)
        if case .range(let range)? = traffic.count, found.count > range.upperBound {
            return found[max(0, range.upperBound)].sentAt
        }
        if let expected = traffic.responses {
            for (index, exchange) in found.enumerated() {
                let response = Self.response(exchange, seen: traffic.seen)
                if index >= expected.count || !Self.matches(response, expected[index]) { return exchange.sentAt }
            }
        }
        if let most = traffic.duplicates {
            let repeated = repeated(traffic, from: from, to: to)
            if repeated.count > most { return repeated[most].sentAt }
        }
        if !traffic.same.isEmpty, let last = found.last { return last.sentAt }
        return end
    }
}
