public import Determinism
internal import LinkModel

/// Changes of links, and steps.
extension ScenarioDirector {
    // MARK: Links

    mutating func applyConditions(of index: Int, at time: Nanoseconds) {
        guard let device = actors[index].device, let run = actors[index].timeline else { return }
        let isSignalled = actors[index].signalling.update(
            device, isOutage: run.conditions.canBeSignalled, at: time, seed: seed)
        let isUp = !(run.conditions.canBeSignalled && isSignalled)
        let kind = device.network.last { $0.start <= time && $0.interface != nil }?.interface
        order(.setConditions(device: device.name, run.conditions, link: run.name))
        setInterface(of: index, Interface(isUp: isUp, kind: kind ?? .wifi))
        record(.network(device: device.name, link: run.name, isOnline: isUp))
    }

    /// Tells a device's client of its interface, if it has changed.
    mutating func setInterface(of index: Int, _ interface: Interface) {
        guard let device = actors[index].device, actors[index].interface != interface else { return }
        let kindHasChanged = (actors[index].interface?.kind ?? .wifi) != interface.kind
        actors[index].interface = interface
        if kindHasChanged { record(.notice(actor: device.name, .usesInterface(interface.kind))) }
        order(.setInterface(device: device.name, isUp: interface.isUp, interface.kind))
        record(.interface(device: device.name, isUp: interface.isUp, isMetered: interface.kind == .cellular))
    }

    // MARK: Steps

    mutating func set(_ mark: String, at time: Instant) {
        guard let start else { return }
        record(.mark(mark))
        plan.markSet(mark, at: time - start)
        open.markSet(mark, at: time - start)
        plan.advance(to: now - start)
    }

    mutating func miss(_ step: Int, _ reason: History.Reason) {
        if !skip(step, reason) { record(.missed(step: step, reason)) }
        plan.stepLost(step)
    }

    mutating func fail(_ step: Int, _ reason: History.Reason) {
        if !skip(step, reason) { record(.stepFailed(step, reason, at: scenario.steps[step].location)) }
        plan.stepLost(step)
    }

    /// Records that an optional step is not performed; returns whether the step is optional.
    private mutating func skip(_ step: Int, _ reason: History.Reason) -> Bool {
        guard scenario.steps[step].isOptional else { return false }
        if let actor = scenario.steps[step].action?.actor { record(.notice(actor: actor, .skipped(reason))) }
        return true
    }

    /// Starts the killed clients again whose time has come.
    mutating func startKilledClients(at time: Instant) {
        for index in actors.indices {
            guard let restart = actors[index].restart, restart <= time else { continue }
            actors[index].restart = nil
            if phase != .script || actors[index].isRunning { continue }
            actors[index].isRunning = true
            record(.action(actor: actors[index].name, .start))
            order(.startClient(newAct(step: nil, index, change: .start), device: actors[index].name))
        }
    }

    /// Performs an act of a device's user that the scenario does not have, after the acts that the device has begun. An act
    /// that is not possible has no consequences. Returns whether the act will be performed: the script phase has not ended,
    /// and the device's client runs.
    public mutating func userActs(_ device: String, _ action: Scenario.Action, at time: Instant) -> Bool {
        advance(to: time)
        guard phase == .script, let start, let index = actorIndex[device], actors[index].isRunning else { return false }
        actors[index].queue.append(WaitingAction(step: nil, action: action, planned: now - start))
        isIdle = false
        startNext(of: index, start, now)
        return true
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
            while let due = reactions.takeDue(at: now - start) {
                guard let index = actorIndex[due.actor], actors[index].isRunning else { continue }
                actors[index].queue.append(WaitingAction(step: nil, action: due.action, planned: due.planned))
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
        let waiting = WaitingAction(step: due.step, action: action, planned: due.planned)
        guard action == .kill || action == .signOut else { return actors[index].queue.append(waiting) }
        // A kill waits for nothing: that is its purpose.
        guard actors[index].isRunning else { return fail(due.step, .notRunning(name)) }
        giveUp(index)
        giveUpActs(index)
        recordStart(of: waiting, name, start, actual)
        order(.killClient(newAct(step: due.step, index, change: .stop), device: name, atOnce: false))
    }

    mutating func recordStart(of waiting: WaitingAction, _ name: String, _ start: Instant, _ actual: Instant) {
        recordLateness(planned: start + waiting.planned, actual)
        if let step = waiting.step { record(.step(step)) }
        record(.action(actor: name, waiting.action))
    }

    /// Starts the next act of an actor; the acts of an actor follow one another.
    mutating func startNext(of index: Int, _ start: Instant, _ actual: Instant) {
        while actors[index].act == nil, !actors[index].queue.isEmpty {
            // Actions of a client that will start by itself wait for that.
            if let next = actors[index].queue.first, actors[index].restart != nil, !next.action.startsClient { break }
            let waiting = actors[index].queue.removeFirst()
            let name = actors[index].name
            if case .start = waiting.action {
                guard !actors[index].isRunning else {
                    if let step = waiting.step { fail(step, .runningAlready(name)) }
                    continue
                }
                actors[index].isRunning = true
                actors[index].restart = nil
                recordStart(of: waiting, name, start, actual)
                order(.startClient(newAct(step: waiting.step, index, change: .start), device: name))
            } else {
                var isUpgrade = false
                // The client starts again: another version of it, or that of another user.
                switch waiting.action {
                case .upgrade, .signIn: isUpgrade = true
                default: break
                }
                guard actors[index].isRunning || isUpgrade else {
                    if let step = waiting.step { fail(step, .notRunning(name)) }
                    continue
                }
                actors[index].isRunning = true
                actors[index].restart = nil
                // The action makes work.
                actors[index].isSettled = false
                recordStart(of: waiting, name, start, actual)
                let act = newAct(
                    step: waiting.step, index, change: isUpgrade ? .replace : nil, isReaction: waiting.step == nil)
                order(.perform(act, actor: name, waiting.action))
            }
        }
    }
}
