//  PatternStore: the store of client X in an SQLite file.
//
//  Owns: the schema, the commit of a change as one transaction.
//
//  Does not own: decisions (PatternEngine).

internal import GRDB
internal import JSON
public import PatternEngine

/// The error of a store.
public struct PatternStoreError: Error, CustomStringConvertible, Sendable {
    /// What failed, where and why.
    public let description: String
}

/// The records, queued writes and drafts of client X in an SQLite file. A commit is one transaction.
///
/// Each row has an identifier and its content as JSON: the store reads all rows at a start, and replaces whole rows.
public final class PatternStore {
    private static let version = 1
    private let database: DatabaseQueue

    /// Opens a store, and creates it if the file does not exist.
    public init(path: String) throws(PatternStoreError) {
        do {
            var configuration = Configuration()
            configuration.prepareDatabase { database in
                try database.execute(sql: "PRAGMA journal_mode = WAL")
                try database.execute(sql: "PRAGMA synchronous = FULL")
            }
            database = try DatabaseQueue(path: path, configuration: configuration)
            let version = try database.write { database in
                let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
                guard version == 0 else { return version }
                for table in Table.allCases {
                    try database.execute(
                        sql:
                            "CREATE TABLE \(table.rawValue) (id TEXT NOT NULL PRIMARY KEY, content TEXT NOT NULL) STRICT"
                    )
                }
                try database.execute(sql: "PRAGMA user_version = \(Self.version)")
                return Self.version
            }
            guard version == Self.version else {
                throw PatternStoreError(description: "\(path) has the version \(version); expected \(Self.version)")
            }
        } catch let error as PatternStoreError {
            throw error
        } catch {
            throw PatternStoreError(description: "cannot open the store \(path): \(error)")
        }
    }

    private enum Table: String, CaseIterable { case record, write, draft, counter }

    /// Returns what is committed.
    public func load() throws(PatternStoreError) -> PatternState {
        do {
            return try database.read { database in
                func rows(_ table: Table) throws -> [(id: String, content: JSONValue)] {
                    try Row.fetchAll(database, sql: "SELECT id, content FROM \(table.rawValue) ORDER BY id").map {
                        row in
                        let text: String = row["content"]
                        return (row["id"], JSONText.parse(text.utf8) ?? .null)
                    }
                }
                func decoded<Value>(_ table: Table, _ make: (JSONValue) -> Value?) throws -> [Value] {
                    try rows(table).map { row in
                        guard let value = make(row.content) else {
                            throw PatternStoreError(
                                description: "the row '\(row.id)' of \(table.rawValue) cannot be read")
                        }
                        return value
                    }
                }
                var counters: [String: Int] = [:]
                for row in try rows(.counter) {
                    if case .integer(let number) = row.content { counters[row.id] = Int(number) }
                }
                return PatternState(
                    records: try decoded(.record, StoredRecord.init(stored:)).sorted { $0.key < $1.key },
                    writes: try decoded(.write, QueuedWrite.init(stored:)).sorted { $0.sequence < $1.sequence },
                    drafts: try decoded(.draft, FormDraft.init(stored:)),
                    lastUpdate: counters["update"] ?? 0, lastSequence: counters["sequence"] ?? 0)
            }
        } catch {
            throw PatternStoreError(description: "cannot read the store: \(error)")
        }
    }

    /// Commits a change as a whole.
    public func commit(_ change: PatternChange) throws(PatternStoreError) {
        do {
            try database.write { database in
                func set(_ table: Table, _ id: String, _ content: JSONValue?) throws {
                    if let content {
                        try database.execute(
                            sql: "INSERT OR REPLACE INTO \(table.rawValue) (id, content) VALUES (?, ?)",
                            arguments: [id, content.json])
                    } else {
                        try database.execute(sql: "DELETE FROM \(table.rawValue) WHERE id = ?", arguments: [id])
                    }
                }
                for (key, record) in change.records { try set(.record, key.text, record?.stored) }
                for (sequence, write) in change.writes { try set(.write, "\(sequence)", write?.stored) }
                for (form, draft) in change.drafts { try set(.draft, form, draft?.stored) }
                if let update = change.lastUpdate { try set(.counter, "update", .integer(Int64(update))) }
                if let sequence = change.lastSequence { try set(.counter, "sequence", .integer(Int64(sequence))) }
            }
        } catch {
            throw PatternStoreError(description: "cannot commit to the store: \(error)")
        }
    }

    /// Closes the file.
    public func close() { try? database.close() }
}
