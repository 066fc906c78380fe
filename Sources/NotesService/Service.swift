internal import Foundation
internal import GRDB
public import HTTPTypes
internal import JSON
internal import NotesContract

/// The notes server's brain: a request and its body in, an answer and its body out.
public final class NotesService: Sendable {
    /// An answer.
    public struct Answer: Sendable {
        /// Status and headers.
        public var head: HTTPResponse
        /// The body; empty for none.
        public var body: String
    }

    /// What became of a request, for whoever watches.
    public struct Exchange: Sendable {
        /// Who asked, if they said so rightly.
        public let user: String?
        /// The method.
        public let method: String
        /// The path without query.
        public let path: String
        /// The status of the answer.
        public let status: Int
        /// The operation's name, if it has one.
        public let key: String?
        /// A digest of the body, to compare it with others.
        public let bodyDigest: UInt64
        /// The body's `uuid`, or the path's.
        public let uuid: String?
    }

    let store: NotesStore
    let dialect: NotesDialect
    private let users: [String: String]
    private let now: @Sendable () -> Int
    private let makeUUID: @Sendable () -> String
    private let onExchange: (@Sendable (Exchange) -> Void)?

    /// A larger body is refused (413).
    public static let bodyBytesMax = 1 << 20
    /// A title or an `Idempotency-Key` is no longer than this.
    public static let keyLengthMax = 255

    /// A service over a store.
    ///
    /// - Parameters:
    ///   - users: Passwords by user.
    ///   - now: Milliseconds since 1970; the clock's unless given.
    ///   - makeUUID: Where random names and revisions come from; by chance unless given.
    ///   - onExchange: Told of every request after it has been decided; must not block.
    public init(
        store: NotesStore, users: [String: String], dialect: NotesDialect = .compat,
        now: (@Sendable () -> Int)? = nil, makeUUID: (@Sendable () -> String)? = nil,
        onExchange: (@Sendable (Exchange) -> Void)? = nil
    ) {
        self.store = store
        self.users = users
        self.dialect = dialect
        self.now = now ?? { Int(Date().timeIntervalSince1970 * 1000) }
        self.makeUUID = makeUUID ?? { UUID().uuidString.lowercased() }
        self.onExchange = onExchange
    }

    /// Answers a request. Blocks while the database works.
    public func respond(to request: HTTPRequest, body: [UInt8]) -> Answer {
        var call = Call(request, body: body)
        call.user = authenticated(request)
        let answer: Answer
        do {
            answer = try decide(call)
        } catch let refusal as Refusal {
            answer = refusal.answer
        } catch {
            answer = Self.error(.serviceUnavailable, "the database does not answer; try again")
        }
        var finished = marked(answer)
        if call.method == .head { finished.body = "" }
        onExchange?(
            Exchange(
                user: call.user, method: call.method.rawValue, path: call.path, status: finished.head.status.code,
                key: call.key, bodyDigest: FNV.digest(body), uuid: call.uuid ?? call.bodyUUID))
        return finished
    }

    private func marked(_ answer: Answer) -> Answer {
        var answer = answer
        answer.head.headerFields[.marker] = NotesHTTP.markerValue
        answer.head.headerFields[.cacheControl] = "no-cache"
        if !answer.body.isEmpty { answer.head.headerFields[.contentType] = "application/json" }
        return answer
    }

    // MARK: Who and what

    /// The user, if the password is right (RFC 7617).
    private func authenticated(_ request: HTTPRequest) -> String? {
        guard let field = request.headerFields[.authorization], field.lowercased().hasPrefix("basic "),
            let data = Data(base64Encoded: String(field.dropFirst(6)).trimmingCharacters(in: .whitespaces))
        else { return nil }
        let text = String(decoding: data, as: UTF8.self)
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let user = String(text[..<colon])
        // As much work for a name that does not exist.
        let expected = users[user] ?? ""
        let isRight = Self.isSame(expected, String(text[text.index(after: colon)...]))
        return isRight && users[user] != nil ? user : nil
    }

    /// Compares in a time that does not tell where two texts differ.
    private static func isSame(_ left: String, _ right: String) -> Bool {
        let left = Array(left.utf8)
        let right = Array(right.utf8)
        var difference = left.count ^ right.count
        for index in right.indices { difference |= Int(right[index] ^ (left.isEmpty ? 0 : left[index % left.count])) }
        return difference == 0
    }

