internal import Determinism

/// The evaluation of expectations on a history.
///
/// An expectation that fails is evaluated again with the bounds of its window moved by the lateness measured at each of
/// them. If it holds then, the result is `pass` for a lateness below ``Verdict/hostPauseMax``, else `inconclusive`.
struct ExpectationEvaluator {
    let scenario: Scenario
    let history: History
    let lateness: Lateness
    /// The index of the entry at which windows with an end are over: the start of the restore phase.
    let restoreIndex: Int
    /// A state of a device with the index and the time of its entry.
    private struct Seen {
        let index: Int
        let time: Nanoseconds
        let state: History.DeviceState
    }

    /// The states of each device.
    private let stateEntries: [String: [Seen]]
    lazy var exchanges = history.exchanges(isPortal: scenario.isPortal)
    /// The faults that were applied.
    lazy var faults = history.entries.filter { if case .fault = $0.event { true } else { false } }
    /// The effects of the writes.
    lazy var effects = WriteEffects(exchanges, scenario)
    /// The changes that devices have accepted from their users.
    lazy var changes = Self.changes(history)
    /// The facts on which invariants and budgets are decided.
    lazy var facts = RunFacts(
        scenario, history, exchanges: exchanges, effects: effects, changes: changes, lateness: lateness)

    init(_ scenario: Scenario, _ history: History) {
        self.scenario = scenario
        self.history = history
        lateness = Lateness(history)
        restoreIndex = history.restoreIndex
        var found: [String: [Seen]] = [:]
        for (index, entry) in history.entries.enumerated() {
            guard case .device(let device, let state) = entry.event else { continue }
            found[device, default: []].append(Seen(index: index, time: entry.time, state: state))
        }
        stateEntries = found
    }

    mutating func outcome(of expectation: Expectation) -> Verdict.Outcome {
        switch expectation.kind {
        case .traffic(let traffic): return evaluate(traffic)
        case .always(let device, let condition): return always(device, condition)
        case .sometimes(let device, let condition): return sometimes(device, condition)
        case .eventually(let device, let condition, let window): return eventually(device, condition, window)
        case .serverRow(let row, let revision, let title, let text): return serverRow(row, revision, title, text)
        case .serverCount(let count): return serverCount(count)
        case .finally(let device, let condition): return finally(device, condition)
        case .agree(let names): return agree(names)
        case .sometimesTraffic(let traffic): return sometimes(traffic)
        case .sometimesFault(let pattern): return faultTime(pattern) == nil ? Self.noFault : .pass
        case .threshold(let threshold): return evaluate(threshold)
        }
    }

    // MARK: Windows

    /// A bound of a window: a time, or the index of an entry.
    enum Bound {
        case time(Nanoseconds)
        case index(Int)

        /// Returns the bound later by a span; an index stays.
        func later(by span: Nanoseconds) -> Bound {
            if case .time(let time) = self { .time(time + span) } else { self }
        }
    }

    static let markUnset = Verdict.Outcome.inconclusive("a mark was never set", .markNotSet)

    /// Returns the bound at which the action of a mark has taken effect.
    func effect(of reference: TimeReference) -> Bound? {
        switch reference {
        case .time(let time): .time(time)
        case .mark(let mark): history.index(of: mark).map { .index($0) }
        case .end: .index(history.entries.count)
        }
    }

    /// Returns the bound at which the action of a mark has started.
    func start(of reference: TimeReference) -> Bound? {
        guard case .mark(let mark) = reference else { return effect(of: reference) }
        guard let set = history.index(of: mark) else { return nil }
        let step = scenario.steps.firstIndex { $0.mark == mark }
        return .index(step.flatMap { history.index(ofStep: $0) } ?? set)
    }

