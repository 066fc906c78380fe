internal import Determinism
internal import LinkModel

extension ExpectationEvaluator {
    mutating func evaluate(_ traffic: Expectation.Traffic) -> Verdict.Outcome {
        var from = Bound.time(.zero)
        var to: Bound?
        if let between = traffic.between {
            guard let first = start(of: between.from), let last = start(of: between.to) else { return Self.markUnset }
            (from, to) = (first, last)
        }
        let outcome = evaluate(traffic, from: from, to: to)
        guard case .fail(let reason) = outcome, traffic.between != nil else { return outcome }
        // Requests near a bound may belong to its other side.
        let delays = (from: delay(at: from), to: delay(at: to))
        for start in [Nanoseconds.zero, delays.from] {
            for end in [Nanoseconds.zero, delays.to] where start > .zero || end > .zero {
                if case .pass = evaluate(traffic, from: from.later(by: start), to: to?.later(by: end)) {
                    return excused(reason, delay: max(start, end))
                }
            }
        }
        return outcome
    }

    private mutating func evaluate(
        _ traffic: Expectation.Traffic, from: Bound, to: Bound?
    ) -> Verdict.Outcome {
        if case .budget(let least)? = traffic.count {
            let outcome = budget(traffic, least: least, from: from, to: to)
            if outcome != .pass { return outcome }
        }
        let found = matching(traffic, from: from, to: to)
        if case .range(let range)? = traffic.count, !range.contains(found.count) {
            return .fail("\(found.count) \(found.count == 1 ? "request" : "requests")" + Self.times(found))
        }
        if let expected = traffic.responses {
            let responses = found.map { Self.response($0, seen: traffic.seen) }
            let isEqual = responses.count == expected.count && zip(responses, expected).allSatisfy(Self.matches)
            if !isEqual {
                return .fail(
                    responses.isEmpty
                        ? "there is no matching request"
                        : "answers are \(responses.map(\.description).joined(separator: " "))")
            }
        }
        for sameness in traffic.same {
            guard found.count > 1 else { return .inconclusive("fewer than 2 matching requests") }
            let isSame =
                switch sameness {
                case .body: Set(found.map(\.bodyDigest)).count == 1
                case .key: Set(found.map(\.key)).count == 1 && found[0].key != nil
                }
            if !isSame { return .fail("the \(sameness.rawValue) differs") }
        }
        return .pass
    }

    /// Returns the exchanges in a window that a condition concerns.
    mutating func matching(_ traffic: Expectation.Traffic, from: Bound, to: Bound?) -> [History.Exchange] {
        var found: [History.Exchange] = []
        for exchange in exchanges where Self.matches(exchange, traffic) {
            if traffic.seen == .server, !exchange.isOnPortal, let time = exchange.arrivedAt {
                if contains(exchange.arrivedIndex, time, from: from, to: to) { found.append(exchange) }
            } else if traffic.seen == .proxy || traffic.responses != nil {
                // With `answers`, a request that never arrived counts too: its result is `none`.
                if contains(exchange.sentIndex, exchange.sentAt, from: from, to: to) { found.append(exchange) }
            }
        }
        return found
    }

    /// Returns whether an entry is in a window. A window that has an end is over when the heal phase begins.
    private func contains(_ index: Int, _ time: Nanoseconds, from: Bound, to: Bound?) -> Bool {
        switch from {
        case .time(let start): if time < start { return false }
        case .index(let start): if index < start { return false }
        }
        switch to {
        case .time(let end)?: return time < end && index < healIndex
        case .index(let end)?: return index < end && index < healIndex
        case nil: return true
        }
    }

    private static func matches(_ exchange: History.Exchange, _ traffic: Expectation.Traffic) -> Bool {
        (traffic.from == nil || exchange.actor == traffic.from)
            && (traffic.request.method == nil || exchange.method == traffic.request.method)
            && (traffic.request.row == nil || exchange.row == traffic.request.row)
    }

    private static func times(_ exchanges: [History.Exchange]) -> String {
        if exchanges.isEmpty { return "" }
        let times = exchanges.prefix(3).map { "\($0.method) at \(TimeFormat.seconds($0.sentAt))" }
        return ": " + times.joined(separator: ", ") + (exchanges.count > 3 ? " ..." : "")
    }

