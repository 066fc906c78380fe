internal import Determinism

/// The reactive entries of a workload (``Scenario/Workload/Trigger/when(device:_:delay:)``): decides which actions are due
/// after states of devices. Times count from 0 s. Has no clock.
///
/// A state triggers one action when it begins to hold, for each device and, if it is the state of any note, for each
/// note. The action is skipped if the state does not hold any more after the delay.
struct ReactiveWorkload {
    /// An action that is due, and the time at which it was planned.
    struct Due: Equatable {
        let actor: String
        let action: Scenario.Action
        let planned: Nanoseconds
    }

    /// What an entry reacts to.
    private struct Subject: Hashable {
        let entry: Int
        let device: String
        /// The note; `nil` if the state is about the device.
        let row: String?
    }

    private struct Entry {
        let workload: Scenario.Workload
        let device: String
        let condition: StateCondition
        let delay: Nanoseconds
        /// The prefix of the names of random streams.
        let stream: String
        /// The prefix of the names of new notes.
        let name: String
        /// The number of actions that were triggered.
        var count = 0
    }

    private let seed: UInt64
    private let devices: Set<String>
    private let shared: [String]
    private var entries: [Entry] = []
    /// The subjects whose state holds.
    private var holding: Set<Subject> = []
    /// Triggered actions in the order of their times.
    private var planned: [(time: Nanoseconds, subject: Subject, number: Int)] = []

    init(_ scenario: Scenario, seed: UInt64) {
        self.seed = seed
        devices = Set(scenario.devices.map(\.name))
        shared = scenario.notes.map(\.row) + (scenario.fill?.rows ?? [])
        var ordinals: [UInt64: Int] = [:]
        for workload in scenario.workload {
            guard case .when(let device, let condition, let delay) = workload.trigger else { continue }
            let ordinal = ordinals[workload.digest, default: 0]
            ordinals[workload.digest] = ordinal + 1
            entries.append(
                Entry(
                    workload: workload, device: device, condition: condition, delay: delay,
                    stream: "workload/\(workload.digest)/\(ordinal)", name: workload.rowName(ordinal: ordinal)))
        }
    }

    /// Whether an action is due now or at a known time.
    var hasPlanned: Bool { !planned.isEmpty }

    /// The time of the next action; `nil` if none is planned.
    var nextDeadline: Nanoseconds? { planned.first?.time }

    /// Records a change of a device's state.
    mutating func stateChanged(_ device: String, _ state: History.DeviceState, at time: Nanoseconds) {
        for index in entries.indices where [device, Scenario.anyDevice].contains(entries[index].device) {
            if holding.isEmpty, !Self.mayHold(state, entries[index].condition) { continue }
            let found = Set(
                Self.rows(state, entries[index].condition).map { Subject(entry: index, device: device, row: $0) })
            let begun = found.subtracting(holding)
            holding = holding.filter { $0.entry != index || $0.device != device }.union(found)
            for subject in begun.sorted(by: { ($0.row ?? "") < ($1.row ?? "") }) { plan(subject, at: time) }
        }
    }

    /// Returns `false` if a condition of any note's icon holds for no note, which is so in most states.
    private static func mayHold(_ state: History.DeviceState, _ condition: StateCondition) -> Bool {
        guard condition.row == nil else { return true }
        for check in condition.checks where check.key == .icon {
            if !state.rows.contains(where: { ($0.icon.rawValue == check.value) != check.isNegated }) { return false }
        }
        return true
    }

    private mutating func plan(_ subject: Subject, at time: Nanoseconds) {
        guard entries[subject.entry].count < Scenario.Workload.actionsMax else { return }
        entries[subject.entry].count += 1
        let due = Nanoseconds(time.count.addingSaturating(entries[subject.entry].delay.count))
        planned.insert(
            (due, subject, entries[subject.entry].count), at: planned.firstIndex { $0.time > due } ?? planned.count)
    }

    /// Returns the notes whose state satisfies a condition; `nil` stands for the device.
    private static func rows(_ state: History.DeviceState, _ condition: StateCondition) -> [String?] {
        let ofNotes: [StateCondition.Check.Key] = [.icon, .text, .title, .keeps]
        guard condition.row == nil, condition.checks.contains(where: { ofNotes.contains($0.key) }) else {
            return state.satisfies(condition) ? [condition.row] : []
        }
        if condition.checks.allSatisfy({ $0.key == .icon }) {
            return state.rows.filter { row in
                condition.checks.allSatisfy { (row.icon.rawValue == $0.value) != $0.isNegated }
            }.map(\.name)
        }
        return state.rows.filter { row in
            History.DeviceState(rows: [row], outbox: state.outbox, screen: state.screen)
                .satisfies(StateCondition(row: row.name, checks: condition.checks))
        }.map(\.name)
    }

    /// Returns the next action that is due; `nil` if there is none.
    mutating func takeDue(at now: Nanoseconds) -> Due? {
        while let next = planned.first, next.time <= now {
            planned.removeFirst()
            guard holding.contains(next.subject), let (actor, action) = action(next.subject, next.number) else {
                continue
            }
            return Due(actor: actor, action: action, planned: next.time)
        }
        return nil
    }

    /// Cancels the actions that are planned, and triggers no more.
    mutating func cancel() {
        planned = []
        entries = []
        holding = []
    }

    /// Returns the actor and the action for a state. The device itself acts if the entry names it.
    private func action(_ subject: Subject, _ number: Int) -> (actor: String, action: Scenario.Action)? {
        let entry = entries[subject.entry]
        // Of each number one action is drawn, so that a skipped one does not shift the draws of others.
        var random = RandomStream(seed: seed, "\(entry.stream)/\(subject.device)/\(subject.row ?? "")/\(number)")
        let actors = entry.workload.actors
        let drawn = actors[Int(random.integer(below: Int64(actors.count)))]
        let actor = actors.contains(subject.device) ? subject.device : drawn
        let kind = Scenario.Workload.kind(entry.workload.mix, &random)
        let choice = random.next()
        let pool = Array(shared.prefix(entry.workload.notes ?? .max))
        let row = subject.row ?? (pool.isEmpty ? nil : pool[Int(choice % UInt64(pool.count))])
        let text = "\(actor) reacts \(number)"
        switch (kind, row) {
        case (.resolve, let row?): return (actor, .choose(row: row, choice % 2 == 0 ? .mine : .theirs))
        case (.edit, let row?): return (actor, .edit(row: row, title: nil, text: text))
        case (.delete, let row?): return (actor, .delete(row: row))
        case (.create, _):
            let row = "\(entry.name)-\(number)"
            return (actor, .create(row: row, title: row, text: text))
        case (.sync, _): return devices.contains(actor) ? (actor, .sync) : nil
        case (.resolve, nil), (.edit, nil), (.delete, nil): return nil
        }
    }
}
