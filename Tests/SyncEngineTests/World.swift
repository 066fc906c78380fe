import JSON
import LinkModel
import NotesContract
import TestSupport

@testable import SyncEngine

/// A notes server in memory, as plain as can be: the contract as the engine needs it.
struct PlainServer {
    struct Stored {
        var note: Note
        var isDeleted = false
        var madeBy: String?
    }

    var notes: [String: Stored] = [:]
    var operations: [String: (status: Int, body: String)] = [:]
    var log: [String] = []
    /// Whether it remembers operations, and answers a second POST with 200.
    var knowsOperations = true
    private var revisions = 0

    mutating func revision(after number: Int) -> Revision {
        revisions += 1
        return Revision(number: number + 1, suffix: "r\(revisions)")
    }

    /// Somebody else writes.
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

    static func answer(_ status: Int, _ body: String) -> SyncAnswer {
        SyncAnswer(status: status, headers: headers, body: Array(body.utf8))
    }

    mutating func respond(to request: SyncRequest) -> SyncAnswer {
        let key = request.headers.first { $0.name == "Idempotency-Key" }?.value
        let path = request.target.split(separator: "?")[0]
        let uuid = path.hasPrefix("/api/notes/") ? path.split(separator: "/").dropFirst(2).first.map(String.init) : nil
        let answer = decide(request, uuid, key)
        log.append("\(request.method) \(uuid ?? String(path)) \(answer.status)")
        return answer
    }

    private mutating func decide(_ request: SyncRequest, _ uuid: String?, _ key: String?) -> SyncAnswer {
        if knowsOperations, let key, let old = operations[key] { return Self.answer(old.status, old.body) }
        func remember(_ status: Int, _ body: String) -> SyncAnswer {
            if let key { operations[key] = (status == 201 ? 200 : status, body) }
            return Self.answer(status, body)
        }
        let body = Array(request.body.utf8)
        switch (request.method, uuid) {
        case ("GET", nil):
            let entries = notes.values.sorted { $0.note.uuid < $1.note.uuid }.map {
                IndexEntry(uuid: $0.note.uuid, revision: $0.note.revision, isDeleted: $0.isDeleted).json
            }
            return Self.answer(200, JSONText.array(entries))
        case ("GET", let uuid?):
            guard let stored = notes[uuid], !stored.isDeleted else { return Self.answer(404, "{}") }
            return Self.answer(200, stored.note.json)
        case ("POST", _):
            guard let draft = Draft(body) else { return Self.answer(400, "{}") }
            if notes[draft.uuid] != nil { return Self.answer(knowsOperations ? 409 : 400, "{}") }
            let note = Note(
                uuid: draft.uuid, revision: revision(after: 0), date: draft.date, title: draft.title, text: draft.text)
            notes[draft.uuid] = Stored(note: note)
            return remember(201, note.json)
        case ("PUT", let uuid?):
            guard let stored = notes[uuid], !stored.isDeleted else { return Self.answer(404, "{}") }
            guard let draft = Draft(body), let base = draft.revision else { return Self.answer(400, "{}") }
            guard base == stored.note.revision.description else { return Self.answer(409, "{}") }
            var note = stored.note
            note.revision = revision(after: note.revision.number)
            (note.title, note.text, note.date) = (draft.title, draft.text, draft.date)
            notes[uuid]?.note = note
            return remember(200, note.json)
        case ("DELETE", let uuid?):
            guard let stored = notes[uuid], !stored.isDeleted else { return Self.answer(404, "{}") }
            guard request.target.hasSuffix("?revision=\(stored.note.revision)") else { return Self.answer(409, "{}") }
            remove(uuid)
            return remember(204, "")
        default: return Self.answer(405, "{}")
        }
    }

    /// What a client sends.
    private struct Draft {
        let uuid: String
        let revision: String?
        let date: String
        let title: String?
        let text: String?

