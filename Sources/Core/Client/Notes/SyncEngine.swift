//  Client/Notes: the decisions of the sync client.
//
//  Owns: the outbox, the order of requests, the meaning of responses, conflicts, the retry policy, the belief about
//  connectivity.
//
//  Does not own: sockets, SQLite, clocks and randomness. Inputs, the time and a seed go in; commits and requests come
//  out.

public import Determinism
internal import HeapModule
internal import Wire

/// The state machine of a sync client.
///
///     local change  -> record changed at once, entry added to the outbox  (one commit)
///     outbox        -> create, update, delete; in order for each record   (the attempt is committed before it is sent)
///     response      -> validated; record and entry updated                (one commit)
///     stale base    -> fetch -> own change found: done; else a conflict   (base, mine and theirs are kept)
///     afterwards    -> index; changed records are fetched
///
/// A failure of one record's request delays that record only. A failure of the network path delays all requests; meanwhile the
/// client probes the path with one cheap request at a time.
///
/// Inputs are facts with their time. After each input, and after ``advance(to:)`` at ``nextDeadline``, the driver takes
/// every action with ``takeAction()``. No request is returned while a commit is pending or failing.
public struct SyncEngine: Sendable {
    /// An action for the driver.
    public enum Action: Sendable {
        /// Make the change durable before any later action, and report the result with ``committed(at:)``,
        /// ``commitFailed(at:)`` or ``commitWasStale(_:at:)``.
        case commit(StoreChange)
        /// Send the request.
        case send(SyncRequest)
        /// Cancel the exchange; its end is not awaited.
        case cancel(SyncExchangeID)
        /// Report the event.
        case report(SyncReport)
    }

    /// The user's resolution of a conflict.
    public enum Resolution: Hashable, Sendable {
        /// Store this content.
        case write(RecordContent)
        /// Keep the server's side.
        case theirs
        /// Keep the local side.
        case mine
    }

    /// The reason why a change by the user is rejected.
    public enum RecordError: Error, Hashable, Sendable, CustomStringConvertible {
        /// No record has that identifier.
        case unknown
        /// A record has that identifier already.
        case exists
        /// The record has no conflict to resolve.
        case notInConflict
        /// The record has no parked change.
        case notParked
        /// The client keeps no changes of that kind.
        case unknownKind

        public var description: String {
            switch self {
            case .unknown: "no such record"
            case .exists: "the identifier is in use"
            case .notInConflict: "the record is not in conflict"
            case .notParked: "no change of the record was rejected"
            case .unknownKind: "this version has no such change"
            }
        }
    }

    // Stored state.
    var records: [RecordID: LocalRecord]
    var entries: [Int: OutboxEntry] = [:]
    var quarantine: [RecordID: String]
    var account: SyncAccount?
    /// Whether the account is stored, or part of the next commit.
    var isAccountStored = true
    /// Whether no response has accepted the credentials of the account yet.
    var isAccountTentative = false
    /// The account of the store before a tentative one.
    var previousAccount: SyncAccount?
    var index: IndexState
    /// The state of the index in the store; `nil` if it is not known.
    var storedIndex: IndexState?

    // Configuration.
    let resource: any SyncResource
    let policy: SyncPolicy
    let behavior: SyncBehavior
    /// The account of the client's configuration.
    let configured: SyncAccount?

    // Work.
    var schedules: [RecordID: Schedule] = [:]
    /// Records with work that is ready or delayed.
    var active: Set<RecordID> = []
    var ready = [Heap<Schedule.Ticket>](repeating: Heap(), count: SyncRequest.Lane.allCases.count)
    var delayed = Heap<Schedule.Delay>()
    var nextTicket = 0
    var nextSequence: Int
    var nextExchange = 0
    /// The exchanges in flight, by lane.
    var exchanges = [Exchange?](repeating: nil, count: SyncRequest.Lane.allCases.count)
    /// Whether a request may be withheld until its attempt is committed.
    var mayWithhold = false
    var indexWork = IndexWork()
    var path = PathState()
    var pathEstimate = PathEstimate()
    var token = TokenState()
    var parkedCount = 0
    /// The number of occasions on which retry delays ended.
    var rounds = 0

