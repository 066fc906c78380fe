internal import Synchronization

/// The health of the database: the state behind `/health`, and rate-limited log lines.
final class DatabaseHealth: Sendable {
    private struct State {
        var error: NotesDatabaseError?
        /// The time of the last log line of each cause.
        var lastLogged: [NotesDatabaseError.Cause: Int] = [:]
        var suppressedLines = 0
        var lastProbe: Int?
        var rejectedBytes = 0
    }

    /// The minimum number of bytes of the test write of `/health`, the size of a small note.
    static let probeBytesMin = 32 << 10

    /// The minimum number of milliseconds between two log lines of one cause.
    static let logIntervalMilliseconds = 10_000
    /// The minimum number of milliseconds between two test writes of `/health`.
    static let probeIntervalMilliseconds = 1000

    private let state = Mutex(State())

    /// The current error; `nil` if the database works.
    var error: NotesDatabaseError? { state.withLock { $0.error } }

    /// Records an error and returns a line for the log; `nil` if the cause was logged recently.
    ///
    /// - Parameter now: Monotonic milliseconds.
    func recordError(_ error: NotesDatabaseError, at now: Int) -> String? {
        state.withLock { state in
            // Damage is permanent, even if some writes succeed. An internal error does not concern the database.
            if state.error?.cause != .damaged && error.cause != .other { state.error = error }
            if let last = state.lastLogged[error.cause], now - last < Self.logIntervalMilliseconds {
                state.suppressedLines += 1
                return nil
            }
            state.lastLogged[error.cause] = now
            defer { state.suppressedLines = 0 }
            return state.suppressedLines == 0
                ? error.description : "\(error) (\(state.suppressedLines) similar errors not logged)"
        }
    }

    /// Records a successful write and returns a line for the log if it ends an error.
    ///
    /// - Parameter bytes: The size of the write. After a full disk, only a write of at least the size of the largest
    ///   rejected one ends the error.
    func recordWrite(to path: String, bytes: Int) -> String? {
        state.withLock { state in
            guard let error = state.error, error.cause != .damaged,
                error.cause != .full || bytes >= state.rejectedBytes
            else { return nil }
            state.error = nil
            state.rejectedBytes = 0
            state.lastLogged = [:]
            state.suppressedLines = 0
            return "database \(path): writes succeed again"
        }
    }

    /// Records a write that a full disk rejected.
    func recordRejectedWrite(bytes: Int) {
        state.withLock { state in
            // A user's quota is rejected with the same status and says nothing about the disk.
            guard state.error?.cause == .full else { return }
            state.rejectedBytes = max(state.rejectedBytes, bytes)
        }
    }

    /// Returns the size of the test write that is due; `nil` if none is.
    func takeProbe(at now: Int) -> Int? {
        state.withLock { state in
            if let last = state.lastProbe, now - last < Self.probeIntervalMilliseconds { return nil }
            state.lastProbe = now
            return max(Self.probeBytesMin, state.rejectedBytes * 2)
        }
    }
}
