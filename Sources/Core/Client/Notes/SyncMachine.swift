internal import DequeModule
public import Determinism
public import NIOCore
public import Wire

/// The state machine of a sync client with its HTTP connections: the engine and the HTTP client machine. A change is
/// durable before anything of it is sent. Has no socket, clock or file.
///
/// After each input and each ``advance(to:)``, the driver takes every action with ``takeAction()``. It reports the result
/// of ``Action/commit(_:)`` with ``committed(at:)``, ``commitFailed(_:at:)``, ``commitWasStale(_:at:)`` or
/// ``undoUserChange(at:)`` before any other input.
public struct SyncMachine: ClientMachine {
    /// An action for the driver.
    public typealias Action = ClientAction<StoreChange, SyncEvent>

    /// The engine.
    public internal(set) var engine: SyncEngine
    var http: HTTPClientMachine
    private var exchanges: [HTTPExchangeID: SyncExchangeID] = [:]
    /// The transfers of attachments.
    public internal(set) var attachments: AttachmentLane
    var attachmentExchange: AttachmentExchange?
    /// The generation of the credentials of the last request of the attachments.
    var attachmentGeneration = 0
    var attachmentActions: Deque<AttachmentLane.StoreAction> = []
    /// Records whose removal is being committed.
    private var removing: Set<RecordID> = []
    var actions: Deque<Action> = []
    /// The value of the `Authorization` field of a client without tokens.
    private var fixedAuthorization: String?
    private var commitError = ""

    /// Creates a machine.
    ///
    /// - Parameters:
    ///   - host: The value of the `Host` field.
    ///   - authorization: The value of the `Authorization` field, unless the engine has tokens.
    ///   - attachments: The transfers of attachments, none by default. If there are any, the driver must execute the
    ///     actions of ``takeAttachmentAction()``.
    public init(
        engine: SyncEngine, host: String, authorization: String?, timeouts: HTTPTimeouts = HTTPTimeouts(),
        attachments: AttachmentLane = AttachmentLane(seed: 0)
    ) {
        self.engine = engine
        self.attachments = attachments
        fixedAuthorization = authorization
        http = HTTPClientMachine(host: host, timeouts: timeouts, connectionsMax: 2)
    }

    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    public var nextDeadline: Instant? {
        var next = engine.nextDeadline
        if let deadline = http.nextDeadline { next = min(next ?? .never, deadline) }
        if let deadline = attachments.nextDeadline { next = min(next ?? .never, deadline) }
        return next
    }

    /// Whether nothing is in flight and nothing is ready to be sent or waits for another attempt.
    public var isSettled: Bool { engine.isSettled && attachments.isSettled }

    // MARK: Inputs

    /// The client has started.
    public mutating func started(interface: NetworkInterface, at now: Instant) {
        engine.started(interface: interface, at: now)
        run(at: now)
    }

    /// The user or the device has changed something.
    public mutating func change<Value>(
        at now: Instant, _ body: (inout SyncEngine, Instant) throws -> Value
    ) rethrows -> Value {
        let value = try body(&engine, now)
        run(at: now)
        return value
    }

    /// The user has entered other credentials: tokens, or the value of the `Authorization` field.
    public mutating func setAuthorization(_ authorization: String?, tokens: SyncTokens? = nil, at now: Instant) {
        fixedAuthorization = authorization
        engine.signedIn(tokens, at: now)
        run(at: now)
    }

    /// The value of the `Authorization` field.
    var authorization: String? { engine.tokens.map { "Bearer \($0.access)" } ?? fixedAuthorization }

    /// The change of the last commit action is durable.
    public mutating func committed(at now: Instant) {
        engine.committed(at: now)
        if !removing.isEmpty { attachments.recordsRemoved(removing) }
        run(at: now)
    }

    /// The change of the last commit action could not be made durable; it is committed again after a pause.
    public mutating func commitFailed(_ reason: String, at now: Instant) {
        commitError = reason
        engine.commitFailed(at: now)
        run(at: now)
    }

    /// The change of the last commit action, which contains a change by the user, could not be made durable: the user's
    /// change has not happened.
    public mutating func undoUserChange(at now: Instant) {
        engine.undoUserChange(at: now)
        run(at: now)
    }

    /// Nothing was committed, because another process has changed records first.
    ///
    /// - Returns: Whether a change by the user was undone, which the driver repeats.
    @discardableResult
    public mutating func commitWasStale(_ changes: [ForeignChange], at now: Instant) -> Bool {
        let wasUndone = engine.commitWasStale(changes, at: now)
        run(at: now)
        return wasUndone
    }

