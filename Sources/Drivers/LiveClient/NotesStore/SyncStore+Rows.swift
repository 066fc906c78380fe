internal import Client
internal import Foundation
internal import GRDB
internal import Wire

/// The reason why a row cannot be read.
struct RowError: Error, CustomStringConvertible {
    let description: String
}

/// A row that is read by the positions of its columns.
struct RowReader {
    private let row: Row
    private var position = 0

    init(_ row: Row) { self.row = row }

    private mutating func next() -> Int {
        defer { position += 1 }
        return position
    }

    private func error(_ index: Int, _ problem: String) -> RowError {
        RowError(description: "\(Array(row.columnNames)[index]) \(problem)")
    }

    /// Returns a value made from a column's bytes; `nil` for NULL.
    private mutating func value<Value>(_ problem: String, _ make: (Data) -> Value?) throws -> Value? {
        let index = next()
        let value: Value??
        do {
            value = try row.withUnsafeData(atIndex: index) { data in data.map(make) }
        } catch {
            throw self.error(index, problem)
        }
        switch value {
        case nil: return nil
        case .some(nil): throw error(index, problem)
        case .some(let value?): return value
        }
    }

    mutating func bytes() throws -> [UInt8]? { try value("is not a BLOB") { [UInt8]($0) } }

    mutating func text() throws -> String? {
        try value("is not text in UTF-8") { String(validating: $0, as: UTF8.self) }
    }

    mutating func integer() throws -> Int? {
        let index = next()
        let value: DatabaseValue = row[index]
        guard let integer = Int.fromDatabaseValue(value) else {
            if value.isNull { return nil }
            throw error(index, "is not an integer")
        }
        return integer
    }

    mutating func required<Value>(_ read: (inout RowReader) throws -> Value?) throws -> Value {
        let index = position
        guard let value = try read(&self) else { throw error(index, "is missing") }
        return value
    }

    mutating func count() throws -> Int {
        let index = position
        let value = try required { try $0.integer() }
        guard value >= 0 else { throw error(index, "is negative") }
        return value
    }

    mutating func flag() throws -> Bool {
        let index = position
        let value = try required { try $0.integer() }
        guard value == 0 || value == 1 else { throw error(index, "is neither 0 nor 1") }
        return value == 1
    }

    mutating func revision() throws -> RecordRevision? {
        let text = try text()
        let number = try integer()
        return text.map { RecordRevision($0, number: number) }
    }

    mutating func content() throws -> RecordContent? { try bytes().map { RecordContent($0) } }

    mutating func id() throws -> RecordID { RecordID(try required { try $0.text() }) }

    /// Returns the identifier of a row that cannot be read, with replacement characters if necessary.
    static func name(_ row: Row, at index: Int) -> RecordID {
        let data = try? row.withUnsafeData(atIndex: index) { $0.map { String(decoding: $0, as: UTF8.self) } }
        return RecordID((data ?? nil) ?? "")
    }
}

extension RecordID {
    var data: Data { Data(text.utf8) }
}

extension RecordRevision {
    fileprivate var data: Data { Data(description.utf8) }
}

extension RecordContent {
    fileprivate var data: Data { Data(bytes) }
}

extension String {
    fileprivate var data: Data { Data(utf8) }
}

/// The `record` table.
extension LocalRecord {
    static let columns = """
        id, base, base_number, base_content, mine, deleted, edits, in_conflict, theirs, theirs_number, theirs_content
        """

    init(_ row: Row) throws {
        var row = RowReader(row)
        let id = try row.id()
        let base = try row.revision()
        let baseContent = try row.content()
        let mine = try row.required { try $0.content() }
        let isDeleted = try row.flag()
        let edits = try row.count()
        let isInConflict = try row.flag()
        let theirs = Theirs(revision: try row.revision(), content: try row.content())
        self.init(
            id: id, base: base, baseContent: baseContent, mine: mine, isDeleted: isDeleted, edits: edits,
            theirs: isInConflict ? theirs : nil)
    }

    func save(_ database: Database) throws {
        try database.cachedStatement(
            sql: """
                INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET base = excluded.base, base_number = excluded.base_number,
                    base_content = excluded.base_content, mine = excluded.mine, deleted = excluded.deleted,
                    edits = excluded.edits, in_conflict = excluded.in_conflict, theirs = excluded.theirs,
                    theirs_number = excluded.theirs_number, theirs_content = excluded.theirs_content
                """
        ).execute(arguments: [
            id.data, base?.data, base?.number, baseContent?.data, mine.data, isDeleted, edits, theirs != nil,
            theirs?.revision?.data, theirs?.revision?.number, theirs?.content?.data,
        ])
    }

