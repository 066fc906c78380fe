public import Determinism
internal import LinkModel

/// The beginnings and ends of phases.
extension ScenarioDirector {
    mutating func beginScriptIfPrepared() {
        guard actors.allSatisfy(\.isPrepared) else { return }
        phase = .script
        phaseDeadline = nil
        start = now
        record(.phase(.script))
        for index in actors.indices {
            guard let timeline = timelines[index] else { continue }
            actors[index].timeline = TimelineRun(
                timeline, startingAt: now, seed: seed, name: "link/\(actors[index].name)/timeline")
            applyConditions(of: index, at: .zero)
            actors[index].isRunning = true
            order(.startClient(newAct(step: nil, index, change: .start), device: actors[index].name))
        }
        plan.advance(to: .zero)
        proceed()
    }

    /// Ends the current phase, because a client repeats attempts without a delay. A restored link may stop it.
    mutating func abortPhase(_ reason: History.Reason) {
        record(.aborted(reason))
        for index in actors.indices { actors[index].attempts = AttemptLimit(scenario) }
        switch phase {
        case .script: beginRestore()
        case .restore, .quiesce: beginVerify()
        case .setup, .verify, .check, .ended: break
        }
    }

    /// Ends the run, because it cannot go on: a program has ended by itself. The expectations are evaluated.
    public mutating func abort(_ reason: String, at time: Instant) {
        advance(to: time)
        switch phase {
        case .setup: setupFailed(reason, at: time)
        case .script:
            record(.aborted(.other(reason)))
            endScript()
            beginVerify()
        case .restore, .quiesce:
            record(.aborted(.other(reason)))
            beginVerify()
        case .verify, .check, .ended: break
        }
    }

    /// Whatever of the script is left is missed.
    private mutating func endScript() {
        plan.cancel()
        reactions.cancel()
        takeMissed()
        for index in actors.indices {
            for waiting in actors[index].queue {
                if let step = waiting.step { miss(step, .scriptEnded(.waiting)) }
            }
            actors[index].queue = []
            actors[index].act = nil
            actors[index].restart = nil
        }
        for (_, act) in acts.sorted(by: { $0.key.number < $1.key.number }) {
            if let step = act.step { miss(step, .scriptEnded(.started)) }
        }
        acts = [:]
        takeMissed()
    }

    /// Begins the restore phase.
    mutating func beginRestore() {
        endScript()
        phase = .restore
        phaseDeadline = now + Self.quiesceMax
        faults.disarm()
        storedFaults.disarm()
        record(.phase(.restore))
        record(.notice(actor: History.Notice.runner, .restoresLinks))
        order(.disarmFaults)
        for index in actors.indices {
            actors[index].timeline = nil
            // The first sync of the phase ends earlier pauses.
            actors[index].signInAt = nil
            guard actors[index].device?.isRestored == true else { continue }
            let name = actors[index].name
            order(.setConditions(device: name, .clear, link: "clear"))
            setInterface(of: index, Interface(isUp: true, kind: .wifi))
            record(.network(device: name, link: "clear", isOnline: true))
            if !actors[index].isRunning {
                actors[index].isRunning = true
                order(.startClient(newAct(step: nil, index, change: .start), device: name))
            }
        }
        proceed()
    }

    mutating func beginRound() {
        if phase == .restore {
            phase = .quiesce
            record(.phase(.quiesce))
        }
        round += 1
        for index in actors.indices where actors[index].mustConverge {
            actors[index].isSettled = false
            order(.perform(newAct(step: nil, index), actor: actors[index].name, .sync))
        }
        // Without devices there is nothing to wait for.
        proceed()
    }

    mutating func beginVerify() {
        phase = .verify
        acts = [:]
        for index in actors.indices { actors[index].act = nil }
        phaseDeadline = now + Self.verifyMax
        record(.phase(.verify))
        order(.readServer)
    }

    mutating func beginProve() {
        phase = .ended
        phaseDeadline = nil
        record(.phase(.check))
        record(.phase(.ended))
        order(.end(setupFailure: nil))
    }

    mutating func limitReached() {
        // The run is not aborted if all that is left are steps that wait for a state of a device.
        let waitsForStatesOnly = !hasTimedSteps && !plan.isFinished && hasNoWork && !isOpen
        if !waitsForStatesOnly { record(.aborted(.limitExceeded(scenario.limit))) }
        beginRestore()
    }

    /// Whether nothing is outstanding: besides ``hasNoWork``, no attempt to connect.
    var isQuiet: Bool { hasNoWork && strayWrites.isEmpty && dials.isEmpty && !actors.contains(where: \.isBusy) }

    /// Whether no act, exchange or change of a link is outstanding.
    var hasNoWork: Bool {
        exchanges.isEmpty && hasAllChanges
            && actors.allSatisfy { $0.act == nil && $0.queue.isEmpty && $0.restart == nil }
    }

