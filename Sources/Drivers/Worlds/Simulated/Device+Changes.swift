internal import Client
internal import Determinism
internal import Scenario

/// Acts of the user.
extension Device {
    /// Drops acts that wait for a restart: the client was killed by the scenario.
    func dropWaitingActs() { waitingActs = [] }

    /// Performs an action and calls `finish` when it has taken effect, with the reason if it is an error.
    func perform(_ action: Scenario.Action, finish: @escaping (String?) -> Void) {
        if isApp { return performAppAct(action, finish) }
        do throws(ActionError) {
            switch action {
            case .clock(let shift):
                wallShift = wallShift + shift
                return finishAct(finish)
            case .send(let request): return try send(request) { [self] in finishAct(finish) }
            case .open(let row): return try open(row, finish)
            case .upgrade(let version): return try upgrade(to: version, finish)
            default: break
            }
            let date = Server.date(at: world.now + wallShift)
            let change = try UserChange(
                action, world.recorder, ids: ids, date: date, isKnown: { isKnown($0) })
            // A note has its name before it is visible.
            if let change, let record = change.newRecord { world.assign(row: change.row, to: record.text) }
            make(change, finish)
        } catch {
            finish(error.description)
        }
    }

    /// Returns whether the client that runs has a record.
    func isKnown(_ record: RecordID) -> Bool { value { $0.engine.sync.record(record) } != nil }

    /// Makes a change, or a request to sync if there is none; after the restart of a killed client, if it must.
    func make(_ change: UserChange?, _ finish: @escaping (String?) -> Void) {
        guard isRunning else {
            waitingActs.append { [self] in make(change, finish) }
            return
        }
        hasCommitted = false
        do {
            if let change {
                try make(change)
            } else {
                machine?.change(at: world.now) { engine, now in engine.syncRequested(at: now) }
                settle()
            }
        } catch {
            return finish("\(error)")
        }
        // Killed before the commit: the user repeats the action.
        if !isRunning, !hasCommitted, change != nil {
            waitingActs.append { [self] in make(change, finish) }
            return
        }
        finishAct(finish)
    }

    /// Ends an act. The director expects a report after it, even if the state is the one reported before.
    func finishAct(_ finish: (String?) -> Void) {
        wasSettled = nil
        finish(nil)
        reportSettled()
    }

    func make(_ change: UserChange) throws {
        let kept = try machine?.change(at: world.now) { engine, now in try change.apply(to: &engine, at: now) }
        // A note that is restored under another identifier has its name before it is visible.
        if let kept, kept != change.record {
            world.assign(row: change.row, to: kept.text)
            view.renamed(change.record, to: kept)
        }
        settle()
        if hasCommitted, change.isAccepted { world.record(.accepted(device: name, row: change.row)) }
    }
}
