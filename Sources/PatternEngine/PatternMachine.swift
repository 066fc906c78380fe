internal import DequeModule
public import Determinism
public import HTTPWire
public import NIOCore

/// The state machine of client X with its HTTP connections: the engine and the HTTP client machine.
public struct PatternMachine: ClientMachine {
    /// The engine.
    public private(set) var engine: PatternEngine
    private var http: HTTPClientMachine
    private let authorization: String?
    private var exchanges: [HTTPExchangeID: Int] = [:]
    private var actions: Deque<ClientAction<PatternChange, PatternView>> = []
    private var lastView: PatternView?

    /// The maximum number of connections of the write queue, and of forms.
    private static let connectionsMax = 1
    /// That of a client with the mutant that sends all writes at once.
    private static let mutantConnectionsMax = 6

    /// Creates a machine.
    ///
    /// - Parameters:
    ///   - host: The value of the `Host` field.
    ///   - authorization: The value of the `Authorization` field; `nil` for none.
    public init(
        engine: PatternEngine, host: String, authorization: String?, timeouts: HTTPTimeouts = HTTPTimeouts()
    ) {
        self.engine = engine
        self.authorization = authorization
        http = HTTPClientMachine(
            host: host, timeouts: timeouts,
            connectionsMax: engine.mutants.contains(.queueDrainedInParallel)
                ? Self.mutantConnectionsMax : Self.connectionsMax)
    }

    public var nextDeadline: Instant? {
        guard let deadline = http.nextDeadline else { return engine.nextDeadline }
        return min(engine.nextDeadline ?? .never, deadline)
    }

    public var isSettled: Bool { engine.isSettled }

    /// Whether an exchange is in flight or a change is to be committed.
    public var isBusy: Bool { engine.isBusy }

    // MARK: Inputs

    /// The client has started.
    public mutating func started(isInterfaceUp: Bool, at now: Instant) {
        engine.started(isInterfaceUp: isInterfaceUp, at: now)
        run(at: now)
    }

    /// The interface has come up or gone down.
    public mutating func interfaceChanged(isUp: Bool, at now: Instant) {
        engine.interfaceChanged(isUp: isUp, at: now)
        run(at: now)
    }

    /// The user acts.
    public mutating func perform(_ act: PatternEngine.Act, at now: Instant) throws(PatternEngine.ActError) {
        try engine.perform(act, at: now)
        run(at: now)
    }

    public mutating func committed(at now: Instant) {
        engine.committed(at: now)
        run(at: now)
    }

    /// The change of the last commit action could not be made durable; it is committed again after a pause.
    public mutating func commitFailed(at now: Instant) {
        engine.commitFailed(at: now)
        run(at: now)
    }

    public mutating func connected(_ id: HTTPConnectionID, at now: Instant) {
        http.connected(id, at: now)
        run(at: now)
    }

    public mutating func connectFailed(_ id: HTTPConnectionID, reason: HTTPConnectError, at now: Instant) {
        http.connectFailed(id, reason: reason, at: now)
        run(at: now)
    }

    public mutating func received(_ bytes: ByteBuffer, on id: HTTPConnectionID, at now: Instant) {
        http.received(bytes, on: id, at: now)
        run(at: now)
    }

    public mutating func written(_ count: Int, on id: HTTPConnectionID, at now: Instant) {
        http.written(count, on: id, at: now)
        run(at: now)
    }

    public mutating func closed(_ id: HTTPConnectionID, how: HTTPCloseReason, at now: Instant) {
        http.closed(id, how: how, at: now)
        run(at: now)
    }

    public mutating func advance(to now: Instant) {
        http.advance(to: now)
        engine.advance(to: now)
        run(at: now)
    }

    public mutating func takeAction() -> ClientAction<PatternChange, PatternView>? { actions.popFirst() }

    // MARK: Actions

    /// Translates the actions of both machines until neither has one. The event is the view, if it has changed.
    private mutating func run(at now: Instant) {
        while true {
            if let action = http.takeAction() {
                switch action {
                case .connect(let id): actions.append(.connect(id))
                case .write(let id, let bytes): actions.append(.write(id, bytes))
                case .close(let id, let isAbortive): actions.append(.close(id, isAbortive: isAbortive))
                case .finished(let id, let result): finish(id, result, at: now)
                }
            } else if let action = engine.takeAction() {
                switch action {
                case .commit(let change): actions.append(.commit(change))
                case .send(let request):
                    let id = http.start(request.encoded(authorization: authorization), pool: request.pool, at: now)
                    exchanges[id] = request.number
                case .cancel(let number):
                    guard let id = exchanges.first(where: { $0.value == number })?.key else { continue }
                    exchanges[id] = nil
                    http.cancel(id, at: now)
                }
            } else {
                break
            }
        }
        // A change that is not durable is not shown.
        guard !engine.isCommitPending else { return }
        let view = engine.view
        guard view != lastView else { return }
        lastView = view
        actions.append(.report(view))
    }

    private mutating func finish(
        _ id: HTTPExchangeID, _ result: Result<HTTPClientResponse, HTTPClientError>, at now: Instant
    ) {
        guard let number = exchanges.removeValue(forKey: id) else { return }
        switch result {
        case .success(let response):
            if let response = PatternResponse(response, markerField: engine.app.markerField) {
                engine.responseReceived(response, to: number, at: now)
            } else {
                // Another server responds, such as a captive portal: the request may not have been executed.
                engine.requestFailed(number, wasSent: true, at: now)
            }
        case .failure(let error): engine.requestFailed(number, wasSent: error.phase != .notSent, at: now)
        }
    }
}
