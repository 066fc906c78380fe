internal import Determinism
internal import LinkModel

/// Budgets of attempts in outages.
extension ExpectationEvaluator {
    /// A period in which a device's link prevents exchanges.
    private struct Outage {
        let start: Nanoseconds
        var end: Nanoseconds
        /// Whether it is a down phase of a flap.
        let isFlap: Bool
    }

    mutating func budget(
        _ traffic: Expectation.Traffic, least: Int, from: Bound, to: Bound?
    ) -> Verdict.Outcome {
        var total = 0
        var hasOutage = false
        for device in scenario.devices where traffic.from == nil || device.name == traffic.from {
            let policy = facts.device(device.name)?.policy ?? ClientPolicy()
            let periods = traffic.during.map { self.periods(of: $0, device) }
            let attempts = attempts(of: device, traffic, from: from, to: to)
            total += attempts.count
            let window = (from: time(of: from), to: to.map { time(of: $0) } ?? Nanoseconds(.max))
            var flapping = (count: 0, allowed: writes(of: device.name), start: Nanoseconds?.none)
            for outage in outages(of: device, during: periods) {
                let start = max(outage.start, window.from)
                let end = min(outage.end, window.to)
                guard end > start else { continue }
                hasOutage = true
                let count = attempts.count { $0.time >= start && $0.time < end }
                if outage.isFlap {
                    flapping.count += count
                    flapping.allowed += policy.attemptsMax(inDownPhase: end - start)
                    flapping.start = flapping.start ?? start
                } else if count > policy.attemptsMax(inOutage: end - start) {
                    return .fail(
                        "\(Self.attempts(count)) of \(device.name) in the outage at \(TimeFormat.seconds(start)), "
                            + "\(policy.attemptsMax(inOutage: end - start)) allowed")
                }
            }
            if let start = flapping.start, flapping.count > flapping.allowed {
                return .fail(
                    "\(Self.attempts(flapping.count)) of \(device.name) in the down phases from "
                        + "\(TimeFormat.seconds(start)), \(flapping.allowed) allowed")
            }
        }
        if total < least { return .fail("\(Self.attempts(total)), at least \(least) expected") }
        return hasOutage ? .pass : .inconclusive("there was no outage", .noOutage)
    }

    /// Returns the reason why the number of attempts is not within a range; `nil` if it is.
    mutating func mismatch(
        _ traffic: Expectation.Traffic, _ range: ClosedRange<Int>, from: Bound, to: Bound?
    ) -> String? {
        var found: [Nanoseconds] = []
        for device in scenario.devices where traffic.from == nil || device.name == traffic.from {
            found += attempts(of: device, traffic, from: from, to: to).map(\.time)
        }
        if range.contains(found.count) { return nil }
        let times = found.sorted().prefix(3).map { TimeFormat.seconds($0) }.joined(separator: ", ")
        return Self.attempts(found.count) + (found.isEmpty ? "" : " at \(times)\(found.count > 3 ? " ..." : "")")
    }

    /// Returns the attempts of a device that a condition concerns.
    private mutating func attempts(
        of device: Scenario.Device, _ traffic: Expectation.Traffic, from: Bound, to: Bound?
    ) -> [(index: Int, time: Nanoseconds)] {
        let periods = traffic.during.map { self.periods(of: $0, device) }
        return attempts(of: device.name, traffic).filter { attempt in
            contains(attempt.index, attempt.time, from: from, to: to)
                && periods?.contains { $0.contains(attempt.index) } ?? true
        }
    }

    private static func attempts(_ count: Int) -> String { "\(count) \(count == 1 ? "attempt" : "attempts")" }

    /// Returns the attempts of a device: if the pattern matches every request, attempts to connect and requests on
    /// connections that were open already; otherwise the matching requests alone.
    private mutating func attempts(
        of device: String, _ traffic: Expectation.Traffic
    ) -> [(index: Int, time: Nanoseconds)] {
        let countsConnections = traffic.request.method == nil && traffic.request.row == nil
        var found: [(index: Int, time: Nanoseconds)] = []
        for exchange in exchanges where exchange.actor == device && Self.matches(exchange, traffic) {
            if countsConnections && exchange.isFirstOfAttempt { continue }
            found.append((exchange.sentIndex, exchange.sentAt))
        }
        guard countsConnections else { return found }
        for (index, entry) in history.entries.enumerated() {
            if case .connectionAttempt(_, device) = entry.event { found.append((index, entry.time)) }
        }
        return found
    }

    /// Returns the number of changes that a device has accepted, or of those in the plan if none were recorded.
    private func writes(of device: String) -> Int {
        let accepted = history.entries.count {
            if case .accepted(device, _) = $0.event { return true }
            return false
        }
        if accepted > 0 { return accepted }
        return scenario.steps.count { $0.action?.actor == device && $0.action?.action.isWrite == true }
    }

    /// Returns the outages of a device's link, from its recorded conditions.
    ///
    /// - Parameter periods: The indices of the entries at which an outage counts; `nil` for all.
    private func outages(of device: Scenario.Device, during periods: [Range<Int>]?) -> [Outage] {
        var found: [Outage] = []
        var isDown = false
        for (index, entry) in history.entries.enumerated() {
            guard case .network(device.name, let link, _) = entry.event else { continue }
            if isDown { found[found.count - 1].end = entry.time }
            isDown =
                periods?.contains { $0.contains(index) } ?? true
                && scenario.conditions(of: device.name, named: link)?.preventsExchanges ?? false
            guard isDown else { continue }
            let isFlap = device.isFlapping(at: entry.time)
            if let last = found.last, last.end == entry.time, last.isFlap == isFlap {
                found[found.count - 1].end = Nanoseconds(.max)
            } else {
                found.append(Outage(start: entry.time, end: Nanoseconds(.max), isFlap: isFlap))
            }
        }
        return found
    }
}
