internal import HTTPTypes
internal import NotesContract
internal import Wire

/// `/api/notes/`: the list of a user's notes, and the creation of notes.
extension NotesService {
    func handleNotes(_ request: APIRequest, _ user: String) throws -> Response {
        if request.method == .post {
            let fields = Result { try request.fields(allowsMergePatch: false) }
            return try write(request, user, fields) { try create(request, user, fields.get(), $0) }
        }
        if isPaged(request) {
            let writeNote = writeNote
            return try handleChanges(request, user, NotesHTTP.notesPath) { row, bytes in
                (row.isDeleted ? Self.writeEntry : writeNote)(row, &bytes)
            }
        }
        let selection = StoredNote.Selection(owner: user, order: listOrder)
        return try list(request, selection, writeNote).response
    }

    var listOrder: StoredNote.Order { contract.reading.listsByDate ? .byDate : .bySequence }

    /// Returns a selection of notes as a JSON array, and its owner's ``StoredNote/Position``.
    func list(
        _ request: APIRequest, _ selection: StoredNote.Selection, _ write: @escaping ItemWriter
    ) throws -> (response: Response, position: StoredNote.Position) {
        try store.read { transaction in
            let position = try StoredNote.position(transaction, owner: selection.owner, epoch: store.epoch)
            // The tag changes with each write and each pruned tombstone of the user.
            let tag = "\(position.epoch).\(position.sequence).\(position.pruned)"
            let hasTag = contract.features.contains(.validators)
            var response = Response(.ok)
            if hasTag { response[.eTag] = "\"\(tag)\"" }
            if hasTag, let known = request.http.headerFields[.ifNoneMatch],
                EntityTags.matches(known, tag, allowsWeak: true)
            {
                response.head.status = .notModified
            } else {
                response.body = try body(of: selection, transaction, head: "[", separator: ",", tail: "]", write)
            }
            return (response, position)
        }
    }

    /// Appends the list item of a note.
    typealias ItemWriter = @Sendable (NoteRow, inout JSONBuffer) -> Void

