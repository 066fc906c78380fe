/// The decisions of a sync client about records, changes and credentials: what a decision needs to know goes in, and the
/// engine executes what comes out.
///
/// The default values are the decisions of this client. An app that wants others replaces them:
///
///     var behavior = SyncBehavior()
///     // The server's side wins all conflicts.
///     behavior.conflict = { _ in .resolved(.theirs) }
///     // What the server rejects is given up.
///     behavior.replaceOutcomes { attempt in
///         if case .rejected = attempt.result { .dropped } else { nil }
///     }
public struct SyncBehavior: Sendable {
    /// Returns the meaning of the end of an attempt to send a change.
    public var outcome: @Sendable (ChangeAttempt) -> ChangeOutcome = { $0.outcome }
    /// Returns what becomes of a record that was changed both locally and on the server.
    public var conflict: @Sendable (RecordConflict) -> ConflictDecision = { $0.decision }
    /// Returns what becomes of a record that the server no longer has.
    public var absence: @Sendable (RecordAbsence) -> AbsenceDecision = { $0.decision }
    /// Returns the record to store before its content is read, because the index lists another revision; `nil` for none.
    public var listing: @Sendable (LocalRecord, RemoteIndex.Entry) -> LocalRecord? = { _, _ in nil }
    /// Returns the record that is shown because a record could not be read; `nil` for none. The second argument returns an
    /// identifier that is not in use.
    public var placeholder: @Sendable (RecordID, () -> RecordID) -> LocalRecord? = { _, _ in nil }
    /// Returns whether an edit becomes part of the last entry of the record's queue; otherwise it gets one of its own.
    public var mergesEdit: @Sendable (OutboxEntry) -> Bool = { $0.attempts == 0 }
    /// Returns the base revision of a deletion; `nil` if the server has never had the record, so that nothing is sent.
    public var deletionBase: @Sendable (LocalRecord) -> RecordRevision? = { $0.base }
    /// Returns what follows from the rejection of a token.
    public var tokenRejection: @Sendable (TokenRejection) -> TokenDecision = { $0.decision }
    /// The look of records.
    public var presentation = RecordPresentation()

    /// Creates the behaviour of this client.
    public init() {}

    /// Replaces the outcomes for which a function returns another one.
    public mutating func replaceOutcomes(_ replacement: @escaping @Sendable (ChangeAttempt) -> ChangeOutcome?) {
        outcome = { [earlier = outcome] in replacement($0) ?? earlier($0) }
    }

    /// Replaces the decisions about conflicts for which a function returns another one.
    public mutating func replaceConflictDecisions(
        _ replacement: @escaping @Sendable (RecordConflict) -> ConflictDecision?
    ) {
        conflict = { [earlier = conflict] in replacement($0) ?? earlier($0) }
    }

    /// Replaces the decisions about absent records for which a function returns another one.
    public mutating func replaceAbsenceDecisions(
        _ replacement: @escaping @Sendable (RecordAbsence) -> AbsenceDecision?
    ) {
        absence = { [earlier = absence] in replacement($0) ?? earlier($0) }
    }
}

// MARK: Changes

/// The end of an attempt to send a change.
public struct ChangeAttempt: Sendable {
    /// The change.
    public let entry: OutboxEntry
    /// The record as it is stored; `nil` if it no longer is.
    public let record: LocalRecord?
    /// The result; `nil` if the response was lost. An ill-formed or contradictory response is `.invalid`.
    public let result: SyncResult?
    /// The number of attempts before this one in a row that ended in 403.
    public let refusals: Int
    /// The number of attempts that end in a server error (500) before the change is parked.
    public let serverErrorsMax: Int

    /// Whether the server has not responded, so that it may have executed the change.
    public var isLost: Bool {
        switch result {
        case nil, .gatewayError, .foreign: true
        default: false
        }
    }

    /// The meaning for this client.
    public var outcome: ChangeOutcome {
        switch result {
        case .record(let remote) where entry.kind != .delete: return .stored(remote)
        case .done where entry.kind == .delete, .missing where entry.kind == .delete: return .finished(nil)
        case .missing where entry.kind == .update: return .deletedOnServer
        case .missing: return .parked("the server rejects it (404)")
        case .conflict: return .contested
        case .serverError(let status):
            let count = entry.serverErrors + 1
            guard count >= serverErrorsMax else { return .repeated }
            return .parked("the server failed to store it \(count) times (\(status))")
        case .forbidden(let status):
            return refusals == 0 ? .repeated : .parked("the server forbids it (\(status))")
        case .rejected(let status): return .parked("the server rejects it (\(status))")
        case .unauthorized: return .repeatedAtOnce
        case nil, .gatewayError, .foreign, .unavailable: return .repeated
        case .invalid(let reason): return .unclear(reason)
        default: return .unclear("the response is not one to this request")
        }
    }
}

