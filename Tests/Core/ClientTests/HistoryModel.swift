import Client
import Determinism
import NotesContract
import NotesService
import Wire

/// The plain reference of a history: what each user did and saw, and what may therefore be on the server.
///
/// Each text is unique, unless a user writes the other's text on purpose, so that a text names the act that wrote it.
final class HistoryModel {
    enum Kind: String { case create, edit, delete, resolve, dismiss }

    /// A change by a user that the client has accepted.
    struct Act {
        let number: Int
        let at: Instant
        let device: String
        let id: RecordID
        let kind: Kind
        /// The text that the note has after it; `nil` if it is deleted.
        let text: String?
        /// The texts of the note that the device had shown before.
        let seen: Set<String>
    }

    private unowned let world: World
    private(set) var acts: [Act] = []
    private var seen: [String: [RecordID: Set<String>]] = [:]
    private var bases: [String: [RecordID: RecordRevision]] = [:]
    private(set) var violations: [String] = []

    /// Whether the devices resolve conflicts without their users. What a user has written may then be merged with, or
    /// replaced by, what another user has.
    private let resolvesConflicts: Bool

    init(_ world: World, resolvesConflicts: Bool = false) {
        self.world = world
        self.resolvesConflicts = resolvesConflicts
    }

    private var server: WorldServer { world.server }
    /// Whether the server names operations and keeps tombstones.
    private var hasOperations: Bool { server.contract != .orig }

    func report(_ text: String) {
        if violations.count < 10 { violations.append("\(world.now.sinceStart.inSeconds) s: \(text)") }
    }

    // MARK: Observation

    func observe(_ device: Device) {
        device.onShow = { [unowned self, unowned device] change in
            for row in change.rows { self.show(row, on: device) }
        }
        device.onCommit = { [unowned self, unowned device] change in self.check(change, of: device) }
    }

    private func show(_ row: RecordRow, on device: Device) {
        for content in row.kept {
            if let text = NoteContent(content).text {
                seen[device.name, default: [:]][row.id, default: []].insert(text)
            }
        }
        switch row.icon {
        case .conflict:
            guard let theirs = device.machine?.engine.sync.record(row.id)?.theirs else { return }
            // I9: somebody else wrote.
            let isByAnother: Bool
            if let revision = theirs.revision {
                let write = server.issued[row.id]?[revision].map { server.writes[$0] }
                isByAnother = write.map { $0.device != device.name } ?? false
            } else {
                isByAnother = server.writes.contains {
                    $0.id == row.id && $0.revision == nil && $0.device != device.name
                }
            }
            if !isByAnother { report("I9: \(device.name) shows a conflict of \(row.id) with itself") }
        case .none:
            // I8: what is shown as synchronised was issued by the server.
            guard let revision = device.machine?.engine.sync.record(row.id)?.base else {
                return report("I15: \(device.name) shows \(row.id) as synchronised without a revision")
            }
            let text = NoteContent(row.content).text
            guard let index = server.issued[row.id]?[revision] else { return }
            let issued = server.writes[index].content?.text
            if issued != text {
                report("I8: \(device.name) shows \(row.id) as \(text ?? "-"), the server has \(issued ?? "-")")
            }
        case .upload, .error:
            // I8: the user's last change is shown; that of another process as soon as the store has been read, which a full disk
            // can delay.
            if !resolvesConflicts, !row.isDeleted, !device.hasUnreadChanges,
                let last = acts.last(where: { $0.device == device.name && $0.id == row.id }),
                let text = last.text, !isPending(device), text != NoteContent(row.content).text
            {
                report(
                    "I8: \(device.name) shows \(row.id) as \(NoteContent(row.content).text ?? "-") and not as \(text)")
            }
        }
    }

    /// The device whose user is making a change, which is not recorded yet.
    private var changing: String?
    private func isPending(_ device: Device) -> Bool { changing == device.name }

    private func check(_ change: StoreChange, of device: Device) {
        for (id, record) in change.records {
            guard let record else {
                bases[device.name]?[id] = nil
                continue
            }
            // I12: only what the server really sent is stored.
            func check(_ revision: RecordRevision?, _ content: RecordContent?, _ what: String) {
                guard let revision else { return }
                guard let index = server.issued[id]?[revision] else {
                    return report("I12: \(device.name) stores \(what) \(revision) of \(id), which was never issued")
                }
                if let content, NoteContent(content).text != server.writes[index].content?.text {
                    report("I12: \(device.name) stores another content of \(id) at \(revision)")
                }
            }
            check(record.base, record.baseContent, "the base")
            check(record.theirs?.revision, record.theirs?.content, "the conflict")
            // I6: revisions grow.
            if hasOperations, let old = bases[device.name]?[id]?.number, let new = record.base?.number, new < old {
                report("I6: \(device.name) goes back from \(old) to \(new) of \(id)")
            }
            bases[device.name, default: [:]][id] = record.base
        }
    }

    // MARK: Acts