    /// Appends the same text as ``json(of:)``.
    private var writeNote: ItemWriter {
        let isBrief = contract.reading.echoesDates
        return { row, bytes in
            bytes.append(#"{"uuid":"#)
            row.append(.uuid, to: &bytes)
            bytes.append(#","revision":"#)
            row.appendRevision(to: &bytes)
            bytes.append(#","date":"#)
            if isBrief {
                bytes.append(JSONText.string(NoteDate.brief(row.date)))
            } else {
                row.append(.date, to: &bytes)
            }
            bytes.append(#","title":"#)
            row.append(.title, to: &bytes)
            bytes.append(#","text":"#)
            row.append(.text, to: &bytes)
            bytes.append("}")
        }
    }

    /// Returns a selection of notes between a head and a tail. Pages after the first are made while the response is
    /// sent.
    func body(
        of selection: StoredNote.Selection, _ transaction: StoreTransaction, head: String, separator: String,
        tail: String,
        _ write: @escaping ItemWriter
    ) throws -> Body {
        var bytes = JSONBuffer()
        bytes.append(head)
        var isFirst = true
        var rest: [Int64] = []
        try StoredNote.forEachRow(transaction, selection) { row in
            if bytes.bytes.count < NotesService.pageBytes {
                if !isFirst { bytes.append(separator) }
                isFirst = false
                write(row, &bytes)
            } else {
                rest.append(Int64(row.listPosition))
            }
            return true
        }
        if rest.isEmpty {
            bytes.append(tail)
            return .text(bytes.text)
        }
        return .pages(
            Pages.list(first: bytes.text, rows: rest, tail: tail) { [self] rest in
                do {
                    return try store.read { transaction in
                        var bytes = JSONBuffer()
                        let some = rest.prefix(NotesService.pageRowsMax)
                        var used = some.count
                        try StoredNote.forEachRow(transaction, ids: some, selection) { row in
                            bytes.append(separator)
                            write(row, &bytes)
                            guard bytes.bytes.count >= NotesService.pageBytes else { return true }
                            used = row.listPosition + 1
                            return false
                        }
                        return (bytes.text, used)
                    }
                } catch {
                    // The error aborts the connection, because the status has been sent already.
                    recordDatabaseError(error)
                    throw error
                }
            })
    }

    private func create(_ request: APIRequest, _ user: String, _ fields: NoteFields, _ transaction: StoreTransaction)
        throws
        -> Response
    {
        let uuid = try uuid(of: fields, request)
        var base = try self.base(fields.revision)
        let title = try fields.title.value("title", otherwise: nil)
        let text = try fields.text.value("text", otherwise: nil)
        let date = try self.date(fields.date, otherwise: NoteDate.text(millisecondsSince1970: now()))
        let old = try existing(uuid, user, transaction)
        let isForgotten = old?.state == .deleted && behavior.reusesIDs
        if let old, old.state != .pruned, !isForgotten {
            guard contract.creation.comparesDuplicates else {
                throw HTTPProblem(fields: ["uuid": "Document with this UUID already exists."])
            }
            if old.state == .deleted { throw conflict("A note with this uuid was deleted", old) }
            guard old.hasContent(title: title, text: text, date: fields.date == .missing ? old.note.date : date.stored)
            else {
                throw conflict("A note with this uuid exists and has other content", old)
            }
            return writeResponse(.ok, old, sentDate: nil)
        }
        base = max(base, old?.note.revision.number ?? 0)
        let note = Note(
            uuid: uuid, revision: Revision(number: base + 1, suffix: makeUUID()), date: date.stored, title: title,
            text: text)
        return try writeResponse(
            .created, StoredNote(note).save(transaction, owner: user, at: now(), uptime: uptimeNow()),
            sentDate: date.sent)
    }

    /// Returns the stored note with this `uuid`, of the user or, where a `uuid` is unique among all users, of any user.
    private func existing(_ uuid: String, _ user: String, _ transaction: StoreTransaction) throws -> StoredNote? {
        switch contract.idFormat {
        case .uuid: try StoredNote.find(transaction, owner: user, uuid: uuid)
        case .freeText: try StoredNote.find(transaction, uuid: uuid)
        }
    }

    private func uuid(of fields: NoteFields, _ request: APIRequest) throws -> String {
        switch (fields.uuid, contract.idFormat) {
        case (.missing, _):
            if contract.creation.requiresID && request.idempotencyKey == nil {
                throw HTTPProblem(fields: ["uuid": "This field is required, or else an Idempotency-Key."])
            }
            return makeUUID()
        case (.text(let text), .uuid):
            guard let uuid = UUIDText.normalised(text) else {
                throw HTTPProblem(fields: ["uuid": "Expected a UUID (RFC 9562)."])
            }
            return uuid
        case (.text(let text), .freeText) where text.isEmpty:
            throw HTTPProblem(fields: ["uuid": "This field is required."])
        case (.null, .freeText): throw HTTPProblem(fields: ["uuid": "This field is required."])
        case (.text(let text), .freeText):
            guard text.unicodeScalars.count <= 255, !text.unicodeScalars.contains("\0") else {
                throw HTTPProblem(fields: ["uuid": "Ensure this value has at most 255 characters, none of them NUL."])
            }
            return text
        case (.null, .uuid), (.wrongType, _): throw HTTPProblem(fields: ["uuid": "Expected a UUID, or none."])
        }
    }

    /// Returns the revision number that precedes the first one of a new note.
    private func base(_ field: NoteFields.Field) throws -> Int {
        switch (contract.creation.revision, field) {
        case (.ignored, _), (_, .missing), (.continued, .null): return 0
        case (.rejected, _): throw HTTPProblem(fields: ["revision": "A new note has no revision yet."])
        case (.continued, .text(let text)):
            let digits = text.utf8.prefix { $0 != UInt8(ascii: "-") }
            guard digits.count < text.utf8.count, text.utf8.count <= Revision.lengthMax,
                let number = Int(String(decoding: digits, as: UTF8.self)),
                (0..<1 << 53).contains(number)
            else { throw HTTPProblem(fields: ["revision": "Expected a number, a dash and a suffix."]) }
            return number
        case (.continued, .wrongType):
            throw HTTPProblem(fields: ["revision": "Expected a number, a dash and a suffix."])
        }
    }
}
