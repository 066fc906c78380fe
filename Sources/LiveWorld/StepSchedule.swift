internal import Determinism
internal import ScenarioModel

/// The state machine of a scenario's steps: decides which steps are due. Has no clock.
struct StepSchedule {
    private let limit: Nanoseconds
    private var waiting: [Scenario.Step]
    private var due: [Scenario.Step] = []
    private var marks: [String: Nanoseconds] = [:]
    private var states: [String: History.DeviceState] = [:]
    /// Marks of steps whose trigger can no longer occur.
    private var missedMarks: Set<String> = []

    init(_ scenario: Scenario) {
        limit = scenario.limit
        waiting = scenario.steps
    }

    /// Whether no step is left: each was taken, or its trigger can no longer occur.
    var isFinished: Bool { waiting.isEmpty && due.isEmpty }

    /// The time of the next ``advance(to:)``; `nil` if no step is waiting.
    var nextDeadline: Nanoseconds? { waiting.map { deadline(of: $0) }.min() }

    private func deadline(of step: Scenario.Step) -> Nanoseconds {
        switch step.trigger {
        case .at(let time): min(time, limit)
        case .after(let mark, let delay): min(marks[mark].map { $0 + delay } ?? limit, limit)
        // The window includes its end.
        case .when(_, _, let within): min(within + Nanoseconds(1), limit)
        }
    }

    // MARK: Inputs

    /// A mark was set; only the first time counts.
    mutating func markSet(_ mark: String, at time: Nanoseconds) {
        if marks[mark] == nil { marks[mark] = time }
        advance(to: time)
    }

    /// A device's state has changed.
    mutating func stateChanged(_ device: String, _ state: History.DeviceState, at time: Nanoseconds) {
        states[device] = state
        advance(to: time)
    }

    /// Advances the time; due at ``nextDeadline``.
    mutating func advance(to now: Nanoseconds) {
        var hasChanged = true
        while hasChanged {
            hasChanged = false
            // Steps that wait for a missed mark are missed too.
            var rest: [Scenario.Step] = []
            for step in waiting {
                switch condition(of: step, at: now) {
                case .waiting: rest.append(step)
                case .due: due.append(step)
                case .missed:
                    if let mark = step.mark { missedMarks.insert(mark) }
                    hasChanged = true
                }
            }
            waiting = rest
        }
    }

    /// Returns the next step that is due; `nil` if there is none.
    mutating func takeAction() -> Scenario.Step? { due.isEmpty ? nil : due.removeFirst() }

    private enum Condition { case waiting, due, missed }

    private func condition(of step: Scenario.Step, at now: Nanoseconds) -> Condition {
        if now >= limit { return .missed }
        switch step.trigger {
        case .at(let time): return now >= time ? .due : .waiting
        case .after(let mark, let delay):
            if let time = marks[mark] { return now >= time + delay ? .due : .waiting }
            return missedMarks.contains(mark) ? .missed : .waiting
        case .when(let device, let condition, let within):
            if states[device]?.satisfies(condition) ?? false { return .due }
            return now > within ? .missed : .waiting
        }
    }
}
