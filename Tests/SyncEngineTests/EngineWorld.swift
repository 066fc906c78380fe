import Determinism
import JSON
import NotesContract
import TestSupport

@testable import SyncEngine

/// A minimal notes server in memory.
struct TestServer {
    struct Stored {
        var note: Note
        var isDeleted = false
        var madeBy: String?
    }

    var notes: [String: Stored] = [:]
    var operations: [String: (status: Int, body: String)] = [:]
    var log: [String] = []
    /// Whether it supports operation ids: a repeated operation gets the first response.
    var supportsOperationIDs = true
    private var revisions = 0

    mutating func revision(after number: Int) -> Revision {
        revisions += 1
        return Revision(number: number + 1, suffix: "r\(revisions)")
    }

    /// Stores a change by another client.
    mutating func write(_ uuid: String, title: String?, text: String?) {
        let old = notes[uuid]?.note
        let note = Note(
            uuid: uuid, revision: revision(after: old?.revision.number ?? 0), date: "2026-01-01T00:00:00.000Z",
            title: title, text: text)
        notes[uuid] = Stored(note: note)
    }

    mutating func remove(_ uuid: String) {
        guard let old = notes[uuid]?.note else { return }
        let next = revision(after: old.revision.number)
        notes[uuid]?.isDeleted = true
        notes[uuid]?.note.revision = next
    }

    static let headers = [(name: "slowlane-notes", value: "1"), (name: "content-type", value: "application/json")]

    static func response(_ status: Int, _ body: String) -> SyncResponse {
        SyncResponse(status: status, headers: headers, body: Array(body.utf8))
    }

    mutating func respond(to request: SyncRequest) -> SyncResponse {
        let key = request.headers.first { $0.name == "Idempotency-Key" }?.value
        let path = request.target.split(separator: "?")[0]
        let uuid = path.hasPrefix("/api/notes/") ? path.split(separator: "/").dropFirst(2).first.map(String.init) : nil
        let response = handle(request, uuid, key)
        log.append("\(request.method) \(uuid ?? String(path)) \(response.status)")
        return response
    }

    private mutating func handle(_ request: SyncRequest, _ uuid: String?, _ key: String?) -> SyncResponse {
        if supportsOperationIDs, let key, let old = operations[key] { return Self.response(old.status, old.body) }
        func remember(_ status: Int, _ body: String) -> SyncResponse {
            if let key { operations[key] = (status == 201 ? 200 : status, body) }
            return Self.response(status, body)
        }
        let body = Array(request.body.utf8)
        switch (request.method, uuid) {
        case ("GET", nil):
            let entries = notes.values.sorted { $0.note.uuid < $1.note.uuid }.map {
                IndexEntry(uuid: $0.note.uuid, revision: $0.note.revision, isDeleted: $0.isDeleted).json
            }
            return Self.response(200, JSONText.array(entries))
        case ("GET", let uuid?):
            guard let stored = notes[uuid], !stored.isDeleted else { return Self.response(404, "{}") }
            return Self.response(200, stored.note.json)
        case ("POST", _):
            guard let draft = Draft(body) else { return Self.response(400, "{}") }
            if notes[draft.uuid] != nil { return Self.response(supportsOperationIDs ? 409 : 400, "{}") }
            let note = Note(
                uuid: draft.uuid, revision: revision(after: 0), date: draft.date, title: draft.title, text: draft.text)
            notes[draft.uuid] = Stored(note: note)
            return remember(201, note.json)
        case ("PUT", let uuid?):
            guard let stored = notes[uuid], !stored.isDeleted else { return Self.response(404, "{}") }
            guard let draft = Draft(body), let base = draft.revision else { return Self.response(400, "{}") }
            guard base == stored.note.revision.description else { return Self.response(409, "{}") }
            var note = stored.note
            note.revision = revision(after: note.revision.number)
            (note.title, note.text, note.date) = (draft.title, draft.text, draft.date)
            notes[uuid]?.note = note
            return remember(200, note.json)
        case ("DELETE", let uuid?):
            guard let stored = notes[uuid], !stored.isDeleted else { return Self.response(404, "{}") }
            guard request.target.hasSuffix("?revision=\(stored.note.revision)") else { return Self.response(409, "{}") }
            remove(uuid)
            return remember(204, "")
        default: return Self.response(405, "{}")
        }
    }

    /// The body of a request.
    private struct Draft {
        let uuid: String
        let revision: String?
        let date: String
        let title: String?
        let text: String?

        init?(_ body: [UInt8]) {
            // A draft with a revision has the format of a note.
            let text = String(decoding: body, as: UTF8.self)
            let hasRevision = text.contains("\"revision\":")
            let whole = hasRevision ? text : text.replacingFirst("{", with: "{\"revision\":\"1-none\",")
            guard let note = Note(json: Array(whole.utf8)) else { return nil }
            uuid = note.uuid
            revision = hasRevision ? note.revision.description : nil
            date = note.date
            title = note.title
            self.text = note.text
        }
    }
}

