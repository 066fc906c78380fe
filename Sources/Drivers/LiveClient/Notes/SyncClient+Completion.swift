public import Client
internal import NIOCore

extension SyncClient {
    /// The result of ``waitUntilComplete(timeout:)``.
    public enum Completion: Hashable, Sendable {
        /// All changes are sent, and all changes of the server are fetched.
        case complete
        /// Nothing is sent until ``SyncClient/sync()`` or ``SyncClient/setCredentials(_:)``, for this reason.
        case paused(reason: String)
        /// The store belongs to another account; nothing is sent until ``SyncClient/adopt()``.
        case accountMismatch(AccountMismatch)
        /// The server does not respond as the expected server does. The client continues.
        case foreignServer(ForeignServerError)
        /// The policy does not allow the current interface. The client continues when the interface changes.
        case interfaceNotAllowed
        /// The sync is not complete. The client continues.
        case timedOut
        /// The client was stopped.
        case stopped

        /// Creates the result that a status has; `nil` while the sync is in progress.
        init?(_ status: SyncStatus) {
            if let mismatch = status.mismatch {
                self = .accountMismatch(mismatch)
            } else if let reason = status.pauseReason {
                self = .paused(reason: reason)
            } else if let error = status.foreignServer {
                self = .foreignServer(error)
            } else if status.connectivity == .interfaceNotAllowed {
                self = .interfaceNotAllowed
            } else if status.isSettled && !status.isCommitFailing {
                self = .complete
            } else {
                return nil
            }
        }
    }

    /// Waits until the sync is complete or does not continue, for `timeout` at most.
    public func waitUntilComplete(timeout: Duration) async throws -> Completion {
        try await onLoop { core in core.completion(within: timeout) }.get()
    }
}
