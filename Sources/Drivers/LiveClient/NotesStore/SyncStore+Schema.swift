internal import Client
internal import Foundation
internal import GRDB
internal import NotesContract
internal import Wire

extension SyncStore {
    /// The version of the schema that this program writes.
    public static let schemaVersion = 3
    /// The version whose outbox did not count server errors.
    static let versionWithoutErrors = 2

    /// Creates the schema in an empty database.
    ///
    /// Text is stored as BLOB, because SQLite truncates TEXT at a NUL when it is read.
    static func createSchema(_ database: Database, resource: String) throws {
        try database.execute(
            sql: """
                CREATE TABLE store (
                    only INTEGER PRIMARY KEY CHECK (only = 1), resource BLOB NOT NULL,
                    -- The highest sequence ever used.
                    last_sequence INTEGER NOT NULL
                ) STRICT;
                CREATE TABLE record (
                    id BLOB PRIMARY KEY NOT NULL, base BLOB, base_number INTEGER, base_content BLOB,
                    mine BLOB NOT NULL, deleted INTEGER NOT NULL, edits INTEGER NOT NULL,
                    in_conflict INTEGER NOT NULL, theirs BLOB, theirs_number INTEGER, theirs_content BLOB
                ) STRICT;
                CREATE TABLE outbox (
                    sequence INTEGER PRIMARY KEY, operation BLOB NOT NULL, id BLOB NOT NULL, kind BLOB NOT NULL,
                    content BLOB NOT NULL, edits INTEGER NOT NULL, base BLOB, base_number INTEGER,
                    attempts INTEGER NOT NULL, may_be_committed INTEGER NOT NULL, parked BLOB,
                    server_errors INTEGER NOT NULL
                ) STRICT;
                CREATE INDEX outboxByRecord ON outbox (id);
                CREATE TABLE quarantine (id BLOB PRIMARY KEY NOT NULL, reason BLOB NOT NULL) STRICT;
                CREATE TABLE account (
                    only INTEGER PRIMARY KEY CHECK (only = 1), user BLOB NOT NULL, server BLOB NOT NULL, history BLOB
                ) STRICT;
                CREATE TABLE index_state (
                    only INTEGER PRIMARY KEY CHECK (only = 1), cursor BLOB, entity_tag BLOB,
                    is_adopting INTEGER NOT NULL
                ) STRICT;
                \(attachmentTable)
                -- Records that other processes have changed since the holder of the lease looked.
                CREATE TABLE foreign_change (id BLOB PRIMARY KEY NOT NULL) STRICT, WITHOUT ROWID;
                -- Rows that could not be read, kept as they are.
                CREATE TABLE damaged_record AS SELECT * FROM record;
                CREATE TABLE damaged_outbox AS SELECT * FROM outbox;
                PRAGMA application_id = \(StoreFile.applicationID);
                PRAGMA user_version = \(schemaVersion);
                """)
        try database.execute(sql: "INSERT INTO store VALUES (1, ?, 0)", arguments: [Data(resource.utf8)])
    }

