internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// A file that somebody has named as the notes' database, looked at without changing one byte of it.
enum DatabaseFile {
    /// What a file is.
    enum Content: Equatable {
        /// Nothing yet: no file, an empty one, or a database without tables.
        case nothing
        /// Notes in a schema that this program knows.
        case notes(version: Int)
    }

    /// Marks a file as a notes database (`application_id` in SQLite's header): "SLNT".
    static let applicationID = 0x534C_4E54

    /// Returns what a file is; throws for one that is not ours, or that cannot be written.
    static func inspect(_ path: String, idFormat: APIContract.IDFormat) throws -> Content {
        guard !path.isEmpty, path != ":memory:" else {
            throw NotesStoreError("the database's path is '\(path)'; name a file, or none to keep notes in memory")
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            guard errno == ENOENT else { throw systemError(path, "cannot be opened", errno) }
            let parent = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
            guard access(parent, W_OK) == 0 else {
                throw systemError(path, "cannot be created in \(parent)", errno)
            }
            return .nothing
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw NotesStoreError("\(path) is a directory; name a file in it, as \(path)/notes.db")
        default: throw NotesStoreError("\(path) is not a regular file; name another")
        }
        guard access(path, R_OK) == 0 else { throw systemError(path, "cannot be read", errno) }
        guard access(path, W_OK) == 0 else { throw systemError(path, "cannot be written", errno) }
        if status.st_size == 0 { return .nothing }
        return try read(path, idFormat: idFormat)
    }

    private static func systemError(_ path: String, _ what: String, _ code: Int32) -> NotesStoreError {
        NotesStoreError(
            "\(path) \(what): \(String(cString: strerror(code))); check its permissions and its directory's, or name another"
        )
    }

    private static func read(_ path: String, idFormat: APIContract.IDFormat) throws -> Content {
        // Without a log there is nothing but the file, and `immutable` keeps SQLite from making files beside it.
        let logSize = (try? FileManager.default.attributesOfItem(atPath: path + "-wal")[.size] as? Int) ?? 0
        let options = logSize > 0 ? "mode=ro" : "mode=ro&immutable=1"
        var connection: OpaquePointer?
        defer { sqlite3_close(connection) }
        let code = sqlite3_open_v2(
            "\(URL(filePath: path).absoluteString)?\(options)", &connection, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nil
        )
        guard code == SQLITE_OK, let connection else { throw failure(path, connection) }
        sqlite3_busy_timeout(connection, 5000)

        func rows(_ sql: String) throws -> [String] {
            var statement: OpaquePointer?
            defer { sqlite3_finalize(statement) }
            guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else {
                throw failure(path, connection)
            }
            var rows: [String] = []
            while true {
                switch sqlite3_step(statement) {
                case SQLITE_ROW: rows.append(sqlite3_column_text(statement, 0).map { String(cString: $0) } ?? "")
                case SQLITE_DONE: return rows
                default: throw failure(path, connection)
                }
            }
        }
        let id = try rows("PRAGMA application_id").first.flatMap { Int($0) } ?? 0
        let version = try rows("PRAGMA user_version").first.flatMap { Int($0) } ?? 0
        let tables = try rows(
            "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name")
        guard id == applicationID || id == 0 else {
            throw foreign(path, "application_id \(id)")
        }
        if id == 0 {
            if tables.isEmpty && version == 0 { return .nothing }
            // Files of the first versions have no mark.
            let columns = try rows("SELECT name FROM pragma_table_info('note')")
            guard let ours = [1: firstColumns, 2: secondColumns][version], columns == ours, tables.contains("operation")
            else { throw foreign(path, tables.isEmpty ? "version \(version)" : "tables \(list(tables))") }
        }
        guard version <= NotesStore.schemaVersion else {
            throw NotesStoreError(
                "\(path) was written by a newer version (\(version); this one knows \(NotesStore.schemaVersion)); "
                    + "use that one, or name another file")
        }
        guard version >= 1 else { throw foreign(path, "version \(version)") }
        let written =
            try version == 1
            ? APIContract.IDFormat.uuid.rawValue : rows("SELECT value FROM setting WHERE name = 'naming'").first ?? ""
        guard written == idFormat.rawValue else {
            throw NotesStoreError(
                "\(path) was written under another contract, with other names for notes: "
                    + "take \(written == APIContract.IDFormat.text.rawValue ? "orig" : "compat or strict")")
        }
        return .notes(version: version)
    }

    private static let firstColumns = [
        "owner", "uuid", "number", "suffix", "date", "title", "text", "deleted", "sequence",
    ]
    private static let secondColumns = [
        "id", "owner", "uuid", "number", "suffix", "date", "title", "text", "state", "pinned", "sequence", "modified",
    ]

    private static func foreign(_ path: String, _ why: String) -> NotesStoreError {
        NotesStoreError("\(path) is not a notes database (\(why)); it was left as it is, name another file")
    }

    private static func list(_ names: [String]) -> String {
        names.prefix(3).map { $0.prefix(40) }.joined(separator: ", ") + (names.count > 3 ? ", ..." : "")
    }

    private static func failure(_ path: String, _ connection: OpaquePointer?) -> NotesStoreError {
        let code = ResultCode(rawValue: sqlite3_extended_errcode(connection))
        let message = connection.map { String(cString: sqlite3_errmsg($0)) }
        return NotesStoreError(DatabaseError(resultCode: code, message: message), path: path)
    }
}
