public import SyncEngine
public import SyncStore

/// An observable event of a sync client.
public enum SyncEvent: Sendable {
    /// The view has changed.
    case view(NotesView)
    /// A request is being sent.
    case sent(exchange: Int, method: String, target: String)
    /// The complete response to a request has arrived.
    case responded(exchange: Int, status: Int)
    /// An exchange has ended without a response.
    case failed(exchange: Int, reason: String)
    /// A commit has failed; the change that needed it has not happened.
    case commitFailed(SyncStoreError)
}

/// State of a sync client's work.
public struct SyncStatus: Sendable {
    /// Whether nothing is in flight and nothing is ready to be sent.
    public let isSettled: Bool
    /// The reason why nothing is sent until a sync is requested; `nil` if not paused.
    public let pauseReason: String?
    /// Set while the last response came from a peer that is not a notes server. The client keeps retrying; a program
    /// that syncs once may stop here.
    public let foreignServer: ForeignServerError?
}
