internal import Synchronization

/// Whether the database does what it is asked to: what `/health` tells, and which problems are worth a line in the log.
final class DatabaseHealth: Sendable {
    private struct State {
        var problem: NotesDatabaseError?
        var isLogged: [NotesDatabaseError.Cause: Int] = [:]
        var suppressed = 0
        var lastProbe: Int?
        var refusedBytes = 0
    }

    /// `/health` writes so many bytes at least: what a note of some size takes.
    static let probeBytesMin = 32 << 10

    /// A problem of one cause is logged at most so often, in milliseconds.
    static let logIntervalMilliseconds = 10_000
    /// `/health` writes at most so often, in milliseconds.
    static let probeIntervalMilliseconds = 1000

    private let state = Mutex(State())

    /// What is wrong now.
    var problem: NotesDatabaseError? { state.withLock { $0.problem } }

    /// Records a problem and returns the line for the log; `nil` if the log has its like already.
    ///
    /// - Parameter now: Monotonic milliseconds.
    func recordProblem(_ problem: NotesDatabaseError, at now: Int) -> String? {
        state.withLock { state in
            // Damage does not heal, whatever else succeeds; a bug of ours is no problem of the disk.
            if state.problem?.cause != .damaged && problem.cause != .other { state.problem = problem }
            if let last = state.isLogged[problem.cause], now - last < Self.logIntervalMilliseconds {
                state.suppressed += 1
                return nil
            }
            state.isLogged[problem.cause] = now
            defer { state.suppressed = 0 }
            return state.suppressed == 0 ? problem.description : "\(problem) (and \(state.suppressed) like it)"
        }
    }

    /// Records a write that succeeded and returns the line for the log if writes had failed.
    ///
    /// - Parameter bytes: How many it wrote at least; fewer than were refused do not end a full disk.
    func recordWrite(to path: String, bytes: Int) -> String? {
        state.withLock { state in
            guard let problem = state.problem, problem.cause != .damaged,
                problem.cause != .full || bytes >= state.refusedBytes
            else { return nil }
            state.problem = nil
            state.refusedBytes = 0
            state.isLogged = [:]
            state.suppressed = 0
            return "database \(path): writes succeed again"
        }
    }

    /// Records that a body of so many bytes was refused: where there is room for a small one, it is no proof to write that.
    func recordRefusal(bytes: Int) { state.withLock { $0.refusedBytes = max($0.refusedBytes, bytes) } }

    /// How many bytes `/health` shall try to write now; `nil` for none.
    func probe(at now: Int) -> Int? {
        state.withLock { state in
            if let last = state.lastProbe, now - last < Self.probeIntervalMilliseconds { return nil }
            state.lastProbe = now
            return max(Self.probeBytesMin, state.refusedBytes * 2)
        }
    }
}