    static func delete(_ id: RecordID, _ database: Database) throws {
        try database.cachedStatement(sql: "DELETE FROM record WHERE id = ?").execute(arguments: [id.data])
        try database.cachedStatement(sql: "DELETE FROM attachment WHERE record = ?").execute(arguments: [id.data])
    }
}

extension OutboxEntry.Kind {
    init(name: String) {
        switch ByteKey(name) {
        case "create": self = .create
        case "update": self = .update
        case "delete": self = .delete
        default: self = .unknown(name)
        }
    }

    /// The stored name.
    var name: String {
        switch self {
        case .create: "create"
        case .update: "update"
        case .delete: "delete"
        case .unknown(let name): name
        }
    }
}

/// The `outbox` table.
extension OutboxEntry {
    static let columns = """
        sequence, operation, id, kind, content, edits, base, base_number, attempts, may_be_committed, parked,
        server_errors
        """
    /// The position of the record's identifier in ``columns``.
    static let idColumn = 2

    init(_ row: Row) throws {
        var row = RowReader(row)
        let sequence = try row.count()
        let operation = try row.required { try $0.text() }
        let id = try row.id()
        let kind = Kind(name: try row.required { try $0.text() })
        let content = try row.required { try $0.content() }
        let edits = try row.count()
        let base = try row.revision()
        let attempts = try row.count()
        let mayBeCommitted = try row.flag()
        var parked = try row.text()
        let serverErrors = try row.count()
        if case .unknown(let name) = kind, parked == nil {
            parked = "a change of the kind '\(name.prefix(40))' needs a newer version of slowlane"
        }
        self.init(
            operation: operation, sequence: sequence, id: id, kind: kind, content: content, edits: edits, base: base,
            attempts: attempts, mayBeCommitted: mayBeCommitted, serverErrors: serverErrors, parked: parked)
    }

    func save(_ database: Database) throws {
        try database.cachedStatement(
            sql: """
                INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (sequence) DO UPDATE SET operation = excluded.operation, id = excluded.id,
                    kind = excluded.kind, content = excluded.content, edits = excluded.edits, base = excluded.base,
                    base_number = excluded.base_number, attempts = excluded.attempts,
                    may_be_committed = excluded.may_be_committed, parked = excluded.parked,
                    server_errors = excluded.server_errors
                """
        ).execute(arguments: [
            sequence, operation.data, id.data, kind.name.data, content.data, edits, base?.data, base?.number, attempts,
            mayBeCommitted, parked?.data, serverErrors,
        ])
    }

    static func delete(_ sequence: Int, _ database: Database) throws {
        try database.cachedStatement(sql: "DELETE FROM outbox WHERE sequence = ?").execute(arguments: [sequence])
    }
}

/// The `quarantine` table.
enum Quarantine {
    static func save(_ id: RecordID, _ reason: String?, _ database: Database) throws {
        if let reason {
            try database.cachedStatement(
                sql: "INSERT INTO quarantine VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET reason = excluded.reason"
            ).execute(arguments: [id.data, reason.data])
        } else {
            try database.cachedStatement(sql: "DELETE FROM quarantine WHERE id = ?").execute(arguments: [id.data])
        }
    }
}

/// The `account` table.
extension SyncAccount {
    init(_ row: Row) throws {
        var row = RowReader(row)
        self.init(
            user: try row.required { try $0.text() }, server: try row.required { try $0.text() },
            history: try row.text())
    }

    /// Stores the account; `nil` deletes the stored one.
    static func save(_ account: SyncAccount?, _ database: Database) throws {
        guard let account else { return try database.cachedStatement(sql: "DELETE FROM account").execute() }
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO account VALUES (1, ?, ?, ?)")
            .execute(arguments: [account.user.data, account.server.data, account.history?.data])
    }
}

/// The `index_state` table.
extension IndexState {
    init(_ row: Row) throws {
        var row = RowReader(row)
        self.init(cursor: try row.text(), entityTag: try row.text(), isAdopting: try row.flag())
    }

    func save(_ database: Database) throws {
        try database.cachedStatement(sql: "INSERT OR REPLACE INTO index_state VALUES (1, ?, ?, ?)")
            .execute(arguments: [cursor?.data, entityTag?.data, isAdopting])
    }
}
