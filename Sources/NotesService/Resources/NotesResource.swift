internal import GRDB
internal import HTTPTypes
internal import NotesContract

/// `/api/notes/`: all of a user's notes, and new ones.
extension NotesService {
    func answerNotes(_ call: Call, _ user: String) throws -> Answer {
        if call.method == .post {
            let fields = Result { try call.fields(mergePatchToo: false) }
            return try write(call, user) { try create(call, user, fields.get(), $0) }
        }
        return try list(call, user) { database in
            let rows = try StoredNote.rows(
                database, owner: user, dialect.reading.isByDate ? .byDate : .bySequence)
            return (rows, { $0.state == .there ? ",\(self.json(of: $0.note))" : nil })
        }
    }

    /// An array of what is made of each row that is still there when its turn comes.
    func list(
        _ call: Call, _ user: String, texts: Bool = true,
        _ choose: (Database) throws -> (rows: [Int64], show: Show)
    ) throws -> Answer {
        let fields = call.request.headerFields
        let (tag, chosen) = try store.read { database -> (String?, (rows: [Int64], show: Show)?) in
            let tag = try dialect.features.contains(.validators) ? listTag(user, database) : nil
            if let tag, let known = fields[.ifNoneMatch], ETags.matches(known, tag, weakCounts: true) {
                return (tag, nil)
            }
            return try (tag, choose(database))
        }
        var answer = Answer(chosen == nil ? .notModified : .ok)
        if let tag { answer[.eTag] = "\"\(tag)\"" }
        if let chosen {
            answer.body = try body(of: chosen.rows, of: user, texts: texts, head: "[", tail: "]", chosen.show)
        }
        return answer
    }

    /// What is shown of a note; `nil` for nothing.
    typealias Show = @Sendable (StoredNote) -> String?

    /// Names a state of all of a user's notes and tombstones.
    private func listTag(_ user: String, _ database: Database) throws -> String {
        try "\(NotesStore.setting("epoch", database)).\(StoredNote.lastSequence(database, owner: user))"
            + ".\(StoredNote.prunedSequence(database, owner: user))"
    }

    /// Rows as text: whole if that is short.
    func body(
        of rows: [Int64], of user: String, texts: Bool = true, head: String, tail: String, _ show: @escaping Show
    ) throws -> Body {
        let pages = Pages.of(rows, head: head, tail: tail) { [store] rest in
            try store.read { database in
                var text = ""
                var used = 0
                let find = try StoredNote.finder(database, owner: user, texts: texts)
                for row in rest {
                    used += 1
                    if let note = try find(row), note.state != .pruned, let shown = show(note) { text += shown }
                    if text.utf8.count >= NotesService.pageBytes || used == 1000 { break }
                }
                return (text, used)
            }
        }
        guard rows.count > 1000 else {
            // Perhaps one page is all of it.
            let first = try pages.next() ?? ""
            guard let second = try pages.next() else { return .text(first) }
            return .pages(pages.preceded(by: [first, second]))
        }
        return .pages(pages)
    }

    private func create(_ call: Call, _ user: String, _ fields: NoteRequest, _ database: Database) throws -> Answer {
        let uuid = try name(of: fields, call)
        var base = try self.base(fields.revision)
        let title = try fields.title.value("title", otherwise: nil)
        let text = try fields.text.value("text", otherwise: nil)
        let date = try self.date(fields.date, otherwise: NoteDate.text(millisecondsSince1970: now()))
        let old = try sameName(uuid, user, database)
        if let old, old.state != .pruned {
            guard dialect.creation.secondIsCompared else {
                throw Refusal(fields: ["uuid": "Document with this UUID already exists."])
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
        return try written(.created, StoredNote(note).save(database, owner: user, at: now()), typed: date.typed)
    }

    /// What has this name, where names are each user's own or everybody's.
    private func sameName(_ uuid: String, _ user: String, _ database: Database) throws -> StoredNote? {
        switch dialect.naming {
        case .uuid: try StoredNote.find(database, owner: user, uuid: uuid)
        case .text: try StoredNote.find(database, uuid: uuid)
        }
    }

    private func name(of fields: NoteRequest, _ call: Call) throws -> String {
        switch (fields.uuid, dialect.naming) {
        case (.missing, _):
            if dialect.creation.needsName && call.key == nil {
                throw Refusal(fields: ["uuid": "This field is required, or else an Idempotency-Key."])
            }
            return makeUUID()
        case (.text(let text), .uuid):
            guard let name = UUIDText.normalised(text) else {
                throw Refusal(fields: ["uuid": "Expected a UUID as RFC 9562 writes it."])
            }
            return name
        case (.text(let text), .text) where text.isEmpty:
            throw Refusal(fields: ["uuid": "This field is required."])
        case (.null, .text): throw Refusal(fields: ["uuid": "This field is required."])
        case (.text(let text), .text):
            guard text.unicodeScalars.count <= 255, !text.unicodeScalars.contains("\0") else {
                throw Refusal(fields: ["uuid": "Ensure this value has at most 255 characters, none of them NUL."])
            }
            return text
        case (.null, .uuid), (.wrongType, _): throw Refusal(fields: ["uuid": "Expected a UUID, or none."])
        }
    }

    /// The number of writes that a new note is said to have behind it.
    private func base(_ field: NoteRequest.Field) throws -> Int {
        switch (dialect.creation.revision, field) {
        case (.ignored, _), (_, .missing), (.continued, .null): return 0
        case (.refused, _): throw Refusal(fields: ["revision": "A new note has none yet."])
        case (.continued, .text(let text)):
            let digits = text.utf8.prefix { $0 != UInt8(ascii: "-") }
            guard digits.count < text.utf8.count, text.utf8.count <= Revision.lengthMax,
                let number = Int(String(decoding: digits, as: UTF8.self)),
                (0..<1 << 53).contains(number)
            else { throw Refusal(fields: ["revision": "Expected a number, a dash and something."]) }
            return number
        case (.continued, .wrongType):
            throw Refusal(fields: ["revision": "Expected a number, a dash and something."])
        }
    }
}
