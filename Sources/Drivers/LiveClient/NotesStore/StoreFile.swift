internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// The inspection of a store's file before it is opened for writing. It changes no byte of the file, and leaves no file
/// beside it.
enum StoreFile {
    /// The content of a file.
    enum Content: Equatable {
        /// No file, an empty file, or a database without tables.
        case empty
        /// Notes in the schema of version 1.
        case version1
        /// A store of the current version, or of one before it that has the same tables.
        case current
    }

    /// The mark of a store (`application_id` in SQLite's header): "SLYS".
    static let applicationID = 0x534C_5953
    /// The resource of every store of version 1.
    static let resourceOfVersion1 = "notes"

    /// The limit on inspections of a file that other processes create, write or close meanwhile.
    private static let attemptsMax = 50
    /// The limit on inspections that fail beside a log or a journal, while nothing changes.
    private static let attemptsMaxUnchanged = 5
    private static let pauseMicroseconds: UInt32 = 20_000

    // MARK: Paths

    /// Returns the path of the file without symbolic links. Throws if the file cannot be created or written, or, for
    /// reading, if there is none or it cannot be read.
    static func resolve(_ path: String, isReading: Bool = false) throws(SyncStoreError) -> String {
        guard !path.isEmpty, path != ":memory:", !path.utf8.contains(0) else {
            throw SyncStoreError(.unwritable, "cannot open '\(path)': it does not name a file")
        }
        var link = stat()
        guard lstat(path, &link) == 0 else {
            guard errno == ENOENT else { throw SyncStoreError(systemError: errno, "open", path) }
            if isReading { throw SyncStoreError.missing(path) }
            let url = URL(filePath: path)
            let parent = url.deletingLastPathComponent().path(percentEncoded: false)
            guard !path.hasSuffix("/") else {
                throw SyncStoreError(.unwritable, "cannot open \(path): it names a directory")
            }
            guard let folder = realpath(parent, nil) else {
                throw SyncStoreError(.unwritable, "cannot create \(path): no such directory; create \(parent) first")
            }
            defer { free(folder) }
            guard access(folder, W_OK | X_OK) == 0 else { throw SyncStoreError(systemError: errno, "create", path) }
            let name = String(cString: folder)
            return (name == "/" ? "" : name) + "/" + url.lastPathComponent
        }
        guard let resolved = realpath(path, nil) else {
            if errno == ENOENT {
                throw SyncStoreError(
                    .unwritable, "cannot open \(path): it is a symbolic link to a file that does not exist")
            }
            throw SyncStoreError(systemError: errno, "open", path)
        }
        defer { free(resolved) }
        var file = stat()
        guard stat(resolved, &file) == 0 else { throw SyncStoreError(systemError: errno, "open", path) }
        switch file.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR:
            throw SyncStoreError(.unwritable, "cannot open \(path): it is a directory; name a file in it")
        default: throw SyncStoreError(.unwritable, "cannot open \(path): it is not a regular file")
        }
        guard access(resolved, R_OK) == 0 else { throw SyncStoreError(systemError: errno, "read", path) }
        if isReading { return String(cString: resolved) }
        guard access(resolved, W_OK) == 0 else { throw SyncStoreError(systemError: errno, "write", path) }
        let parent = URL(filePath: String(cString: resolved)).deletingLastPathComponent().path(percentEncoded: false)
        guard access(parent, W_OK | X_OK) == 0 else {
            throw SyncStoreError(systemError: errno, "create a write-ahead log beside", path)
        }
        return String(cString: resolved)
    }

    /// Creates an empty file that only its owner may read, unless the file exists.
    static func create(_ resolved: String, name: String) throws(SyncStoreError) {
        let descriptor = open(resolved, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        if descriptor >= 0 {
            close(descriptor)
        } else if errno != EEXIST {
            throw SyncStoreError(systemError: errno, "create", name)
        }
    }

    // MARK: Content

    /// Returns the content of a file. Throws if it is not a store of this resource in a known version.
    ///
    /// - Parameters:
    ///   - supported: The latest version that is known.
    ///   - willCopy: Called with the path of each file before it is copied.
    static func inspect(
        _ resolved: String, name: String, resource: String, supporting supported: Int = SyncStore.schemaVersion,
        willCopy: (String) -> Void = { _ in }
    ) throws(SyncStoreError) -> Content {
        try read(resolved, name: name, willCopy: willCopy, ifEmpty: .empty) { file, _ in
            try content(file, name: name, resource: resource, supported)
        }
    }

    /// Copies a store to an empty database in memory. Throws if there is none. The file's directory may be read-only.
    ///
    /// - Returns: The state of the files before the copy.
    static func copy(
        _ resolved: String, name: String, resource: String, to database: Database
    ) throws(SyncStoreError) -> Files {
        let files = try read(resolved, name: name, ifEmpty: nil) { (file, before) -> Files? in
            guard try content(file, name: name, resource: resource, SyncStore.schemaVersion) != .empty else {
                return nil
            }
            try file.copy(to: database)
            // Without a lock, the copy may have parts of two states.
            guard file.isLocking || Files(resolved) == before else { throw DatabaseError(resultCode: .SQLITE_BUSY) }
            return before
        }
        guard let files else { throw SyncStoreError.missing(name) }
        return files
    }

    /// Reads a file with a function, repeatedly if the file changes meanwhile. An empty file has a fixed value.
    private static func read<Value>(
        _ resolved: String, name: String, willCopy: (String) -> Void = { _ in }, ifEmpty: Value,
        _ body: (Inspector, Files) throws -> Value
    ) throws(SyncStoreError) -> Value {
        var attempt = 1
        while true {
            let before = Files(resolved)
            do {
                return try look(resolved, name: name, willCopy) { try $0.map { try body($0, before) } ?? ifEmpty }
            } catch {
                // The inspection takes no locks: of files that change meanwhile, it may read parts of two states.
                let limit =
                    Files(resolved) != before
                    ? attemptsMax : error is DatabaseError && before.hasSidecars ? attemptsMaxUnchanged : 1
                guard attempt < limit else { throw SyncStoreError(error, path: name) }
                attempt += 1
                usleep(pauseMicroseconds)
            }
        }
    }

    private static func size(_ path: String) -> Int? {
        var file = stat()
        return stat(path, &file) == 0 ? Int(file.st_size) : nil
    }

    /// The state of a database's files, for comparison.
    struct Files: Equatable {
        private struct File: Equatable {
            let number: UInt64
            let size: Int
            /// The time of the last change; 0 for the index of the log, which each reader changes.
            var seconds = 0
            var nanoseconds = 0
        }

        private let files: [File?]

        /// Whether a log, its index or a journal is beside the file.
        var hasSidecars: Bool { files.dropFirst().contains { $0 != nil } }

        init(_ path: String) {
            files = ["", "-wal", "-journal", "-shm"].map { (suffix: String) -> File? in
                var status = stat()
                guard stat(path + suffix, &status) == 0 else { return nil }
                var file = File(number: UInt64(status.st_ino), size: Int(status.st_size))
                guard suffix != "-shm" else { return file }
                #if canImport(Darwin)
                let time = status.st_mtimespec
                #else
                let time = status.st_mtim
                #endif
                (file.seconds, file.nanoseconds) = (Int(time.tv_sec), Int(time.tv_nsec))
                return file
            }
        }
    }

    /// Reads a file with a function; the function gets `nil` for an empty file.
    private static func look<Value>(
        _ path: String, name: String, _ willCopy: (String) -> Void, _ body: (Inspector?) throws -> Value
    ) throws -> Value {
        let logSize = size(path + "-wal") ?? 0
        guard let fileSize = size(path), fileSize > 0 else {
            guard logSize == 0 else {
                throw SyncStoreError(
                    .unreadable,
                    "cannot open \(name): the file is empty, and \(name)-wal beside it is not; restore the file or move both"
                )
            }
            return try body(nil)
        }
        let hasJournal = (size(path + "-journal") ?? 0) > 0
        if logSize == 0 && !hasJournal {
            // With `immutable`, SQLite reads the file alone and creates none beside it.
            return try body(Inspector(path, options: "mode=ro&immutable=1"))
        }
        // The file alone may be incomplete: its end is in the log.
        if !hasJournal && size(path + "-shm") != nil {
            return try body(Inspector(path, options: "mode=ro"))
        }
        // A process ended during a transaction, or a store of version 1 was not closed. Reading the file would create
        // others or change it; a copy is read.
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("slowlane-\(UUID().uuidString)")
        guard mkdir(folder.path, 0o700) == 0 else {
            throw SyncStoreError(
                .unwritable,
                "cannot read \(name): a process has ended without closing it, and its log is read from a copy in a folder "
                    + "for temporary files: cannot create \(folder.path): \(String(cString: strerror(errno))); set TMPDIR to "
                    + "a folder that can be written")
        }
        defer { try? FileManager.default.removeItem(at: folder) }
        let copy = folder.appendingPathComponent("copy").path
        for suffix in ["", "-wal", "-journal"] where size(path + suffix) != nil {
            willCopy(path + suffix)
            try FileManager.default.copyItem(atPath: path + suffix, toPath: copy + suffix)
        }
        return try body(Inspector(copy, options: "mode=rw"))
    }

    private static func content(
        _ file: Inspector, name: String, resource: String, _ supported: Int
    ) throws -> Content {
        let id = try file.integer("PRAGMA application_id")
        let version = try file.integer("PRAGMA user_version")
        let tables = try file.texts(
            "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1")
        guard id == applicationID else {
            guard id == 0 else { throw foreign(name, "application_id \(id)") }
            if tables.isEmpty && version == 0 { return .empty }
            guard version == 1, tables == ["note", "outbox"],
                try file.texts("SELECT name FROM pragma_table_info('note')") == columnsOfVersion1.note,
                try file.texts("SELECT name FROM pragma_table_info('outbox')") == columnsOfVersion1.outbox
            else { throw foreign(name, tables.isEmpty ? "version \(version)" : "tables \(list(tables))") }
            try check(resourceOfVersion1, resource, name)
            return .version1
        }
        guard version <= supported else { throw newer(name, version, supported) }
        guard (SyncStore.versionWithoutErrors...SyncStore.schemaVersion).contains(version), tables.contains("store"),
            let stored = try file.texts("SELECT resource FROM store").first
        else { throw SyncStoreError(.unreadable, "cannot open \(name): the store is damaged (version \(version))") }
        try check(stored, resource, name)
        return .current
    }

    /// Throws if a store's resource is not the expected one.
    static func check(_ stored: String, _ expected: String, _ name: String) throws(SyncStoreError) {
        guard stored.utf8.elementsEqual(expected.utf8) else {
            throw SyncStoreError(
                .foreign,
                "cannot open \(name): it holds records of '\(stored.prefix(60))', not of '\(expected.prefix(60))'; "
                    + "name another file")
        }
    }

    /// Returns the error of a newer schema version.
    static func newer(
        _ name: String, _ version: Int, _ supported: Int = SyncStore.schemaVersion
    ) -> SyncStoreError {
        SyncStoreError(
            .newer,
            "cannot open \(name): written by a newer version (\(version); this program supports "
                + "\(supported)); update slowlane")
    }

    /// Returns the error of another program's file.
    static func foreign(_ name: String, _ reason: String) -> SyncStoreError {
        SyncStoreError(
            .foreign,
            "cannot open \(name): it is a database of another program (\(reason)); the file was not changed, name another "
                + "file")
    }

    private static func list(_ names: [String]) -> String {
        names.prefix(3).map { $0.prefix(40) }.joined(separator: ", ") + (names.count > 3 ? ", ..." : "")
    }

    private static let columnsOfVersion1 = (
        note: [
            "uuid", "base", "base_title", "base_text", "base_date", "title", "text", "date", "deleted", "edits",
            "in_conflict", "theirs", "theirs_title", "theirs_text", "theirs_date", "problem",
        ],
        outbox: [
            "sequence", "operation", "uuid", "kind", "title", "text", "date", "edits", "base", "attempts",
        ]
    )
}