    /// Whether a program that acts on its own has neither ended nor been silent for long: its first request may follow.
    private var hasProgramAtWork: Bool {
        actors.contains { isSilent($0) && !$0.isSettled }
    }

    /// Whether every entry of every network has begun.
    var hasAllChanges: Bool { start.map { now >= $0 + lastChange } ?? false }

    /// Whether an expectation whose window has an end can still be decided.
    var isOpen: Bool { openEnd != nil }

    /// The time at which the first open window is over; `nil` if none is open. A program without an adapter may send
    /// something at any time.
    var openEnd: Nanoseconds? {
        open.nextEnd(lateness) { name in hasWork(name) || actorIndex[name].map { isSilent(actors[$0]) } ?? false }
    }

    /// Whether an actor does not tell whether it has something to send: a program without an adapter that runs.
    private func isSilent(_ actor: Actor) -> Bool { actor.isRunning && actor.device?.client.actsOnItsOwn == true }

    /// The time until which expectations without an end may prolong the script; `nil` if something else is planned.
    var undecidedEnd: Instant? {
        guard let start, let playedSince else { return nil }
        let left = max(.zero, start + scenario.limit - playedSince)
        return playedSince + min(Self.undecidedMax, Nanoseconds(left.count / 2))
    }

    /// Whether an expectation without an end is undecided and may prolong the script.
    private var isUndecided: Bool {
        if let end = undecidedEnd, now >= end { return false }
        return open.isUndecided(hasWork: { hasWork($0) }, isRunning: { isRunning($0) })
    }

    private func isRunning(_ name: String) -> Bool {
        guard let index = actorIndex[name] else { return false }
        return actors[index].device != nil && actors[index].isRunning
    }

    func hasWork(_ name: String) -> Bool {
        guard isRunning(name), let index = actorIndex[name] else { return false }
        return !actors[index].isSettled
    }

    /// Starts acts that are due, and the next phase if the current one is complete.
    mutating func proceed(_ actual: Instant? = nil) {
        switch phase {
        case .script:
            if !strayWrites.isEmpty { strayWrites = strayWrites.filter { $0.value > now } }
            startActs(actual ?? now)
            guard phase == .script else { return }
            playedSince = hasTimedSteps || !hasAllChanges ? nil : playedSince ?? now
            let isPlayed = plan.isFinished && !reactions.hasPlanned && !isOpen && !isUndecided || hasOnlyPolls
            let isComplete = isQuiet && !hasProgramAtWork && isPlayed
            quietSince = isComplete ? quietSince ?? now : nil
            if let quietSince, now - quietSince >= Self.quietMin { return beginRestore() }
            // Nothing can change what is left: no step or change of a link has a known time, and the world is idle.
            if isIdle && !hasTimedSteps && hasAllChanges && nextChange == nil { beginRestore() }
        case .restore:
            if actors.allSatisfy({ $0.act == nil }) { beginRound() }
        case .quiesce:
            // The start of a client that does not run has failed.
            if !actors.contains(where: { $0.mustConverge && !$0.hasConverged }) {
                if round < Self.quiesceRounds { beginRound() } else { beginVerify() }
            } else if isIdle {
                for actor in actors where actor.mustConverge && !actor.hasConverged {
                    record(.aborted(.notConverged(actor.name, within: nil)))
                }
                beginVerify()
            }
        case .setup, .verify, .check, .ended: break
        }
    }

    /// Whether polls are all that happens: no step or change of a link has a known time, and no client has anything to
    /// send, or can learn anything from the server. Steps and expectations that wait for a state then wait in vain.
    private var hasOnlyPolls: Bool {
        !hasTimedSteps && nextChange == nil
            && actors.indices.allSatisfy {
                actors[$0].device == nil || !actors[$0].isRunning
                    || actors[$0].isSettled && knowledge.isCurrent($0)
            } && !(actors.contains { isSilent($0) } && (isOpen || isUndecided))
    }

    /// Whether a step, a reaction of the workload or the restart of a client is due now or at a known time.
    private var hasTimedSteps: Bool {
        plan.hasTimedSteps || reactions.hasPlanned || actors.contains { $0.restart != nil }
    }

    var nextChange: Instant? { actors.compactMap { $0.timeline?.nextDeadline }.min() }

    mutating func phaseTimedOut() {
        switch phase {
        case .setup:
            let waiting = actors.filter { !$0.isPrepared }.map(\.name).joined(separator: ", ")
            setupFailed(
                "\(waiting) did not complete the first sync within \(TimeFormat.short(Self.setupMax))", at: now)
        case .restore, .quiesce:
            for actor in actors where actor.device?.isRestored == true && !(actor.isSettled && actor.act == nil) {
                record(.aborted(.notConverged(actor.name, within: Self.quiesceMax)))
            }
            beginVerify()
        case .verify: beginProve()
        case .script, .check, .ended: break
        }
    }
}
