internal import Determinism

/// The work of one record: its entries in order, and its own delays.
struct Schedule: Sendable {
    /// Work that is ready. A ticket is valid if it is the newest of its record.
    struct Ticket: Comparable, Sendable {
        /// Work that has failed before follows fresh work, which it might delay until a timeout.
        enum Priority: Int, Comparable {
            case reconciliation, change, repeatedChange, read, repeatedRead

            static func < (left: Priority, right: Priority) -> Bool { left.rawValue < right.rawValue }
        }

        let priority: Priority
        let order: Int
        let number: Int
        let id: RecordID

        static func < (left: Ticket, right: Ticket) -> Bool {
            (left.priority, left.order, left.number) < (right.priority, right.order, right.number)
        }
    }

    /// Work that waits for its next attempt. It is valid if its number is the newest ticket's of its record.
    struct Delay: Comparable, Sendable {
        let at: Instant
        let number: Int
        let id: RecordID

        static func < (left: Delay, right: Delay) -> Bool { (left.at, left.number) < (right.at, right.number) }
    }

    /// Sequence numbers of the record's entries.
    var queue: [Int] = []
    /// The server's record is fetched before anything else is sent, because the outcome of the first entry is unknown
    /// or contested.
    var mustReconcile = false
    /// The server's record is to be read.
    var wantsFetch = false
    /// The number of the first exchange that began after the read was requested: its result may take the read's place.
    var fetchRequestedAt = 0
    /// The revision that the index lists, if it is the reason for the read.
    var listedRevision: RecordRevision?
    /// Failed attempts in a row.
    var failures = 0
    /// Failed reads in a row that ended in a server error (500). Those of entries are stored with them.
    var fetchErrors = 0
    /// Failed attempts in a row that ended in 403.
    var refusals = 0
    /// The time of the next attempt.
    var retryAt: Instant?
    /// Whether the last attempt failed without a response of the server.
    var hasFailedOnPath = false
    /// Failures of the path since the last validated response to a request of the record.
    var pathFailures = 0
    /// Whether a change or a reconciliation of the record is in flight.
    var isInFlight = false
    /// Whether a read of the record is in flight.
    var isFetching = false
    /// Whether a change was sent after the last read, so that the read's result may be older.
    var isFetchStale = false
    /// The number of the newest ticket.
    var ticket = -1

    var isEmpty: Bool {
        queue.isEmpty && !mustReconcile && !wantsFetch && !isInFlight && !isFetching && failures == 0
    }
}

/// The purpose of an exchange.
enum Activity: Hashable, Sendable {
    case probe
    case refresh
    case index
    case push(RecordID, sequence: Int)
    case reconcile(RecordID, sequence: Int)
    case fetch(RecordID)

    var recordID: RecordID? {
        switch self {
        case .probe, .refresh, .index: nil
        case .push(let id, _), .reconcile(let id, _), .fetch(let id): id
        }
    }

    /// Whether no change of the user waits for the exchange.
    var isRead: Bool {
        switch self {
        case .probe, .index, .fetch: true
        case .refresh, .push, .reconcile: false
        }
    }
}

/// An exchange in flight.
struct Exchange: Sendable {
    let id: SyncExchangeID
    let activity: Activity
    let operation: SyncOperation
    /// Whether an earlier attempt of the entry may have been executed.
    var mayHaveBeenCommitted = false
    /// The generation of the credentials with which it was sent.
    var generation = 0
    /// The time at which the request was returned to the driver. It is withheld until the attempt is committed.
    var sentAt: Instant?
    var isSent: Bool { sentAt != nil }
}

