internal import Determinism
public import LinkModel

/// The evaluation of expectations on a history.
struct ExpectationEvaluator {
    private let scenario: Scenario
    private let history: History
    private lazy var exchanges = history.exchanges()

    init(_ scenario: Scenario, _ history: History) {
        self.scenario = scenario
        self.history = history
    }

    mutating func outcome(of expectation: Expectation) -> Verdict.Outcome {
        switch expectation.kind {
        case .traffic(let traffic): evaluate(traffic)
        case .always(let device, let condition): always(device, condition)
        case .sometimes(let device, let condition): sometimes(device, condition)
        case .eventually(let device, let condition, let window): eventually(device, condition, window)
        case .serverRow(let row, let revision, let title, let text): serverRow(row, revision, title, text)
        case .serverCount(let count): serverCount(count)
        case .finally(let device, let condition): finally(device, condition)
        case .agree(let names): agree(names)
        }
    }

    // MARK: Devices

    /// Returns the reason a state does not satisfy a condition; `nil` if it does. `exists` is `false` if the
    /// condition's note is missing.
    static func mismatch(
        _ state: History.DeviceState, _ condition: StateCondition
    ) -> (exists: Bool, reason: String?) {
        var row: History.DeviceState.Row?
        if let name = condition.row {
            row = state.rows.first { $0.name == name }
            if row == nil { return (false, "\(name) is absent") }
        }
        for check in condition.checks {
            let found: [String]
            switch check.key {
            case .icon: found = [row?.icon ?? ""]
            case .text: found = [row?.text ?? ""]
            case .title: found = [row?.title ?? ""]
            case .keeps: found = row?.kept ?? []
            case .pending: found = [row.map { $0.icon == "upload" } ?? (state.outbox > 0) ? "true" : "false"]
            case .outbox: found = ["\(state.outbox)"]
            }
            if found.contains(check.value) == check.isNegated {
                let shown = found.map { $0.isEmpty ? "empty" : "'\($0)'" }.joined(separator: ", ")
                return (true, "\(check.key.rawValue) is \(shown)")
            }
        }
        return (true, nil)
    }

    /// Returns the states of a device in a window, beginning with the one in effect at its start.
    private func states(
        _ device: String, from: Nanoseconds, to: Nanoseconds
    ) -> [(time: Nanoseconds, state: History.DeviceState)] {
        let all = history.states(of: device)
        let first = all.last { $0.time <= from }.map { [(time: from, state: $0.state)] } ?? []
        return first + all.filter { $0.time > from && $0.time <= to }
    }

    private func window(_ condition: StateCondition) -> (from: Nanoseconds, to: Nanoseconds)? {
        guard let from = condition.since.map({ history.time(of: $0) }) ?? .zero else { return nil }
        guard let to = condition.until.map({ history.time(of: $0) }) ?? Nanoseconds(.max) else { return nil }
        return (from, to)
    }

    private func always(_ device: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let window = window(condition) else { return .inconclusive("the mark was never set") }
        var hasSeen = false
        // The window ends before `until`.
        for (time, state) in states(device, from: window.from, to: window.to) where time < window.to {
            let (exists, reason) = Self.mismatch(state, condition)
            guard exists else { continue }
            hasSeen = true
            if let reason { return .fail("at \(TimeFormat.seconds(time)) \(reason)") }
        }
        return hasSeen ? .pass : .inconclusive("\(condition.row ?? device) was never present")
    }

    private func sometimes(_ device: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let window = window(condition) else { return .inconclusive("the mark was never set") }
        let isReached = states(device, from: window.from, to: window.to)
            .contains { $0.state.satisfies(condition) }
        return isReached ? .pass : .inconclusive("the state was never reached")
    }

    private func eventually(
        _ device: String, _ condition: StateCondition, _ window: Expectation.Window
    ) -> Verdict.Outcome {
        let from: Nanoseconds
        let to: Nanoseconds
        switch window {
        case .by(let time): (from, to) = (.zero, time)
        case .after(let mark, let within):
            guard let time = history.time(of: mark) else { return .fail("mark '\(mark)' was never set") }
            (from, to) = (time, time + within)
        }
        let seen = states(device, from: from, to: to)
        if seen.contains(where: { $0.state.satisfies(condition) }) { return .pass }
        guard let last = seen.last else { return .fail("\(device) has no recorded state") }
        return .fail("at \(TimeFormat.seconds(to)) \(Self.mismatch(last.state, condition).reason ?? "")")
    }

    private func finally(_ device: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let last = history.states(of: device).last else { return .fail("\(device) has no recorded state") }
        return Self.mismatch(last.state, condition).reason.map { .fail("at the end \($0)") } ?? .pass
    }

    // MARK: The server

    private var serverRows: [History.ServerRow]? {
        for entry in history.entries.reversed() {
            if case .server(let rows) = entry.event { return rows }
        }
        return nil
    }

    private static let serverUnread = Verdict.Outcome.inconclusive("the server's notes were not read")