/// A connection with options that GRDB does not offer.
private final class Inspector {
    private let connection: OpaquePointer
    /// Whether reading takes SQLite's locks, so that it sees one state of the file.
    let isLocking: Bool

    init(_ path: String, options: String) throws {
        isLocking = options == "mode=ro"
        var connection: OpaquePointer?
        let flags = (options.hasPrefix("mode=rw") ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY) | SQLITE_OPEN_URI
        let code = sqlite3_open_v2("\(URL(filePath: path).absoluteString)?\(options)", &connection, flags, nil)
        guard code == SQLITE_OK, let connection else {
            let error = DatabaseError(resultCode: ResultCode(rawValue: code))
            sqlite3_close(connection)
            throw error
        }
        self.connection = connection
        sqlite3_busy_timeout(connection, 1000)
    }

    deinit { sqlite3_close(connection) }

    private func rows<Value>(_ sql: String, _ value: (OpaquePointer?) -> Value) throws -> [Value] {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else { throw failure }
        var rows: [Value] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: rows.append(value(statement))
            case SQLITE_DONE: return rows
            default: throw failure
            }
        }
    }

    /// Replaces the content of another database by this one's.
    func copy(to database: Database) throws {
        guard let backup = sqlite3_backup_init(database.sqliteConnection, "main", connection, "main") else {
            throw DatabaseError(resultCode: .SQLITE_CANTOPEN)
        }
        let code = sqlite3_backup_step(backup, -1)
        sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
        database.clearSchemaCache()
    }

    func texts(_ sql: String) throws -> [String] {
        try rows(sql) { statement in
            guard let start = sqlite3_column_blob(statement, 0) else { return "" }
            let count = Int(sqlite3_column_bytes(statement, 0))
            return String(decoding: UnsafeRawBufferPointer(start: start, count: count), as: UTF8.self)
        }
    }

    func integer(_ sql: String) throws -> Int { try rows(sql) { Int(sqlite3_column_int64($0, 0)) }.first ?? 0 }

    private var failure: DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: sqlite3_extended_errcode(connection)),
            message: String(cString: sqlite3_errmsg(connection)))
    }
}
