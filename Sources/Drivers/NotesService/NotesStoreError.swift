internal import GRDB

/// An error of opening or copying a database.
public struct NotesStoreError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The file, the failure and the remedy.
    public let description: String

    init(_ description: String) { self.description = description }

    init(_ error: any Error, path: String) {
        guard let error = error as? DatabaseError else {
            self.init("\(path): \(error)")
            return
        }
        switch error.resultCode {
        case .SQLITE_NOTADB, .SQLITE_CORRUPT:
            self.init("\(path) is not a notes database, or is damaged; name another file, or restore it from a backup")
        case .SQLITE_CANTOPEN:
            self.init(
                "\(path) cannot be opened: no such directory, or no permission to create files in it; check the directory"
            )
        case .SQLITE_READONLY, .SQLITE_PERM:
            self.init("\(path) cannot be written; make the file and its directory writable, or name another file")
        case .SQLITE_FULL: self.init("\(path): the disk is full; free some space, or name a file on another disk")
        case .SQLITE_BUSY, .SQLITE_LOCKED:
            self.init("\(path) is locked by another process; end that process, or name another file")
        // The statement's values are left out, because they are user data.
        default: self.init("\(path): \(error.message ?? "database error") (\(error.resultCode.rawValue))")
        }
    }
}