    // Output.
    var pendingChange = StoreChange()
    var commit = CommitState()
    var outputs: [Action] = []
    var changedRows: Set<RecordID> = []
    /// The records that have changed since the last view, as the user knows them: as they were shown, or as the user has
    /// changed them since; `nil` for one that was not shown.
    var shownRecords: [RecordID: LocalRecord?] = [:]
    /// Whether the present input is a change by the user.
    var isUserChanging = false
    var lastView: (outbox: Int, connectivity: Connectivity)?
    var undo: Undo?

    var ids: RandomStream
    var jitter: RandomStream
    /// The time of the last input.
    var now = Instant.start

    /// The reason why nothing is sent until ``syncRequested(at:)`` or ``credentialsChanged(at:)``; `nil` if not paused.
    public internal(set) var pauseReason: String?
    var pauseKind = SyncProblem.Kind.credentialsRejected
    var serverClock: ServerClock?
    /// Set while the account of the client is not the one of the store. Nothing is sent or deleted until
    /// ``adopt(at:)``.
    public internal(set) var mismatch: AccountMismatch?

    /// Creates an engine with the state of the previous run.
    public init(_ configuration: Configuration) {
        let state = configuration.state
        token.tokens = configuration.tokens
        resource = configuration.resource
        policy = configuration.policy
        behavior = configuration.behavior
        configured = configuration.account
        account = state.account
        index = state.index
        storedIndex = state.index
        quarantine = state.quarantine
        records = Dictionary(state.records.map { ($0.id, $0) }) { first, _ in first }
        ids = RandomStream(seed: configuration.seed, "client/ids")
        jitter = RandomStream(seed: configuration.seed, "client/jitter")
        nextSequence = (state.entries.map(\.sequence).max() ?? -1) + 1
        for entry in state.entries.sorted(by: { $0.sequence < $1.sequence }) { insert(entry) }
        changedRows = Set(records.keys)
        if let configured { compare(with: configured) }
        for id in schedules.keys.sorted() {
            restoreReconciliation(id)
            schedule(id)
        }
    }

    // MARK: State

    /// Returns a record as it is stored.
    public func record(_ id: RecordID) -> LocalRecord? { records[id] }

    /// Returns a record as the user knows it. A change by the user is based on it.
    ///
    /// It differs from ``record(_:)`` if a response has changed the content and no view has shown that yet, because the
    /// commit takes long or fails.
    public func shownRecord(_ id: RecordID) -> LocalRecord? {
        guard let known = shownRecords[id] else { return records[id] }
        guard let known, let current = records[id] else { return known }
        let isSeen =
            current.mine == known.mine && current.isDeleted == known.isDeleted
            && (known.theirs == nil || known.theirs == current.theirs)
        // A record without a base is the user's own.
        if isSeen || known.base == nil && known.theirs == nil { return current }
        var shown = known
        shown.edits = current.edits
        return shown
    }

    /// Returns the entries of a record in order.
    public func entries(of id: RecordID) -> [OutboxEntry] {
        (schedules[id]?.queue ?? []).compactMap { entries[$0] }
    }

    /// The number of changes that wait to be sent; parked ones do not count.
    public var outboxCount: Int { entries.count - parkedCount }

    /// Whether nothing is in flight and nothing is ready to be sent or waits for another attempt.
    public var isSettled: Bool {
        exchanges.allSatisfy { $0 == nil } && active.isEmpty && !indexWork.isWanted && pendingChange.isEmpty
            && !commit.isPending && !token.isRefreshNeeded
    }

