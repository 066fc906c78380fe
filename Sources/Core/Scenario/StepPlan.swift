internal import Determinism

/// The state machine of a scenario's steps: decides which steps are due, and which can no longer be. Times count from
/// 0 s. Has no clock.
struct StepPlan {
    /// A step that is due, and the time at which it was planned.
    struct Due: Equatable {
        let step: Int
        let planned: Nanoseconds
    }

    /// A step that will not be performed.
    struct Missed: Equatable {
        let step: Int
        let reason: History.Reason
    }

    private let steps: [Scenario.Step]
    /// Steps at fixed times, and steps whose mark is set, in the order of their times.
    private var timed: [Due]
    private var waitingForMark: [String: [Int]] = [:]
    /// Steps that wait for a state, in the order of the file.
    private var waitingForState: [Int] = []
    private var due: [Due] = []
    private var missed: [Missed] = []
    private var setMarks: Set<String> = []
    /// The number of steps that can still set each mark.
    private var setters: [String: Int] = [:]
    private var states: [String: History.DeviceState] = [:]
    /// The times of the marks that are set.
    private var markTimes: [String: Nanoseconds] = [:]
    private var isCancelled = false

    init(_ scenario: Scenario) {
        steps = scenario.steps
        timed = []
        for (index, step) in steps.enumerated() {
            if let mark = step.mark { setters[mark, default: 0] += 1 }
            switch step.trigger {
            case .at(let time): timed.append(Due(step: index, planned: time))
            case .after(let mark, _): waitingForMark[mark, default: []].append(index)
            case .when: waitingForState.append(index)
            }
        }
        timed.sort { ($0.planned, $0.step) < ($1.planned, $1.step) }
        for (index, step) in steps.enumerated() {
            guard let mark = step.awaitedMark, setters[mark] == nil else { continue }
            if case .after = step.trigger, waitingForMark[mark]?.contains(index) != true { continue }
            waitingForMark[mark]?.removeAll { $0 == index }
            waitingForState.removeAll { $0 == index }
            miss(index, .markUnknown(mark))
        }
    }

    /// Whether no step is left: each was taken, or can no longer be due.
    var isFinished: Bool {
        !hasTimedSteps && waitingForState.isEmpty && waitingForMark.allSatisfy { $0.value.isEmpty }
    }

    /// Whether a step is due now or at a known time.
    var hasTimedSteps: Bool { !timed.isEmpty || !due.isEmpty }

    /// Whether ``takeDue()`` returns a step.
    var isDue: Bool { !due.isEmpty }

    /// The time of the next ``advance(to:)``; `nil` if no step has a known time.
    var nextDeadline: Nanoseconds? {
        var next = timed.first?.planned
        for step in waitingForState {
            // The window includes its end.
            guard let end = end(step).map({ $0 + Nanoseconds(1) }) else { continue }
            next = next.map { min($0, end) } ?? end
        }
        return next
    }

    /// Returns the time by which the state of a step must be reached; `nil` while its mark is not set.
    private func end(_ step: Int) -> Nanoseconds? {
        guard case .when(_, _, let within) = steps[step].trigger else { return Nanoseconds(.max) }
        guard let mark = steps[step].since else { return within }
        return markTimes[mark].map { $0 + within }
    }

    // MARK: Inputs

    /// Records that a mark was set; only the first time counts.
    mutating func markSet(_ mark: String, at time: Nanoseconds) {
        guard setMarks.insert(mark).inserted else { return }
        markTimes[mark] = time
        for step in waitingForMark.removeValue(forKey: mark) ?? [] {
            guard case .after(_, let delay) = steps[step].trigger else { continue }
            let entry = Due(step: step, planned: time + delay)
            let index = timed.firstIndex { ($0.planned, $0.step) > (entry.planned, entry.step) } ?? timed.count
            timed.insert(entry, at: index)
        }
        // The state may hold already.
        checkStates(at: time)
    }

    /// Records that a step has not taken effect and never will, so that it does not set its mark.
    mutating func stepLost(_ step: Int) {
        var lost = [step]
        while let step = lost.popLast() {
            guard let mark = steps[step].mark, let count = setters[mark] else { continue }
            setters[mark] = count - 1
            guard count == 1, !setMarks.contains(mark) else { continue }
            for waiting in waitingForMark.removeValue(forKey: mark) ?? [] {
                missed.append(Missed(step: waiting, reason: .markNotSet(mark)))
                lost.append(waiting)
            }
            for waiting in waitingForState where steps[waiting].since == mark {
                missed.append(Missed(step: waiting, reason: .markNotSet(mark)))
                lost.append(waiting)
            }
            waitingForState.removeAll { steps[$0].since == mark }
        }
    }

    /// Records a change of a device's state.
    mutating func stateChanged(_ device: String, _ state: History.DeviceState, at time: Nanoseconds) {
        states[device] = state
        checkStates(at: time)
    }

    /// Advances the time; due at ``nextDeadline``.
    mutating func advance(to now: Nanoseconds) {
        let count = timed.prefix { $0.planned <= now }.count
        due += timed.prefix(count)
        timed.removeFirst(count)
        let waiting = waitingForState
        waitingForState = waiting.filter { step in end(step).map { now <= $0 } ?? true }
        for step in waiting where end(step).map({ now > $0 }) ?? false {
            guard case .when(let device, let condition, let end) = steps[step].trigger else { continue }
            miss(step, .stateNotReached(device: device, condition, within: end))
        }
    }

    /// Triggers steps whose state is reached.
    mutating func checkStates(at now: Nanoseconds) {
        if isCancelled { return }
        var rest: [Int] = []
        for step in waitingForState {
            guard case .when(let device, let condition, _) = steps[step].trigger else { continue }
            let isReached = states.contains { isSubject($0.key, device) && $0.value.satisfies(condition) }
            if let end = end(step), now <= end, isReached {
                due.append(Due(step: step, planned: now))
            } else {
                rest.append(step)
            }
        }
        waitingForState = rest
    }

    /// Returns whether a device is one that a condition is about.
    private func isSubject(_ device: String, _ subject: String) -> Bool {
        subject == device || subject == Scenario.anyDevice
    }

    /// Cancels the steps that are left: all are missed.
    mutating func cancel() {
        isCancelled = true
        for entry in due + timed { miss(entry.step, .scriptEnded(.planned)) }
        for step in waitingForState {
            guard case .when(let device, let condition, _) = steps[step].trigger else { continue }
            miss(step, .stateNotReached(device: device, condition, within: nil))
        }
        due = []
        timed = []
        waitingForState = []
        for (index, step) in steps.enumerated() {
            guard case .after(let mark, _) = step.trigger,
                waitingForMark[mark]?.contains(index) == true
            else { continue }
            missed.append(Missed(step: index, reason: .markNotSet(mark)))
        }
        waitingForMark = [:]
    }

    private mutating func miss(_ step: Int, _ reason: History.Reason) {
        missed.append(Missed(step: step, reason: reason))
        stepLost(step)
    }

    // MARK: Outputs

    /// Returns the next step that is due; `nil` if there is none.
    mutating func takeDue() -> Due? { due.isEmpty ? nil : due.removeFirst() }

    /// Returns the next step that was missed; `nil` if there is none.
    mutating func takeMissed() -> Missed? { missed.isEmpty ? nil : missed.removeFirst() }
}

extension Scenario.Step {
    /// The mark that must be set before the step can be due; `nil` for none.
    var awaitedMark: String? {
        switch trigger {
        case .at: nil
        case .after(let mark, _): mark
        case .when: since
        }
    }
}
