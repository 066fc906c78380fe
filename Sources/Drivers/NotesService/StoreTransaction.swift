internal import GRDB
internal import NotesContract

/// The access to a store within one transaction: a SQLite database, or collections in memory.
enum StoreTransaction {
    case sqlite(Database)
    case memory(NotesMemory)

    /// The collections; `nil` for a database.
    var memory: NotesMemory? {
        if case .memory(let memory) = self { memory } else { nil }
    }

    /// Returns the database; throws for a store in memory.
    func database(for feature: String) throws -> Database {
        switch self {
        case .sqlite(let database): return database
        case .memory: throw NotesStoreError("a store without SQLite has no \(feature)")
        }
    }
}

/// A note of a list: the current row of a running query, or a note in memory.
enum NoteRow {
    case sqlite(SQLiteRow)
    /// A note with its number among the rows of its list (``StoredNote/Column/listPosition``).
    case memory(StoredNote, position: Int)

    /// Whether the note is a tombstone.
    var isDeleted: Bool {
        switch self {
        case .sqlite(let row): row.integer(StoredNote.Column.state) == StoredNote.State.deleted.rawValue
        case .memory(let note, _): note.state == .deleted
        }
    }

    /// Whether the note is pinned.
    var isPinned: Bool {
        switch self {
        case .sqlite(let row): row.integer(StoredNote.Column.pinned) != 0
        case .memory(let note, _): note.isPinned
        }
    }

    /// The position in the order of its owner's writes.
    var sequence: Int {
        switch self {
        case .sqlite(let row): row.integer(StoredNote.Column.sequence)
        case .memory(let note, _): note.sequence
        }
    }

    /// The row's identifier on the first page of a list; on later ones the index in the array of identifiers.
    var listPosition: Int {
        switch self {
        case .sqlite(let row): row.integer(StoredNote.Column.listPosition)
        case .memory(_, let position): position
        }
    }

    /// The date as it is stored.
    var date: String {
        switch self {
        case .sqlite(let row): row.text(StoredNote.Column.date) ?? ""
        case .memory(let note, _): note.note.date
        }
    }

    /// The columns that lists have as JSON strings.
    enum TextColumn { case uuid, date, title, text }

    /// Appends a column as a JSON string, or `null`, to a list.
    func append(_ column: TextColumn, to bytes: inout JSONBuffer) {
        switch self {
        case .sqlite(let row):
            switch column {
            case .uuid: bytes.append(string: row.bytes(StoredNote.Column.uuid))
            case .date: bytes.append(string: row.bytes(StoredNote.Column.date))
            case .title: bytes.append(string: row.bytes(StoredNote.Column.title))
            case .text: bytes.append(string: row.bytes(StoredNote.Column.text))
            }
        case .memory(let note, _):
            switch column {
            case .uuid: bytes.append(string: note.note.uuid)
            case .date: bytes.append(string: note.note.date)
            case .title: bytes.append(string: note.note.title)
            case .text: bytes.append(string: note.note.text)
            }
        }
    }

    /// Appends the revision as a JSON string to a list.
    func appendRevision(to bytes: inout JSONBuffer) {
        switch self {
        case .sqlite(let row):
            bytes.append(
                revision: row.integer(StoredNote.Column.number), row.bytes(StoredNote.Column.suffix))
        case .memory(let note, _):
            var suffix = note.note.revision.suffix
            suffix.withUTF8 { bytes.append(revision: note.note.revision.number, UnsafeRawBufferPointer($0)) }
        }
    }
}

extension JSONBuffer {
    /// Appends a JSON string, or `null`.
    mutating func append(string: String?) {
        guard var string else { return append("null") }
        string.withUTF8 { append(string: UnsafeRawBufferPointer($0)) }
    }
}
