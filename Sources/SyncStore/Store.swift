internal import Foundation
internal import GRDB
public import SyncEngine

/// The client's notes and its outbox in a SQLite file.
///
/// One process at a time has it (`locking_mode = EXCLUSIVE`): two would send the same outbox twice. A commit is on the disk
/// when ``commit(_:)`` returns (write-ahead log, `synchronous = FULL`), so that what has been sent is never forgotten.
public final class SyncStore: Sendable {
    private let queue: DatabaseQueue
    private let path: String

    /// The version of the schema this program writes.
    public static let schemaVersion = 1

    /// Opens a store, or makes one.
    ///
    /// - Parameter path: The file; `nil` keeps everything in memory.
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
                    "\(self.path) was written by a newer version (\(version); this one knows \(SyncStore.schemaVersion))"
                )
            }
            if version < 1 { try queue.write(SyncStore.createSchema) }
        } catch let error as SyncStoreError {
            throw error
        } catch {
            throw SyncStoreError(error, path: path ?? "memory")
        }
    }

    // What users write is kept as bytes: SQLite's text ends at a NUL when it is read.
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

    /// Lets the file grow no further, as on a full disk; for tests.
    func limitPages() throws {
        try queue.write { try $0.execute(sql: "PRAGMA max_page_count = 1") }
    }

    /// Lets others have the file; the store cannot be used any more.
    public func close() { try? queue.close() }

    /// Everything that is there.
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

    /// Makes a change durable, whole or not at all.
    public func commit(_ change: StoreChange) throws(SyncStoreError) {
        if change.isEmpty { return }
        do {
            try queue.write { database in
                for uuid in change.forgottenNotes {
                    try database.execute(sql: "DELETE FROM note WHERE uuid = ?", arguments: [uuid])
                }
                for sequence in change.forgottenEntries {
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

/// Why the store cannot be used.
public struct SyncStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of trouble, for exit statuses.
    public enum Kind: Hashable, Sendable {
        /// The file is of a newer version.
        case newer
        /// The file is no database, or a broken one.
        case unreadable
        /// Another process has it.
        case inUse
        /// It cannot be written: read-only, a full disk, no such folder.
        case unwritable
    }

    /// The kind of trouble.
    public let kind: Kind
    /// What happened, and where.
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ error: any Error, path: String) {
        guard let error = error as? DatabaseError else {
            self.init(.unreadable, "\(path): \(error)")
            return
        }
        switch error.resultCode {
        case .SQLITE_NOTADB, .SQLITE_CORRUPT: self.init(.unreadable, "\(path) is not a notes database")
        case .SQLITE_BUSY, .SQLITE_LOCKED: self.init(.inUse, "\(path) is in use by another process")
        case .SQLITE_FULL: self.init(.unwritable, "\(path): the disk is full; nothing has been changed")
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            self.init(.unwritable, "\(path) cannot be written; nothing has been changed")
        case .SQLITE_CANTOPEN: self.init(.unwritable, "\(path) cannot be opened: no such folder, or no permission")
        case .SQLITE_IOERR: self.init(.unwritable, "\(path): the disk does not answer; nothing has been changed")
        // Never the values: they are what the user wrote.
        default: self.init(.unreadable, "\(path): \(error.message ?? "database error") (\(error.resultCode.rawValue))")
        }
    }
}
