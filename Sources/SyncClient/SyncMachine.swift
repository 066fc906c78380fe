internal import Determinism
internal import HTTPWire
internal import NIOCore
internal import SyncEngine
internal import SyncStore

/// The state machine of the live client: the engine and the HTTP client machine, with the rule that a change is durable
/// before anything of it is sent. Has no socket, clock or file.
///
/// After each input and each ``advance(to:)``, the driver takes every action with ``takeAction()``. It reports the
/// result of ``Action/commit(_:)`` with ``committed(at:)`` or ``commitFailed(_:at:)`` before any other input.
struct SyncMachine {
    /// An action for the driver.
    enum Action {
        /// Commit the change to the store.
        case commit(StoreChange)
        /// Open a connection.
        case connect(HTTPConnectionID)
        /// Write the bytes.
        case write(HTTPConnectionID, ByteBuffer)
        /// Close the connection.
        case close(HTTPConnectionID)
        /// Report the event.
        case report(SyncEvent)
    }

    /// The delay after a failed commit before the engine's next timed action.
    static let commitRetryDelay = Nanoseconds.seconds(1)

    /// The first bytes of each HTTP/1.1 response.
    private static let httpPrefix = Array("HTTP/".utf8)

    private(set) var engine: SyncEngine
    /// The engine's next state, which replaces ``engine`` when its change is durable.
    private var uncommitted: (engine: SyncEngine, response: SyncExchangeID?)?
    private var http: HTTPClientMachine
    private var exchanges: [HTTPExchangeID: SyncExchangeID] = [:]
    private var actions: [Action] = []
    /// The first bytes that have arrived since the last request, enough for ``httpPrefix``. The engine has one exchange
    /// in flight at a time.
    private var responsePrefix: [UInt8] = []
    private var lastView: NotesView?
    private var engineRetryAt: Instant?
    private let authorization: String

    init(engine: SyncEngine, host: String, authorization: String) {
        self.engine = engine
        self.authorization = authorization
        http = HTTPClientMachine(host: host)
    }

    // MARK: State

    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    var nextDeadline: Instant? { [engineDeadline, http.nextDeadline].compactMap { $0 }.min() }

    private var engineDeadline: Instant? { engine.nextDeadline.map { max($0, engineRetryAt ?? .start) } }

    var status: SyncStatus {
        SyncStatus(
            isSettled: engine.isSettled, pauseReason: engine.pauseReason, foreignServer: engine.foreignServer)
    }

    // MARK: Inputs

    /// The client has started.
    mutating func started(isOnline: Bool, at now: Instant) {
        if !isOnline { engine.interfaceChanged(isUp: false, at: now) }
        reportView()
        change(at: now) { engine, now in engine.started(at: now) }
    }

    /// The user or the device has changed something.
    mutating func change<Value>(
        at now: Instant, _ body: (inout SyncEngine, Instant) throws -> Value
    ) rethrows -> Value {
        var next = engine
        let value = try body(&next, now)
        propose(next, at: now)
        return value
    }

    /// The change of the last commit action is durable.
    mutating func committed(at now: Instant) {
        guard let next = uncommitted else { return }
        uncommitted = nil
        adopt(next.engine, at: now)
    }

    /// The change of the last commit action could not be made durable: the input that needed it is undone.
    mutating func commitFailed(_ error: SyncStoreError, at now: Instant) {
        guard let failed = uncommitted else { return }
        uncommitted = nil
        engineRetryAt = now + Self.commitRetryDelay
        actions.append(.report(.commitFailed(error)))
        guard let exchange = failed.response else { return runHTTP(at: now) }
        var next = engine
        next.exchangeFailed(exchange, .outcomeUnknown("the response could not be stored"), at: now)
        propose(next, at: now)
    }

    /// A connection is open.
    mutating func connected(_ id: HTTPConnectionID, at now: Instant) {
        http.connected(id, at: now)
        runHTTP(at: now)
    }

    /// A connection could not be opened.
    mutating func connectFailed(_ id: HTTPConnectionID, reason: HTTPConnectError, at now: Instant) {
        http.connectFailed(id, reason: reason, at: now)
        runHTTP(at: now)
    }

