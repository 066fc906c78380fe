internal import DequeModule
public import Determinism
public import Wire

/// The machine of the notes client.
public typealias SyncMachine = ClientMachine<NotesEngine>

/// The engine of the notes client: the sync engine, and beside it the transfers of attachments, which have requests of their
/// own in a pool of connections of their own.
///
/// The result of a commit is one of ``committed(at:)``, ``commitFailed(_:at:)``, and `undoUserChange(at:)` and
/// `commitWasStale(_:at:)` of ``sync``. If there are attachments, the driver executes the actions of ``takeStoreAction()``
/// after those of the machine, and reports their results to ``attachments``.
public struct NotesEngine: Engine {
    /// The decisions about records.
    public var sync: SyncEngine
    /// The transfers of attachments.
    public var attachments: AttachmentLane
    /// The lane's request in flight: its numbers in the lane and in events.
    private var transfer: (request: Int, number: Int)?
    /// The generation of the credentials of the last request of the attachments.
    private var transferGeneration = 0
    private var storeActions: Deque<AttachmentLane.StoreAction> = []
    /// Records whose removal is being committed.
    private var removing: Set<RecordID> = []
    private var commitError = ""
    /// The problem that was reported last.
    private var problem: SyncProblem?
    /// The action that follows the event that announces it.
    private var announced: EngineAction<StoreChange, SyncEvent>?

    /// Creates an engine.
    ///
    /// - Parameter attachments: The transfers of attachments, none by default.
    public init(_ sync: SyncEngine, attachments: AttachmentLane = AttachmentLane(seed: 0)) {
        self.sync = sync
        self.attachments = attachments
    }

    public var connectionsMax: Int { 2 + SyncRequest.Lane.furtherReads.count }

    public var authorization: String? { sync.tokens.map { "Bearer \($0.access)" } }

    public var nextDeadline: Instant? {
        guard let deadline = attachments.nextDeadline else { return sync.nextDeadline }
        return min(sync.nextDeadline ?? .never, deadline)
    }

    public var isSettled: Bool { sync.isSettled && attachments.isSettled }

    public var isBusy: Bool { sync.isBusy }

    /// The state of the client's work, attachments included.
    public var status: SyncStatus {
        var status = sync.status
        status.isSettled = isSettled
        return status
    }

    // MARK: Inputs

    public mutating func started(_ interface: NetworkInterface, at now: Instant) {
        sync.started(interface: interface, at: now)
    }

