public import SyncEngine

extension SyncClient {
    /// The result of ``waitUntilComplete(timeout:)``.
    public enum Completion: Hashable, Sendable {
        /// All changes are sent, and all changes of the server are fetched.
        case complete
        /// The client makes no further attempts, for this reason.
        case paused(reason: String)
        /// The server does not respond as a notes server does.
        case foreignServer(ForeignServerError)
        /// The sync is not complete; it continues.
        case timedOut
    }

    /// The interval between two checks of the status.
    private static var pollInterval: Duration { .milliseconds(20) }

    /// Waits until the sync is complete or paused, or for `timeout`.
    public func waitUntilComplete(timeout: Duration) async throws -> Completion {
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline {
            let status = try await status()
            if let reason = status.pauseReason { return .paused(reason: reason) }
            if let error = status.foreignServer { return .foreignServer(error) }
            if status.isSettled { return .complete }
            try await Task.sleep(for: Self.pollInterval)
        }
        return .timedOut
    }
}
