internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// The inspection of a database file before it is opened. It changes no byte of the file.
enum DatabaseFile {
    /// The content of a file.
    enum Content: Equatable {
        /// No file, an empty file, or a database without tables.
        case empty
        /// Notes in a schema of this version.
        case notes(version: Int)
    }

    /// The mark of a notes database (`application_id` in SQLite's header): "SLNT".
    static let applicationID = 0x534C_4E54

    /// Returns the content of a file. Throws if the file is not a notes database of this `uuid` format, or is not
    /// writable.
    static func inspect(_ path: String, idFormat: APIContract.IDFormat) throws -> Content {
        guard !path.isEmpty, path != ":memory:" else {
            throw NotesStoreError("the database path is '\(path)'; name a file, or no path to keep notes in memory")
        }
        var status = stat()
        guard stat(path, &status) == 0 else {
            guard errno == ENOENT else { throw systemError(path, "cannot be opened", errno) }
            let parent = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
            guard access(parent, W_OK) == 0 else {
                throw systemError(path, "cannot be created in \(parent)", errno)
            }
            return .empty
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: throw NotesStoreError("\(path) is a directory; name a file in it, such as \(path)/notes.db")
        default: throw NotesStoreError("\(path) is not a regular file; name another file")
        }
        guard access(path, R_OK) == 0 else { throw systemError(path, "cannot be read", errno) }
        guard access(path, W_OK) == 0 else { throw systemError(path, "cannot be written", errno) }
        if status.st_size == 0 { return .empty }
        return try read(path, idFormat: idFormat)
    }

    private static func systemError(_ path: String, _ failure: String, _ code: Int32) -> NotesStoreError {
        NotesStoreError(
            "\(path) \(failure): \(String(cString: strerror(code))); check the permissions of the file and its directory, "
                + "or name another file")
    }

    private static func read(_ path: String, idFormat: APIContract.IDFormat) throws -> Content {
        // Without a write-ahead log, `immutable` keeps SQLite from creating further files in the database's directory.
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
            if tables.isEmpty && version == 0 { return .empty }
            // Versions 1 and 2 have no mark.
            let columns = try rows("SELECT name FROM pragma_table_info('note')")
            guard let expected = [1: columnsOfVersion1, 2: columnsOfVersion2][version], columns == expected,
                tables.contains("operation")
            else { throw foreign(path, tables.isEmpty ? "version \(version)" : "tables \(list(tables))") }
        }
        guard version <= NotesStore.schemaVersion else {
            throw NotesStoreError(
                "\(path) was written by a newer version (\(version); this program supports up to "
                    + "\(NotesStore.schemaVersion)); use the newer program, or name another file")
        }
        guard version >= 1 else { throw foreign(path, "version \(version)") }
        let storedFormat =
            try version == 1
            ? APIContract.IDFormat.uuid.rawValue : rows("SELECT value FROM setting WHERE name = 'naming'").first ?? ""
        guard storedFormat == idFormat.rawValue else {
            let contracts = storedFormat == APIContract.IDFormat.freeText.rawValue ? "orig" : "compat or strict"
            throw NotesStoreError(
                "\(path) was written under another contract with another format of uuid; use contract \(contracts)")
        }
        return .notes(version: version)
    }

    private static let columnsOfVersion1 = [
        "owner", "uuid", "number", "suffix", "date", "title", "text", "deleted", "sequence",
    ]
    private static let columnsOfVersion2 = [
        "id", "owner", "uuid", "number", "suffix", "date", "title", "text", "state", "pinned", "sequence", "modified",
    ]

    private static func foreign(_ path: String, _ reason: String) -> NotesStoreError {
        NotesStoreError("\(path) is not a notes database (\(reason)); the file was not changed, name another file")
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
