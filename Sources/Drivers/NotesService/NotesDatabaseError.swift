internal import GRDB
internal import GRDBSQLite
internal import HTTPTypes

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An error of the database at run time. The description is for the log; clients get the summary, without the file's
/// path.
public struct NotesDatabaseError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause, one case per remedy.
    public enum Cause: String, Hashable, Sendable {
        case full, busy, readOnly, inputOutput, damaged, unopenable, moved, other
    }

    /// The cause.
    public let cause: Cause
    /// The database file, or `memory`.
    public let path: String
    /// SQLite's message and code, and the system error if there is one.
    public let detail: String

    /// A log line: file, failure, cause, remedy.
    public var description: String { "database \(path): \(summary) (\(detail)); \(remedy)" }

    /// Creates the error of a file that is no longer at its path. Further writes would be lost when the server stops.
    init(moved path: String) {
        self.path = path
        cause = .moved
        detail = "the path names another file, or no file"
    }

    /// - Parameter systemError: The `errno` of SQLite's last failed system call.
    init(_ error: any Error, systemError: Int32, path: String) {
        self.path = path
        guard let error = error as? DatabaseError else {
            cause = .other
            detail = "\(error)"
            return
        }
        // A quota and the limit on file size have the effect of a full disk.
        let isFull = [ENOSPC, EDQUOT, EFBIG].contains(systemError)
        switch error.resultCode.primaryResultCode {
        case .SQLITE_FULL: cause = .full
        case .SQLITE_IOERR: cause = isFull ? .full : .inputOutput
        case .SQLITE_BUSY, .SQLITE_LOCKED: cause = .busy
        case .SQLITE_READONLY, .SQLITE_PERM: cause = .readOnly
        case .SQLITE_CORRUPT, .SQLITE_NOTADB: cause = .damaged
        case .SQLITE_CANTOPEN: cause = .unopenable
        default: cause = .other
        }
        // The statement's values are left out, because they are user data.
        var parts = ["\(error.message ?? "no message"), SQLite code \(error.extendedResultCode.rawValue)"]
        if [.full, .inputOutput, .unopenable].contains(cause), systemError != 0 {
            parts.append(String(cString: strerror(systemError)))
        }
        detail = parts.joined(separator: ", ")
    }

    /// The failure in words for clients.
    var summary: String {
        switch cause {
        case .full: "the disk is full, nothing was written"
        case .busy: "another process holds the database"
        case .readOnly: "the database cannot be written"
        case .inputOutput: "the disk reports an I/O error"
        case .damaged: "the database is damaged"
        case .unopenable: "the database's files cannot be opened"
        case .moved: "the database's file was moved or deleted"
        case .other: "internal error"
        }
    }

    private var remedy: String {
        switch cause {
        case .full: "free disk space; until then writes get 507"
        case .busy: "end the other process, or wait; until then requests get 503"
        case .readOnly: "make the file and its directory writable; until then writes get 503"
        case .inputOutput: "check the disk; requests get 503"
        case .damaged: "stop the server and restore the file from a backup; requests get 503"
        case .unopenable: "check the directory and the limit on open files (ulimit -n); requests get 503"
        case .moved: "move the file back, or restart the server; until then writes get 503"
        case .other: "please report this error"
        }
    }

    /// The response to the client.
    var response: NotesService.Response {
        var response: NotesService.Response
        switch cause {
        case .full:
            response = .error(
                .init(code: 507, reasonPhrase: "Insufficient Storage"), "\(summary.capitalisedFirst).", key: "detail")
        case .other:
            response = .error(.internalServerError, "Internal error; the server's log has its cause.", key: "detail")
        default:
            response = .error(.serviceUnavailable, "\(summary.capitalisedFirst); try again later.", key: "detail")
            // A transaction of another process may end within a second; disk problems take longer.
            response[.retryAfter] = cause == .busy ? "1" : "10"
        }
        return response
    }
}

extension String {
    fileprivate var capitalisedFirst: String { prefix(1).uppercased() + dropFirst() }
}