    /// Whether an exchange is in flight or a change waits for its commit, so that the next step needs no deadline.
    public var isBusy: Bool {
        !pendingChange.isEmpty || commit.isPending || exchanges.contains { $0 != nil }
    }

    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    public var nextDeadline: Instant? {
        // The end of a commit, which may take long on a slow disk, is an input.
        if commit.isPending { return nil }
        if let retryAt = commit.retryAt { return retryAt }
        guard mayTransmit else { return nil }
        let floor = path.floor ?? .start
        if token.isRefreshNeeded { return refreshAt.map { max($0, floor) } }
        guard let probeAt = path.probeAt, isIdle(.small) && isIdle(.bypass) || !path.isTrusted else {
            var deadline = delayed.min?.at
            let indexAt = indexWork.isWanted ? indexWork.retryAt : indexWork.fetchedAt.map { $0 + policy.poll }
            if let indexAt, (isIdle(.small) && isIdle(.bypass)) || !indexWork.isWanted {
                deadline = min(deadline ?? .never, indexAt)
            }
            // The first ready change may be out of date; the client then wakes once without work.
            if let besideReadAt, besideReadAt > now, !ready[SyncRequest.Lane.small.rawValue].isEmpty {
                deadline = min(deadline ?? .never, besideReadAt)
            }
            if floor > now && (!active.isEmpty || indexWork.isWanted) { deadline = min(deadline ?? .never, floor) }
            return deadline.map { max($0, floor) }
        }
        return isIdle(.small) && isIdle(.bypass) ? max(probeAt, floor) : nil
    }

    // MARK: Inputs

    /// The client has started. An exchange of the previous run has an unknown outcome.
    public mutating func started(interface: NetworkInterface = NetworkInterface(isUp: true), at now: Instant) {
        tick(now)
        path.interface = interface
        syncRequested(at: now)
    }

    /// The user has requested a sync: the index is fetched, and retry delays end. A server's `Retry-After` remains.
    public mutating func syncRequested(at now: Instant) {
        tick(now)
        pauseReason = nil
        // The user's request justifies one more refresh.
        token.isAccepted = true
        // If a response named another history, the index is requested to check that again, before anything else.
        if let mismatch, mismatch.stored.history != nil, mismatch.hasSameUser { self.mismatch = nil }
        endRetryDelays()
        indexWork.want()
        indexWork.problem = nil
        path.startProbing(at: now, isEdge: false)
    }

    /// The credentials have changed: a pause because of rejected credentials ends.
    ///
    /// Exchanges in flight are cancelled: a rejection of the old credentials would pause the client again.
    public mutating func credentialsChanged(at now: Instant) {
        tick(now)
        cancelExchanges()
        syncRequested(at: now)
    }

