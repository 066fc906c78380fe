internal import Client
internal import Scenario

/// Acts of the user that change no note: opening a screen, and replacing the client.
extension Device {
    /// Opens a note, or the list, from the store.
    func open(_ row: String?, _ finish: @escaping (String?) -> Void) throws(ActionError) {
        guard isRunning else {
            waitingActs.append { [self] in
                do throws(ActionError) { try open(row, finish) } catch { finish(error.description) }
            }
            return
        }
        var record: RecordID?
        if let row {
            let found = try UserChange.record(row, world.recorder) { isKnown($0) }
            guard value({ $0.engine.sync.row(found) }) != nil else { throw ActionError("\(name) does not show \(row)") }
            record = found
        }
        view.open(record)
        recordView()
        finishAct(finish)
    }

    /// Replaces the client by another version, which opens the same store.
    func upgrade(to number: Int, _ finish: @escaping (String?) -> Void) throws(ActionError) {
        let next = try StoreVersions.version(number)
        if isRunning {
            kill()
            world.record(.stopped(device: name))
        }
        version = next
        do {
            if next > store.version { try store.migrate(upgradeIDs) }
        } catch {
            throw ActionError("the store cannot be migrated: \(error)")
        }
        if let refusal = start() {
            world.record(.notice(actor: name, refusal))
            finish(nil)
            return world.refused(self)
        }
        world.record(.started(device: name))
        finishAct(finish)
        let acts = waitingActs
        waitingActs = []
        for act in acts { act() }
    }
}