    /// Creates or migrates the schema, unless another process has done so since the inspection.
    static func prepareSchema(_ database: Database, name: String, resource: String) throws {
        var isMigrated = false
        try database.inTransaction(.immediate) {
            let id = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
            let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
            switch (id, version) {
            case (0, 0): try createSchema(database, resource: resource)
            case (0, 1):
                try migrateVersion1(database)
                isMigrated = true
            case (StoreFile.applicationID, versionWithoutErrors), (StoreFile.applicationID, schemaVersion):
                let stored = try Data.fetchOne(database, sql: "SELECT resource FROM store") ?? Data()
                try StoreFile.check(String(decoding: stored, as: UTF8.self), resource, name)
                try database.execute(sql: attachmentTable)
                if version == versionWithoutErrors { try addServerErrors(database) }
            case (StoreFile.applicationID, (schemaVersion + 1)...): throw StoreFile.newer(name, version)
            default: throw StoreFile.foreign(name, "application_id \(id), version \(version)")
            }
            return .commit
        }
        if isMigrated { try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    }

    /// Attachments whose bytes are in the folder beside the file.
    static let attachmentTable = """
        CREATE TABLE IF NOT EXISTS attachment (
            number INTEGER PRIMARY KEY AUTOINCREMENT, record BLOB NOT NULL, name BLOB NOT NULL,
            direction TEXT NOT NULL, size INTEGER, digest BLOB, entity_tag BLOB, state TEXT NOT NULL, reason BLOB,
            UNIQUE (record, name, direction)
        ) STRICT;
        """

    /// Migrates a store of version 2.
    private static func addServerErrors(_ database: Database) throws {
        try database.execute(
            sql: """
                ALTER TABLE outbox ADD COLUMN server_errors INTEGER NOT NULL DEFAULT 0;
                ALTER TABLE damaged_outbox ADD COLUMN server_errors INTEGER NOT NULL DEFAULT 0;
                PRAGMA user_version = \(schemaVersion);
                """)
    }

    /// Migrates the notes of a store of version 1.
    ///
    /// Version 1 knew no account. Until a whole index has been read, an absent note is a conflict and is not deleted,
    /// because the server may be another one.
    ///
    /// - Parameter makeOperation: Returns the operation id of a change that version 1 has removed from its outbox.
    static func migrateVersion1(
        _ database: Database, makeOperation: () -> String = { UUID().uuidString.lowercased() }
    ) throws {
        try database.execute(
            sql: "ALTER TABLE note RENAME TO note1; ALTER TABLE outbox RENAME TO outbox1")
        try createSchema(database, resource: StoreFile.resourceOfVersion1)
        var sequence = try Int.fetchOne(database, sql: "SELECT max(sequence) FROM outbox1") ?? 0

        let entries = try Row.fetchCursor(
            database,
            sql: """
                SELECT sequence, operation, uuid, kind, CAST(title AS BLOB) AS title, CAST(text AS BLOB) AS text, date,
                    edits, base, attempts
                FROM outbox1
                """)
        while let row = try entries.next() {
            let attempts: Int = row["attempts"]
            // Version 1 kept no entry that was known to be executed, so an attempt has an unknown outcome.
            try OutboxEntry(
                operation: row["operation"], sequence: row["sequence"], id: RecordID(row["uuid"]),
                kind: OutboxEntry.Kind(name: row["kind"]),
                content: NoteContent(version1: row, "", date: row["date"]).encoded, edits: row["edits"],
                base: RecordRevision(version1: row["base"]), attempts: attempts, mayBeCommitted: attempts > 0
            ).save(database)
        }

        let notes = try Row.fetchCursor(database, sql: "SELECT * FROM note1 ORDER BY uuid")
        while let row = try notes.next() {
            let isInConflict: Bool = row["in_conflict"]
            func content(_ prefix: String) -> RecordContent? {
                let date: String? = row["\(prefix)date"]
                return date.map { NoteContent(version1: row, prefix, date: $0).encoded }
            }
            let record = LocalRecord(
                id: RecordID(row["uuid"]), base: RecordRevision(version1: row["base"]), baseContent: content("base_"),
                mine: NoteContent(version1: row, "", date: row["date"]).encoded, isDeleted: row["deleted"],
                edits: row["edits"],
                theirs: isInConflict
                    ? LocalRecord.Theirs(
                        revision: RecordRevision(version1: row["theirs"]), content: content("theirs_")) : nil)
            try record.save(database)
            if let problem: String = row["problem"] {
                try park(record, because: problem, database, after: &sequence, makeOperation)
            }
        }
        try database.execute(
            sql: """
                DROP TABLE note1;
                DROP TABLE outbox1;
                UPDATE store SET last_sequence = \(sequence);
                """)
        try IndexState(isAdopting: true).save(database)
    }

    /// Parks the change that the server rejected. Version 1 removed such a change from the outbox.
    private static func park(
        _ record: LocalRecord, because problem: String, _ database: Database, after sequence: inout Int,
        _ makeOperation: () -> String
    ) throws {
        let count = try Int.fetchOne(
            database, sql: "SELECT count(*) FROM outbox WHERE id = ?", arguments: [record.id.data])
        guard count == 0 else {
            return try database.execute(
                sql: """
                    UPDATE outbox SET parked = ?
                    WHERE sequence = (SELECT min(sequence) FROM outbox WHERE id = ?)
                    """, arguments: [Data(problem.utf8), record.id.data])
        }
        // The deletion of a note that the server never acknowledged follows its creation.
        let kinds: [OutboxEntry.Kind] =
            record.base == nil
            ? record.isDeleted ? [.create, .delete] : [.create] : record.isDeleted ? [.delete] : [.update]
        for (index, kind) in kinds.enumerated() {
            sequence += 1
            let isFirst = index == 0
            try OutboxEntry(
                operation: makeOperation(), sequence: sequence, id: record.id, kind: kind,
                content: record.mine, edits: record.edits, base: isFirst ? record.base : nil,
                attempts: isFirst ? 1 : 0, mayBeCommitted: isFirst, parked: isFirst ? problem : nil
            ).save(database)
        }
    }
}

extension NoteContent {
    /// Reads a title and a text of version 1.
    fileprivate init(version1 row: Row, _ prefix: String, date: String) {
        func text(_ name: String) -> String? {
            let data: Data? = row[prefix + name]
            return data.map { String(decoding: $0, as: UTF8.self) }
        }
        self.init(title: text("title"), text: text("text"), date: date)
    }
}

extension RecordRevision {
    fileprivate init?(version1 text: String?) {
        guard let text else { return nil }
        self.init(text, number: Revision(text)?.number)
    }
}
