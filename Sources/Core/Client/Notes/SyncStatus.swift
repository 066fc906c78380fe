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
    /// The reason why the client does not reach the server, or is not served; `nil` if it is.
    public let problem: SyncProblem?
    /// The server's clock, as the last validated response showed it; `nil` if none has.
    public let serverClock: ServerClock?
}

/// A reason why a client does not reach its server, or is not served.
public struct SyncProblem: Hashable, Sendable {
    /// A kind of reason.
    public enum Kind: String, Hashable, Sendable {
        /// The server rejects the credentials.
        case credentialsRejected = "credentials-rejected"
        /// The server knows the user, who may not do this.
        case forbidden
        /// The server's host refuses connections.
        case refused = "connection-refused"
        /// The server's name is not found.
        case nameNotFound = "name-not-found"
        /// The server does not respond in time.
        case timedOut = "timed-out"
        /// There is no route to the server.
        case noRoute = "no-route"
        /// No trusted authority has signed the certificate of the server.
        case certificateUntrusted = "certificate-untrusted"
        /// The certificate of the server has expired, or is not valid yet.
        case certificateExpired = "certificate-expired"
        /// The certificate of the server is for other names.
        case certificateWrongName = "certificate-wrong-name"
        /// The handshake of TLS fails in another way, such as with a server without TLS.
        case tlsFailed = "tls-failed"
        /// The connection fails in another way.
        case connectionFailed = "connection-failed"
        /// The peer is not the expected server.
        case foreignServer = "foreign-server"
        /// The server does not respond to a read as the configuration says: its path or its records are others.
        case unexpectedResponse = "unexpected-response"
        /// The store belongs to another account.
        case accountMismatch = "account-mismatch"
        /// The policy does not allow the interface.
        case interfaceNotAllowed = "interface-not-allowed"
    }

    /// The kind.
    public let kind: Kind
    /// The reason in words.
    public let reason: String

    /// Creates a problem.
    public init(_ kind: Kind, _ reason: String) {
        self.kind = kind
        self.reason = reason
    }
}

/// A time of the server's clock.
public struct ServerClock: Hashable, Sendable {
    /// The seconds since 1970.
    public let seconds: Int64
    /// The time of the client at which the response with it arrived.
    public let at: Instant
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
            notBefore: path.floor, lastContact: path.lastContact, isCommitFailing: commit.failures > 0,
            problem: problem, serverClock: serverClock)
    }

    var problem: SyncProblem? {
        if let mismatch { return SyncProblem(.accountMismatch, "\(mismatch)") }
        if let pauseReason { return SyncProblem(pauseKind, pauseReason) }
        if let foreign = path.foreignServer { return SyncProblem(.foreignServer, "\(foreign)") }
        switch connectivity {
        case .interfaceNotAllowed: return SyncProblem(.interfaceNotAllowed, "the policy does not allow the interface")
        case .suspected, .unreachable: return path.lastFailure
        case .interfaceDown: return nil
        case .unknown, .online: return indexWork.problem.map { SyncProblem(.unexpectedResponse, $0) }
        }
    }

    /// Whether a change is not durable: the result of its commit is awaited, or the commit has failed.
    var hasUncommittedChange: Bool { commit.isPending || commit.retryAt != nil }

    /// All records as a user interface would draw them, in no order.
    public var rows: some Sequence<RecordRow> { records.keys.lazy.compactMap { row($0) } }

    /// Returns a record as a user interface would draw it.
    public func row(_ id: RecordID) -> RecordRow? {
        guard let record = records[id] else { return nil }
        return behavior.presentation.row(
            RecordPresentation.State(record: record, entries: entries(of: id), connectivity: connectivity))
    }
}