        init?(_ body: [UInt8]) {
            // A draft with any revision is a note.
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

/// What has been committed: what a client that is killed finds again.
struct PlainStore {
    var notes: [String: LocalNote] = [:]
    var entries: [Int: OutboxEntry] = [:]

    mutating func commit(_ change: StoreChange) {
        for uuid in change.forgottenNotes { notes[uuid] = nil }
        for sequence in change.forgottenEntries { entries[sequence] = nil }
        for note in change.notes { notes[note.uuid] = note }
        for entry in change.entries { entries[entry.sequence] = entry }
    }

    var state: StoredState {
        StoredState(
            notes: notes.values.sorted { $0.uuid < $1.uuid },
            entries: entries.values.sorted { $0.sequence < $1.sequence })
    }
}

/// A client, a server and what lies between, in virtual time.
final class World {
    var engine: SyncEngine
    var store = PlainStore()
    var server = PlainServer()
    var now = Instant.start
    /// A request that has not been answered.
    var pending: SyncRequest?
    var starts = 1
    /// Notes that were kept under a new name, because theirs was gone.
    var renamed = 0
    let mutant: Mutant?
    let policy: RetryPolicy

    init(mutant: Mutant? = nil, policy: RetryPolicy = RetryPolicy()) {
        self.mutant = mutant
        self.policy = policy
        engine = SyncEngine(policy: policy, seed: 1, mutant: mutant)
        do_(engine.take(.start, at: now))
    }

    @discardableResult func do_(_ output: SyncEngine.Output) -> String? {
        store.commit(output.change)
        if let request = output.request { pending = request }
        return output.created
    }

    func create(_ title: String, _ text: String = "") -> String {
        do_(engine.create(title: title, text: text, date: date, at: now)) ?? ""
    }

    func edit(_ uuid: String, _ text: String) {
        if let output = try? engine.edit(uuid, title: nil, text: text, date: date, at: now) { do_(output) }
    }

    func delete(_ uuid: String) { if let output = try? engine.delete(uuid, at: now) { do_(output) } }

    func resolve(_ uuid: String, _ resolution: SyncEngine.Resolution) {
        guard let output = try? engine.resolve(uuid, resolution, date: date, at: now) else { return }
        if do_(output) != nil { renamed += 1 }
    }

    func take(_ input: SyncEngine.Input) { do_(engine.take(input, at: now)) }

    var date: String { "2026-01-01T00:00:00.\(String(now.sinceStart.count / 1_000_000 % 1000 + 1000).dropFirst())Z" }

    /// The server gets the request and its answer comes.
    func answer() {
        guard let request = pending else { return }
        pending = nil
        take(.answered(request.id, server.respond(to: request)))
    }

    /// The server gets the request and its answer is lost.
    func loseAnswer() {
        guard let request = pending else { return }
        pending = nil
        _ = server.respond(to: request)
        take(.failed(request.id, .unknown("time-out")))
    }

    /// Nothing gets anywhere.
    func fail() {
        guard let request = pending else { return }
        pending = nil
        take(.failed(request.id, .notSent("refused")))
    }

    /// Lets time pass until the engine wants to be woken.
    func wake() {
        guard pending == nil, let wake = engine.nextWake else { return }
        now = max(now, wake)
        take(.wake)
    }

    /// Answers and wakes until nothing is left to do.
    func settle() {
        var rounds = 0
        while rounds < 1000, pending != nil || !engine.isSettled {
            rounds += 1
            if pending != nil { answer() } else { wake() }
        }
    }

    /// The process is killed, and started again with what was committed.
    func restart() {
        starts += 1
        pending = nil
        engine = SyncEngine(restoring: store.state, policy: policy, seed: UInt64(starts), mutant: mutant)
        take(.start)
    }

    var texts: [String: String] {
        Dictionary(uniqueKeysWithValues: engine.view.rows.map { ($0.uuid, $0.text ?? "") })
    }

    var serverTexts: [String: String] {
        server.notes.filter { !$0.value.isDeleted }.mapValues { $0.note.text ?? "" }
    }

    func icon(_ uuid: String) -> NotesView.Icon? { engine.view.rows.first { $0.uuid == uuid }?.icon }
}
