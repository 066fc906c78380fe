public import Determinism

/// The state of a client's work.
public struct SyncStatus: Sendable {
    /// Whether nothing is in flight, ready or delayed.
    public internal(set) var isSettled: Bool
    /// The belief about connectivity.
    public let connectivity: Connectivity
    /// The reason why nothing is sent until the user acts; `nil` if not paused.
    public let pauseReason: String?
    /// The difference between the client's account and the store's; nothing is sent until it is adopted.
    public let mismatch: AccountMismatch?
    /// The peer of the last response, if it was not the expected server. The client keeps retrying, because a captive
    /// portal looks the same and goes away.
    public let foreignServer: ForeignServerError?
    /// The number of changes that wait to be sent.
    public let outbox: Int
    /// The number of parked changes.
    public let parked: Int
    /// Records that cannot be read, with the reason.
    public let quarantine: [RecordID: String]
    /// The time before which the server wants no request (`Retry-After`).
    public let notBefore: Instant?
    /// The time of the last validated response.
    public let lastContact: Instant?
    /// Whether the last commit failed; nothing is sent until one succeeds.
    public let isCommitFailing: Bool
}

/// A report of the engine for people.
public enum SyncReport: Hashable, Sendable {
    /// Nothing is sent until the user acts.
    case paused(String)
    /// The access token was renewed; the tokens are to be kept for the next start.
    case refreshed(SyncTokens)
    /// The account differs from the store's.
    case mismatch(AccountMismatch)
    /// A record cannot be read.
    case quarantined(RecordID, String)
    /// A change is parked.
    case parked(RecordID, String)
    /// Commits have begun to fail.
    case commitFailing
    /// Commits succeed again.
    case commitRecovered
}

extension SyncEngine {
    /// The state of the client's work.
    public var status: SyncStatus {
        SyncStatus(
            isSettled: isSettled, connectivity: connectivity, pauseReason: pauseReason, mismatch: mismatch,
            foreignServer: path.foreignServer, outbox: outboxCount, parked: parkedCount, quarantine: quarantine,
            notBefore: path.floor, lastContact: path.lastContact, isCommitFailing: commit.failures > 0)
    }

    /// Whether the result of a commit is awaited.
    var isCommitPending: Bool { commit.isPending }

    /// All records as a user interface would draw them, in no order.
    public var rows: some Sequence<RecordRow> { records.keys.lazy.compactMap { row($0) } }

    /// Returns a record as a user interface would draw it.
    public func row(_ id: RecordID) -> RecordRow? {
        guard let record = records[id] else { return nil }
        return behavior.presentation.row(
            RecordPresentation.State(record: record, entries: entries(of: id), connectivity: connectivity))
    }
}
