internal import Foundation
internal import GRDB
internal import GRDBSQLite
public import NotesContract
internal import Synchronization

/// The notes of a server in a SQLite database, in memory or in a file, or in collections (``NotesMemory``).
///
/// A database has one connection and runs each write request in one transaction, so that the check of the base revision
/// and the write are atomic. A file uses a write-ahead log with `synchronous = FULL`: a response is sent after its
/// write is on the disk.
public final class NotesStore: Sendable {
    /// The API contract.
    public let contract: APIContract
    private let content: Content
    /// The file's path, or `memory`.
    let name: String
    private let makeEpoch: @Sendable () -> String
    private let cachedEpoch = Mutex("")

    private enum Content {
        case database(DatabaseQueue)
        case memory(NotesMemory)
    }

    /// The identifier of the history, as in the `setting` table.
    var epoch: String { cachedEpoch.withLock { $0 } }

    /// Opens or creates a database.
    ///
    /// - Parameters:
    ///   - path: The file; `nil` keeps the notes in memory.
    ///   - contract: The API contract. A file keeps its format of `uuid`: only `orig` opens a file that `orig` created.
    ///   - makeEpoch: Returns a new history identifier, which is part of every cursor; random by default.
    public init(
        path: String?, contract: APIContract = .compat,
        makeEpoch: (@Sendable () -> String)? = nil
    ) throws(NotesStoreError) {
        self.contract = contract
        let makeEpoch = makeEpoch ?? { String(UUID().uuidString.lowercased().prefix(8)) }
        self.makeEpoch = makeEpoch
        name = path ?? "memory"
        do {
            let queue: DatabaseQueue
            if let path {
                _ = try DatabaseFile.inspect(path, idFormat: contract.idFormat)
                // Only the owner may read the file, because it holds user data.
                if !FileManager.default.fileExists(atPath: path) {
                    _ = FileManager.default.createFile(
                        atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
                }
                var configuration = Configuration()
                configuration.busyMode = .timeout(5)
                configuration.prepareDatabase { database in
                    // SQLite silently opens a file without write permission read-only.
                    guard sqlite3_db_readonly(database.sqliteConnection, "main") == 0 else {
                        throw DatabaseError(resultCode: .SQLITE_READONLY)
                    }
                    let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL")
                    guard mode == "wal" else {
                        throw NotesStoreError(
                            "\(path): the file system does not support a write-ahead log (\(mode ?? "none")); "
                                + "name a file on a local disk"
                        )
                    }
                    try database.execute(sql: "PRAGMA synchronous = FULL")
                }
                queue = try DatabaseQueue(path: path, configuration: configuration)
            } else {
                queue = try DatabaseQueue()
            }
            content = .database(queue)
            try queue.write { database in
                let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
                if version < NotesStore.schemaVersion {
                    try NotesStore.createSchema(database, from: version, contract, epoch: makeEpoch())
                }
                let epoch = try NotesStore.setting("epoch", database)
                cachedEpoch.withLock { $0 = epoch }
            }
        } catch let error as NotesStoreError {
            throw error
        } catch {
            throw NotesStoreError(error, path: path ?? "memory")
        }
    }

    /// Creates a store in collections, which has no attachments, snapshots and files: the same responses at a fraction
    /// of the time, for explorations.
    ///
    /// - Parameter makeEpoch: Returns the history identifier.
    public init(inCollectionsFor contract: APIContract, makeEpoch: @escaping @Sendable () -> String) {
        self.contract = contract
        self.makeEpoch = makeEpoch
        name = "memory"
        content = .memory(NotesMemory())
        let epoch = makeEpoch()
        cachedEpoch.withLock { $0 = epoch }
    }

    /// Returns the time saved by the previous run; `nil` if there was none.
    func savedTime() throws -> DatabaseUptime? {
        try read { transaction -> DatabaseUptime? in
            guard case .sqlite(let database) = transaction else { return nil }
            guard let uptime = try Int(NotesStore.setting("served", database)),
                let tokenTime = try Int(NotesStore.setting("tokenTime", database)),
                let wallTime = try Int(NotesStore.setting("wall", database))
            else { return nil }
            return DatabaseUptime(uptime: uptime, tokenTime: tokenTime, wallTime: wallTime)
        }
    }

    static func save(_ time: DatabaseUptime, _ transaction: StoreTransaction) throws {
        guard case .sqlite(let database) = transaction else { return }
        try database.cachedStatement(
            sql: """
                INSERT INTO setting VALUES ('served', ?), ('tokenTime', ?), ('wall', ?)
                    ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """
        ).execute(arguments: [String(time.uptime), String(time.tokenTime), String(time.wallTime)])
    }

    static func setting(_ name: String, _ database: Database) throws -> String {
        try String.fetchOne(
            database.cachedStatement(sql: "SELECT value FROM setting WHERE name = ?"), arguments: [name]) ?? ""
    }

    /// Inserts a note with its revision, for tests and scenarios.
    public func seed(_ note: Note, owner: String) throws(NotesStoreError) {
        try perform {
            try write { _ = try StoredNote(note).save($0, owner: owner, at: 0, uptime: 0) }
        }
    }

    /// Returns a user's notes without tombstones, in the order of their last writes.
    public func notes(of owner: String) throws(NotesStoreError) -> [Note] {
        try perform {
            try read { transaction in
                var notes: [Note] = []
                try StoredNote.forEachRow(transaction, StoredNote.Selection(owner: owner)) {
                    notes.append(StoredNote($0).note)
                    return true
                }
                return notes
            }
        }
    }

    /// Runs a query. GRDB's `read` sets a pragma each time, after which SQLite recompiles all statements. With one
    /// serial connection that pragma is unnecessary.
    func read<Result>(_ body: (StoreTransaction) throws -> Result) throws -> Result {
        switch content {
        case .database(let queue): try queue.unsafeRead { try body(.sqlite($0)) }
        case .memory(let memory): try memory.transaction { try body(.memory(memory)) }
        }
    }

    /// Runs a write in one transaction.
    func write<Result>(_ body: (StoreTransaction) throws -> Result) throws -> Result {
        switch content {
        case .database(let queue): try queue.write { try body(.sqlite($0)) }
        case .memory(let memory): try memory.transaction { try body(.memory(memory)) }
        }
    }

    /// Returns whether the open file is no longer the one at its path.
    func hasMoved(_ transaction: StoreTransaction) -> Bool {
        guard case .sqlite(let database) = transaction else { return false }
        var hasMoved: CInt = 0
        let code = sqlite3_file_control(database.sqliteConnection, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
        return code == SQLITE_OK && hasMoved != 0
    }

    /// The `errno` of SQLite's last failed system call; 0 if there was none.
    var systemError: Int32 {
        guard case .database(let queue) = content else { return 0 }
        return queue.unsafeRead { database in
            let connection = database.sqliteConnection
            let code = sqlite3_system_errno(connection)
            if code != 0 { return code }
            // SQLite loses the value when a COMMIT fails; the write-ahead log and the file keep theirs.
            for pointer in [SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER] {
                var file: UnsafeMutablePointer<sqlite3_file>?
                guard sqlite3_file_control(connection, "main", pointer, &file) == SQLITE_OK,
                    let control = file?.pointee.pMethods?.pointee.xFileControl
                else { continue }
                var code: CInt = 0
                if control(file, SQLITE_FCNTL_LAST_ERRNO, &code) == SQLITE_OK, code != 0 { return code }
            }
            return 0
        }
    }

    // MARK: Snapshots

    /// Returns a copy of the database in memory.
    public func snapshot() throws(NotesStoreError) -> NotesSnapshot {
        try perform {
            let queue = try database()
            let copy = try DatabaseQueue()
            try queue.backup(to: copy)
            return NotesSnapshot(queue: copy)
        }
    }

    /// Replaces the content with that of a snapshot. Earlier cursors become invalid.
    public func restore(_ snapshot: NotesSnapshot) throws(NotesStoreError) {
        let (epoch, old) = (makeEpoch(), epoch)
        try perform {
            let queue = try database()
            // The copy gets the new epoch first, so that no request sees the old notes with the epoch of the snapshot.
            let copy = try DatabaseQueue()
            try snapshot.queue.backup(to: copy)
            try copy.write {
                try $0.execute(sql: "UPDATE setting SET value = ? WHERE name = 'epoch'", arguments: [epoch])
            }
            cachedEpoch.withLock { $0 = epoch }
            do { try copy.backup(to: queue) } catch {
                cachedEpoch.withLock { $0 = old }
                throw error
            }
        }
    }

    /// Returns the database; throws for a store in collections.
    func database() throws -> DatabaseQueue {
        guard case .database(let queue) = content else {
            throw NotesStoreError("a store in collections has no snapshots")
        }
        return queue
    }

    private func perform<Result>(_ body: () throws -> Result) throws(NotesStoreError) -> Result {
        do { return try body() } catch let error as NotesStoreError { throw error } catch {
            throw NotesStoreError(error, path: "the database")
        }
    }
}

/// The content of a store at one time.
public struct NotesSnapshot: Sendable {
    let queue: DatabaseQueue
}
