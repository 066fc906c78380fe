internal import Foundation
internal import GRDB
internal import NotesContract
internal import Wire

/// A note as stored in the database.
struct StoredNote {
    var note: Note
    var state = State.live
    var isPinned = false
    /// The position in the order of its owner's writes.
    private(set) var sequence = 0
    /// The time of the last write in milliseconds since 1970.
    private(set) var modified = 0
    private(set) var owner = ""

    enum State: Int {
        case live
        /// A tombstone.
        case deleted
        /// An expired tombstone. It keeps the revision number, which a new note with this `uuid` continues.
        case pruned
    }

    enum Order { case bySequence, byDate }

    init(_ note: Note) { self.note = note }

    /// The columns, in the order of ``Column``.
    private static let columns = "owner, uuid, number, suffix, date, title, text, state, pinned, sequence, modified"

    /// The index of each column in ``columns``.
    enum Column {
        static let owner: CInt = 0
        static let uuid: CInt = 1
        static let number: CInt = 2
        static let suffix: CInt = 3
        static let date: CInt = 4
        static let title: CInt = 5
        static let text: CInt = 6
        static let state: CInt = 7
        static let pinned: CInt = 8
        static let sequence: CInt = 9
        static let modified: CInt = 10
        /// Only in list queries: the row's `id` on the first page, and the index in the array of ids on later pages.
        static let listPosition: CInt = 11
    }

    init(_ row: NoteRow) {
        switch row {
        case .sqlite(let row): self.init(row)
        case .memory(let note, _): self = note
        }
    }

    init(_ row: SQLiteRow) {
        note = Note(
            uuid: row.text(Column.uuid) ?? "",
            revision: Revision(number: row.integer(Column.number), suffix: row.text(Column.suffix) ?? ""),
            date: row.text(Column.date) ?? "", title: row.text(Column.title), text: row.text(Column.text))
        state = State(rawValue: row.integer(Column.state)) ?? .live
        isPinned = row.integer(Column.pinned) != 0
        sequence = row.integer(Column.sequence)
        modified = row.integer(Column.modified)
        owner = row.text(Column.owner) ?? ""
    }

    /// The entry in the index.
    var entry: IndexEntry {
        IndexEntry(uuid: note.uuid, revision: note.revision, isDeleted: state == .deleted, isPinned: isPinned)
    }

    /// Returns whether the note has this content, compared by bytes.
    func hasContent(title: String?, text: String?, date: String) -> Bool {
        func isSame(_ left: String?, _ right: String?) -> Bool {
            switch (left, right) {
            case (nil, nil): true
            case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
            default: false
            }
        }
        return isSame(note.title, title) && isSame(note.text, text) && note.date == date
    }

    // MARK: Queries

    static func find(_ transaction: StoreTransaction, owner: String, uuid: String) throws -> StoredNote? {
        guard case .sqlite(let database) = transaction else {
            return transaction.memory?.note(owner: owner, uuid: uuid)
        }
        return try database.cachedStatement(sql: "SELECT \(columns) FROM note WHERE owner = ? AND uuid = ?")
            .firstRow([owner, uuid], StoredNote.init)
    }

    /// Returns the note of any owner.
    static func find(_ transaction: StoreTransaction, uuid: String) throws -> StoredNote? {
        guard case .sqlite(let database) = transaction else { return transaction.memory?.note(uuid: uuid) }
        return try database.cachedStatement(sql: "SELECT \(columns) FROM note WHERE uuid = ? LIMIT 1")
            .firstRow([uuid], StoredNote.init)
    }

    /// The selection of notes for a list.
    struct Selection {
        let owner: String
        var order = Order.bySequence
        /// Whether tombstones are included.
        var includesDeleted = false
        /// The sequence after which notes are selected.
        var afterSequence = -1
        /// The maximum number of notes.
        var limit = Int.max

        fileprivate var lastState: Int { (includesDeleted ? State.deleted : .live).rawValue }
    }