    /// Returns the bound at which a window ends that must not contain its end. A step that waits for a state starts in the
    /// instant in which the state begins, so a window that ends with its mark does not contain the state.
    func end(of reference: TimeReference) -> Bound? {
        guard let bound = start(of: reference), case .index(let index) = bound, case .mark(let mark) = reference,
            let step = scenario.steps.first(where: { $0.mark == mark }),
            case .when(let subject, let condition, _) = step.trigger,
            let trigger = firstIndex(
                subject, condition, from: step.since.flatMap { history.index(of: $0) }, before: index)
        else { return start(of: reference) }
        // An action that had to wait starts later than the state that it waited for.
        let isDelayed = time(of: bound) - history.entries[trigger].time >= ScenarioDirector.lateMin
        return step.action != nil && isDelayed ? bound : .index(trigger)
    }

    /// Returns the index of the first entry before an index with which a device reaches a state.
    ///
    /// - Parameter start: The index of the mark from which the state counts; `nil` for the start of the run.
    private func firstIndex(
        _ subject: String, _ condition: StateCondition, from start: Int?, before end: Int
    ) -> Int? {
        devices(subject).compactMap { device -> Int? in
            let entries = stateEntries[device] ?? []
            // The state of the mark's moment counts, too.
            if let start, entries.last(where: { $0.index <= start })?.state.satisfies(condition) == true {
                return min(start, end)
            }
            return entries.first { $0.index > start ?? -1 && $0.index < end && $0.state.satisfies(condition) }?.index
        }.min()
    }

    func time(of bound: Bound) -> Nanoseconds {
        switch bound {
        case .time(let time): time
        case .index(let index): index < history.entries.count ? history.entries[index].time : Nanoseconds(.max)
        }
    }

    /// Returns the longest delay that the lateness of the run can have caused at a bound.
    func delay(at bound: Bound?) -> Nanoseconds {
        if case .time(let time)? = bound { lateness.delay(from: .zero, to: time) } else { .zero }
    }

    /// Returns the result of a check that failed for `reason`, and that holds with bounds moved by `delay`: `pass` below
    /// the limit.
    func excused(
        _ reason: String, delay: Nanoseconds, limit: Nanoseconds = Verdict.hostPauseMax
    ) -> Verdict.Outcome {
        if delay < limit { return .pass }
        return .inconclusive("\(reason); but the run was late by \(TimeFormat.seconds(delay))", .lateness)
    }

    // MARK: Devices

    /// The reason a state does not satisfy a condition. Its text is needed for one state of many.
    enum Mismatch: CustomStringConvertible {
        case absent(String)
        case present(String)
        case noNote
        case unpublished(StateCondition.Check.Key)
        case values(StateCondition.Check.Key, [String])

        var description: String {
            switch self {
            case .absent(let row): "\(row) is absent"
            case .present(let row): "\(row) is present"
            case .noNote: "there is no note"
            case .unpublished(let key): "the client does not publish '\(key.rawValue)'"
            case .values(let key, let values):
                "\(key.rawValue) is \(values.map { $0.isEmpty ? "empty" : "'\($0)'" }.joined(separator: ", "))"
            }
        }
    }

    /// Returns the reason a state does not satisfy a condition; `nil` if it does.
    static func mismatch(_ state: History.DeviceState, _ condition: StateCondition) -> Mismatch? {
        var row: History.DeviceState.Row?
        if let name = condition.row {
            row = state.rows.first { $0.name == name }
            if row == nil && !condition.asksForPresence { return .absent(name) }
        }
        for check in condition.checks {
            let found: [String]
            switch check.key {
            case .present:
                let mustBePresent = (check.value == "true") != check.isNegated
                if mustBePresent != (row != nil) {
                    return row == nil ? .absent(condition.row ?? "") : .present(condition.row ?? "")
                }
                continue
            case .icon:
                // Without a note, in a condition of any device: the icons of all notes.
                found =
                    condition.row == nil
                    ? Set(state.rows.map(\.icon.rawValue)).sorted() : row.map { [$0.icon.rawValue] } ?? []
                if found.isEmpty && condition.row == nil && !check.isNegated { return .noNote }
            case .text: found = row.map { [$0.text ?? ""] } ?? []
            case .title: found = row.map { [$0.title ?? ""] } ?? []
            case .keeps: found = row?.kept ?? []
            case .pending: found = [row.map { $0.icon == .upload } ?? (state.outbox > 0) ? "true" : "false"]
            case .outbox: found = ["\(state.outbox)"]
            case .screen, .control, .dialog, .toast, .opacity, .strike, .error, .marker, .field:
                guard let values = state.publishedValues(of: check.key, row) else { return .unpublished(check.key) }
                found = values
            }
            if found.contains(check.value) == check.isNegated { return .values(check.key, found) }
        }
        return nil
    }

