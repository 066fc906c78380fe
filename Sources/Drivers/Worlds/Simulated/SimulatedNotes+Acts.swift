internal import Client
internal import Determinism
internal import Scenario

/// Acts of the user.
extension SimulatedNotes {
    func perform(_ action: Scenario.Action, on device: SimulatedDevice, _ finish: @escaping (String?) -> Void) {
        let world = device.world
        do throws(ActionError) {
            switch action {
            case .send(let request): return try device.send(request) { device.finishAct(finish) }
            case .open(let row): return open(row, on: device, finish)
            case .upgrade(let version): return try upgrade(to: version, on: device, finish)
            default: break
            }
            let date = Server.date(at: world.now + device.wallShift)
            let change = try UserChange(
                action, world.recorder, ids: device.ids, date: date, isKnown: { isKnown($0) })
            // A note has its name before it is visible.
            if let change, let record = change.newRecord { world.assign(row: change.row, to: record.text) }
            make(change, on: device, finish)
        } catch {
            finish(error.description)
        }
    }

    /// Returns whether the client that runs has a record.
    private func isKnown(_ record: RecordID) -> Bool { value { $0.engine.sync.record(record) != nil } ?? false }

    /// Makes a change, or a request to sync if there is none.
    private func make(_ change: UserChange?, on device: SimulatedDevice, _ finish: @escaping (String?) -> Void) {
        device.whenRunning { [self] in
            device.hasCommitted = false
            do {
                if let change {
                    userCommit = .pending
                    defer { userCommit = nil }
                    try make(change, on: device)
                    if userCommit == .undone { return finish(StoreDisk.fullReason) }
                } else {
                    process?.machine.change(at: device.world.now) { sync, now in sync.syncRequested(at: now) }
                    device.settle()
                }
            } catch {
                return finish("\(error)")
            }
            // Killed before the commit: the user repeats the action.
            if !device.isRunning, !device.hasCommitted, change != nil { return make(change, on: device, finish) }
            device.whenStored(finish) {
                if let change, device.hasCommitted, change.isAccepted {
                    device.world.record(.accepted(device: device.name, row: change.row))
                }
                device.finishAct(finish)
            }
        }
    }

    private func make(_ change: UserChange, on device: SimulatedDevice) throws {
        let world = device.world
        let kept = try process?.machine.change(at: world.now) { sync, now in try change.apply(to: &sync, at: now) }
        // A note that is restored under another identifier has its name before it is visible.
        if let kept, kept != change.record {
            world.assign(row: change.row, to: kept.text)
            view.renamed(change.record, to: kept)
        }
        device.settle()
    }

    /// Opens a note, or the list, from the store.
    private func open(_ row: String?, on device: SimulatedDevice, _ finish: @escaping (String?) -> Void) {
        device.whenRunning { [self] in
            do throws(ActionError) {
                var record: RecordID?
                if let row {
                    let found = try UserChange.record(row, device.world.recorder) { isKnown($0) }
                    guard value({ $0.engine.sync.row(found) != nil }) == true else {
                        throw ActionError("\(device.name) does not show \(row)")
                    }
                    record = found
                }
                view.open(record)
            } catch {
                return finish(error.description)
            }
            device.recordView()
            device.finishAct(finish)
        }
    }

    /// Replaces the client by another version, which opens the same store.
    private func upgrade(
        to number: Int, on device: SimulatedDevice, _ finish: @escaping (String?) -> Void
    ) throws(ActionError) {
        let world = device.world
        let next = try StoreVersions.version(number)
        if device.isRunning {
            device.kill()
            world.record(.stopped(device: device.name))
        }
        version = next
        do {
            if next > store.version { try store.migrate(upgradeIDs) }
        } catch {
            throw ActionError("the store cannot be migrated: \(error)")
        }
        if let refusal = device.start() {
            world.record(.notice(actor: device.name, refusal))
            finish(nil)
            return world.refused(device)
        }
        world.record(.started(device: device.name))
        device.finishAct(finish)
        device.performWaitingActs()
    }
}
