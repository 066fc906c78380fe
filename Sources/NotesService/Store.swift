internal import Foundation
internal import GRDB
public import NotesContract

/// The server's notes in a SQLite database, in memory or in a file.
///
/// One connection, one transaction a request: whoever reads a revision and writes on it does both, or neither. A file is
/// written with a write-ahead log and `synchronous = FULL`: what has been answered is on the disk.
public final class NotesStore: Sendable {
    let queue: DatabaseQueue

    /// The version of the schema this program writes.
    public static let schemaVersion = 1

    /// Opens a database, or makes one; `nil` keeps everything in memory.
    public init(path: String?) throws(NotesStoreError) {
        do {
            if let path {
                var configuration = Configuration()
                configuration.busyMode = .timeout(5)
                configuration.prepareDatabase { database in
                    try database.execute(sql: "PRAGMA journal_mode = WAL")
                    try database.execute(sql: "PRAGMA synchronous = FULL")
                }
                queue = try DatabaseQueue(path: path, configuration: configuration)
            } else {
                queue = try DatabaseQueue()
            }
            let version = try queue.read { try Int.fetchOne($0, sql: "PRAGMA user_version") ?? 0 }
            guard version <= NotesStore.schemaVersion else {
                throw NotesStoreError(
                    "\(path ?? "") was written by a newer version (\(version); this one knows \(NotesStore.schemaVersion))"
                )
            }
            if version < 1 { try queue.write(NotesStore.createSchema) }
        } catch let error as NotesStoreError {
            throw error
        } catch {
            throw NotesStoreError(error, path: path ?? "memory")
        }
    }

    // What users write is kept as bytes: SQLite's text ends at a NUL when it is read.
    private static func createSchema(_ database: Database) throws {
        try database.execute(
            sql: """
                CREATE TABLE note (
                    owner TEXT NOT NULL, uuid TEXT NOT NULL, number INTEGER NOT NULL, suffix TEXT NOT NULL,
                    date TEXT NOT NULL, title BLOB, text BLOB, deleted INTEGER NOT NULL, sequence INTEGER NOT NULL,
                    PRIMARY KEY (owner, uuid)
                ) STRICT;
                CREATE TABLE operation (
                    owner TEXT NOT NULL, key TEXT NOT NULL, digest INTEGER NOT NULL, status INTEGER NOT NULL,
                    etag TEXT, body TEXT NOT NULL, made INTEGER NOT NULL,
                    PRIMARY KEY (owner, key)
                ) STRICT;
                PRAGMA user_version = \(schemaVersion);
                """)
    }

    /// Puts a note there as if it had been written so often; for tests and scenarios.
    public func seed(_ note: Note, owner: String) throws(NotesStoreError) {
        do {
            try queue.write { try StoredNote(note, isDeleted: false).save($0, owner: owner) }
        } catch {
            throw NotesStoreError(error, path: "the database")
        }
    }

    /// A user's notes, without those that are deleted.
    public func notes(of owner: String) throws(NotesStoreError) -> [Note] {
        do {
            return try queue.read { try StoredNote.all($0, owner: owner).filter { !$0.isDeleted }.map(\.note) }
        } catch {
            throw NotesStoreError(error, path: "the database")
        }
    }
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
        case .SQLITE_NOTADB, .SQLITE_CORRUPT: self.init("\(path) is not a notes database")
        case .SQLITE_CANTOPEN: self.init("\(path) cannot be opened: no such folder, or no permission")
        case .SQLITE_READONLY, .SQLITE_PERM: self.init("\(path) cannot be written")
        case .SQLITE_FULL: self.init("\(path): the disk is full")
        // Never the values: they are what users wrote.
        default: self.init("\(path): \(error.message ?? "database error") (\(error.resultCode.rawValue))")
        }
    }
}

/// A note with whether it is a tombstone.
struct StoredNote {
    var note: Note
    var isDeleted: Bool

    init(_ note: Note, isDeleted: Bool) {
        self.note = note
        self.isDeleted = isDeleted
    }

    private init(_ row: Row) {
        func text(_ name: String) -> String? {
            let bytes: Data? = row[name]
            return bytes.map { String(decoding: $0, as: UTF8.self) }
        }
        note = Note(
            uuid: row["uuid"], revision: Revision(number: row["number"], suffix: row["suffix"]), date: row["date"],
            title: text("title"), text: text("text"))
        isDeleted = row["deleted"]
    }

    /// The index entry of it.
    var entry: IndexEntry { IndexEntry(uuid: note.uuid, revision: note.revision, isDeleted: isDeleted) }

    /// As a refusal shows it.
    var json: String { isDeleted ? entry.json : note.json }

    static func find(_ database: Database, owner: String, uuid: String) throws -> StoredNote? {
        try Row.fetchOne(
            database, sql: "SELECT * FROM note WHERE owner = ? AND uuid = ?", arguments: [owner, uuid]
        ).map(StoredNote.init)
    }

    /// All of a user's, in the order in which they were last written.
    static func all(_ database: Database, owner: String) throws -> [StoredNote] {
        try Row.fetchAll(
            database, sql: "SELECT * FROM note WHERE owner = ? ORDER BY sequence", arguments: [owner]
        ).map(StoredNote.init)
    }

    func save(_ database: Database, owner: String) throws {
        try database.execute(
            sql: """
                INSERT OR REPLACE INTO note VALUES (?, ?, ?, ?, ?, ?, ?, ?,
                    (SELECT IFNULL(MAX(sequence), 0) + 1 FROM note))
                """,
            arguments: [
                owner, note.uuid, note.revision.number, note.revision.suffix, note.date,
                note.title.map { Data($0.utf8) },
                note.text.map { Data($0.utf8) }, isDeleted,
            ])
    }
}