    /// Performs a change by the user and records it if the client accepts it.
    func perform(
        _ kind: Kind, on device: Device, _ id: RecordID?, text: String?, _ body: () throws -> RecordID
    ) -> RecordID? {
        changing = device.name
        defer { changing = nil }
        let before = id.flatMap { seen[device.name]?[$0] } ?? []
        guard let result = try? body() else { return nil }
        func record(_ id: RecordID, _ kind: Kind, _ text: String?) {
            acts.append(
                Act(
                    number: acts.count, at: world.now, device: device.name, id: id, kind: kind, text: text,
                    seen: before))
        }
        if let id, id != result {
            // The note continues under another identifier.
            record(id, .resolve, nil)
            record(result, .create, text)
        } else {
            record(result, kind, text)
        }
        return result
    }

    // MARK: The end

    /// Checks the invariants of the whole history after it has come to rest.
    func finish(_ devices: [Device]) {
        if !resolvesConflicts {
            checkWrites()
            checkActs(devices)
        }
        checkConvergence(devices)
    }

    /// Returns the last act of a device before a write that explains it.
    private func act(of write: WorldServer.Write) -> Act? {
        let text = write.content?.text
        return acts.last { act in
            act.device == write.device && act.id == write.id && act.at <= write.at && act.text == text
        }
    }

    private func checkWrites() {
        var counts: [String: Int] = [:]
        var lastActs: [String: Int] = [:]
        for write in server.writes where write.device != "web" {
            let name = write.content.map { $0.text ?? "-" } ?? "the deletion"
            guard let act = act(of: write) else {
                report("I2: \(write.device) wrote \(name) to \(write.id), which its user never did")
                continue
            }
            // I2: no second effect.
            let key = "\(write.device) \(write.id) \(name)"
            counts[key, default: 0] += 1
            let allowed = acts.filter {
                $0.device == write.device && $0.id == write.id && $0.text == write.content?.text
            }.count
            // A creation whose response was lost is repeated after another client's deletion: the original server does
            // not tell that from a creation that never arrived.
            let isAmbiguous = !hasOperations && write.isCreation
            if counts[key] ?? 0 > allowed && !isAmbiguous { report("I2: \(key) took effect \(counts[key] ?? 0) times") }
            // I7: the user's order.
            let order = "\(write.device) \(write.id)"
            if act.number < lastActs[order] ?? -1 { report("I7: \(key) after a later change") }
            lastActs[order] = act.number
            guard let previous = write.previous.map({ server.writes[$0] }) else { continue }
            // I10: a deletion stays.
            if previous.content == nil {
                if !isAmbiguous { report("I10: \(write.device) wrote \(name) to \(write.id) after its deletion") }
                continue
            }
            // I3: what is overwritten was shown before.
            if previous.device != write.device, let text = previous.content?.text, text != write.content?.text,
                !act.seen.contains(text)
            {
                report("I3: \(write.device) overwrote \(text) of \(write.id) with \(name) without showing it")
            }
        }
    }

    private func checkActs(_ devices: [Device]) {
        let written = Set(server.writes.compactMap { $0.content?.text })
        let notes = server.notes()
        for act in acts {
            let isSuperseded = acts[(act.number + 1)...].contains { $0.device == act.device && $0.id == act.id }
            if isSuperseded { continue }
            if let text = act.text {
                // I1: an accepted text reached the server, or can be seen.
                let isKept = devices.contains { device in
                    device.rows.contains { $0.kept.contains { NoteContent($0).text == text } }
                }
                if act.kind != .dismiss && !written.contains(text) && !isKept {
                    report("I1: \(text) of \(act.device) in \(act.id) is lost")
                }
            } else if act.kind == .delete, notes[act.id] != nil {
                let isByAnother = server.latest[act.id].map { server.writes[$0].device != act.device } ?? false
                if !isByAnother { report("I10: the deletion of \(act.id) by \(act.device) had no effect") }
            }
        }
    }

    private func checkConvergence(_ devices: [Device]) {
        let texts = server.texts
        var logged: [RecordID: String] = [:]
        for (id, index) in server.latest { logged[id] = server.writes[index].content?.text }
        if logged != texts { report("the reference of the server is wrong") }
        for device in devices {
            guard device.isRunning else {
                report("\(device.name) does not run")
                continue
            }
            if device.texts != texts { report("I4: \(device.name) has \(device.texts), the server has \(texts)") }
            for row in device.rows where row.icon != .none { report("I4: \(device.name) \(row.id) is \(row.icon)") }
            if !device.store.entries.isEmpty { report("I4: \(device.name) has \(device.store.entries.count) entries") }
            if !device.status.quarantine.isEmpty { report("I4: \(device.name) keeps a quarantine") }
            // The committed state and the view are those of the engine.
            let records = device.store.records.keys.sorted()
            if records != device.rows.map(\.id) { report("\(device.name) has rows that are not committed") }
            for id in records where device.store.records[id] != device.engine.record(id) {
                report("\(device.name) has committed another \(id)")
            }
            let shown = device.shown.values.sorted { $0.id < $1.id }
            if shown != device.rows { report("\(device.name) has reported other rows than it has") }
            if device.outboxShown != device.status.outbox { report("\(device.name) has reported another outbox") }
        }
    }
}