    private func serverRow(_ row: String, _ revision: Int?, _ title: String?, _ text: String?) -> Verdict.Outcome {
        guard let rows = serverRows else { return Self.serverUnread }
        guard let found = rows.first(where: { $0.name == row }) else { return .fail("the server has no \(row)") }
        if let revision, found.revision != revision { return .fail("revision is \(found.revision)") }
        if let title, found.title != title { return .fail("title is '\(found.title ?? "null")'") }
        if let text, found.text != text { return .fail("text is '\(found.text ?? "null")'") }
        return .pass
    }

    private func serverCount(_ count: Int) -> Verdict.Outcome {
        guard let rows = serverRows else { return Self.serverUnread }
        return rows.count == count
            ? .pass : .fail("the server has \(rows.count) \(rows.count == 1 ? "note" : "notes")")
    }

    private func agree(_ names: [String]) -> Verdict.Outcome {
        struct Seen: Hashable {
            let name: String
            let title: String?
            let text: String?
        }
        var sides: [(name: String, notes: Set<Seen>)] = []
        for name in names {
            if name == "server" {
                guard let rows = serverRows else { return Self.serverUnread }
                let users = Set(scenario.devices.filter { names.contains($0.name) }.map(\.user))
                let shown = rows.filter { users.isEmpty || users.contains($0.user) }
                sides.append((name, Set(shown.map { Seen(name: $0.name, title: $0.title, text: $0.text) })))
            } else {
                guard let last = history.states(of: name).last else { return .fail("\(name) has no recorded state") }
                let shown = last.state.rows.filter { !$0.isDeleted }
                sides.append((name, Set(shown.map { Seen(name: $0.name, title: $0.title, text: $0.text) })))
            }
        }
        for (left, right) in zip(sides, sides.dropFirst()) where left.notes != right.notes {
            let differing = Set(left.notes.symmetricDifference(right.notes).map(\.name)).sorted()
            return .fail("\(left.name) and \(right.name) differ in \(differing.joined(separator: ", "))")
        }
        return .pass
    }

    // MARK: Traffic

    private mutating func evaluate(_ traffic: Expectation.Traffic) -> Verdict.Outcome {
        var from = Nanoseconds.zero
        var to = Nanoseconds(.max)
        if let between = traffic.between {
            guard let start = history.time(of: between.from), let end = history.time(of: between.to) else {
                return .inconclusive("a mark was never set")
            }
            (from, to) = (start, end)
        }
        let found = exchanges.filter { exchange in
            let time = traffic.seen == .proxy ? exchange.sentAt : exchange.arrivedAt
            // With `answers`, a request that never arrived counts too: its result is `none`.
            guard let time = time ?? (traffic.responses == nil ? nil : exchange.sentAt) else { return false }
            return time >= from && time < to && (traffic.from == nil || exchange.actor == traffic.from)
                && (traffic.request.method == nil || exchange.method == traffic.request.method)
                && (traffic.request.row == nil || exchange.row == traffic.request.row)
        }
        let number = "\(found.count) \(found.count == 1 ? "request" : "requests")"
        switch traffic.count {
        case .range(let range)?:
            if !range.contains(found.count) { return .fail(number + Self.times(found)) }
        case .budget?:
            let budget = budget(traffic.from, from: from, to: to)
            if found.count > budget { return .fail("\(number), \(budget) allowed") }
        case nil: break
        }
        if let expected = traffic.responses {
            let responses = found.map(Self.response)
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

    private static func times(_ exchanges: [History.Exchange]) -> String {
        if exchanges.isEmpty { return "" }
        let times = exchanges.prefix(3).map { "\($0.method) at \(TimeFormat.seconds($0.sentAt))" }
        return ": " + times.joined(separator: ", ") + (exchanges.count > 3 ? " ..." : "")
    }

    private static func response(_ exchange: History.Exchange) -> Expectation.Traffic.Response {
        if let status = exchange.receivedStatus { return .status(status) }
        return exchange.serverStatus == nil ? .none : .lost
    }

    private static func matches(
        _ response: Expectation.Traffic.Response, _ expected: Expectation.Traffic.Response
    ) -> Bool {
        if case .statusClass(let digit) = expected, case .status(let status) = response {
            return status / 100 == digit
        }
        return response == expected
    }

    /// Returns the number of attempts that the retry policy allows in the outages of a window.
    private func budget(_ device: String?, from: Nanoseconds, to: Nanoseconds) -> Int {
        let devices = scenario.devices.filter { device == nil || $0.name == device }
        var sum = 0
        for device in devices {
            for (index, entry) in device.network.enumerated() {
                guard case .hold(let link) = entry.phase, link.conditions.isOutage else { continue }
                let end = index + 1 < device.network.count ? device.network[index + 1].start : to
                let duration = min(end, to) - max(entry.start, from)
                if duration > .zero { sum += Self.budget(ofOutage: duration) }
            }
        }
        return sum
    }

    /// Returns the number of attempts allowed in one outage of D seconds: 2 + ceil(log2(cap / base)) + D / (cap / 2),
    /// with a cap of 60 s and a base of 1 s.
    static func budget(ofOutage duration: Nanoseconds) -> Int {
        let (count, remainder) = duration.count.quotientAndRemainder(dividingBy: 30_000_000_000)
        return 2 + 6 + Int(count) + (remainder > 0 ? 1 : 0)
    }
}

extension Conditions {
    /// Whether all packets of both directions are lost.
    public var isOutage: Bool { up.loss == .one && down.loss == .one }
}