    /// Another process has changed records in the store.
    public mutating func storeChanged(_ changes: [ForeignChange], at now: Instant) {
        engine.storeChanged(changes, at: now)
        run(at: now)
    }

    /// A connection is open.
    public mutating func connected(_ id: HTTPConnectionID, at now: Instant) {
        http.connected(id, at: now)
        run(at: now)
    }

    /// A connection could not be opened.
    public mutating func connectFailed(_ id: HTTPConnectionID, reason: HTTPConnectError, at now: Instant) {
        http.connectFailed(id, reason: reason, at: now)
        run(at: now)
    }

    /// Bytes have arrived on a connection.
    public mutating func received(_ bytes: ByteBuffer, on id: HTTPConnectionID, at now: Instant) {
        http.received(bytes, on: id, at: now)
        run(at: now)
    }

    /// The kernel has accepted bytes of a connection.
    public mutating func written(_ count: Int, on id: HTTPConnectionID, at now: Instant) {
        http.written(count, on: id, at: now)
        run(at: now)
    }

    /// A connection was closed by the peer or has failed.
    public mutating func closed(_ id: HTTPConnectionID, how: HTTPCloseReason, at now: Instant) {
        http.closed(id, how: how, at: now)
        run(at: now)
    }

    /// Advances the time; due at ``nextDeadline``.
    public mutating func advance(to now: Instant) {
        http.advance(to: now)
        engine.advance(to: now)
        run(at: now)
    }

    /// Returns the next action; `nil` if there is none.
    public mutating func takeAction() -> Action? { actions.popFirst() }

    // MARK: Actions

    /// Translates the actions of both machines until neither has one.
    mutating func run(at now: Instant) {
        while true {
            if let action = http.takeAction() {
                switch action {
                case .connect(let id): actions.append(.connect(id))
                case .write(let id, let bytes): actions.append(.write(id, bytes))
                case .close(let id, let isAbortive): actions.append(.close(id, isAbortive: isAbortive))
                case .piece: break
                case .finished(let id, let result): finish(id, result, at: now)
                }
            } else if let action = engine.takeAction() {
                switch action {
                case .commit(let change):
                    removing = Set(change.records.filter { $0.value == nil }.keys)
                    actions.append(.commit(change))
                case .send(let request): send(request, at: now)
                case .cancel(let id): cancel(id, at: now)
                case .report(let report): actions.append(.report(event(report)))
                }
            } else if !runAttachments(at: now) {
                break
            }
        }
        // A change that is not durable is not shown.
        if !engine.isCommitPending, let change = engine.takeViewChange() { actions.append(.report(.view(change))) }
    }

    private mutating func send(_ request: SyncRequest, at now: Instant) {
        var fields: [(name: String, value: String)] = []
        // A refresh token is the proof of its own request.
        if case .refresh = request.operation {
        } else if let authorization {
            fields.append((name: "Authorization", value: authorization))
        }
        fields.append((name: "Accept", value: "application/json"))
        fields += request.content.headers
        actions.append(
            .report(
                .sent(
                    exchange: request.id.number, method: request.content.method, target: request.content.target)))
        let id = http.start(
            HTTPClientRequest(
                method: request.content.method, target: request.content.target, fields: fields,
                body: request.content.body), pool: request.lane.pool, at: now)
        exchanges[id] = request.id
    }

    private mutating func cancel(_ id: SyncExchangeID, at now: Instant) {
        guard let exchange = exchanges.first(where: { $0.value == id })?.key else { return }
        exchanges[exchange] = nil
        actions.append(.report(.cancelled(exchange: id.number)))
        http.cancel(exchange, at: now)
    }

    private mutating func finish(
        _ id: HTTPExchangeID, _ result: Result<HTTPClientResponse, HTTPClientError>, at now: Instant
    ) {
        if attachmentExchange?.id == id { return finishAttachmentExchange(result, at: now) }
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        switch result {
        case .success(let response):
            actions.append(.report(.responded(exchange: exchange.number, status: response.head.status)))
            engine.responseReceived(
                SyncResponse(
                    status: response.head.status, headers: response.head.fieldLines, body: response.body),
                to: exchange, at: now)
        case .failure(let failure):
            actions.append(.report(.failed(exchange: exchange.number, reason: "\(failure)")))
            engine.exchangeFailed(exchange, Self.failure(failure), at: now)
        }
    }

    private static func failure(_ failure: HTTPClientError) -> SyncFailure {
        if failure.phase == .notSent { return .notSent("\(failure)") }
        return failure.reason == .notHTTP ? .notHTTP("\(failure)") : .outcomeUnknown("\(failure)")
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
