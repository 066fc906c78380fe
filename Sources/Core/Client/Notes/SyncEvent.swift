/// An observable event of a sync client.
public enum SyncEvent: Sendable {
    /// Rows of the view, the outbox or the connectivity have changed.
    case view(ViewChange)
    /// A request is being sent.
    case sent(exchange: Int, method: String, target: String)
    /// The complete response to a request has arrived.
    case responded(exchange: Int, status: Int)
    /// An exchange has ended without a response.
    case failed(exchange: Int, reason: String)
    /// An exchange was cancelled, because the interface went down.
    case cancelled(exchange: Int)
    /// Commits have begun to fail, for this reason; nothing is sent until one succeeds.
    case commitFailed(String)
    /// Commits succeed again.
    case commitRecovered
    /// Nothing is sent until the user acts.
    case paused(String)
    /// The reason why the server is not reached, or does not serve the client, has changed; `nil` if there is none any more.
    case problem(SyncProblem?)
    /// The access token was renewed; the app keeps the tokens for its next start.
    case refreshed(SyncTokens)
    /// The account differs from the store's; nothing is sent until it is adopted.
    case mismatch(AccountMismatch)
    /// A record cannot be read.
    case quarantined(RecordID, String)
    /// A change is parked.
    case parked(RecordID, String)
    /// The transfer of an attachment has proceeded or ended.
    case attachment(AttachmentProgress)
}