    /// Returns the states of a device in a window, beginning with the one in effect at its start. The state at a time
    /// is the one after all events of that time.
    ///
    /// - Parameters:
    ///   - to: The end; `nil` for that of the run.
    ///   - includesEnd: Whether a state that begins at the time of the end belongs to the window.
    private func states(_ device: String, from: Bound, to: Bound?, includesEnd: Bool) -> ArraySlice<Seen> {
        guard let entries = stateEntries[device] else { return [] }
        // A window that has an end is over when the restore phase begins.
        let end = to == nil ? history.entries.count : restoreIndex
        let start = time(of: from)
        var first = entries.firstIndex { $0.index >= end || !Self.isBefore(from, $0.index, $0.time) } ?? entries.count
        let last =
            entries[first...].firstIndex { entry in
                switch to {
                case .time(let time)?:
                    entry.index >= end || entry.time > time || (entry.time == time && !includesEnd)
                case .index(let bound)?: entry.index >= min(end, bound)
                case nil: entry.index >= end
                }
            } ?? entries.count
        // The state in effect at the start, unless the window is empty.
        var isEmpty = false
        if case .time(let time)? = to { isEmpty = time < start || (time == start && !includesEnd) }
        if first > 0, !isEmpty { first -= 1 }
        return entries[first..<last]
    }

    /// Returns whether the state of an entry begins before a window, or with it.
    private static func isBefore(_ from: Bound, _ index: Int, _ time: Nanoseconds) -> Bool {
        switch from {
        case .time(let start): time <= start
        case .index(let start): index < start
        }
    }

    private func always(_ device: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let from = condition.since.map({ effect(of: $0) }) ?? .time(.zero) else { return Self.markUnset }
        var to: Bound?
        if let until = condition.until {
            guard let bound = end(of: until) else { return Self.markUnset }
            to = bound
        }
        let outcome = always(device, condition, from: from, to: to)
        // Lateness matters only for a given start: an event that was planned before it may have happened after it.
        let delay = condition.since == nil ? .zero : delay(at: from)
        guard case .fail(let reason) = outcome, delay > .zero else { return outcome }
        switch always(device, condition, from: from.later(by: delay), to: to) {
        case .fail: return outcome
        case .pass: return excused(reason, delay: delay)
        // Nothing of the window is left after the delay.
        case .inconclusive: return excused(reason, delay: delay, limit: .zero)
        }
    }

    private func always(
        _ device: String, _ condition: StateCondition, from: Bound, to: Bound?
    ) -> Verdict.Outcome {
        let (isChecked, mismatch) = firstMismatch(device, condition, from: from, to: to)
        if let mismatch { return .fail("at \(TimeFormat.seconds(mismatch.time)) \(mismatch.reason)") }
        return isChecked ? .pass : .inconclusive("\(condition.row ?? device) was never present", .noteNotPresent)
    }

    /// Returns the devices that a condition is about: all if it is one of any device.
    private func devices(_ subject: String) -> [String] {
        subject == Scenario.anyDevice ? scenario.devices.map(\.name) : [subject]
    }

