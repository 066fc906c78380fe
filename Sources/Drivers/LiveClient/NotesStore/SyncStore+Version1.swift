public import Client
internal import Foundation
internal import GRDB
internal import Wire

/// The layout of version 1, so that a scenario can replace version 1 of the client by this one.
extension SyncStore {
    /// The schema of version 1.
    static let schemaOfVersion1 = """
        CREATE TABLE note (
            uuid TEXT PRIMARY KEY, base TEXT, base_title BLOB, base_text BLOB, base_date TEXT,
            title BLOB, text BLOB, date TEXT NOT NULL, deleted INTEGER NOT NULL, edits INTEGER NOT NULL,
            in_conflict INTEGER NOT NULL, theirs TEXT, theirs_title BLOB, theirs_text BLOB, theirs_date TEXT,
            problem TEXT
        ) STRICT;
        CREATE TABLE outbox (
            sequence INTEGER PRIMARY KEY, operation TEXT NOT NULL, uuid TEXT NOT NULL, kind TEXT NOT NULL,
            title BLOB, text BLOB, date TEXT NOT NULL, edits INTEGER NOT NULL, base TEXT,
            attempts INTEGER NOT NULL
        ) STRICT;
        PRAGMA user_version = 1;
        """

    /// Returns a state of version 1 as this version reads it: the state is written in the layout of version 1, in memory,
    /// and migrated.
    ///
    /// - Parameter makeOperation: Returns the operation id of a change that version 1 has removed from its outbox.
    public static func migrate(
        version1 state: StoredState, makeOperation: @escaping () -> String
    ) throws(SyncStoreError) -> StoredState {
        let store = try SyncStore { database in
            try write(version1: state, database)
            try migrateVersion1(database, makeOperation: makeOperation)
        }
        defer { store.close() }
        return try store.load()
    }

    /// Rewrites a store of notes as version 1 of the client would have left it. No process may have the file open.
    public static func rewriteAsVersion1(path: String) throws(SyncStoreError) {
        let store = try SyncStore(path: path, resource: StoreFile.resourceOfVersion1)
        let loaded = Result { () throws(SyncStoreError) in try store.load() }
        store.close()
        let state = try loaded.get()
        let rewritten = path + "-version1"
        do {
            let queue = try DatabaseQueue(path: rewritten)
            try queue.writeWithoutTransaction { database in
                try database.inTransaction {
                    try write(version1: state, database)
                    return .commit
                }
            }
            try queue.close()
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
            guard rename(rewritten, path) == 0 else { throw SyncStoreError(systemError: errno, "replace", path) }
        } catch {
            throw SyncStoreError(error, path: path)
        }
    }

    /// Checks that a version of the client can open a store of notes; changes nothing.
    ///
    /// - Throws: A ``SyncStoreError`` of the kind ``SyncStoreError/Kind/newer`` if the store is of a later version.
    public static func check(path: String, canBeOpenedBy version: Int) throws(SyncStoreError) {
        _ = try StoreFile.inspect(
            try StoreFile.resolve(path), name: path, resource: StoreFile.resourceOfVersion1,
            supporting: version == 1 ? 1 : schemaVersion)
    }

    // MARK: Rows

    private static func write(version1 state: StoredState, _ database: Database) throws {
        try database.execute(sql: schemaOfVersion1)
        // Version 1 removed a rejected change from its outbox, and kept the reason.
        let isRejected: (OutboxEntry) -> Bool = { entry in
            if case .unknown = entry.kind { false } else { entry.parked != nil }
        }
        var problems: [RecordID: String] = [:]
        for entry in state.entries where isRejected(entry) { problems[entry.id] = entry.parked }
        for record in state.records {
            let (base, theirs) = (Fields(record.baseContent), Fields(record.theirs?.content))
            let mine = Fields(record.mine)
            try database.execute(
                sql: "INSERT INTO note VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                arguments: [
                    record.id.text, record.base?.description, base.title, base.text, base.date, mine.title, mine.text,
                    mine.date ?? "", record.isDeleted, record.edits, record.theirs != nil,
                    record.theirs?.revision?.description, theirs.title, theirs.text, theirs.date, problems[record.id],
                ])
        }
        for entry in state.entries where !isRejected(entry) {
            let content = Fields(entry.content)
            try database.execute(
                sql: "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                arguments: [
                    entry.sequence, entry.operation, entry.id.text, entry.kind.name, content.title, content.text,
                    content.date ?? "", entry.edits, entry.base?.description, entry.attempts,
                ])
        }
    }

    /// The columns of a note's content; all are NULL without a content.
    private struct Fields {
        let title: Data?
        let text: Data?
        let date: String?

        init(_ content: RecordContent?) {
            let note = content.map { NoteContent($0) }
            title = note?.title.map { Data($0.utf8) }
            text = note?.text.map { Data($0.utf8) }
            date = note?.date
        }
    }
}
