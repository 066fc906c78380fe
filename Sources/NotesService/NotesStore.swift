internal import Foundation
internal import GRDB
internal import GRDBSQLite
public import NotesContract

/// The server's notes in a SQLite database, in memory or in a file.
///
/// One connection, one transaction a request: whoever reads a revision and writes on it does both, or neither. A file is
/// written with a write-ahead log and `synchronous = FULL`: what has been answered is on the disk.
public final class NotesStore: Sendable {
    /// What the notes in it are called and how they are answered.
    public let contract: APIContract
    let queue: DatabaseQueue
    /// The file's path, or `memory`.
    let name: String
    private let makeEpoch: @Sendable () -> String

    /// The version of the schema this program writes.
    public static let schemaVersion = 3

    /// Opens a database, or makes one; `nil` keeps everything in memory.
    ///
    /// - Parameters:
    ///   - dialect: What the server will speak. A file keeps the form of its names: `orig` opens what `orig` has made.
    ///   - makeEpoch: Where the name of a history comes from, by which cursors know their own; by chance unless given.
    public init(
        path: String?, contract: APIContract = .compat,
        makeEpoch: (@Sendable () -> String)? = nil
    ) throws(NotesStoreError) {
        self.contract = contract
        let makeEpoch = makeEpoch ?? { String(UUID().uuidString.lowercased().prefix(8)) }
        self.makeEpoch = makeEpoch
        name = path ?? "memory"
        do {
            if let path {
                _ = try DatabaseFile.inspect(path, idFormat: contract.idFormat)
                // Nobody else's to read: it has what users wrote.
                if !FileManager.default.fileExists(atPath: path) {
                    _ = FileManager.default.createFile(
                        atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
                }
                var configuration = Configuration()
                configuration.busyMode = .timeout(5)
                configuration.prepareDatabase { database in
                    // SQLite opens what it may not write for reading, without a word.
                    guard sqlite3_db_readonly(database.sqliteConnection, "main") == 0 else {
                        throw DatabaseError(resultCode: .SQLITE_READONLY)
                    }
                    let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
                    guard mode == "wal" else {
                        throw NotesStoreError(
                            "\(path): no write-ahead log is possible there (\(mode ?? "none")); name a file on a local disk"
                        )
                    }
                    try database.execute(sql: "PRAGMA synchronous = FULL")
                }
                queue = try DatabaseQueue(path: path, configuration: configuration)
            } else {
                queue = try DatabaseQueue()
            }
            try queue.write { database in
                let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
                if version < NotesStore.schemaVersion {
                    try NotesStore.createSchema(database, from: version, contract, epoch: makeEpoch())
                }
            }
        } catch let error as NotesStoreError {
            throw error
        } catch {
            throw NotesStoreError(error, path: path ?? "memory")
        }
    }

    // What users write is kept as bytes: SQLite's text ends at a NUL when it is read.
    private static func createSchema(
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
                    -- What they were compared by is made of other things now.
                    DELETE FROM operation;
                    """)
        }
        // Since version 3 what is forgotten after a while is dated by ``ServedTime``, and tokens are kept as hashes that the
        // password is part of. So far time has not begun, and tokens have to be asked for again.
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
                PRAGMA application_id = \(DatabaseFile.applicationID);
                PRAGMA user_version = \(schemaVersion);
                """)
    }

    /// What the last run has left of its time; `nil` before the first has.
    func savedTime() throws -> DatabaseUptime? {
        try read { database in
            guard let served = try Int(NotesStore.setting("served", database)),
                let tokens = try Int(NotesStore.setting("tokenTime", database)),
                let wall = try Int(NotesStore.setting("wall", database))
            else { return nil }
            return DatabaseUptime(served: served, tokens: tokens, wall: wall)
        }
    }

    static func save(_ time: DatabaseUptime, _ database: Database) throws {
        try database.execute(
            sql: """
                INSERT INTO setting VALUES ('served', ?), ('tokenTime', ?), ('wall', ?)
                    ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """, arguments: [String(time.served), String(time.tokens), String(time.wall)])
    }

    static func setting(_ name: String, _ database: Database) throws -> String {
        try String.fetchOne(
            database.cachedStatement(sql: "SELECT value FROM setting WHERE name = ?"), arguments: [name]) ?? ""
    }

