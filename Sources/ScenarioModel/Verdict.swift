public import LinkModel

/// Whether a run did what the scenario says.
public struct Verdict: Sendable {
    /// What came of one expectation.
    public enum Outcome: Hashable, Sendable {
        /// It held.
        case pass
        /// It did not: why, in words.
        case fail(String)
        /// The run did not show it: why.
        case inconclusive(String)
    }

    /// An expectation with what came of it.
    public struct Result: Sendable {
        /// The expectation, in short.
        public let text: String
        /// Where it stands.
        public let place: Place
        /// What came of it.
        public let outcome: Outcome
    }

    /// Of everything together.
    public enum Word: String, Sendable { case pass, fail, inconclusive }

    /// What came of each.
    public let results: [Result]
    /// What came of all.
    public let word: Word

    /// 0, 1 or 3.
    public var exitStatus: Int32 {
        switch word {
        case .pass: 0
        case .fail: 1
        case .inconclusive: 3
        }
    }

    /// A machine that stood still for so long at a time may be why something did not come in time.
    public static let stallMax = Nanoseconds.seconds(1)

    /// What did not come in time on a machine that stood still shows nothing.
    private static func excused(_ outcome: Outcome, _ history: History) -> Outcome {
        guard case .fail(let reason) = outcome, history.longestStall >= stallMax else { return outcome }
        return .inconclusive("\(reason); but this machine stood still for \(Moment.text(history.longestStall))")
    }

    /// Judges a run.
    public init(_ scenario: Scenario, _ history: History) {
        var judge = Judge(scenario, history)
        var results = scenario.expectations.map {
            let outcome = judge.outcome(of: $0)
            // What is at the end is so at any speed, if it came to its end.
            let isTimed = $0.kind.goesByTime || history.gaveUp
            return Result(
                text: $0.description, place: $0.place, outcome: isTimed ? Self.excused(outcome, history) : outcome)
        }
        for (index, fault) in scenario.faults.enumerated() where fault.mustFire {
            let hasFired = history.entries.contains {
                if case .fault(index, _) = $0.event { return true }
                return false
            }
            if !hasFired {
                results.append(
                    Result(
                        text: "fault: answer \(fault.nth) to \(fault.request) is lost", place: fault.place,
                        outcome: .inconclusive("it never fired")))
            }
        }
        for entry in history.entries {
            guard case .gaveUp(let reason) = entry.event else { continue }
            results.append(
                Result(
                    text: "the run ends", place: Place(file: scenario.name, line: 1, column: 1),
                    outcome: Self.excused(.fail(reason), history)))
        }
        self.results = results
        let outcomes = results.map(\.outcome)
        if outcomes.contains(where: { if case .fail = $0 { true } else { false } }) {
            word = .fail
        } else if outcomes.contains(where: { if case .inconclusive = $0 { true } else { false } }) {
            word = .inconclusive
        } else {
            word = .pass
        }
    }
}

/// Holds each expectation against what happened.
struct Judge {
    private let scenario: Scenario
    private let history: History
    private lazy var exchanges = history.exchanges()

    init(_ scenario: Scenario, _ history: History) {
        self.scenario = scenario
        self.history = history
    }

