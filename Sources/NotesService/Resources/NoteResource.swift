internal import GRDB
internal import HTTPTypes
internal import NotesContract

/// `/api/notes/UUID/`: one note.
extension NotesService {
    func answerNote(_ call: Call, _ user: String, _ uuid: String) throws -> Answer {
        switch call.method {
        case .put, .patch:
            let fields = Result { try call.fields(mergePatchToo: dialect.features.contains(.validators)) }
            return try write(call, user, fields) { try update(call, user, uuid, fields, $0) }
        case .delete: return try write(call, user) { try remove(call, user, uuid, $0) }
        default: return try show(call, user, uuid)
        }
    }

    /// The user's note of this name; somebody else's is as unknown as one that never was.
    func find(_ user: String, _ uuid: String, _ database: Database) throws -> StoredNote {
        guard let note = try StoredNote.find(database, owner: user, uuid: uuid) else { throw Refusal.notFound }
        switch note.state {
        case .there: return note
        case .pruned: throw Refusal.notFound
        case .deleted:
            guard let status = dialect.tombstones?.gone, status != .notFound else { throw Refusal.notFound }
            throw Refusal(status, "It was deleted", key: "detail")
        }
    }

    private func show(_ call: Call, _ user: String, _ uuid: String) throws -> Answer {
        let note = try store.read { database -> StoredNote in
            if dialect.reading.conditionsBeforeOwner, let any = try StoredNote.find(database, uuid: uuid) { return any }
            return try find(user, uuid, database)
        }
        let lastModified = lastModified(note)
        var answer: Answer
        if let other = unlessWanted(call, note, lastModified: lastModified) {
            answer = other
            if !dialect.features.contains(.current), answer.head.status == .preconditionFailed {
                answer.body = .text("")
                answer[.contentType] = "text/html; charset=utf-8"
            }
        } else {
            guard note.owner == user else { throw Refusal.notFound }
            answer = .json(.ok, json(of: note.note))
        }
        answer[.eTag] = ETags.of(note.note.revision)
        answer[.lastModified] = lastModified
        return answer
    }

    private func update(
        _ call: Call, _ user: String, _ uuid: String, _ fields: Result<NoteRequest, any Error>, _ database: Database
    ) throws -> Answer {
        var stored = try find(user, uuid, database)
        let fields = try fields.get()
        try checkBase(fields.revision, call, stored, .update)
        let isPut = call.method == .put
        if isPut && dialect.update.putReplaces {
            let missing = [("date", fields.date), ("title", fields.title), ("text", fields.text)].filter {
                $0.1 == .missing
            }
            guard missing.isEmpty else {
                throw Refusal(
                    fields: Dictionary(
                        uniqueKeysWithValues: missing.map {
                            ($0.0, "This field is required: PUT replaces the note, PATCH changes it.")
                        }))
            }
        }
        let old = stored.note
        let title = try fields.title.value("title", otherwise: old.title)
        let text = try fields.text.value("text", otherwise: old.text)
        // Where a PUT does not replace, a date it lacks becomes now.
        let date = try self.date(
            fields.date, otherwise: isPut ? NoteDate.text(millisecondsSince1970: now()) : old.date)
        if dialect.update.keepsRevisionWhenEqual && stored.has(title: title, text: text, date: date.stored) {
            return written(.ok, stored, typed: nil)
        }
        stored.note = Note(
            uuid: old.uuid, revision: Revision(number: old.revision.number + 1, suffix: makeUUID()), date: date.stored,
            title: title, text: text)
        return try written(.ok, stored.save(database, owner: user, at: now(), served: served()), typed: date.typed)
    }

    private func remove(_ call: Call, _ user: String, _ uuid: String, _ database: Database) throws -> Answer {
        if let tombstones = dialect.tombstones, tombstones.deletedAgain == .noContent,
            try StoredNote.find(database, owner: user, uuid: uuid)?.state == .deleted
        {
            return Answer(.noContent)
        }
        var stored = try find(user, uuid, database)
        try checkBase(call.query("revision").map { .text($0) } ?? .missing, call, stored, .delete)
        guard dialect.tombstones != nil else {
            try stored.erase(database)
            return Answer(.noContent)
        }
        stored.note.revision = Revision(number: stored.note.revision.number + 1, suffix: makeUUID())
        stored.note.title = nil
        stored.note.text = nil
        stored.state = .deleted
        stored.isPinned = false
        _ = try stored.save(database, owner: user, at: now(), served: served())
        return Answer(.noContent)
    }
}
