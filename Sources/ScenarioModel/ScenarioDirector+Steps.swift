internal import Determinism
internal import LinkModel

/// Changes of links, and steps.
extension ScenarioDirector {
    // MARK: Links

    mutating func applyConditions(of index: Int, at time: Nanoseconds) {
        guard let device = actors[index].device, let run = actors[index].timeline else { return }
        let isSignalled = device.network.last { $0.start <= time }?.isSignalled ?? true
        let isUp = !(run.conditions.isOutage && isSignalled)
        order(.setConditions(device: device.name, run.conditions, link: run.name))
        if actors[index].isInterfaceUp != isUp { order(.setInterface(device: device.name, isUp: isUp)) }
        actors[index].isInterfaceUp = isUp
        record(.network(device: device.name, link: run.name, isOnline: isUp))
    }

    // MARK: Steps

    mutating func set(_ mark: String, at time: Instant) {
        guard let start else { return }
        record(.mark(mark))
        plan.markSet(mark, at: time - start)
        open.markSet(mark, at: time - start)
        plan.advance(to: now - start)
    }

    mutating func miss(_ step: Int, _ reason: String) {
        record(.missed(step: step, reason))
        plan.stepLost(step)
    }

    mutating func fail(_ step: Int, _ reason: String) {
        record(.stepFailed(step, "\(scenario.steps[step].location): \(reason)"))
        plan.stepLost(step)
    }

    mutating func takeMissed() {
        while let missed = plan.takeMissed() { record(.missed(step: missed.step, missed.reason)) }
    }

    mutating func startActs(_ actual: Instant) {
        guard let start else { return }
        while true {
            while let due = plan.takeDue() {
                begin(due, start, actual)
                if let name = scenario.steps[due.step].action?.actor, let index = actorIndex[name] {
                    startNext(of: index, start, actual)
                }
            }
            for index in actors.indices { startNext(of: index, start, actual) }
            takeMissed()
            // A mark without an action can trigger further steps.
            if !plan.isDue { break }
        }
    }

    mutating func begin(_ due: StepPlan.Due, _ start: Instant, _ actual: Instant) {
        let step = scenario.steps[due.step]
        guard let (name, action) = step.action, let index = actorIndex[name] else {
            recordLateness(planned: start + due.planned, actual)
            if let mark = step.mark { set(mark, at: actual) }
            return
        }
        guard case .kill = action else { return actors[index].queue.append(due) }
        // A kill waits for nothing: that is its purpose.
        guard actors[index].isRunning else { return fail(due.step, "\(name) is not running") }
        for waiting in actors[index].queue { miss(waiting.step, "\(name) was killed before the action started") }
        actors[index].queue = []
        if let id = actors[index].act, let act = acts.removeValue(forKey: id), let unfinished = act.step {
            miss(unfinished, "\(name) was killed before the action had taken effect")
        }
        actors[index].isRunning = false
        actors[index].isBusy = false
        actors[index].isSettled = false
        exchanges = exchanges.filter { $0.value != index }
        dials = dials.filter { $0.value != index }
        if actors[index].device != nil { knowledge.stopped(index) }
        recordStart(of: due, name, action, start, actual)
        order(.killClient(newAct(step: due.step, index, change: .stop), device: name))
    }

    mutating func recordStart(
        of due: StepPlan.Due, _ name: String, _ action: Scenario.Action, _ start: Instant, _ actual: Instant
    ) {
        recordLateness(planned: start + due.planned, actual)
        record(.step(due.step))
        record(.action(actor: name, action.description))
    }

    /// Starts the next act of an actor; the acts of an actor follow one another.
    mutating func startNext(of index: Int, _ start: Instant, _ actual: Instant) {
        while actors[index].act == nil, !actors[index].queue.isEmpty {
            let due = actors[index].queue.removeFirst()
            let name = actors[index].name
            guard let action = scenario.steps[due.step].action?.action else { continue }
            if case .start = action {
                guard !actors[index].isRunning else {
                    fail(due.step, "\(name) is running already")
                    continue
                }
                actors[index].isRunning = true
                recordStart(of: due, name, action, start, actual)
                order(.startClient(newAct(step: due.step, index, change: .start), device: name))
            } else {
                guard actors[index].isRunning else {
                    fail(due.step, "\(name) is not running")
                    continue
                }
                // The action makes work.
                actors[index].isSettled = false
                recordStart(of: due, name, action, start, actual)
                order(.perform(newAct(step: due.step, index), actor: name, action))
            }
        }
    }
}