    static func response(
        _ exchange: History.Exchange, seen: Expectation.Traffic.Seen
    ) -> Expectation.Traffic.Response {
        // The response of a captive portal is not one of the server.
        if exchange.isOnPortal && seen == .server { return .none }
        if let status = exchange.receivedStatus { return .status(status) }
        return exchange.serverStatus == nil || exchange.isOnPortal ? .none : .lost
    }

    static func matches(
        _ response: Expectation.Traffic.Response, _ expected: Expectation.Traffic.Response
    ) -> Bool {
        if case .statusClass(let digit) = expected, case .status(let status) = response {
            return status / 100 == digit
        }
        return response == expected
    }

    // MARK: Budgets

    /// A period in which a device's link prevents exchanges.
    private struct Outage {
        let start: Nanoseconds
        var end: Nanoseconds
        /// Whether it is a down phase of a flap.
        let isFlap: Bool
    }

    private mutating func budget(
        _ traffic: Expectation.Traffic, least: Int, from: Bound, to: Bound?
    ) -> Verdict.Outcome {
        var total = 0
        var hasOutage = false
        for device in scenario.devices where traffic.from == nil || device.name == traffic.from {
            let attempts = attempts(of: device.name, traffic).filter {
                contains($0.index, $0.time, from: from, to: to)
            }
            total += attempts.count
            let window = (from: time(of: from), to: to.map { time(of: $0) } ?? Nanoseconds(.max))
            var flapping = (count: 0, allowed: writes(of: device.name), start: Nanoseconds?.none)
            for outage in outages(of: device) {
                let start = max(outage.start, window.from)
                let end = min(outage.end, window.to)
                guard end > start else { continue }
                hasOutage = true
                let count = attempts.count { $0.time >= start && $0.time < end }
                if outage.isFlap {
                    flapping.count += count
                    flapping.allowed += Self.budget(ofDownPhase: end - start)
                    flapping.start = flapping.start ?? start
                } else if count > Self.budget(ofOutage: end - start) {
                    return .fail(
                        "\(Self.attempts(count)) of \(device.name) in the outage at \(TimeFormat.seconds(start)), "
                            + "\(Self.budget(ofOutage: end - start)) allowed")
                }
            }
            if let start = flapping.start, flapping.count > flapping.allowed {
                return .fail(
                    "\(Self.attempts(flapping.count)) of \(device.name) in the down phases from "
                        + "\(TimeFormat.seconds(start)), \(flapping.allowed) allowed")
            }
        }
        if total < least { return .fail("\(Self.attempts(total)), at least \(least) expected") }
        return hasOutage ? .pass : .inconclusive("there was no outage")
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
    private func outages(of device: Scenario.Device) -> [Outage] {
        var found: [Outage] = []
        var isDown = false
        for entry in history.entries {
            guard case .network(device.name, let link, _) = entry.event else { continue }
            if isDown { found[found.count - 1].end = entry.time }
            isDown = scenario.conditions(of: device.name, named: link)?.preventsExchanges ?? false
            guard isDown else { continue }
            let planned = device.network.last { $0.start <= entry.time } ?? device.network.first
            let isFlap = if case .flap? = planned?.phase { true } else { false }
            if let last = found.last, last.end == entry.time, last.isFlap == isFlap {
                found[found.count - 1].end = Nanoseconds(.max)
            } else {
                found.append(Outage(start: entry.time, end: Nanoseconds(.max), isFlap: isFlap))
            }
        }
        return found
    }

    /// Returns the number of attempts allowed in one outage of D seconds: 2 + ceil(log2(cap / base)) + D / (cap / 2),
    /// with a cap of 60 s and a base of 1 s.
    static func budget(ofOutage duration: Nanoseconds) -> Int {
        let (count, remainder) = duration.count.quotientAndRemainder(dividingBy: 30_000_000_000)
        return 2 + 6 + Int(count) + (remainder > 0 ? 1 : 0)
    }

    /// Returns the number of attempts allowed in one down phase of a flap, besides one for each change: 2 in up to 2 s,
    /// one more for each doubling of that length, and never more than in an outage.
    static func budget(ofDownPhase duration: Nanoseconds) -> Int {
        var allowed = 2
        var length = Nanoseconds.seconds(2)
        while length < duration && allowed < 64 {
            length = length + length
            allowed += 1
        }
        return min(allowed + Int(duration.count / 30_000_000_000), budget(ofOutage: duration))
    }
}