extension String {
    func replacingFirst(_ character: Character, with text: String) -> String {
        guard let index = firstIndex(of: character) else { return self }
        return self[..<index] + text + self[self.index(after: index)...]
    }
}

/// The committed state.
struct TestStore {
    var notes: [String: LocalNote] = [:]
    var entries: [Int: OutboxEntry] = [:]

    mutating func commit(_ change: StoreChange) {
        for uuid in change.deletedNotes { notes[uuid] = nil }
        for sequence in change.deletedEntries { entries[sequence] = nil }
        for note in change.notes { notes[note.uuid] = note }
        for entry in change.entries { entries[entry.sequence] = entry }
    }

    var state: StoredState {
        StoredState(
            notes: notes.values.sorted { $0.uuid < $1.uuid },
            entries: entries.values.sorted { $0.sequence < $1.sequence })
    }
}

/// An engine, a store and a server in virtual time.
final class EngineWorld {
    var engine: SyncEngine
    var store = TestStore()
    var server = TestServer()
    var now = Instant.start
    /// The request in flight.
    var pending: SyncRequest?
    var starts = 1
    /// The number of notes that got a new uuid, because the server had deleted them.
    var renamed = 0
    let mutant: Mutant?
    let policy: RetryPolicy

    init(mutant: Mutant? = nil, policy: RetryPolicy = RetryPolicy()) {
        self.mutant = mutant
        self.policy = policy
        engine = SyncEngine(policy: policy, seed: 1, mutant: mutant)
        engine.started(at: now)
        runActions()
    }

    /// Commits changes and puts the request in flight.
    private func runActions() {
        while let action = engine.takeAction() {
            switch action {
            case .commit(let change): store.commit(change)
            case .send(let request): pending = request
            }
        }
    }

    func create(_ title: String, _ text: String = "") -> String {
        defer { runActions() }
        return engine.create(title: title, text: text, date: date, at: now)
    }

    func edit(_ uuid: String, _ text: String) {
        try? engine.edit(uuid, title: nil, text: text, date: date, at: now)
        runActions()
    }

    func delete(_ uuid: String) {
        try? engine.delete(uuid, at: now)
        runActions()
    }

    func resolve(_ uuid: String, _ resolution: SyncEngine.Resolution) {
        if let kept = try? engine.resolve(uuid, resolution, date: date, at: now), kept != uuid { renamed += 1 }
        runActions()
    }

    func sync() {
        engine.syncRequested(at: now)
        runActions()
    }

    func setInterface(isUp: Bool) {
        engine.interfaceChanged(isUp: isUp, at: now)
        runActions()
    }

    var date: String { "2026-01-01T00:00:00.\(String(now.sinceStart.count / 1_000_000 % 1000 + 1000).dropFirst())Z" }

    /// Delivers the request, and a response: the server's unless given.
    func respond(with response: SyncResponse? = nil) {
        guard let request = pending else { return }
        pending = nil
        engine.responseReceived(response ?? server.respond(to: request), to: request.id, at: now)
        runActions()
    }

    /// Delivers the request and loses its response.
    func loseResponse() {
        guard let request = pending else { return }
        _ = server.respond(to: request)
        fail(.outcomeUnknown("time-out"))
    }

    /// Ends the exchange without a response.
    func fail(_ failure: SyncFailure = .notSent("connection refused")) {
        guard let request = pending else { return }
        pending = nil
        engine.exchangeFailed(request.id, failure, at: now)
        runActions()
    }

    /// Advances the time to the engine's deadline.
    func advance() {
        guard pending == nil, let deadline = engine.nextDeadline else { return }
        now = max(now, deadline)
        engine.advance(to: now)
        runActions()
    }

    /// Delivers requests and advances the time until nothing is left to do.
    func settle() {
        var rounds = 0
        while rounds < 1000, pending != nil || !engine.isSettled {
            rounds += 1
            if pending != nil { respond() } else { advance() }
        }
    }

    /// Kills the client and starts it with the committed state.
    func restart() {
        starts += 1
        pending = nil
        engine = SyncEngine(restoring: store.state, policy: policy, seed: UInt64(starts), mutant: mutant)
        engine.started(at: now)
        runActions()
    }

    var texts: [String: String] {
        Dictionary(uniqueKeysWithValues: engine.view.rows.map { ($0.uuid, $0.text ?? "") })
    }

    var serverTexts: [String: String] {
        server.notes.filter { !$0.value.isDeleted }.mapValues { $0.note.text ?? "" }
    }

    func icon(_ uuid: String) -> NotesView.Icon? { engine.view.rows.first { $0.uuid == uuid }?.icon }
}