    /// Puts a note there as if it had been written so often; for tests and scenarios.
    public func seed(_ note: Note, owner: String) throws(NotesStoreError) {
        try perform {
            try $0.write { _ = try StoredNote(note).save($0, owner: owner, at: 0, served: 0) }
        }
    }

    /// A user's notes, without those that are deleted, in the order in which they were last written.
    public func notes(of owner: String) throws(NotesStoreError) -> [Note] {
        try perform { queue in
            try queue.unsafeRead { database in
                var notes: [Note] = []
                try StoredNote.forEachRow(database, StoredNote.Selection(owner: owner)) {
                    notes.append(StoredNote($0).note)
                    return true
                }
                return notes
            }
        }
    }

    /// Reads. GRDB's own `read` sets a pragma each time, for which SQLite forgets every compiled statement; with one
    /// connection, which does one thing after the other, it would add nothing.
    func read<Result>(_ body: (Database) throws -> Result) throws -> Result { try queue.unsafeRead(body) }

    /// Whether the open file is no longer the one at its path.
    func hasMoved(_ database: Database) -> Bool {
        var hasMoved: CInt = 0
        let code = sqlite3_file_control(database.sqliteConnection, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
        return code == SQLITE_OK && hasMoved != 0
    }

    /// The `errno` of the last call that SQLite saw failing; 0 if there was none.
    var systemError: Int32 {
        queue.unsafeRead { database in
            let connection = database.sqliteConnection
            let code = sqlite3_system_errno(connection)
            if code != 0 { return code }
            // SQLite forgets it when a COMMIT fails; the write-ahead log and the file remember theirs.
            for pointer in [SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER] {
                var file: UnsafeMutablePointer<sqlite3_file>?
                guard sqlite3_file_control(connection, "main", pointer, &file) == SQLITE_OK,
                    let control = file?.pointee.pMethods?.pointee.xFileControl
                else { continue }
                var last: CInt = 0
                if control(file, SQLITE_FCNTL_LAST_ERRNO, &last) == SQLITE_OK, last != 0 { return last }
            }
            return 0
        }
    }

    // MARK: Snapshots

    /// Everything as it is now, in memory.
    public func snapshot() throws(NotesStoreError) -> NotesSnapshot {
        try perform { queue in
            let copy = try DatabaseQueue()
            try queue.backup(to: copy)
            return NotesSnapshot(queue: copy)
        }
    }

    /// Everything as it was. Cursors from before are no longer known.
    public func restore(_ snapshot: NotesSnapshot) throws(NotesStoreError) {
        let epoch = makeEpoch()
        try perform { queue in
            try snapshot.queue.backup(to: queue)
            try queue.write {
                try $0.execute(sql: "UPDATE setting SET value = ? WHERE name = 'epoch'", arguments: [epoch])
            }
        }
    }

    private func perform<Result>(_ body: (DatabaseQueue) throws -> Result) throws(NotesStoreError) -> Result {
        do { return try body(queue) } catch { throw NotesStoreError(error, path: "the database") }
    }
}

/// What a store had at some time.
public struct NotesSnapshot: Sendable {
    let queue: DatabaseQueue
}

/// Why a database cannot be used.
public struct NotesStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened.
    public let description: String

    init(_ description: String) { self.description = description }

    init(_ error: any Error, path: String) {
        guard let error = error as? DatabaseError else {
            self.init("\(path): \(error)")
            return
        }
        switch error.resultCode {
        case .SQLITE_NOTADB, .SQLITE_CORRUPT:
            self.init("\(path) is not a notes database, or a damaged one; name another file, or restore it from a copy")
        case .SQLITE_CANTOPEN:
            self.init("\(path) cannot be opened: no such directory, or no permission to make files in it")
        case .SQLITE_READONLY, .SQLITE_PERM:
            self.init("\(path) cannot be written; make the file and its directory writable, or name another file")
        case .SQLITE_FULL: self.init("\(path): the disk is full; free some space, or name a file on another disk")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init("\(path) is locked by another process; end that, or name another file")
        // Never the values: they are what users wrote.
        default: self.init("\(path): \(error.message ?? "database error") (\(error.resultCode.rawValue))")
        }
    }
}
