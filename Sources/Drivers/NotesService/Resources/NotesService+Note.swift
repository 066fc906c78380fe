internal import HTTPTypes
internal import NotesContract

/// `/api/notes/UUID/`: one note.
extension NotesService {
    func handleNote(_ request: APIRequest, _ user: String, _ uuid: String) throws -> Response {
        switch request.method {
        case .put, .patch:
            let fields = Result { try request.fields(allowsMergePatch: contract.features.contains(.validators)) }
            return try write(request, user, fields) { try update(request, user, uuid, fields, $0) }
        case .delete: return try write(request, user) { try remove(request, user, uuid, $0) }
        default: return try get(request, user, uuid)
        }
    }

    /// Returns a user's note. Throws the same 404 for a note of another user and for one that never existed.
    func find(_ user: String, _ uuid: String, _ transaction: StoreTransaction) throws -> StoredNote {
        guard let note = try StoredNote.find(transaction, owner: user, uuid: uuid) else { throw HTTPProblem.notFound }
        switch note.state {
        case .live: return note
        case .pruned: throw HTTPProblem.notFound
        case .deleted:
            guard let status = contract.tombstones?.readStatus, status != .notFound else { throw HTTPProblem.notFound }
            throw HTTPProblem(status, "The note was deleted", key: "detail")
        }
    }

    private func get(_ request: APIRequest, _ user: String, _ uuid: String) throws -> Response {
        let note = try store.read { transaction -> StoredNote in
            if contract.reading.checksConditionsBeforeOwner, let any = try StoredNote.find(transaction, uuid: uuid) {
                return any
            }
            return try find(user, uuid, transaction)
        }
        let lastModified = lastModified(note)
        var response: Response
        if let other = conditionalResponse(request, note, lastModified: lastModified) {
            response = other
            if !contract.features.contains(.currentInConflicts), response.head.status == .preconditionFailed {
                response.body = .text("")
                response[.contentType] = "text/html; charset=utf-8"
            }
        } else {
            guard note.owner == user else { throw HTTPProblem.notFound }
            response = .json(.ok, json(of: note.note))
        }
        response[.eTag] = EntityTags.of(note.note.revision)
        response[.lastModified] = lastModified
        return response
    }

    private func update(
        _ request: APIRequest, _ user: String, _ uuid: String, _ fields: Result<NoteFields, any Error>,
        _ transaction: StoreTransaction
    ) throws -> Response {
        var stored = try find(user, uuid, transaction)
        let fields = try fields.get()
        try checkBase(fields.revision, request, stored, .update)
        let isPut = request.method == .put
        if isPut && contract.update.putReplaces {
            let missing = [("date", fields.date), ("title", fields.title), ("text", fields.text)].filter {
                $0.1 == .missing
            }
            guard missing.isEmpty else {
                throw HTTPProblem(
                    fields: Dictionary(
                        uniqueKeysWithValues: missing.map {
                            ($0.0, "This field is required: PUT replaces the note, PATCH changes parts of it.")
                        }))
            }
        }
        let old = stored.note
        let title = try fields.title.value("title", otherwise: old.title)
        let text = try fields.text.value("text", otherwise: old.text)
        // The original sets a missing date of a PUT to the current time.
        let date = try self.date(
            fields.date, otherwise: isPut ? NoteDate.text(millisecondsSince1970: now()) : old.date)
        if contract.update.keepsRevisionIfUnchanged && stored.hasContent(title: title, text: text, date: date.stored) {
            return writeResponse(.ok, stored, sentDate: nil)
        }
        stored.note = Note(
            uuid: old.uuid,
            revision: behavior.changesRevisions
                ? Revision(number: old.revision.number + 1, suffix: makeUUID()) : old.revision, date: date.stored,
            title: title, text: text)
        return try writeResponse(
            .ok, stored.save(transaction, owner: user, at: now(), uptime: uptimeNow()), sentDate: date.sent)
    }

    private func remove(_ request: APIRequest, _ user: String, _ uuid: String, _ transaction: StoreTransaction) throws
        -> Response
    {
        if let tombstones = contract.tombstones, tombstones.repeatedDeleteStatus == .noContent,
            try StoredNote.find(transaction, owner: user, uuid: uuid)?.state == .deleted
        {
            return Response(.noContent)
        }
        var stored = try find(user, uuid, transaction)
        try checkBase(request.query("revision").map { .text($0) } ?? .missing, request, stored, .delete)
        guard contract.tombstones != nil, behavior.leavesTombstones else {
            try stored.erase(transaction)
            return Response(.noContent)
        }
        stored.note.revision = Revision(number: stored.note.revision.number + 1, suffix: makeUUID())
        stored.note.title = nil
        stored.note.text = nil
        stored.state = .deleted
        stored.isPinned = false
        try StoredAttachment.discardAll(transaction, owner: user, uuid: uuid)
        try StoredAttachment.removeDiscarded(transaction)
        _ = try stored.save(transaction, owner: user, at: now(), uptime: uptimeNow())
        return Response(.noContent)
    }
}