    /// Returns the first state in a window that does not satisfy a condition, and whether any state was checked. Of any
    /// device: that of every device.
    func firstMismatch(
        _ subject: String, _ condition: StateCondition, from: Bound, to: Bound?
    ) -> (isChecked: Bool, mismatch: (time: Nanoseconds, reason: String)?) {
        var isChecked = false
        var first: (time: Nanoseconds, reason: String)?
        for device in devices(subject) {
            let found = firstMismatch(of: device, condition, from: from, to: to)
            isChecked = isChecked || found.isChecked
            guard let mismatch = found.mismatch, first.map({ mismatch.time < $0.time }) ?? true else { continue }
            first = (mismatch.time, (subject == device ? "" : "\(device) ") + mismatch.reason)
        }
        return (isChecked, first)
    }

    private func firstMismatch(
        of device: String, _ condition: StateCondition, from: Bound, to: Bound?
    ) -> (isChecked: Bool, mismatch: (time: Nanoseconds, reason: String)?) {
        let states = states(device, from: from, to: to, includesEnd: false)
        func index(in state: History.DeviceState) -> Int? {
            condition.row.flatMap { name in state.rows.firstIndex { $0.name == name } }
        }
        // A note that was present before the window must not be absent in it either.
        var hasSeen = (stateEntries[device] ?? []).contains { entry in
            Self.isBefore(from, entry.index, entry.time) && (condition.row == nil || index(in: entry.state) != nil)
        }
        // A note that has not changed satisfies the condition still, unless the condition is about the device too.
        let isAboutRowOnly = condition.isAboutRowOnly
        var last: History.DeviceState.Row?
        var isChecked = false
        for seen in states {
            let row = index(in: seen.state).map { seen.state.rows[$0] }
            let hasRow = condition.row == nil || row != nil
            if !hasRow && !hasSeen && !condition.asksForPresence { continue }
            hasSeen = hasSeen || hasRow
            isChecked = true
            if isAboutRowOnly, let row, row == last { continue }
            last = row
            if let reason = Self.mismatch(seen.state, condition) {
                return (true, (max(seen.time, time(of: from)), reason.description))
            }
        }
        return (isChecked, nil)
    }

    private func sometimes(_ subject: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let from = condition.since.map({ effect(of: $0) }) ?? .time(.zero) else { return Self.markUnset }
        var to: Bound?
        if let until = condition.until {
            guard let bound = start(of: until) else { return Self.markUnset }
            to = bound
        }
        let isReached = devices(subject).contains { device in
            states(device, from: from, to: to, includesEnd: true).contains { $0.state.satisfies(condition) }
        }
        return isReached ? .pass : .inconclusive("the state was never reached", .stateNotReached)
    }

    private func eventually(
        _ subject: String, _ condition: StateCondition, _ window: Expectation.Window
    ) -> Verdict.Outcome {
        let outcomes = devices(subject).map { eventually(of: $0, condition, window) }
        if outcomes.contains(.pass) { return .pass }
        if outcomes.count == 1 { return outcomes[0] }
        let inconclusive = outcomes.first { if case .inconclusive = $0 { true } else { false } }
        return inconclusive ?? .fail("no device reached the state in time")
    }

    private func eventually(
        of device: String, _ condition: StateCondition, _ window: Expectation.Window
    ) -> Verdict.Outcome {
        let from: Bound
        let end: Nanoseconds
        switch window {
        case .by(let time): (from, end) = (.time(.zero), time)
        case .after(let mark, let within):
            guard let index = history.index(of: mark) else {
                return .inconclusive("mark '\(mark)' was never set", .markNotSet)
            }
            (from, end) = (.index(index), history.entries[index].time + within)
        }
        let seen = states(device, from: from, to: .time(end), includesEnd: true)
        if seen.contains(where: { $0.state.satisfies(condition) }) { return .pass }
        guard let last = seen.last else { return .fail("\(device) has no recorded state") }
        let reason = "at \(TimeFormat.seconds(end)) \(Self.mismatch(last.state, condition)?.description ?? "")"
        let delay = lateness.delay(from: time(of: from), to: end)
        if delay > .zero {
            let late = states(device, from: from, to: .time(end + delay), includesEnd: true)
            if late.contains(where: { $0.state.satisfies(condition) }) { return excused(reason, delay: delay) }
        }
        return .fail(reason)
    }

