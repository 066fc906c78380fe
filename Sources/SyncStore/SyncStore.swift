//  SyncStore: the sync client's durable store, a SQLite file.
//
//  Owns: the schema, atomic commits.
//
//  Does not own: the meaning of the rows (SyncEngine).

internal import Foundation
internal import GRDB
public import SyncEngine

/// The client's notes and outbox in a SQLite file.
///
/// One process at a time can open the file (`locking_mode = EXCLUSIVE`): two would send the same outbox twice. A commit
/// is on disk when ``commit(_:)`` returns (write-ahead log, `synchronous = FULL`), before anything of it is sent.
public final class SyncStore: Sendable {
    private let queue: DatabaseQueue
    private let path: String

    /// The schema version of this program.
    public static let schemaVersion = 1

    /// Opens a store; creates it if there is none.
    ///
    /// - Parameter path: The file; `nil` keeps the store in memory.
    public init(path: String?) throws(SyncStoreError) {
        self.path = path ?? "memory"
        do {
            var configuration = Configuration()
            configuration.label = "slowlane.sync-store"
            configuration.busyMode = .immediateError
            if let path {
                configuration.prepareDatabase { database in
                    try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
                    try database.execute(sql: "PRAGMA journal_mode = WAL")
                    try database.execute(sql: "PRAGMA synchronous = FULL")
                }
                queue = try DatabaseQueue(path: path, configuration: configuration)
            } else {
                queue = try DatabaseQueue(configuration: configuration)
            }
            let version = try queue.read { try Int.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
            guard version <= SyncStore.schemaVersion else {
                throw SyncStoreError(
                    .newer,
                    "cannot open \(self.path): written by a newer version (\(version); this program supports "
                        + "\(SyncStore.schemaVersion)); update slowlane"
                )
            }
            if version < 1 { try queue.write(SyncStore.createSchema) }
        } catch let error as SyncStoreError {
            throw error
        } catch {
            throw SyncStoreError(error, path: path ?? "memory")
        }
    }

    // User text is stored as BLOB: SQLite ends TEXT at a NUL byte when it is read.
    private static func createSchema(_ database: Database) throws {
        try database.execute(
            sql: """
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
                PRAGMA user_version = \(schemaVersion);
                """)
    }

    /// Limits the file to its current size, as a full disk does; for tests.
    func limitPages() throws {
        try queue.write { try $0.execute(sql: "PRAGMA max_page_count = 1") }
    }

    /// Closes the file and releases its lock. The store is unusable afterwards.
    public func close() { try? queue.close() }

    /// Returns all notes and the outbox.
    public func load() throws(SyncStoreError) -> StoredState {
        do {
            return try queue.read { database in
                let notes = try Row.fetchAll(database, sql: "SELECT * FROM note ORDER BY uuid").map(LocalNote.init)
                let entries = try Row.fetchAll(database, sql: "SELECT * FROM outbox ORDER BY sequence")
                    .map(OutboxEntry.init)
                return StoredState(notes: notes, entries: entries)
            }
        } catch {
            throw SyncStoreError(error, path: path)
        }
    }

    /// Commits a change in one transaction.
    public func commit(_ change: StoreChange) throws(SyncStoreError) {
        if change.isEmpty { return }
        do {
            try queue.write { database in
                for uuid in change.deletedNotes {
                    try database.execute(sql: "DELETE FROM note WHERE uuid = ?", arguments: [uuid])
                }
                for sequence in change.deletedEntries {
                    try database.execute(sql: "DELETE FROM outbox WHERE sequence = ?", arguments: [sequence])
                }
                for note in change.notes { try note.insert(database) }
                for entry in change.entries { try entry.insert(database) }
            }
        } catch {
            throw SyncStoreError(error, path: path)
        }
    }
}