/// The meaning of the end of an attempt to send a change.
public enum ChangeOutcome: Hashable, Sendable {
    /// The server has stored the change: this is its record.
    case stored(RemoteRecord)
    /// The change is sent again after a delay.
    case repeated
    /// The change is sent again as soon as anything may be sent.
    case repeatedAtOnce
    /// The server's record is fetched first: its revision may be the change's own, stored by an attempt whose response was
    /// lost.
    case contested
    /// The response does not show whether the server has executed the change.
    case unclear(String)
    /// The change is not sent before the user decides, for this reason.
    case parked(String)
    /// The server has deleted the record: a conflict.
    case deletedOnServer
    /// The change ends, whatever the server has; later ones of the record follow.
    case dropped
    /// All changes of the record end: the record gets this state, or is removed.
    case finished(LocalRecord?)
    /// The record is created again under another identifier.
    case createdAgain
}

// MARK: Records

/// A record that was changed both locally and on the server. None of its changes will be sent by itself.
public struct RecordConflict: Sendable {
    /// The local side.
    public let record: LocalRecord
    /// The server's side.
    public let theirs: LocalRecord.Theirs
    /// Whether the contents of both sides are equal for the user.
    public let areEqual: Bool

    /// The decision of this client: the user resolves the conflict, unless both sides are equal.
    public var decision: ConflictDecision {
        if record.isDeleted && theirs.revision == nil { return .resolved(.theirs) }
        if areEqual, !record.isDeleted, let content = theirs.content { return .ended(content) }
        return .open
    }
}

/// What becomes of a conflict.
public enum ConflictDecision: Hashable, Sendable {
    /// The record stays in conflict until the user resolves it.
    case open
    /// The server has what the user wants: the record gets this content, and nothing is sent.
    case ended(RecordContent)
    /// The conflict is resolved as if the user had decided so.
    case resolved(SyncEngine.Resolution)
    /// The local side becomes another record, and the record gets the server's side.
    case copied
}

/// A record that the server no longer has.
public struct RecordAbsence: Sendable {
    /// The record.
    public let record: LocalRecord
    /// Whether changes of it wait to be sent.
    public let hasChanges: Bool
    /// Whether the server may be another one than before (``IndexState/isAdopting``).
    public let isAdopting: Bool

    /// The decision of this client: an unchanged record is removed, and a conflict becomes one with a deletion.
    public var decision: AbsenceDecision {
        guard record.base != nil || record.theirs != nil else { return .kept }
        if let theirs = record.theirs { return theirs.revision == nil ? .kept : .conflict }
        // The responses to its changes show what becomes of it.
        if hasChanges { return .kept }
        return isAdopting ? .conflict : .removed
    }
}

/// What becomes of a record that the server no longer has.
public enum AbsenceDecision: Hashable, Sendable {
    /// The record stays as it is.
    case kept
    /// The record is in conflict with a deletion.
    case conflict
    /// The record is removed.
    case removed
}

// MARK: Credentials

/// The rejection of an access token or of the refresh token.
public struct TokenRejection: Sendable {
    /// A token.
    public enum Token: Hashable, Sendable {
        /// An access token that the server has accepted before.
        case access
        /// An access token that the server has never accepted.
        case newAccess
        /// An access token that the server has never accepted, and that may have expired before its first use.
        case expiredAccess
        /// The refresh token.
        case refresh
    }

    /// The token.
    public let token: Token

    /// The decision of this client: each rejection of an accepted access token leads to one refresh.
    public var decision: TokenDecision {
        switch token {
        case .access: .refreshed
        case .expiredAccess: .refreshedLater
        case .newAccess, .refresh: .paused
        }
    }
}

/// What follows from the rejection of a token.
public enum TokenDecision: Hashable, Sendable {
    /// Another access token is requested at once.
    case refreshed
    /// Another access token is requested after a delay.
    case refreshedLater
    /// Nothing is sent until the user signs in.
    case paused
}