    mutating func outcome(of expectation: Expectation) -> Verdict.Outcome {
        switch expectation.kind {
        case .traffic(let traffic): judge(traffic)
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

    /// What is wrong with a state; `nil` if nothing is. `exists` says whether there was anything to look at.
    static func objection(
        to state: History.DeviceState, _ condition: StateCondition
    ) -> (exists: Bool, objection: String?) {
        var row: History.DeviceState.Row?
        if let name = condition.row {
            row = state.rows.first { $0.name == name }
            if row == nil {
                // That nothing waits can be seen without the note.
                return (false, "\(name) is not there")
            }
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

    /// The states that a device was in during a window, the one it began with included.
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
        // At `until` something else begins.
        for (time, state) in states(device, from: window.from, to: window.to) where time < window.to {
            let (exists, objection) = Self.objection(to: state, condition)
            guard exists else { continue }
            hasSeen = true
            if let objection { return .fail("at \(Moment.text(time)) \(objection)") }
        }
        return hasSeen ? .pass : .inconclusive("\(condition.row ?? device) was never there")
    }

    private func sometimes(_ device: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let window = window(condition) else { return .inconclusive("the mark was never set") }
        let isReached = states(device, from: window.from, to: window.to)
            .contains { Self.objection(to: $0.state, condition).objection == nil }
        return isReached ? .pass : .inconclusive("it never came to that")
    }

    private func eventually(
        _ device: String, _ condition: StateCondition, _ window: Expectation.Window
    ) -> Verdict.Outcome {
        let from: Nanoseconds
        let to: Nanoseconds
        switch window {
        case .by(let time): (from, to) = (.zero, time)
        case .after(let mark, let within):
            guard let time = history.time(of: mark) else { return .fail("'\(mark)' never came") }
            (from, to) = (time, time + within)
        }
        let seen = states(device, from: from, to: to)
        if seen.contains(where: { Self.objection(to: $0.state, condition).objection == nil }) { return .pass }
        guard let last = seen.last else { return .fail("\(device) never showed anything") }
        return .fail("at \(Moment.text(to)) \(Self.objection(to: last.state, condition).objection ?? "")")
    }

    private func finally(_ device: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let last = history.states(of: device).last else { return .fail("\(device) never showed anything") }
        return Self.objection(to: last.state, condition).objection.map { .fail("at the end \($0)") } ?? .pass
    }

    // MARK: The server

    private var serverRows: [History.ServerRow]? {
        for entry in history.entries.reversed() {
            if case .server(let rows) = entry.event { return rows }
        }
        return nil
    }

    private func serverRow(_ row: String, _ revision: Int?, _ title: String?, _ text: String?) -> Verdict.Outcome {
        guard let rows = serverRows else { return .inconclusive("the server was not asked") }
        guard let found = rows.first(where: { $0.name == row }) else { return .fail("the server has no \(row)") }
        if let revision, found.revision != revision { return .fail("revision is \(found.revision)") }
        if let title, found.title != title { return .fail("title is '\(found.title ?? "null")'") }
        if let text, found.text != text { return .fail("text is '\(found.text ?? "null")'") }
        return .pass
    }

    private func serverCount(_ count: Int) -> Verdict.Outcome {
        guard let rows = serverRows else { return .inconclusive("the server was not asked") }
        return rows.count == count ? .pass : .fail("the server has \(rows.count)")
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
                guard let rows = serverRows else { return .inconclusive("the server was not asked") }
                let users = Set(scenario.devices.filter { names.contains($0.name) }.map(\.user))
                let shown = rows.filter { users.isEmpty || users.contains($0.user) }
                sides.append((name, Set(shown.map { Seen(name: $0.name, title: $0.title, text: $0.text) })))
            } else {
                guard let last = history.states(of: name).last else { return .fail("\(name) never showed anything") }
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

    private mutating func judge(_ traffic: Expectation.Traffic) -> Verdict.Outcome {
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
            // What is asked for its answers counts even if it never arrived: its answer is 'none'.
            guard let time = time ?? (traffic.answers == nil ? nil : exchange.sentAt) else { return false }
            return time >= from && time < to && (traffic.from == nil || exchange.actor == traffic.from)
                && (traffic.request.method == nil || exchange.method == traffic.request.method)
                && (traffic.request.row == nil || exchange.row == traffic.request.row)
        }
        switch traffic.count {
        case .range(let range)?:
            if !range.contains(found.count) { return .fail("\(found.count) requests\(Self.times(found))") }
        case .budget?:
            let budget = budget(traffic.from, from: from, to: to)
            if found.count > budget { return .fail("\(found.count) requests, \(budget) allowed") }
        case nil: break
        }
        if let expected = traffic.answers {
            let answers = found.map(Self.answer)
            let isEqual = answers.count == expected.count && zip(answers, expected).allSatisfy(Self.matches)
            if !isEqual {
                return .fail(
                    "answers are \(answers.isEmpty ? "none at all" : answers.map(\.description).joined(separator: " "))"
                )
            }
        }
        for sameness in traffic.same {
            guard found.count > 1 else { return .inconclusive("there is nothing to compare") }
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
        let times = exchanges.prefix(3).map { "\($0.method) at \(Moment.text($0.sentAt))" }
        return ": " + times.joined(separator: ", ") + (exchanges.count > 3 ? " ..." : "")
    }

    private static func answer(_ exchange: History.Exchange) -> Expectation.Traffic.Answer {
        if let status = exchange.answered { return .status(status) }
        return exchange.served == nil ? .none : .lost
    }

    private static func matches(
        _ answer: Expectation.Traffic.Answer, _ expected: Expectation.Traffic.Answer
    ) -> Bool {
        if case .hundred(let hundred) = expected, case .status(let status) = answer { return status / 100 == hundred }
        return answer == expected
    }

    /// Attempts that the retry policy allows in the outages of a window: 2 + ceil(log2(cap / base)) + D / (cap / 2) for one
    /// of D seconds, with a cap of 60 s and a base of 1 s.
    private func budget(_ device: String?, from: Nanoseconds, to: Nanoseconds) -> Int {
        let devices = scenario.devices.filter { device == nil || $0.name == device }
        var sum = 0
        for device in devices {
            for (index, entry) in device.network.enumerated() {
                guard case .hold(let link) = entry.phase, link.conditions.isDead else { continue }
                let end = index + 1 < device.network.count ? device.network[index + 1].start : to
                let span = min(end, to) - max(entry.start, from)
                if span > .zero { sum += Self.budget(ofOutage: span) }
            }
        }
        return sum
    }

    static func budget(ofOutage span: Nanoseconds) -> Int {
        2 + 6 + Int((span.count + 29_999_999_999) / 30_000_000_000)
    }
}

extension Conditions {
    /// Whether nothing gets through in either direction.
    public var isDead: Bool { up.loss == .one && down.loss == .one }
}
