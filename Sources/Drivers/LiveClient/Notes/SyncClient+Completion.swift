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

    /// Synchronises now, as ``sync()`` does, and waits until all changes are sent and those of the server are fetched. Returns
    /// the reason if they are not, at once if waiting does not help: the server refuses connections or rejects the
    /// credentials, for example. While the connection may come back, as in a tunnel, the call waits for `timeout`.
    ///
    /// Pending changes are kept, and the client continues. Conflicts and rejected changes are shown by ``rows()``.
    ///
    /// - Returns: `nil` if the sync is complete, and all records could be read.
    public func sync(within timeout: Duration) async throws -> SyncProblem? {
        try await onLoop { core in core.sync(within: timeout) }.get()
    }
}

extension SyncClient.Completion {
    /// Creates the result of a sync that was requested in a state of connectivity; `nil` while it is in progress. Failures of
    /// earlier attempts do not count.
    init?(_ status: SyncStatus, since connectivity: Connectivity) {
        let hasNews = status.connectivity != connectivity
        switch Self(status) {
        case .foreignServer? where !hasNews: return nil
        case let completion?: self = completion
        // The request for a sync has forgotten the problem of earlier responses.
        case nil where status.problem?.kind == .unexpectedResponse: self = .timedOut
        case nil:
            guard hasNews, let kind = status.problem?.kind, kind != .timedOut, kind != .connectionFailed else {
                return nil
            }
            self = .timedOut
        }
    }
}

extension SyncProblem {
    /// Creates the problem that a client has which cannot read records; `nil` if it has read all.
    init?(unreadable status: SyncStatus) {
        guard let first = status.quarantine.min(by: { $0.key < $1.key }) else { return nil }
        let count = status.quarantine.count
        self.init(
            .unexpectedResponse, "\(count) \(count == 1 ? "record" : "records") cannot be read: \(first.value)")
    }

    /// Creates the problem of a sync that is not complete after a duration.
    init(_ status: SyncStatus, after timeout: Duration) {
        if let problem = status.problem {
            self = problem
        } else if status.connectivity == .interfaceDown {
            self = SyncProblem(.noRoute, "the network interface is down")
        } else if let problem = SyncProblem(unreadable: status) {
            self = problem
        } else {
            self = SyncProblem(
                .timedOut, status.isCommitFailing ? "the store cannot be written" : "not complete after \(timeout)")
        }
    }
}
