internal import GRDB
internal import GRDBSQLite

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The reason why the store is unusable or a commit failed. A failed commit has changed nothing.
public struct SyncStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error; decides the exit status.
    public enum Kind: Hashable, Sendable {
        /// There is no store to read at the path.
        case missing
        /// The file has a newer schema version.
        case newer
        /// The file is a database of another program, or of another resource.
        case foreign
        /// The file is not a database, or it is damaged.
        case unreadable
        /// Another process synchronises the file, or holds its write lock.
        case inUse
        /// The file cannot be written: the disk is full, a permission is missing, or the path names no file.
        case unwritable
        /// The call needs the lease of ``SyncStore/acquireLease()``.
        case notLeaseHolder
    }

    /// The kind of error.
    public let kind: Kind
    /// What failed, where and why.
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    /// The values of `errno` on a full disk, and for limits with the same effect.
    static let fullDiskErrors: Set<Int32> = [ENOSPC, EDQUOT, EFBIG]

    /// - Parameter systemError: The `errno` of SQLite's last failed system call; 0 if there was none.
    init(_ error: any Error, systemError: Int32 = 0, path: String) {
        guard let error = error as? DatabaseError else {
            self = error as? SyncStoreError ?? SyncStoreError(.unreadable, "cannot use \(path): \(error)")
            return
        }
        let cause = systemError == 0 ? "" : " (\(String(cString: strerror(systemError))))"
        // A quota and the limit on file size have the effect of a full disk.
        let isFull = Self.fullDiskErrors.contains(systemError)
        let code = error.resultCode.primaryResultCode
        switch code {
        case _ where code == .SQLITE_FULL || isFull && [.SQLITE_IOERR, .SQLITE_CANTOPEN].contains(code):
            self.init(
                .unwritable,
                "cannot write \(path): the disk is full\(isFull ? cause : ""); nothing was changed; free some space there"
            )
        case .SQLITE_NOTADB, .SQLITE_CORRUPT:
            self.init(
                .unreadable,
                "cannot read \(path): it is not a database, or it is damaged (SQLite code "
                    + "\(error.extendedResultCode.rawValue))")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init(.inUse, "cannot use \(path): another process is writing to it; try again")
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            self.init(.unwritable, "cannot write \(path): read-only or no permission; nothing was changed")
        case .SQLITE_CANTOPEN:
            self.init(.unwritable, "cannot open \(path): no such directory or no permission\(cause)")
        case .SQLITE_IOERR: self.init(.unwritable, "cannot write \(path): I/O error\(cause); nothing was changed")
        // SQLite's message holds no values; the statement's arguments, which are the user's text, are left out.
        default:
            self.init(
                .unreadable,
                "cannot use \(path): \(error.message ?? "database error") (SQLite code "
                    + "\(error.extendedResultCode.rawValue))")
        }
    }

    /// Returns the error of a store that is to be read and does not exist.
    static func missing(_ path: String) -> SyncStoreError {
        SyncStoreError(.missing, "no store at \(path); the first change or sync creates it, or name another file")
    }

    /// Returns the error of a file that is no longer at its path.
    static func moved(_ path: String) -> SyncStoreError {
        SyncStoreError(.unwritable, "cannot use \(path): the file was moved or deleted; nothing was changed")
    }

    /// Creates the error of a failed system call.
    init(systemError code: Int32, _ action: String, _ path: String) {
        let name = [EACCES: "EACCES", EPERM: "EPERM", EROFS: "EROFS", ENOENT: "ENOENT", ELOOP: "ELOOP"][code]
        self.init(
            .unwritable, "cannot \(action) \(path): \(String(cString: strerror(code)))\(name.map { " (\($0))" } ?? "")")
    }
}

extension Database {
    /// The `errno` of SQLite's last failed system call; 0 if there was none.
    var systemError: Int32 {
        guard let connection = sqliteConnection else { return 0 }
        let code = sqlite3_system_errno(connection)
        if code != 0 { return code }
        // SQLite loses the value when a COMMIT fails; the write-ahead log and the file keep theirs.
        for pointer in [SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER] {
            var file: UnsafeMutablePointer<sqlite3_file>?
            guard sqlite3_file_control(connection, "main", pointer, &file) == SQLITE_OK,
                let control = file?.pointee.pMethods?.pointee.xFileControl
            else { continue }
            var code: CInt = 0
            if control(file, SQLITE_FCNTL_LAST_ERRNO, &code) == SQLITE_OK, code != 0 { return code }
        }
        return 0
    }

    /// Whether the open file is no longer the one at its path.
    var hasMoved: Bool {
        var hasMoved: CInt = 0
        let code = sqlite3_file_control(sqliteConnection, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
        return code == SQLITE_OK && hasMoved != 0
    }
}