    private func decide(_ call: Call) throws -> Answer {
        guard let user = call.user else {
            throw Refusal(
                .forbidden,
                call.request.headerFields[.authorization] == nil
                    ? "Authentication credentials were not provided." : "Invalid username/password", key: "detail")
        }
        switch call.resource {
        case .root:
            try call.allow([.get, .head])
            return Self.json(
                .ok,
                JSONText.object([
                    ("notes", JSONText.string(NotesHTTP.notesPath)),
                    ("notes-uuids", JSONText.string(NotesHTTP.indexPath)),
                ]))
        case .index:
            try call.allow([.get, .head])
            return try store.queue.read { database in
                let notes = try StoredNote.all(database, owner: user)
                let shown = notes.filter { !$0.isDeleted || dialect.keepsTombstones }
                return Self.json(.ok, JSONText.array(shown.map(\.entry.json)))
            }
        case .notes:
            try call.allow([.get, .head, .post])
            if call.method == .post { return try write(call, user) { try create(call, user, $0) } }
            return try store.queue.read { database in
                let notes = try StoredNote.all(database, owner: user).filter { !$0.isDeleted }
                // The original's order: by the date the client gave.
                return Self.json(
                    .ok,
                    JSONText.array(
                        notes.sorted { ($0.note.date, $0.note.uuid) < ($1.note.date, $1.note.uuid) }.map(\.note.json)))
            }
        case .note(let uuid):
            try call.allow([.get, .head, .put, .patch, .delete])
            switch call.method {
            case .put, .patch: return try write(call, user) { try update(call, user, uuid, $0) }
            case .delete: return try write(call, user) { try remove(call, user, uuid, $0) }
            default: return try store.queue.read { try show(call, user, uuid, $0) }
            }
        case .unknown: throw Refusal(.notFound, "Not found", key: "detail")
        }
    }

    // MARK: Writing

    /// Does a write and remembers it under its key in one transaction; what has been done before is answered as before.
    private func write(_ call: Call, _ user: String, _ body: (Database) throws -> Answer) throws -> Answer {
        guard dialect.knowsOperations, let key = call.key else { return try store.queue.write(body) }
        guard (1...Self.keyLengthMax).contains(key.utf8.count) else {
            throw Refusal(.badRequest, "an Idempotency-Key has 1 to \(Self.keyLengthMax) characters")
        }
        let digest = Int64(bitPattern: call.digest)
        return try store.queue.write { database in
            let row = try Row.fetchOne(
                database, sql: "SELECT * FROM operation WHERE owner = ? AND key = ?", arguments: [user, key])
            if let row {
                let known: Int64 = row["digest"]
                guard known == digest else {
                    throw Refusal(.unprocessableContent, "this Idempotency-Key was used for another request")
                }
                let status: Int = row["status"]
                var answer = Answer(head: HTTPResponse(status: .init(code: status)), body: row["body"])
                answer.head.headerFields[.eTag] = row["etag"]
                return answer
            }
            let answer = try body(database)
            // A creation that is asked for again is there already: 200.
            let status = answer.head.status == .created ? 200 : answer.head.status.code
            try database.execute(
                sql: "INSERT INTO operation VALUES (?, ?, ?, ?, ?, ?, ?)",
                arguments: [user, key, digest, status, answer.head.headerFields[.eTag], answer.body, now()])
            return answer
        }
    }

    private func create(_ call: Call, _ user: String, _ database: Database) throws -> Answer {
        let request = try call.parsedBody()
        let uuid: String
        switch request.uuid {
        case .missing: uuid = makeUUID()
        case .text(let text):
            guard let name = UUIDText.normalised(text) else {
                throw Refusal(fields: ["uuid": "Expected a UUID as RFC 9562 writes it."])
            }
            uuid = name
        case .null, .wrongType: throw Refusal(fields: ["uuid": "Expected a UUID, or none."])
        }
        let title = try request.title.value("title", otherwise: nil)
        let text = try request.text.value("text", otherwise: nil)
        let date = try self.date(request.date, otherwise: NoteDate.text(millisecondsSince1970: now()))
        var number = 0
        if let old = try StoredNote.find(database, owner: user, uuid: uuid) {
            guard old.isDeleted && !dialect.keepsTombstones else {
                let isEqual =
                    !old.isDeleted && old.note.title == title && old.note.text == text
                    && (request.date == .missing || old.note.date == date)
                if dialect.secondCreationIsConflict && isEqual {
                    return tagged(Self.json(.ok, old.note.json), old.note)
                }
                throw secondCreation(of: old)
            }
            number = old.note.revision.number
        }
        let note = Note(
            uuid: uuid, revision: Revision(number: number + 1, suffix: makeUUID()), date: date, title: title, text: text
        )
        try StoredNote(note, isDeleted: false).save(database, owner: user)
        return tagged(Self.json(.created, note.json), note)
    }

    private func secondCreation(of old: StoredNote) -> Refusal {
        if dialect.secondCreationIsConflict {
            return conflict("Conflict, a note with this UUID already exists", old)
        }
        return Refusal(fields: ["uuid": "Document with this UUID already exists."])
    }

