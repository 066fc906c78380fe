public import DequeModule
public import Determinism
public import NIOCore
public import Wire

/// An instruction of a client's machine for its driver.
public enum ClientAction<Change: Sendable, Event: Sendable>: Sendable {
    /// Commit the change to the store.
    case commit(Change)
    /// Open a connection.
    case connect(HTTPConnectionID)
    /// Write the bytes, and report them with ``ClientInput/written(_:_:)`` when the kernel has accepted them.
    case write(HTTPConnectionID, ByteBuffer)
    /// Close the connection; with a RST if abortive, so that the kernel drops what it has not sent. The kernel would
    /// otherwise retransmit a request that has failed, and the server might execute it after its repetition.
    case close(HTTPConnectionID, isAbortive: Bool)
    /// Report the event.
    case report(Event)
}

/// The state machine of a client: an engine with its HTTP connections. Has no socket, clock or file.
///
/// After each input, the driver takes every action with ``takeAction()``. It reports the result of
/// ``ClientAction/commit(_:)`` with ``committed(at:)``, ``commitFailed(_:at:)`` or another input of the engine before any
/// other input.
///
/// The functions are inlinable, so that a driver in another module calls code for its engine, not code for any engine: a run in
/// virtual time makes thousands of calls.
public struct ClientMachine<E: Engine>: Sendable {
    /// An action for the driver.
    public typealias Action = ClientAction<E.Change, E.Event>

    /// The engine. Its inputs go through ``input(at:_:)``, so that its actions are executed.
    public var engine: E
    /// The value of the `Authorization` field of requests; `nil` for none.
    public var authorization: String?
    @usableFromInline var http: HTTPClientMachine
    /// The numbers of the requests in flight.
    @usableFromInline var requests: [HTTPExchangeID: Int] = [:]
    @usableFromInline var actions: Deque<Action> = []
    @usableFromInline var deadline: Instant?

    /// Creates a machine.
    ///
    /// - Parameters:
    ///   - host: The value of the `Host` field.
    ///   - authorization: The value of the `Authorization` field, unless the engine has one; `nil` for none.
    @inlinable
    public init(engine: E, host: String, authorization: String?, timeouts: HTTPTimeouts = HTTPTimeouts()) {
        self.engine = engine
        self.authorization = authorization
        http = HTTPClientMachine(host: host, timeouts: timeouts, connectionsMax: engine.connectionsMax)
        updateDeadline()
    }

    /// The time of the next input ``ClientInput/deadline``; `nil` until another input changes it.
    @inlinable public var nextDeadline: Instant? { deadline }

    /// Determines the deadline once for each input: a driver may ask for it many times.
    @inlinable
    mutating func updateDeadline() {
        deadline = engine.nextDeadline
        if let next = http.nextDeadline { deadline = min(deadline ?? .never, next) }
    }

    // MARK: Inputs

    /// Passes an input to the engine: of the user, of the device or of the store.
    @inlinable
    public mutating func input<Value, Failure: Error>(
        at now: Instant, _ body: (inout E, Instant) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        defer { updateDeadline() }
        let value = try body(&engine, now)
        run(at: now)
        return value
    }

    /// Processes an input of the connections or of the clock.
    @inlinable
    public mutating func process(_ input: ClientInput, at now: Instant) {
        defer { updateDeadline() }
        switch input {
        case .connected(let id): http.connected(id, at: now)
        case .connectFailed(let id, let reason): http.connectFailed(id, reason: reason, at: now)
        case .received(let bytes, let id): http.received(bytes, on: id, at: now)
        case .written(let count, let id): http.written(count, on: id, at: now)
        case .closed(let id, let how): http.closed(id, how: how, at: now)
        case .deadline:
            http.advance(to: now)
            engine.advance(to: now)
        }
        run(at: now)
    }

    /// The change of the last commit is durable.
    @inlinable
    public mutating func committed(at now: Instant) {
        engine.committed(at: now)
        run(at: now)
        updateDeadline()
    }

    /// The change of the last commit could not be made durable, for a reason; it is committed again after a pause.
    @inlinable
    public mutating func commitFailed(_ reason: String, at now: Instant) {
        engine.commitFailed(reason, at: now)
        run(at: now)
        updateDeadline()
    }

    /// Whether ``takeAction()`` returns an action.
    @inlinable public var hasActions: Bool { !actions.isEmpty }

    /// Returns the next action; `nil` if there is none.
    @inlinable
    public mutating func takeAction() -> Action? { actions.popFirst() }

    // MARK: Actions

    /// Translates the actions of the engine and of its connections until neither has one.
    @inlinable
    mutating func run(at now: Instant) {
        while true {
            if let action = http.takeAction() {
                switch action {
                case .connect(let id): actions.append(.connect(id))
                case .write(let id, let bytes): actions.append(.write(id, bytes))
                case .close(let id, let isAbortive): actions.append(.close(id, isAbortive: isAbortive))
                case .piece(let id, let head, let bytes):
                    if let number = requests[id] { engine.pieceReceived(bytes, of: head, to: number, at: now) }
                case .finished(let id, let result): finish(id, result, at: now)
                }
            } else if let action = engine.nextAction(at: now) {
                switch action {
                case .commit(let change): actions.append(.commit(change))
                case .send(let request): send(request, at: now)
                case .cancel(let number): cancel(number, at: now)
                case .report(let event): actions.append(.report(event))
                }
            } else {
                break
            }
        }
        if let event = engine.takeViewChange() { actions.append(.report(event)) }
    }

    @inlinable
    mutating func send(_ request: EngineRequest, at now: Instant) {
        var content = request.content
        if request.isAuthorized, let authorization = engine.authorization ?? authorization {
            content.fields.insert((name: "Authorization", value: authorization), at: 0)
        }
        requests[http.start(content, pool: request.pool, at: now)] = request.number
    }

    @inlinable
    mutating func cancel(_ number: Int, at now: Instant) {
        guard let id = requests.first(where: { $0.value == number })?.key else { return }
        requests[id] = nil
        http.cancel(id, at: now)
    }

    @inlinable
    mutating func finish(
        _ id: HTTPExchangeID, _ result: Result<HTTPClientResponse, HTTPClientError>, at now: Instant
    ) {
        guard let number = requests.removeValue(forKey: id) else { return }
        let event =
            switch result {
            case .success(let response): engine.responseReceived(response, to: number, at: now)
            case .failure(let error): engine.requestFailed(number, error, at: now)
            }
        if let event { actions.append(.report(event)) }
    }
}