    func lastState(of device: String) -> History.DeviceState? {
        for entry in history.entries.reversed() {
            if case .device(device, let state) = entry.event { return state }
        }
        return nil
    }

    private func finally(_ device: String, _ condition: StateCondition) -> Verdict.Outcome {
        guard let last = lastState(of: device) else { return .fail("\(device) has no recorded state") }
        return Self.mismatch(last, condition).map { .fail("at the end \($0)") } ?? .pass
    }

    // MARK: The server

    var serverRows: [History.ServerRow]? {
        for entry in history.entries.reversed() {
            if case .server(let rows) = entry.event { return rows }
        }
        return nil
    }

    private static let serverUnread = Verdict.Outcome.inconclusive("the server's notes were not read", .serverNotRead)

    private func serverRow(_ row: String, _ revision: Int?, _ title: String?, _ text: String?) -> Verdict.Outcome {
        guard let rows = serverRows else { return Self.serverUnread }
        // The notes of several users, if a scenario gives them one name.
        let found = rows.filter { $0.name == row }
        if found.isEmpty { return .fail("the server has no \(row)") }
        for note in found {
            if let revision, note.revision != revision { return .fail("revision is \(note.revision)") }
            if let title, note.title != title { return .fail("title is '\(note.title ?? "null")'") }
            if let text, note.text != text { return .fail("text is '\(note.text ?? "null")'") }
        }
        return .pass
    }

    private func serverCount(_ count: Int) -> Verdict.Outcome {
        guard let rows = serverRows else { return Self.serverUnread }
        return rows.count == count
            ? .pass : .fail("the server has \(rows.count) \(rows.count == 1 ? "note" : "notes")")
    }

    private func agree(_ names: [String]) -> Verdict.Outcome {
        if names.contains("server") && serverRows == nil { return Self.serverUnread }
        for name in names where name != "server" && lastState(of: name) == nil {
            return .fail("\(name) has no recorded state")
        }
        guard let found = disagreement(names) else { return .pass }
        return .fail("\(found.left) and \(found.right) differ in \(found.rows.joined(separator: ", "))")
    }

    /// Returns the first two of the devices and `server` that differ at the end, with the notes that do; `nil` if all
    /// are equal, or if one was not recorded.
    func disagreement(_ names: [String]) -> (left: String, right: String, rows: [String])? {
        struct Seen: Hashable {
            let name: String
            let title: String?
            let text: String?
        }
        var sides: [(name: String, notes: Set<Seen>)] = []
        for name in names {
            if name == "server" {
                guard let rows = serverRows else { return nil }
                let accounts = DeviceAccounts(scenario, history)
                let users = Set(
                    scenario.devices.filter { names.contains($0.name) }.map { accounts.user(of: $0.name) ?? $0.user })
                let shown = rows.filter { users.isEmpty || users.contains($0.user) }
                sides.append((name, Set(shown.map { Seen(name: $0.name, title: $0.title, text: $0.text) })))
            } else {
                guard let last = lastState(of: name) else { return nil }
                let shown = last.rows.filter { !$0.isDeleted }
                sides.append((name, Set(shown.map { Seen(name: $0.name, title: $0.title, text: $0.text) })))
            }
        }
        for (left, right) in zip(sides, sides.dropFirst()) where left.notes != right.notes {
            let differing = Set(left.notes.symmetricDifference(right.notes).map(\.name)).sorted()
            return (left.name, right.name, differing)
        }
        return nil
    }
}
