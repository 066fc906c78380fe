internal import GRDB

/// Transactions, and the size of the write-ahead log.
extension SyncStore {
    func transaction<Value>(
        _ kind: Database.TransactionKind, _ body: (Database) throws -> Value
    ) throws(SyncStoreError) -> Value {
        try perform { database in
            var value: Value?
            try database.inTransaction(kind) {
                if database.hasMoved { throw SyncStoreError.moved(name) }
                value = try body(database)
                return .commit
            }
            guard let value else { throw DatabaseError(resultCode: .SQLITE_ABORT) }
            return value
        }
    }

    func perform<Value>(_ body: (Database) throws -> Value) throws(SyncStoreError) -> Value {
        var systemError: Int32 = 0
        do {
            return try queue.unsafeRead { database in
                do { return try Self.withLogSpace(database) { try body(database) } } catch let error as DatabaseError {
                    systemError = database.systemError
                    // Without its file, SQLite reports various errors.
                    throw database.hasMoved ? SyncStoreError.moved(name) : error
                }
            }
        } catch {
            throw SyncStoreError(error, systemError: systemError, path: name)
        }
    }

    /// The size to which the write-ahead log is cut after a checkpoint, which SQLite makes every 1000 pages (4 MiB).
    private static let logBytesMax = 1 << 20

    static func limitLog(_ database: Database) throws {
        try database.execute(sql: "PRAGMA journal_size_limit = \(logBytesMax)")
    }

    /// Returns the result of a function. If the log has no space to grow, the log is written to the database and cut, which
    /// needs little space, and the function is called again.
    private static func withLogSpace<Value>(_ database: Database, _ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as DatabaseError {
            let isFull =
                error.resultCode.primaryResultCode == .SQLITE_FULL
                || SyncStoreError.fullDiskErrors.contains(database.systemError)
            guard isFull, !database.isInsideTransaction else { throw error }
            do { try database.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") } catch { throw error }
            return try body()
        }
    }
}
