internal import Determinism
internal import Impairment

extension ExpectationEvaluator {
    mutating func evaluate(_ traffic: Expectation.Traffic) -> Verdict.Outcome {
        guard let window = window(of: traffic) else { return Self.markUnset }
        let (from, to) = window
        if let during = traffic.during, !wasInEffect(during, for: traffic.from) {
            return .inconclusive("\(during) was never in effect")
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

    /// Evaluates a condition that requests must meet at least once. What would be a failure is inconclusive.
    mutating func sometimes(_ traffic: Expectation.Traffic) -> Verdict.Outcome {
        guard let window = window(of: traffic) else { return Self.markUnset }
        let outcome = evaluate(traffic, from: window.from, to: window.to, isSometimes: true)
        if case .fail(let reason) = outcome { return .inconclusive(reason) }
        return outcome
    }

    /// Returns the window of a condition, without an end if it contains the restore phase; `nil` if one of its marks was never
    /// set. Without a window, a condition is about the script phase: in the restore phase every client is told to sync.
    func window(of traffic: Expectation.Traffic) -> (from: Bound, to: Bound?)? {
        guard let between = traffic.between else { return (.time(.zero), .index(restoreIndex)) }
        guard let first = start(of: between.from), let last = start(of: between.to) else { return nil }
        return (first, between.to == .end ? nil : last)
    }

    private mutating func evaluate(
        _ traffic: Expectation.Traffic, from: Bound, to: Bound?, isSometimes: Bool = false
    ) -> Verdict.Outcome {
        if case .budget(let least)? = traffic.count {
            let outcome = budget(traffic, least: least, from: from, to: to)
            if outcome != .pass { return outcome }
        }
        if let range = traffic.attempts, let reason = mismatch(traffic, range, from: from, to: to) {
            return .fail(reason)
        }
        let found = matching(traffic, from: from, to: to)
        if case .range(let range)? = traffic.count, !range.contains(found.count) {
            return .fail("\(Self.requests(found.count))" + Self.times(found))
        }
        if isSometimes, found.isEmpty, traffic.count == nil, traffic.attempts == nil { return .fail(Self.noRequest) }
        if let expected = traffic.responses {
            let responses = found.map { Self.response($0, seen: traffic.seen) }
            if !(isSometimes ? Self.contains(responses, expected) : Self.isEqual(responses, expected)) {
                let shown = responses.prefix(20).map(\.description).joined(separator: " ")
                return .fail(
                    responses.isEmpty
                        ? Self.noRequest : "responses are \(shown)\(responses.count > 20 ? " ..." : "")")
            }
        }
        for sameness in traffic.same {
            guard found.count > 1 else { return .inconclusive("fewer than 2 matching requests", .tooFewRequests) }
            switch sameness {
            case .body where Set(found.map(\.bodyDigest)).count > 1: return .fail("the body differs")
            case .key: if let reason = Self.differenceOfKeys(found) { return .fail(reason) }
            case .body: break
            }
        }
        if let order = traffic.order, let reason = Self.disorder(found, order) { return .fail(reason) }
        if let most = traffic.duplicates {
            let repeated = repeated(traffic, from: from, to: to)
            if repeated.count > most {
                return .fail(
                    "\(Self.requests(repeated.count)) executed again" + Self.times(repeated))
            }
        }
        if let range = traffic.bytesDown, let reason = Self.mismatch(found.map(bytesDown), range, "down") {
            return .fail(reason)
        }
        if let range = traffic.bytesUp, let reason = Self.mismatch(found.map(\.bytesUp), range, "up") {
            return .fail(reason)
        }
        return .pass
    }

    /// Returns why requests do not share one `Idempotency-Key`; `nil` if they do.
    private static func differenceOfKeys(_ exchanges: [History.Exchange]) -> String? {
        let missing = exchanges.count { $0.key == nil }
        switch missing {
        case 0: return Set(exchanges.map(\.key)).count == 1 ? nil : "the idempotency-key differs"
        case exchanges.count where missing == 2: return "neither request has an idempotency-key"
        case exchanges.count: return "none of the \(missing) requests has an idempotency-key"
        default: return "\(missing) of \(exchanges.count) requests \(missing == 1 ? "has" : "have") no idempotency-key"
        }
    }

    /// Returns why it is not known whether a condition that holds does: the responses do not tell whether the server has
    /// executed a write once more; `nil` if it is.
    mutating func undecidedReason(of expectation: Expectation) -> String? {
        let traffic: Expectation.Traffic
        switch expectation.kind {
        case .traffic(let found), .sometimesTraffic(let found): traffic = found
        default: return nil
        }
        guard let most = traffic.duplicates, !effects.undecided.isEmpty, let (from, to) = window(of: traffic) else {
            return nil
        }
        let found = Set(matching(traffic, from: from, to: traffic.between == nil ? nil : to).map(\.id))
        let undecided = effects.undecided.filter { found.contains($0.repetition.id) }
        let count = undecided.count + effects.duplicates.count { found.contains($0) }
        return count > most ? undecided.first?.reason : nil
    }

    /// Returns the requests that were executed again. Without a window those of the restore phase too: they have an effect.
    mutating func repeated(_ traffic: Expectation.Traffic, from: Bound, to: Bound?) -> [History.Exchange] {
        matching(traffic, from: from, to: traffic.between == nil ? nil : to).filter {
            effects.duplicates.contains($0.id)
        }
    }

    private static let noRequest = "there is no matching request"

    private static func requests(_ count: Int) -> String { "\(count) \(count == 1 ? "request" : "requests")" }

    /// Returns the exchanges in a window that a condition concerns.
    mutating func matching(_ traffic: Expectation.Traffic, from: Bound, to: Bound?) -> [History.Exchange] {
        var periods: [String: [Range<Int>]] = [:]
        if let during = traffic.during {
            for device in scenario.devices { periods[device.name] = self.periods(of: during, device) }
        }
        func contains(_ exchange: History.Exchange, _ index: Int, _ time: Nanoseconds) -> Bool {
            guard self.contains(index, time, from: from, to: to) else { return false }
            // A writer has no link.
            return traffic.during == nil || periods[exchange.actor]?.contains { $0.contains(index) } ?? false
        }
        var found: [History.Exchange] = []
        for exchange in exchanges where Self.matches(exchange, traffic) {
            if traffic.seen == .server, !exchange.isOnPortal, let time = exchange.arrivedAt {
                if contains(exchange, exchange.arrivedIndex, time) { found.append(exchange) }
            } else if traffic.seen == .proxy {
                if contains(exchange, exchange.sentIndex, exchange.sentAt) { found.append(exchange) }
            }
        }
        return found
    }

    /// Returns whether an entry is in a window. A window that has an end is over when the restore phase begins.
    func contains(_ index: Int, _ time: Nanoseconds, from: Bound, to: Bound?) -> Bool {
        switch from {
        case .time(let start): if time < start { return false }
        case .index(let start): if index < start { return false }
        }
        switch to {
        case .time(let end)?: return time < end && index < restoreIndex
        case .index(let end)?: return index < end && index < restoreIndex
        case nil: return true
        }
    }

    static let noFault = Verdict.Outcome.inconclusive("no such fault was applied")

    /// Returns the time at which a fault that matches a pattern was applied first; `nil` if none was.
    mutating func faultTime(_ pattern: Expectation.FaultPattern) -> Nanoseconds? {
        for fault in faults {
            guard case .fault(let index, let exchange, let point) = fault.event,
                scenario.faults.indices.contains(index)
            else { continue }
            if let expected = pattern.point, (point ?? scenario.faults[index].point) != expected { continue }
            if let request = pattern.request {
                guard let subject = exchanges.first(where: { $0.id == exchange }), Self.matches(subject, request)
                else { continue }
            }
            return fault.time
        }
        return nil
    }

    // MARK: Parts of the run

    /// Returns the parts of the script, as indices of entries, in which an entry of a device's network is in effect.
    func periods(of during: Expectation.Traffic.During, _ device: Scenario.Device) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var start: Int?
        for (index, entry) in history.entries[..<restoreIndex].enumerated() {
            guard case .network(device.name, let link, _) = entry.event else { continue }
            let isInEffect =
                switch during {
                case .flap: device.isFlapping(at: entry.time)
                case .link(let name): link == name
                }
            if isInEffect {
                start = start ?? index
            } else if let first = start {
                found.append(first..<index)
                start = nil
            }
        }
        if let start { found.append(start..<restoreIndex) }
        return found
    }

    private func wasInEffect(_ during: Expectation.Traffic.During, for actor: String?) -> Bool {
        scenario.devices.contains { device in
            (actor == nil || device.name == actor) && !periods(of: during, device).isEmpty
        }
    }

    // MARK: Comparisons

    static func matches(_ exchange: History.Exchange, _ pattern: RequestPattern) -> Bool {
        (pattern.method == nil || exchange.method == pattern.method)
            && (pattern.row == nil || exchange.row == pattern.row)
    }

    static func matches(_ exchange: History.Exchange, _ traffic: Expectation.Traffic) -> Bool {
        (traffic.from == nil || exchange.actor == traffic.from) && matches(exchange, traffic.request)
    }

    private static func isEqual(
        _ responses: [Expectation.Traffic.Response], _ expected: [Expectation.Traffic.Response]
    ) -> Bool { responses.count == expected.count && zip(responses, expected).allSatisfy(matches) }

    /// Returns whether the expected responses are among the responses, in this order.
    private static func contains(
        _ responses: [Expectation.Traffic.Response], _ expected: [Expectation.Traffic.Response]
    ) -> Bool {
        var rest = expected[...]
        for response in responses {
            if let next = rest.first, matches(response, next) { rest = rest.dropFirst() }
        }
        return rest.isEmpty
    }

    /// Returns the reason why the first requests of patterns are not in the order of the patterns; `nil` if they are. A
    /// pattern that occurs again stands for its next request.
    private static func disorder(_ exchanges: [History.Exchange], _ order: [RequestPattern]) -> String? {
        var counts: [RequestPattern: Int] = [:]
        var last: (index: Int, pattern: RequestPattern)?
        for pattern in order {
            let skipped = counts[pattern, default: 0]
            counts[pattern] = skipped + 1
            let indices = exchanges.indices.lazy.filter { matches(exchanges[$0], pattern) }
            guard let index = indices.dropFirst(skipped).first else { return "there is no \(Self.name(pattern))" }
            if let last, index <= last.index {
                let times = (exchanges[index].sentAt, exchanges[last.index].sentAt)
                return "\(Self.name(pattern)) at \(TimeFormat.seconds(times.0)) is not after "
                    + "\(Self.name(last.pattern)) at \(TimeFormat.seconds(times.1))"
            }
            last = (index, pattern)
        }
        return nil
    }

    private static func name(_ pattern: RequestPattern) -> String {
        pattern.method == nil ? "request of \(pattern)" : "\(pattern)"
    }

    /// Returns the number of bytes of the body that the client could receive.
    private func bytesDown(_ exchange: History.Exchange) -> Int {
        // A response of a fault takes the place of the server's.
        if let fault = exchange.fault, scenario.faults.indices.contains(fault.index),
            let response = scenario.faults[fault.index].action.response
        {
            return response.body.count
        }
        return exchange.bytesDown
    }

    private static func mismatch(_ bytes: [Int], _ range: ClosedRange<Int>, _ direction: String) -> String? {
        let sum = bytes.reduce(Int64(0)) { $0.addingSaturating(Int64($1)) }
        return range.contains(Int(clamping: sum)) ? nil : "\(sum) \(sum == 1 ? "byte" : "bytes") \(direction)"
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
}
