internal import GRDB
internal import HTTPTypes
internal import JSON
internal import NotesContract

/// `/api/notes/`: all of a user's notes, and new ones.
extension NotesService {
    func handleNotes(_ request: APIRequest, _ user: String) throws -> Response {
        if request.method == .post {
            let fields = Result { try request.fields(mergePatchToo: false) }
            return try write(request, user, fields) { try create(request, user, fields.get(), $0) }
        }
        let selection = StoredNote.Selection(owner: user, order: listOrder)
        return try list(request, selection, showNote).response
    }

    var listOrder: StoredNote.Order { contract.reading.listsByDate ? .byDate : .bySequence }

    /// Returns an array of the notes of a selection, and where their owner's writes are.
    func list(
        _ request: APIRequest, _ selection: StoredNote.Selection, _ show: @escaping Show
    ) throws -> (response: Response, position: StoredNote.Position) {
        try store.read { database in
            let position = try StoredNote.position(database, owner: selection.owner)
            // Names a state of all of a user's notes and tombstones.
            let tag = "\(position.epoch).\(position.sequence).\(position.pruned)"
            let hasTag = contract.features.contains(.validators)
            var response = Response(.ok)
            if hasTag { response[.eTag] = "\"\(tag)\"" }
            if hasTag, let known = request.http.headerFields[.ifNoneMatch], EntityTags.matches(known, tag, weakCounts: true)
            {
                response.head.status = .notModified
            } else {
                response.body = try body(of: selection, database, head: "[", separator: ",", tail: "]", show)
            }
            return (response, position)
        }
    }

    /// Appends what a list shows of a note.
    typealias Show = @Sendable (SQLiteRow, inout JSONBuffer) -> Void