/// The progress of reading the index.
struct IndexWork: Sendable {
    private(set) var isWanted = false
    var failures = 0
    var retryAt: Instant?
    /// What was wrong with the last response; `nil` if nothing was, or if another attempt may end otherwise.
    var problem: String?
    /// The time at which the index was last read to its end.
    var fetchedAt: Instant?
    /// The identifiers on the pages read so far, if they began at the beginning of the index; `nil` otherwise.
    var listed: Set<RecordID>?
    /// Records that are to be fetched.
    var awaited: Set<RecordID> = []
    /// Whether the pages are requested with the contents of the records.
    var listsContents = false
    /// Failed attempts in a row to read a page with contents.
    var contentsFailures = 0
    /// Whether the read began without any record of the server, so that none can be missing.
    var isFirstLoad = false
    /// Whether every entry of the pages read so far could be read.
    var isComplete = true
    /// The position of the next page; `nil` between two reads.
    var page: String?
    /// Whether revisions only grow, as on a server with cursors. On other servers, a deleted record may be created
    /// again with a lower revision.
    var isMonotonic = false
    /// During an adoption (``IndexState/isAdopting``): records that have another revision in the server's index, and
    /// whose contents have not been compared yet.
    var adoptions: Set<RecordID> = []
    /// Records with a change that the server has executed since the read began: the pages may be older.
    var written: Set<RecordID> = []
    /// Changes sent in a row while the index was due.
    var pushesInRow = 0

    /// Requests the index.
    mutating func want() { isWanted = true }

    /// Ends a read: another one is requested later.
    mutating func finish(at now: Instant) {
        isWanted = false
        problem = nil
        fetchedAt = now
        failures = 0
        retryAt = nil
        listsContents = false
        contentsFailures = 0
        page = nil
        listed = nil
        isComplete = true
        pushesInRow = 0
    }
}

/// What is known of the path to the server.
struct PathState: Sendable {
    var interface = NetworkInterface(isUp: true)
    /// Failures in a row without a response of the server.
    private(set) var failures = 0
    /// The time of the next probe; `nil` while the path works.
    private(set) var probeAt: Instant?
    /// Nothing is sent before this time, because the server or a gateway said so (`Retry-After`).
    var floor: Instant?
    /// Whether the last exchange reached the server; `nil` before the first.
    private(set) var isReachable: Bool?
    /// The peer of the last response, if it was not the expected server.
    var foreignServer: ForeignServerError?
    /// The last failure without a response of the server.
    var lastFailure: SyncProblem?
    /// The time of the last validated response.
    var lastContact: Instant?

    /// Whether no failure is the reason for a probe, but the user's request to sync or the start of the client.
    var isTrusted: Bool { failures == 0 && isReachable != false }

    /// Requires a probe before anything else is sent.
    ///
    /// - Parameter isEdge: Whether the interface has come up. A failed probe is then followed by the first delay; otherwise
    ///   by the delay that the probe has ended, so that requests of the user do not make the delays shorter.
    mutating func startProbing(at time: Instant, isEdge: Bool) {
        probeAt = time
        failures = isEdge ? 1 : max(0, failures - 1)
    }

    /// The time of the last probe without a delay.
    private var quickProbeAt: Instant?

    /// Records a failure; returns whether the next probe needs no delay: that after a first failure, unless another one
    /// was a moment ago.
    mutating func recordFailure(at now: Instant, minInterval: Nanoseconds) -> Bool {
        failures = min(failures + 1, 1 << 20)
        isReachable = false
        guard failures == 1, quickProbeAt.map({ now >= $0 + minInterval }) ?? true else { return false }
        quickProbeAt = now
        return true
    }

    mutating func probe(at time: Instant) { probeAt = time }

    /// Records a validated response; returns whether the path had failed.
    mutating func recordResponse(at now: Instant) -> Bool {
        defer {
            failures = 0
            probeAt = nil
            isReachable = true
            foreignServer = nil
            lastFailure = nil
            lastContact = now
        }
        return failures > 1
    }
}

/// The state of the commit.
struct CommitState: Sendable {
    /// Whether the driver is executing a commit.
    var isPending = false
    /// The change that the driver is committing.
    var change = StoreChange()
    /// Failures in a row.
    var failures = 0
    /// The time of the next attempt after a failure.
    var retryAt: Instant?
    /// Whether the pending change contains a change by the user, which is attempted at once.
    var isUserChange = false
}

/// The state before the user's change that is being committed.
struct Undo: Sendable {
    let change: StoreChange
    var records: [RecordID: (record: LocalRecord?, shown: LocalRecord?, entries: [OutboxEntry], schedule: Schedule?)] =
        [:]
}