    private func update(_ call: Call, _ user: String, _ uuid: String, _ database: Database) throws -> Answer {
        let old = try find(user, uuid, database)
        let request = try call.parsedBody()
        try checkRevision(
            request.revision, call, old, missing: "You must specify a 'revision' in the request data",
            stale: "Conflict, you are trying to update an old revision of this object")
        let replaces = call.method == .put && dialect.putReplaces
        var missing: [String: String] = [:]
        for (name, field) in [("date", request.date), ("title", request.title), ("text", request.text)]
        where replaces && field == .missing { missing[name] = "A PUT replaces the note: this field is required." }
        if !missing.isEmpty { throw Refusal(fields: missing) }
        var note = old.note
        note.title = try request.title.value("title", otherwise: note.title)
        note.text = try request.text.value("text", otherwise: note.text)
        // The original sets the date to now when a PUT does not give one.
        let unsaid = call.method == .put ? NoteDate.text(millisecondsSince1970: now()) : note.date
        note.date = try date(request.date, otherwise: unsaid)
        if dialect.keepsRevisionWhenEqual && note == old.note { return tagged(Self.json(.ok, note.json), note) }
        note.revision = Revision(number: note.revision.number + 1, suffix: makeUUID())
        try StoredNote(note, isDeleted: false).save(database, owner: user)
        return tagged(Self.json(.ok, note.json), note)
    }

    private func remove(_ call: Call, _ user: String, _ uuid: String, _ database: Database) throws -> Answer {
        let old = try find(user, uuid, database)
        try checkRevision(
            call.query("revision").map { .text($0) } ?? .missing, call, old,
            missing: "You must specify a 'revision' query parameter",
            stale: "Conflict, you are trying to delete an old revision of this object")
        var note = old.note
        note.revision = Revision(number: note.revision.number + 1, suffix: makeUUID())
        note.title = nil
        note.text = nil
        try StoredNote(note, isDeleted: true).save(database, owner: user)
        return Answer(head: HTTPResponse(status: .noContent), body: "")
    }

    private func find(_ user: String, _ uuid: String, _ database: Database) throws -> StoredNote {
        // Somebody else's note is as unknown as one that never was.
        guard let note = try StoredNote.find(database, owner: user, uuid: uuid), !note.isDeleted else {
            throw Refusal(.notFound, "Not found", key: "detail")
        }
        return note
    }

    private func checkRevision(
        _ field: NoteRequest.Field, _ call: Call, _ old: StoredNote, missing: String, stale: String
    ) throws {
        let tag = call.request.headerFields[.ifMatch]
        let given: String?
        switch field {
        case .text(let text) where !text.isEmpty: given = text
        case .wrongType: given = ""  // a number differs from every revision
        default: given = nil
        }
        if let tag {
            let isMatch = ETags.matches(tag, old.note.revision, weakCounts: false)
            if let given, ETags.matches(tag, Revision(given), weakCounts: false) == false, tag != "*" {
                throw Refusal(.badRequest, "If-Match and the revision disagree")
            }
            if !isMatch {
                throw conflict("Precondition failed: the note has another revision", old, .preconditionFailed)
            }
            if given == nil { return }
        }
        guard let given else { throw Refusal(.badRequest, missing) }
        if given != old.note.revision.description { throw conflict(stale, old) }
    }

    private func date(_ field: NoteRequest.Field, otherwise: String) throws -> String {
        switch field {
        case .missing: return otherwise
        case .text(let text):
            guard let date = NoteDate.normalised(text) else {
                throw Refusal(fields: ["date": "Expected a date and time with an offset, as 2026-03-01T08:30:00Z."])
            }
            return date
        case .null, .wrongType: throw Refusal(fields: ["date": "Expected a date and time."])
        }
    }

    private func conflict(_ message: String, _ old: StoredNote, _ status: HTTPResponse.Status = .conflict) -> Refusal {
        var members = [("error", JSONText.string(message))]
        if dialect.showsCurrent { members.append(("current", old.json)) }
        var answer = Self.json(status, JSONText.object(members))
        if dialect.showsCurrent { answer.head.headerFields[.eTag] = ETags.of(old.note.revision) }
        return Refusal(answer)
    }

    // MARK: Reading

    private func show(_ call: Call, _ user: String, _ uuid: String, _ database: Database) throws -> Answer {
        let note = try find(user, uuid, database).note
        var answer = Self.json(.ok, note.json)
        if let tags = call.request.headerFields[.ifNoneMatch], ETags.matches(tags, note.revision, weakCounts: true) {
            answer = Answer(head: HTTPResponse(status: .notModified), body: "")
        }
        answer.head.headerFields[.eTag] = ETags.of(note.revision)
        return answer
    }

    private func tagged(_ answer: Answer, _ note: Note) -> Answer {
        guard dialect.tagsWrites else { return answer }
        var answer = answer
        answer.head.headerFields[.eTag] = ETags.of(note.revision)
        if answer.head.status == .created { answer.head.headerFields[.location] = NotesHTTP.path(of: note.uuid) }
        return answer
    }

    /// The answer to a body that is larger than ``bodyBytesMax``.
    public static var tooLarge: Answer {
        var answer = error(.contentTooLarge, "a body has at most \(bodyBytesMax) bytes")
        answer.head.headerFields[.marker] = NotesHTTP.markerValue
        answer.head.headerFields[.contentType] = "application/json"
        return answer
    }

    static func json(_ status: HTTPResponse.Status, _ body: String) -> Answer {
        Answer(head: HTTPResponse(status: status), body: body)
    }

    static func error(_ status: HTTPResponse.Status, _ message: String, key: String = "error") -> Answer {
        json(status, JSONText.object([(key, JSONText.string(message))]))
    }
}
