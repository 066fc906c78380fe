internal import GRDB

/// The reason why the store is unusable or a commit failed.
public struct SyncStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of error; decides the exit status.
    public enum Kind: Hashable, Sendable {
        /// The file has a newer schema version.
        case newer
        /// The file is not a database, or it is corrupt.
        case unreadable
        /// Another process has the file open.
        case inUse
        /// The file cannot be written: it is read-only, the disk is full, or the folder does not exist.
        case unwritable
    }

    /// The kind of error.
    public let kind: Kind
    /// What failed, where and why.
    public let description: String

    init(_ kind: Kind, _ description: String) {
        self.kind = kind
        self.description = description
    }

    init(_ error: any Error, path: String) {
        guard let error = error as? DatabaseError else {
            self.init(.unreadable, "cannot read \(path): \(error)")
            return
        }
        switch error.resultCode {
        case .SQLITE_NOTADB, .SQLITE_CORRUPT: self.init(.unreadable, "cannot read \(path): it is not a notes database")
        case .SQLITE_BUSY, .SQLITE_LOCKED: self.init(.inUse, "cannot open \(path): in use by another process")
        case .SQLITE_FULL: self.init(.unwritable, "cannot write \(path): the disk is full; nothing was changed")
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            self.init(.unwritable, "cannot write \(path): read-only or no permission; nothing was changed")
        case .SQLITE_CANTOPEN: self.init(.unwritable, "cannot open \(path): no such folder or no permission")
        case .SQLITE_IOERR: self.init(.unwritable, "cannot write \(path): I/O error; nothing was changed")
        // SQLite's message holds no values; the statement's arguments, which are the user's text, are left out.
        default:
            self.init(
                .unreadable,
                "cannot use \(path): \(error.message ?? "database error") (SQLite error \(error.resultCode.rawValue))")
        }
    }
}