    public mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant) {
        sync.interfaceChanged(interface, at: now)
    }

    public mutating func committed(at now: Instant) {
        sync.committed(at: now)
        if !removing.isEmpty { attachments.recordsRemoved(removing) }
        removing = []
    }

    public mutating func commitFailed(_ reason: String, at now: Instant) {
        commitError = reason
        sync.commitFailed(at: now)
    }

    public mutating func advance(to now: Instant) { sync.advance(to: now) }

    public mutating func responseReceived(
        _ response: HTTPClientResponse, to number: Int, at now: Instant
    ) -> SyncEvent? {
        if let transfer = endTransfer(number) {
            attachments.responseReceived(
                AttachmentResponse(
                    status: response.head.status,
                    fields: response.head.fieldLines.map { AttachmentRequest.Field($0.name, $0.value) }),
                body: response.body, to: transfer, at: now)
        } else {
            sync.responseReceived(
                SyncResponse(status: response.head.status, headers: response.head.fieldLines, body: response.body),
                to: SyncExchangeID(number: number), at: now)
        }
        return .responded(exchange: number, status: response.head.status)
    }

    public mutating func requestFailed(_ number: Int, _ error: HTTPClientError, at now: Instant) -> SyncEvent? {
        if let transfer = endTransfer(number) {
            attachments.requestFailed(error.phase == .notSent ? .notSent : .outcomeUnknown, to: transfer, at: now)
        } else {
            sync.exchangeFailed(SyncExchangeID(number: number), SyncFailure(error), kind: error.problemKind, at: now)
        }
        return .failed(exchange: number, reason: "\(error)")
    }

    /// Ends the lane's request in flight if it has this number. Returns its number in the lane.
    private mutating func endTransfer(_ number: Int) -> Int? {
        guard let transfer, transfer.number == number else { return nil }
        self.transfer = nil
        return transfer.request
    }

    // MARK: Actions

    public mutating func nextAction(at now: Instant) -> EngineAction<StoreChange, SyncEvent>? {
        if let action = announced.take() { return action }
        while true {
            if let action = sync.takeAction() { return translated(action) }
            if sync.problem != problem {
                problem = sync.problem
                return .report(.problem(problem))
            }
            guard let action = nextTransferAction(at: now) else { return nil }
            switch action {
            case .store(let action): storeActions.append(action)
            case .send(let number, let request): return send(request, number)
            case .cancel(let number):
                guard let transfer, transfer.request == number else { continue }
                self.transfer = nil
                return cancel(transfer.number)
            case .credentialsRejected(let status):
                sync.attachmentCredentialsRejected(status: status, generation: transferGeneration, at: now)
            case .historyDiffers: sync.attachmentHistoryDiffers(at: now)
            case .report(let progress): return .report(.attachment(progress))
            }
        }
    }

    /// Returns the next action of the lane, after it has proceeded if it had none.
    private mutating func nextTransferAction(at now: Instant) -> AttachmentLane.Action? {
        if attachments.isIdle { return nil }
        if let action = attachments.takeAction() { return action }
        let sync = sync
        attachments.proceed(sync.attachmentGate, at: now) { sync.isOnServer($0) }
        return attachments.takeAction()
    }

    public mutating func takeViewChange() -> SyncEvent? {
        // A change that is not durable is not shown.
        sync.hasUncommittedChange ? nil : sync.takeViewChange().map { .view($0) }
    }

    /// Returns the next action on the attachments of the store; `nil` if there is none.
    public mutating func takeStoreAction() -> AttachmentLane.StoreAction? { storeActions.popFirst() }

    private mutating func translated(_ action: SyncEngine.Action) -> EngineAction<StoreChange, SyncEvent> {
        switch action {
        case .commit(let change):
            removing = Set(change.records.filter { $0.value == nil }.keys)
            return .commit(change)
        case .send(let request):
            let content = request.content
            // A refresh token is the proof of its own request.
            let isRefresh = if case .refresh = request.operation { true } else { false }
            return send(
                EngineRequest(
                    number: request.id.number,
                    HTTPClientRequest(
                        method: content.method, target: content.target,
                        fields: [(name: "Accept", value: "application/json")] + content.headers, body: content.body),
                    pool: request.lane.pool, isAuthorized: !isRefresh))
        case .cancel(let id): return cancel(id.number)
        case .report(let report): return .report(event(report))
        }
    }

    private mutating func send(_ request: EngineRequest) -> EngineAction<StoreChange, SyncEvent> {
        announced = .send(request)
        let content = request.content
        return .report(.sent(exchange: request.number, method: content.method, target: content.target))
    }

    private mutating func cancel(_ number: Int) -> EngineAction<StoreChange, SyncEvent> {
        announced = .cancel(number)
        return .report(.cancelled(exchange: number))
    }

    private mutating func send(
        _ request: AttachmentRequest, _ number: Int
    ) -> EngineAction<StoreChange, SyncEvent> {
        let transfer = (request: number, number: sync.makeExchangeNumber())
        self.transfer = transfer
        transferGeneration = sync.token.generation
        return send(
            EngineRequest(
                number: transfer.number,
                HTTPClientRequest(
                    method: request.method, target: request.target,
                    fields: request.fields.map { (name: $0.name, value: $0.value) }, body: request.body),
                pool: SyncRequest.Lane.attachments.pool))
    }

    private func event(_ report: SyncReport) -> SyncEvent {
        switch report {
        case .paused(let reason): .paused(reason)
        case .refreshed(let tokens): .refreshed(tokens)
        case .mismatch(let mismatch): .mismatch(mismatch)
        case .quarantined(let id, let reason): .quarantined(id, reason)
        case .parked(let id, let reason): .parked(id, reason)
        case .commitFailing: .commitFailed(commitError)
        case .commitRecovered: .commitRecovered
        }
    }
}

extension HTTPClientError {
    fileprivate var problemKind: SyncProblem.Kind {
        switch reason {
        case .connect(.refused): .refused
        case .connect(.nameNotFound): .nameNotFound
        case .connect(.unreachable): .noRoute
        case .connect(.untrustedCertificate): .certificateUntrusted
        case .connect(.expiredCertificate): .certificateExpired
        case .connect(.wrongName): .certificateWrongName
        case .connect(.tlsFailed): .tlsFailed
        case .connect(.timedOut), .timedOut: .timedOut
        case .notHTTP: .foreignServer
        default: .connectionFailed
        }
    }
}

extension SyncFailure {
    fileprivate init(_ error: HTTPClientError) {
        if error.phase == .notSent {
            self = .notSent("\(error)")
        } else {
            self = error.reason == .notHTTP ? .notHTTP("\(error)") : .outcomeUnknown("\(error)")
        }
    }
}

extension ClientMachine where E == NotesEngine {
    /// The user or the device has changed something.
    public mutating func change<Value, Failure: Error>(
        at now: Instant, _ body: (inout SyncEngine, Instant) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try input(at: now) { engine, now throws(Failure) in try body(&engine.sync, now) }
    }

    /// The user has entered other credentials: tokens, or the value of the `Authorization` field.
    public mutating func setAuthorization(_ authorization: String?, tokens: SyncTokens? = nil, at now: Instant) {
        self.authorization = authorization
        change(at: now) { sync, now in sync.signedIn(tokens, at: now) }
    }
}