    /// Calls `body` with each row of a selection until it returns `false`, in one query.
    static func forEachRow(
        _ transaction: StoreTransaction, _ selection: Selection, _ body: (NoteRow) throws -> Bool
    ) throws {
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory):
            for row in memory.rows(selection, lastState: selection.lastState) { guard try body(row) else { return } }
            return
        }
        try database.cachedStatement(
            sql: """
                SELECT \(columns), id FROM note WHERE owner = ? AND state <= ? AND sequence > ?
                ORDER BY \(selection.order == .byDate ? "date, uuid" : "sequence") LIMIT ?
                """
        ).forEachRow([selection.owner, selection.lastState, selection.afterSequence, selection.limit]) {
            try body(.sqlite($0))
        }
    }

    /// Calls `body` with each of the given rows, in the order of `ids`, until it returns `false`, in one query. Rows
    /// that no longer belong to the selection are skipped.
    static func forEachRow(
        _ transaction: StoreTransaction, ids: ArraySlice<Int64>, _ selection: Selection,
        _ body: (NoteRow) throws -> Bool
    ) throws {
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory):
            for row in memory.rows(ids: ids, selection, lastState: selection.lastState) {
                guard try body(row) else { return }
            }
            return
        }
        // A CROSS JOIN's left table is the outer loop (SQLite's query planner, "manual control").
        try database.cachedStatement(
            sql: """
                SELECT \(columns), wanted.key FROM json_each(?) AS wanted CROSS JOIN note
                    ON note.id = wanted.value AND owner = ? AND state <= ?
                """
        ).forEachRow(
            ["[\(ids.map(String.init).joined(separator: ","))]", selection.owner, selection.lastState]
        ) { try body(.sqlite($0)) }
    }

    /// The position in a user's sequence of writes.
    struct Position {
        /// The identifier of the history; a restored snapshot starts a new one.
        let epoch: String
        /// The sequence of the last write.
        let sequence: Int
        /// The sequence of the last pruned tombstone.
        let pruned: Int
    }

    /// Returns a user's position, in one query.
    ///
    /// - Parameter epoch: The identifier of the history of a store in memory.
    static func position(_ transaction: StoreTransaction, owner: String, epoch: String) throws -> Position {
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory):
            let (last, pruned) = memory.sequences(owner: owner)
            return Position(epoch: epoch, sequence: last, pruned: pruned)
        }
        return try database.cachedStatement(
            sql: """
                SELECT (SELECT value FROM setting WHERE name = 'epoch'),
                    (SELECT MAX(sequence) FROM note WHERE owner = ?1), (SELECT sequence FROM pruned WHERE owner = ?1)
                """
        ).firstRow([owner]) {
            Position(epoch: $0.text(0) ?? "", sequence: $0.integer(1), pruned: $0.integer(2))
        } ?? Position(epoch: "", sequence: 0, pruned: 0)
    }

    /// Returns the sequence of a user's last write.
    private static func lastSequence(_ transaction: StoreTransaction, owner: String) throws -> Int {
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory): return memory.sequences(owner: owner).last
        }
        return try Int.fetchOne(
            database.cachedStatement(sql: "SELECT MAX(sequence) FROM note WHERE owner = ?"), arguments: [owner]) ?? 0
    }

    // MARK: Writes

    /// Writes the note as the last one of its owner and returns it as stored.
    ///
    /// - Parameters:
    ///   - now: Milliseconds since 1970, for `Last-Modified`.
    ///   - uptime: The current ``DatabaseUptime``, stored as the start of a tombstone.
    func save(_ transaction: StoreTransaction, owner: String, at now: Int, uptime: Int) throws -> StoredNote {
        var saved = self
        saved.owner = owner
        saved.sequence = try StoredNote.lastSequence(transaction, owner: owner) + 1
        saved.modified = max(now, modified)
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory):
            memory.save(saved, deleted: state == .deleted ? uptime : nil)
            return saved
        }
        let statement = try database.cachedStatement(
            sql: """
                INSERT INTO note (\(StoredNote.columns), deleted)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (owner, uuid) DO UPDATE SET
                    number = excluded.number, suffix = excluded.suffix, date = excluded.date, title = excluded.title,
                    text = excluded.text, state = excluded.state, pinned = excluded.pinned,
                    sequence = excluded.sequence, modified = excluded.modified, deleted = excluded.deleted
                """)
        try statement.execute(arguments: [
            owner, note.uuid, note.revision.number, note.revision.suffix, note.date, note.title.map { Data($0.utf8) },
            note.text.map { Data($0.utf8) }, state.rawValue, isPinned, saved.sequence, saved.modified,
            state == .deleted ? uptime : nil,
        ])
        return saved
    }

    /// Removes the row.
    func erase(_ transaction: StoreTransaction) throws {
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory): return memory.erase(owner: owner, uuid: note.uuid)
        }
        try database.execute(
            sql: "DELETE FROM note WHERE owner = ? AND uuid = ?", arguments: [owner, note.uuid])
    }

    /// Prunes the tombstones of notes deleted before a time; their revision numbers are kept.
    ///
    /// - Parameter time: A ``DatabaseUptime``.
    static func prune(_ transaction: StoreTransaction, before time: Int) throws {
        let database: Database
        switch transaction {
        case .sqlite(let found): database = found
        case .memory(let memory): return memory.prune(before: time)
        }
        try database.cachedStatement(
            sql: """
                INSERT INTO pruned SELECT owner, MAX(sequence) FROM note WHERE state = 1 AND deleted < ?1 GROUP BY owner
                    ON CONFLICT (owner) DO UPDATE SET sequence = MAX(sequence, excluded.sequence)
                """
        ).execute(arguments: [time])
        try database.cachedStatement(
            sql: "UPDATE note SET state = 2, suffix = '', date = '', deleted = NULL WHERE state = 1 AND deleted < ?"
        ).execute(arguments: [time])
    }
}
