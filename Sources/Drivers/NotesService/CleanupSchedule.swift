internal import Synchronization

/// The schedule on which expired rows are removed: with the first write, then at most once a minute.
final class CleanupSchedule: Sendable {
    private let last = Mutex<Int?>(nil)

    /// Returns whether a cleanup is due; if so, records it as done.
    ///
    /// - Parameter now: Milliseconds of ``DatabaseUptime``, which a test hook may set back.
    func takeDue(at now: Int) -> Bool {
        last.withLock { last in
            if let last, abs(now - last) < 60_000 { return false }
            last = now
            return true
        }
    }
}