    /// Appends a note as ``json(of:)`` writes it.
    private var showNote: Show {
        let isBrief = contract.reading.echoesDates
        return { row, bytes in
            bytes.append(#"{"uuid":"#)
            bytes.append(string: row.bytes(StoredNote.Column.uuid))
            bytes.append(#","revision":"#)
            bytes.append(revision: row.integer(StoredNote.Column.number), row.bytes(StoredNote.Column.suffix))
            bytes.append(#","date":"#)
            if isBrief {
                bytes.append(JSONText.string(NoteDate.brief(row.text(StoredNote.Column.date) ?? "")))
            } else {
                bytes.append(string: row.bytes(StoredNote.Column.date))
            }
            bytes.append(#","title":"#)
            bytes.append(string: row.bytes(StoredNote.Column.title))
            bytes.append(#","text":"#)
            bytes.append(string: row.bytes(StoredNote.Column.text))
            bytes.append("}")
        }
    }

    /// Returns the notes of a selection between a head and a tail: the first page now, the others while it is sent.
    func body(
        of selection: StoredNote.Selection, _ database: Database, head: String, separator: String, tail: String,
        _ show: @escaping Show
    ) throws -> Body {
        var bytes = JSONBuffer()
        bytes.append(head)
        var isFirst = true
        var rest: [Int64] = []
        try StoredNote.forEachRow(database, selection) { row in
            if bytes.bytes.count < NotesService.pageBytes {
                if !isFirst { bytes.append(separator) }
                isFirst = false
                show(row, &bytes)
            } else {
                rest.append(Int64(row.integer(StoredNote.Column.place)))
            }
            return true
        }
        if rest.isEmpty {
            bytes.append(tail)
            return .text(bytes.text)
        }
        return .pages(
            Pages.of(first: bytes.text, rows: rest, tail: tail) { [self] rest in
                do {
                    return try store.read { database in
                        var bytes = JSONBuffer()
                        let some = rest.prefix(NotesService.pageRowsMax)
                        var used = some.count
                        try StoredNote.forEachRow(database, ids: some, selection) { row in
                            bytes.append(separator)
                            show(row, &bytes)
                            guard bytes.bytes.count >= NotesService.pageBytes else { return true }
                            used = row.integer(StoredNote.Column.place) + 1
                            return false
                        }
                        return (bytes.text, used)
                    }
                } catch {
                    // The status is sent already; the connection is closed.
                    record(error)
                    throw error
                }
            })
    }

    private func create(_ request: APIRequest, _ user: String, _ fields: NoteFields, _ database: Database) throws -> Response {
        let uuid = try name(of: fields, request)
        var base = try self.base(fields.revision)
        let title = try fields.title.value("title", otherwise: nil)
        let text = try fields.text.value("text", otherwise: nil)
        let date = try self.date(fields.date, otherwise: NoteDate.text(millisecondsSince1970: now()))
        let old = try sameName(uuid, user, database)
        if let old, old.state != .pruned {
            guard contract.creation.comparesDuplicates else {
                throw HTTPProblem(fields: ["uuid": "Document with this UUID already exists."])
            }
            if old.state == .deleted { throw conflict("A note of this name was deleted", old) }
            guard old.has(title: title, text: text, date: fields.date == .missing ? old.note.date : date.stored) else {
                throw conflict("A note of this name is there, and says something else", old)
            }
            return written(.ok, old, typed: nil)
        }
        base = max(base, old?.note.revision.number ?? 0)
        let note = Note(
            uuid: uuid, revision: Revision(number: base + 1, suffix: makeUUID()), date: date.stored, title: title,
            text: text)
        return try written(
            .created, StoredNote(note).save(database, owner: user, at: now(), served: served()), typed: date.typed)
    }

    /// What has this name, where names are each user's own or everybody's.
    private func sameName(_ uuid: String, _ user: String, _ database: Database) throws -> StoredNote? {
        switch contract.idFormat {
        case .uuid: try StoredNote.find(database, owner: user, uuid: uuid)
        case .text: try StoredNote.find(database, uuid: uuid)
        }
    }

    private func name(of fields: NoteFields, _ request: APIRequest) throws -> String {
        switch (fields.uuid, contract.idFormat) {
        case (.missing, _):
            if contract.creation.requiresID && request.key == nil {
                throw HTTPProblem(fields: ["uuid": "This field is required, or else an Idempotency-Key."])
            }
            return makeUUID()
        case (.text(let text), .uuid):
            guard let name = UUIDText.normalised(text) else {
                throw HTTPProblem(fields: ["uuid": "Expected a UUID as RFC 9562 writes it."])
            }
            return name
        case (.text(let text), .text) where text.isEmpty:
            throw HTTPProblem(fields: ["uuid": "This field is required."])
        case (.null, .text): throw HTTPProblem(fields: ["uuid": "This field is required."])
        case (.text(let text), .text):
            guard text.unicodeScalars.count <= 255, !text.unicodeScalars.contains("\0") else {
                throw HTTPProblem(fields: ["uuid": "Ensure this value has at most 255 characters, none of them NUL."])
            }
            return text
        case (.null, .uuid), (.wrongType, _): throw HTTPProblem(fields: ["uuid": "Expected a UUID, or none."])
        }
    }

    /// The number of writes that a new note is said to have behind it.
    private func base(_ field: NoteFields.Field) throws -> Int {
        switch (contract.creation.revision, field) {
        case (.ignored, _), (_, .missing), (.continued, .null): return 0
        case (.refused, _): throw HTTPProblem(fields: ["revision": "A new note has none yet."])
        case (.continued, .text(let text)):
            let digits = text.utf8.prefix { $0 != UInt8(ascii: "-") }
            guard digits.count < text.utf8.count, text.utf8.count <= Revision.lengthMax,
                let number = Int(String(decoding: digits, as: UTF8.self)),
                (0..<1 << 53).contains(number)
            else { throw HTTPProblem(fields: ["revision": "Expected a number, a dash and something."]) }
            return number
        case (.continued, .wrongType):
            throw HTTPProblem(fields: ["revision": "Expected a number, a dash and something."])
        }
    }
}
