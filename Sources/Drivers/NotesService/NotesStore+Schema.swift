internal import GRDB

extension NotesStore {
    /// The version of the schema that this program writes.
    public static let schemaVersion = 4

    /// Creates the schema, or migrates it from an earlier version.
    ///
    /// User data is stored as BLOB, because SQLite truncates TEXT at a NUL when it is read.
    static func createSchema(
        _ database: Database, from version: Int, _ contract: APIContract, epoch: String
    ) throws {
        if version == 1 { try database.execute(sql: "ALTER TABLE note RENAME TO note1") }
        if version < 2 {
            try database.execute(
                sql: """
                    CREATE TABLE note (
                        id INTEGER PRIMARY KEY AUTOINCREMENT,
                        owner TEXT NOT NULL, uuid TEXT NOT NULL, number INTEGER NOT NULL, suffix TEXT NOT NULL,
                        date TEXT NOT NULL, title BLOB, text BLOB,
                        state INTEGER NOT NULL, pinned INTEGER NOT NULL, sequence INTEGER NOT NULL, modified INTEGER NOT NULL,
                        UNIQUE (owner, uuid)
                    ) STRICT;
                    CREATE UNIQUE INDEX noteBySequence ON note (owner, sequence);
                    CREATE INDEX noteByName ON note (uuid);
                    CREATE TABLE IF NOT EXISTS operation (
                        owner TEXT NOT NULL, key TEXT NOT NULL, digest INTEGER NOT NULL, status INTEGER NOT NULL,
                        etag TEXT, body TEXT NOT NULL, made INTEGER NOT NULL,
                        PRIMARY KEY (owner, key)
                    ) STRICT;
                    CREATE INDEX operationByAge ON operation (made);
                    CREATE TABLE pruned (owner TEXT PRIMARY KEY, sequence INTEGER NOT NULL) STRICT;
                    CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
                    """)
            try database.execute(
                sql: "INSERT INTO setting VALUES ('naming', ?), ('epoch', ?)",
                arguments: [(version == 1 ? APIContract.compat : contract).idFormat.rawValue, epoch])
        }
        if version == 1 {
            try database.execute(
                sql: """
                    INSERT INTO note (owner, uuid, number, suffix, date, title, text, state, pinned, sequence, modified)
                        SELECT owner, uuid, number, suffix, date, title, text, deleted, 0, sequence,
                            CAST(strftime('%s', 'now') AS INTEGER) * 1000
                        FROM note1 ORDER BY sequence;
                    DROP TABLE note1;
                    -- The digest of version 1 covers other parts of a request.
                    DELETE FROM operation;
                    """)
        }
        // Since version 3 expiry is measured by ``DatabaseUptime``, which begins at 0 here, and tokens are stored as
        // hashes that include the password. Tokens of earlier versions end.
        if version < 3 {
            try database.execute(
                sql: """
                    ALTER TABLE note ADD COLUMN deleted INTEGER;
                    UPDATE note SET deleted = 0 WHERE state = 1;
                    DROP INDEX IF EXISTS tombstoneByAge;
                    CREATE INDEX tombstoneByAge ON note (deleted) WHERE state = 1;
                    UPDATE operation SET made = 0;
                    DROP TABLE IF EXISTS token;
                    CREATE TABLE token (
                        id TEXT PRIMARY KEY, owner TEXT NOT NULL, kind TEXT NOT NULL, csrf TEXT, expires INTEGER NOT NULL,
                        proof TEXT NOT NULL
                    ) STRICT;
                    CREATE INDEX tokenByAge ON token (expires);
                    """)
        }
        // Version 4 adds attachments. Their bytes are stored in pieces. An attachment without a note is discarded;
        // later writes remove its pieces.
        try database.execute(
            sql: """
                CREATE TABLE attachment (
                    id INTEGER PRIMARY KEY AUTOINCREMENT,
                    note INTEGER, owner TEXT NOT NULL, name BLOB NOT NULL, length INTEGER NOT NULL, digest BLOB NOT NULL,
                    received INTEGER NOT NULL, hasher BLOB, touched INTEGER NOT NULL,
                    UNIQUE (note, name)
                ) STRICT;
                CREATE INDEX attachmentByOwner ON attachment (owner, length) WHERE note IS NOT NULL;
                CREATE INDEX attachmentDiscarded ON attachment (id) WHERE note IS NULL;
                CREATE INDEX attachmentIncomplete ON attachment (touched) WHERE hasher IS NOT NULL AND note IS NOT NULL;
                CREATE TABLE attachmentPiece (
                    attachment INTEGER NOT NULL, position INTEGER NOT NULL, bytes BLOB NOT NULL,
                    PRIMARY KEY (attachment, position)
                ) STRICT;
                PRAGMA application_id = \(DatabaseFile.applicationID);
                PRAGMA user_version = \(schemaVersion);
                """)
    }
}