    /// The device's network interface has changed. Nothing is sent while it is down or the policy does not allow it.
    ///
    /// Exchanges in flight on an interface that goes down are cancelled. When one comes up, the first request is sent
    /// after a random delay of at most ``SyncPolicy/recoverySpread``.
    public mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant) {
        tick(now)
        let mightTransmit = isInterfaceUsable
        path.interface = interface
        if isInterfaceUsable && !mightTransmit {
            endRetryDelays()
            indexWork.want()
            let spread = Nanoseconds(jitter.integer(below: max(1, policy.recoverySpread.count)))
            path.startProbing(at: now + spread, isEdge: true)
        } else if !isInterfaceUsable && mightTransmit {
            cancelExchanges()
        }
    }

    /// The user accepts the account of the client for the store.
    ///
    /// Pending changes will be sent to it. A record that the server does not have becomes a conflict with a deletion;
    /// none is deleted. The store gets its former account back if the server rejects the credentials.
    public mutating func adopt(at now: Instant) {
        tick(now)
        guard let found = mismatch?.found else { return }
        mismatch = nil
        if !isAccountTentative { previousAccount = account }
        account = found
        (isAccountStored, isAccountTentative) = (false, true)
        index = IndexState(isAdopting: true)
        storeAccount()
        syncRequested(at: now)
    }

    /// A complete response has arrived.
    public mutating func responseReceived(_ response: SyncResponse, to id: SyncExchangeID, at now: Instant) {
        tick(now)
        guard let exchange = end(id) else { return }
        recordDuration(of: exchange, response)
        handle(resource.reply(to: exchange.operation, response), of: exchange)
        if path.lastContact == now, let seconds = response.header("Date").flatMap(HTTPDate.seconds) {
            serverClock = ServerClock(seconds: seconds, at: now)
        }
    }

    /// Records how long a read took.
    private mutating func recordDuration(of exchange: Exchange, _ response: SyncResponse) {
        guard let sentAt = exchange.sentAt, exchange.activity.isRead else { return }
        pathEstimate.record(bytes: response.body.count, in: now - sentAt)
        if case .fetch = exchange.activity, response.status == 200 {
            pathEstimate.record(recordBytes: response.body.count)
        }
    }

    /// An exchange has ended without a response.
    ///
    /// - Parameter kind: The kind of the failure, for people and programs.
    public mutating func exchangeFailed(
        _ id: SyncExchangeID, _ failure: SyncFailure, kind: SyncProblem.Kind = .connectionFailed, at now: Instant
    ) {
        tick(now)
        guard let exchange = end(id) else { return }
        path.lastFailure = SyncProblem(kind, failure.reason)
        if case .notHTTP = failure {
            path.foreignServer = ForeignServerError(
                status: nil, contentType: nil, expected: resource.serverDescription)
        }
        if case .notSent = failure {
            handlePathFailure(of: exchange, isOutcomeUnknown: false)
        } else {
            handlePathFailure(of: exchange, isOutcomeUnknown: true)
        }
    }

    /// Advances the time; due at ``nextDeadline``.
    public mutating func advance(to now: Instant) {
        tick(now)
        if let fetchedAt = indexWork.fetchedAt, now >= fetchedAt + policy.poll { indexWork.want() }
    }

    mutating func tick(_ now: Instant) {
        self.now = max(self.now, now)
        isUserChanging = false
    }

    // MARK: Actions

    /// Returns the next action; `nil` if there is none.
    public mutating func takeAction() -> Action? {
        if !outputs.isEmpty { return outputs.removeFirst() }
        if commit.isPending { return nil }
        if !mustCommit { startExchanges() }
        if !outputs.isEmpty, !mustCommit { return outputs.removeFirst() }
        guard !pendingChange.isEmpty else { return nil }
        if policy.durability == .afterExchanges, exchanges.contains(where: { $0 != nil }) { return nil }
        if let retryAt = commit.retryAt, now < retryAt, !commit.isUserChange { return nil }
        commit.isPending = true
        commit.isUserChange = false
        commit.change = pendingChange
        pendingChange = StoreChange()
        return .commit(commit.change)
    }

    /// Whether nothing may be sent before a commit.
    var mustCommit: Bool { !pendingChange.isEmpty && policy.durability == .beforeSending }

    /// Returns the rows that have changed since the last call; `nil` if nothing has.
    public mutating func takeViewChange() -> ViewChange? {
        let presentation = behavior.presentation
        let state = (outbox: presentation.count(outboxCount, parkedCount), connectivity: connectivity)
        let isSame = lastView.map { $0.outbox == state.outbox && $0.connectivity == state.connectivity } ?? false
        guard !changedRows.isEmpty || !isSame else { return nil }
        if presentation.dependsOnConnectivity, !isSame { changedRows = Set(records.keys) }
        lastView = state
        var change = ViewChange(rows: [], removed: [], outbox: state.outbox, connectivity: state.connectivity)
        for id in changedRows.sorted() {
            if let row = row(id) { change.rows.append(row) } else { change.removed.append(id) }
        }
        changedRows = []
        shownRecords = [:]
        return change
    }

    private mutating func endRetryDelays() {
        rounds &+= 1
        token.failures = 0
        token.retryAt = nil
        if !policy.keepsPauses { path.floor = nil }
        indexWork.failures = 0
        indexWork.retryAt = nil
        for id in active.sorted() where schedules[id]?.retryAt != nil {
            schedules[id]?.retryAt = nil
            schedule(id)
        }
    }

    /// Returns a random UUID (RFC 9562, version 4).
    mutating func makeUUID() -> String {
        let high = ids.next() & 0xFFFF_FFFF_FFFF_0FFF | 0x4000
        let low = ids.next() & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
        func hex(_ value: UInt64, _ digits: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: digits - text.count) + text
        }
        return [
            hex(high >> 32, 8), hex(high >> 16 & 0xFFFF, 4), hex(high & 0xFFFF, 4), hex(low >> 48, 4),
            hex(low & 0xFFFF_FFFF_FFFF, 12),
        ].joined(separator: "-")
    }
}
