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

/// Why the database did not do what it was asked to: for the log in full, for clients without the file's path.
public struct NotesDatabaseError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, as far as it makes a difference to those who can mend it.
    public enum Cause: String, Hashable, Sendable {
        case full, busy, readOnly, inputOutput, damaged, unopenable, moved, other
    }

    /// What is wrong.
    public let cause: Cause
    /// The file, `memory` for none.
    public let path: String
    /// SQLite's words and code, and the system's error if there is one.
    public let detail: String

    /// The line for a log: where, what, why, what to do.
    public var description: String { "database \(path): \(summary) (\(detail)); \(remedy)" }

    /// The problem of a file that has another name now, or none: what is written would be lost at the end.
    init(moved path: String) {
        self.path = path
        cause = .moved
        detail = "another file has its name, or none"
    }

    /// - Parameter systemError: The `errno` of the last call that SQLite saw failing.
    init(_ error: any Error, systemError: Int32, path: String) {
        self.path = path
        guard let error = error as? DatabaseError else {
            cause = .other
            detail = "\(error)"
            return
        }
        // A quota, or a limit of the process' files, is a full disk to whoever writes.
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
        // Never the statement's values: they are what users wrote.
        var words = ["\(error.message ?? "no message"), SQLite code \(error.extendedResultCode.rawValue)"]
        if [.full, .inputOutput, .unopenable].contains(cause), systemError != 0 {
            words.append(String(cString: strerror(systemError)))
        }
        detail = words.joined(separator: ", ")
    }

    /// What is wrong, in words for a client.
    var summary: String {
        switch cause {
        case .full: "the disk is full, nothing was written"
        case .busy: "another process holds the database"
        case .readOnly: "the database cannot be written"
        case .inputOutput: "the disk does not work"
        case .damaged: "the database is damaged"
        case .unopenable: "the database's files cannot be opened"
        case .moved: "the database's file was moved or deleted"
        case .other: "internal error"
        }
    }

    private var remedy: String {
        switch cause {
        case .full: "free some space; writes are refused (507) until then"
        case .busy: "end the other process, or wait; requests are refused (503) until then"
        case .readOnly: "make the file and its directory writable; writes are refused (503) until then"
        case .inputOutput: "check the disk; requests are refused (503)"
        case .damaged: "stop the server and restore the file from a copy; requests are refused (503)"
        case .unopenable: "check the directory, and how many files the process may open; requests are refused (503)"
        case .moved: "put it back, or start the server again; writes are refused (503) until then"
        case .other: "please report it"
        }
    }

    /// What the client of the request is told.
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
            // Somebody's transaction may be over in a second; a disk takes longer.
            response[.retryAfter] = cause == .busy ? "1" : "10"
        }
        return response
    }
}

extension String {
    fileprivate var capitalisedFirst: String { prefix(1).uppercased() + dropFirst() }
}