    /// The kernel has accepted bytes of a request.
    mutating func written(_ count: Int, on id: HTTPConnectionID, at now: Instant) {
        http.written(count, on: id, at: now)
        runHTTP(at: now)
    }

    /// Bytes have arrived on a connection.
    mutating func received(_ bytes: ByteBuffer, on id: HTTPConnectionID, at now: Instant) {
        responsePrefix += bytes.readableBytesView.prefix(Self.httpPrefix.count - responsePrefix.count)
        http.received(bytes, on: id, at: now)
        runHTTP(at: now)
    }

    /// A connection was closed by the peer or has failed.
    mutating func closed(_ id: HTTPConnectionID, how: HTTPCloseReason, at now: Instant) {
        http.closed(id, how: how, at: now)
        runHTTP(at: now)
    }

    /// Advances the time; due at ``nextDeadline``.
    mutating func advance(to now: Instant) {
        http.advance(to: now)
        runHTTP(at: now)
        guard uncommitted == nil, let deadline = engineDeadline, deadline <= now else { return }
        change(at: now) { engine, now in engine.advance(to: now) }
    }

    /// Returns the next action; `nil` if there is none.
    mutating func takeAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

    // MARK: The engine

    /// Commits the engine's change, if there is one, and then adopts its state.
    private mutating func propose(_ next: SyncEngine, response: SyncExchangeID? = nil, at now: Instant) {
        var next = next
        switch next.takeAction() {
        case .commit(let change)?:
            uncommitted = (next, response)
            actions.append(.commit(change))
        case .send(let request)?:
            adopt(next, sending: request, at: now)
        case nil:
            adopt(next, at: now)
        }
    }

    private mutating func adopt(_ next: SyncEngine, sending request: SyncRequest? = nil, at now: Instant) {
        engine = next
        engineRetryAt = nil
        reportView()
        if let request { send(request, at: now) }
        while case .send(let request)? = engine.takeAction() { send(request, at: now) }
        runHTTP(at: now)
    }

    private mutating func reportView() {
        let view = engine.view
        guard view != lastView else { return }
        lastView = view
        actions.append(.report(.view(view)))
    }

    // MARK: HTTP

    private mutating func send(_ request: SyncRequest, at now: Instant) {
        var fields = [(name: "Authorization", value: authorization), (name: "Accept", value: "application/json")]
        fields += request.headers
        actions.append(
            .report(.sent(exchange: request.id.number, method: request.method, target: request.target)))
        let id = http.start(
            HTTPClientRequest(
                method: request.method, target: request.target, fields: fields, body: Array(request.body.utf8)),
            at: now)
        exchanges[id] = request.id
        responsePrefix = []
    }

    /// Translates the HTTP machine's actions. Finished exchanges are held back while a commit is pending.
    private mutating func runHTTP(at now: Instant) {
        while uncommitted == nil, let action = http.takeAction() {
            switch action {
            case .connect(let id): actions.append(.connect(id))
            case .write(let id, let bytes): actions.append(.write(id, bytes))
            case .close(let id, isAbortive: _): actions.append(.close(id))
            case .finished(let id, let result): finish(id, result, at: now)
            }
        }
    }

    private mutating func finish(
        _ id: HTTPExchangeID, _ result: Result<HTTPClientResponse, HTTPClientError>, at now: Instant
    ) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        var next = engine
        switch result {
        case .success(let response):
            actions.append(.report(.responded(exchange: exchange.number, status: response.head.status)))
            let headers = response.head.fieldLines
            next.responseReceived(
                SyncResponse(status: response.head.status, headers: headers, body: response.body), to: exchange,
                at: now)
        case .failure(let failure):
            actions.append(.report(.failed(exchange: exchange.number, reason: "\(failure)")))
            next.exchangeFailed(exchange, self.failure(failure), at: now)
        }
        propose(next, response: exchange, at: now)
    }

    private func failure(_ failure: HTTPClientError) -> SyncFailure {
        if failure.phase == .notSent { return .notSent("\(failure)") }
        return Self.httpPrefix.starts(with: responsePrefix) ? .outcomeUnknown("\(failure)") : .notHTTP("\(failure)")
    }
}
