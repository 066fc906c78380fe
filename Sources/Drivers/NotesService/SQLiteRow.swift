internal import GRDB
internal import GRDBSQLite

/// The current row of a running query, read from SQLite without copies.
///
/// GRDB's `Row` allocates memory for each text, which would take half the CPU time of a list.
struct SQLiteRow {
    private let statement: SQLiteStatement

    fileprivate init(_ statement: SQLiteStatement) { self.statement = statement }

    /// Returns an integer; 0 for NULL.
    func integer(_ column: CInt) -> Int { Int(sqlite3_column_int64(statement, column)) }

    /// Returns the bytes of a TEXT or BLOB, valid until the next row; `nil` for NULL.
    func bytes(_ column: CInt) -> UnsafeRawBufferPointer? {
        // The pointer is null for an empty BLOB too.
        guard sqlite3_column_type(statement, column) != SQLITE_NULL else { return nil }
        let start = sqlite3_column_blob(statement, column)
        return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, column)))
    }

    /// Returns a TEXT or BLOB as a string; `nil` for NULL.
    func text(_ column: CInt) -> String? { bytes(column).map { String(decoding: $0, as: UTF8.self) } }
}

extension Statement {
    /// Runs the query and calls `body` with each row until it returns `false`.
    func forEachRow(_ arguments: StatementArguments, _ body: (SQLiteRow) throws -> Bool) throws {
        try setArguments(arguments)
        // A statement that is not reset keeps its read transaction open.
        defer { sqlite3_reset(sqliteStatement) }
        while true {
            switch sqlite3_step(sqliteStatement) {
            case SQLITE_ROW: guard try body(SQLiteRow(sqliteStatement)) else { return }
            case SQLITE_DONE: return
            case let code:
                throw DatabaseError(
                    resultCode: ResultCode(rawValue: code),
                    message: sqlite3_db_handle(sqliteStatement).map { String(cString: sqlite3_errmsg($0)) })
            }
        }
    }

    /// Runs the query and returns the result of `body` for the first row; `nil` without a row.
    func firstRow<Result>(_ arguments: StatementArguments, _ body: (SQLiteRow) throws -> Result) throws -> Result? {
        var result: Result?
        try forEachRow(arguments) {
            result = try body($0)
            return false
        }
        return result
    }
}
