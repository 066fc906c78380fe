internal import Foundation
internal import GRDB
internal import JSON
internal import NotesContract

/// A note with what the server knows about it.
struct StoredNote {
    var note: Note
    var state = State.there
    var isPinned = false
    /// Where it is in the order of its owner's writes.
    private(set) var sequence = 0
    /// When it was last written, in milliseconds since 1970.
    private(set) var modified = 0
    private(set) var owner = ""

    enum State: Int {
        case there, deleted
        /// Nothing is left but the number from which a note of this name would go on.
        case pruned
    }

    enum Order { case bySequence, byDate }

    init(_ note: Note) { self.note = note }

    /// The columns, in the order in which ``init(_:)`` takes them: by their names it takes GRDB twice as long.
    private static let columns = "owner, uuid, number, suffix, date, title, text, state, pinned, sequence, modified"

    private init(_ row: Row) {
        func text(_ index: Int) throws -> String? {
            try row.withUnsafeData(atIndex: index) { $0.map { String(decoding: $0, as: UTF8.self) } }
        }
        note = Note(
            uuid: row[1], revision: Revision(number: row[2], suffix: row[3]), date: row[4],
            title: try? text(5), text: try? text(6))
        state = State(rawValue: row[7]) ?? .there
        isPinned = row[8]
        sequence = row[9]
        modified = row[10]
        owner = row[0]
    }

    /// The index entry of it.
    var entry: IndexEntry {
        IndexEntry(uuid: note.uuid, revision: note.revision, isDeleted: state == .deleted, isPinned: isPinned)
    }

    /// Whether it has this content, byte for byte: texts that only look the same are not.
    func has(title: String?, text: String?, date: String) -> Bool {
        func isSame(_ left: String?, _ right: String?) -> Bool {
            switch (left, right) {
            case (nil, nil): true
            case (let left?, let right?): left.utf8.elementsEqual(right.utf8)
            default: false
            }
        }
        return isSame(note.title, title) && isSame(note.text, text) && note.date == date
    }

    // MARK: Finding

    static func find(_ database: Database, owner: String, uuid: String) throws -> StoredNote? {
        try Row.fetchOne(
            database.cachedStatement(sql: "SELECT \(columns) FROM note WHERE owner = ? AND uuid = ?"),
            arguments: [owner, uuid]
        ).map(StoredNote.init)
    }

    /// Whoever's it is.
    static func find(_ database: Database, uuid: String) throws -> StoredNote? {
        try Row.fetchOne(
            database.cachedStatement(sql: "SELECT \(columns) FROM note WHERE uuid = ? LIMIT 1"), arguments: [uuid]
        ).map(StoredNote.init)
    }

    /// Finds rows that were somebody's, if they still are.
    ///
    /// - Parameter texts: Whether title and text are wanted.
    static func finder(
        _ database: Database, owner: String, texts: Bool = true
    ) throws -> (Int64) throws -> StoredNote? {
        let columns = texts ? columns : columns.replacingOccurrences(of: "title, text", with: "NULL, NULL")
        let statement = try database.cachedStatement(sql: "SELECT \(columns) FROM note WHERE id = ? AND owner = ?")
        return { try Row.fetchOne(statement, arguments: [$0, owner]).map(StoredNote.init) }
    }

    /// The rows of a user's notes.
    ///
    /// - Parameters:
    ///   - deletedToo: Whether tombstones are among them.
    ///   - sequence: Only what was written after it.
    ///   - limit: At most so many.
    static func rows(
        _ database: Database, owner: String, _ order: Order, deletedToo: Bool = false, after sequence: Int = -1,
        limit: Int = .max
    ) throws -> [Int64] {
        try Int64.fetchAll(
            database.cachedStatement(
                sql: """
                    SELECT id FROM note WHERE owner = ? AND state <= ? AND sequence > ?
                    ORDER BY \(order == .byDate ? "date, uuid" : "sequence") LIMIT ?
                    """),
            arguments: [owner, deletedToo ? State.deleted.rawValue : State.there.rawValue, sequence, limit])
    }

    /// Where a user's writes have got to.
    static func lastSequence(_ database: Database, owner: String) throws -> Int {
        try Int.fetchOne(
            database.cachedStatement(sql: "SELECT MAX(sequence) FROM note WHERE owner = ?"), arguments: [owner]) ?? 0
    }

    /// Up to where in the order of a user's writes tombstones have been forgotten.
    static func prunedSequence(_ database: Database, owner: String) throws -> Int {
        try Int.fetchOne(
            database.cachedStatement(sql: "SELECT sequence FROM pruned WHERE owner = ?"), arguments: [owner]) ?? 0
    }

    // MARK: Writing

    /// Writes it as the last one of its owner's; gives it as it is then.
    func save(_ database: Database, owner: String, at now: Int) throws -> StoredNote {
        var saved = self
        saved.owner = owner
        saved.sequence = try StoredNote.lastSequence(database, owner: owner) + 1
        saved.modified = max(now, modified)
        let statement = try database.cachedStatement(
            sql: """
                INSERT INTO note (\(StoredNote.columns))
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (owner, uuid) DO UPDATE SET
                    number = excluded.number, suffix = excluded.suffix, date = excluded.date, title = excluded.title,
                    text = excluded.text, state = excluded.state, pinned = excluded.pinned,
                    sequence = excluded.sequence, modified = excluded.modified
                """)
        try statement.execute(arguments: [
            owner, note.uuid, note.revision.number, note.revision.suffix, note.date, note.title.map { Data($0.utf8) },
            note.text.map { Data($0.utf8) }, state.rawValue, isPinned, saved.sequence, saved.modified,
        ])
        return saved
    }

    /// Removes every trace.
    func erase(_ database: Database) throws {
        try database.execute(
            sql: "DELETE FROM note WHERE owner = ? AND uuid = ?", arguments: [owner, note.uuid])
    }

    /// Forgets what was deleted before `moment`, but for how far the numbers had got.
    static func prune(_ database: Database, before moment: Int) throws {
        try database.execute(
            sql: """
                INSERT INTO pruned SELECT owner, MAX(sequence) FROM note WHERE state = 1 AND modified < ?1 GROUP BY owner
                    ON CONFLICT (owner) DO UPDATE SET sequence = MAX(sequence, excluded.sequence);
                """, arguments: [moment])
        try database.execute(
            sql: "UPDATE note SET state = 2, suffix = '', date = '' WHERE state = 1 AND modified < ?",
            arguments: [moment])
    }
}
