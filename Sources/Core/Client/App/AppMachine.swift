internal import DequeModule
public import Determinism
public import NIOCore
public import Wire

/// An app that runs, as the drivers of the simulated and of the live world see it, whatever its engine is.
public protocol RunningApp: ClientMachine where Change == AppChange, Event == AppView {
    /// Whether an exchange is in flight or a change is to be committed.
    var isBusy: Bool { get }

    /// The app has started.
    mutating func started(_ interface: AppInterface, at now: Instant)
    /// The interface has come up, gone down or changed its kind.
    mutating func interfaceChanged(_ interface: AppInterface, at now: Instant)
    /// The device's wall clock was set.
    mutating func wallClockChanged(_ clock: WallClock, at now: Instant)
    /// The user acts.
    mutating func perform(_ act: AppAct, at now: Instant) throws(AppActError)
    /// The change of the last commit action could not be made durable; it is committed again after a pause.
    mutating func commitFailed(at now: Instant)
}

/// The state machine of an app with its HTTP connections: the engine and the HTTP client machine.
public struct AppMachine<Engine: AppEngine>: RunningApp {
    /// The engine.
    public private(set) var engine: Engine
    private var http: HTTPClientMachine
    private let authorization: String?
    private var exchanges: [HTTPExchangeID: Int] = [:]
    private var actions: Deque<ClientAction<AppChange, AppView>> = []
    private var lastView: AppView?

    /// Creates a machine.
    ///
    /// - Parameters:
    ///   - host: The value of the `Host` field.
    ///   - authorization: The value of the `Authorization` field; `nil` for none.
    public init(engine: Engine, host: String, authorization: String?, timeouts: HTTPTimeouts = HTTPTimeouts()) {
        self.engine = engine
        self.authorization = authorization
        http = HTTPClientMachine(host: host, timeouts: timeouts, connectionsMax: engine.connectionsMax)
    }

    public var nextDeadline: Instant? {
        guard let deadline = http.nextDeadline else { return engine.nextDeadline }
        return min(engine.nextDeadline ?? .never, deadline)
    }

    public var isSettled: Bool { engine.isSettled }

    public var isBusy: Bool { engine.isBusy }

    // MARK: Inputs

    public mutating func started(_ interface: AppInterface, at now: Instant) {
        engine.started(interface, at: now)
        run(at: now)
    }

    public mutating func interfaceChanged(_ interface: AppInterface, at now: Instant) {
        engine.interfaceChanged(interface, at: now)
        run(at: now)
    }

    public mutating func wallClockChanged(_ clock: WallClock, at now: Instant) {
        engine.wallClockChanged(clock, at: now)
        run(at: now)
    }

    public mutating func perform(_ act: AppAct, at now: Instant) throws(AppActError) {
        try engine.perform(act, at: now)
        run(at: now)
    }

    public mutating func committed(at now: Instant) {
        engine.committed(at: now)
        run(at: now)
    }

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

    public mutating func takeAction() -> ClientAction<AppChange, AppView>? { actions.popFirst() }

    // MARK: Actions

    /// Translates the actions of both machines until neither has one. The event is the view, if it has changed.
    private mutating func run(at now: Instant) {
        while true {
            if let action = http.takeAction() {
                switch action {
                case .connect(let id): actions.append(.connect(id))
                case .write(let id, let bytes): actions.append(.write(id, bytes))
                case .close(let id, let isAbortive): actions.append(.close(id, isAbortive: isAbortive))
                case .piece(let id, let head, let bytes): pass(id, head, bytes, at: now)
                case .finished(let id, let result): finish(id, result, at: now)
                }
            } else if let action = engine.nextAction() {
                switch action {
                case .commit(let change): actions.append(.commit(change))
                case .send(let request): send(request, at: now)
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

    private mutating func send(_ request: AppRequest, at now: Instant) {
        var fields = request.fields
        if let authorization { fields.insert((name: "Authorization", value: authorization), at: 0) }
        let id = http.start(
            HTTPClientRequest(
                method: request.method, target: request.target, fields: fields, body: request.body,
                isStreamed: request.isStreamed), pool: request.pool, at: now)
        exchanges[id] = request.number
    }

    private func isOfService(_ response: AppResponse) -> Bool { response[Engine.markerField] == "1" }

    private mutating func pass(
        _ id: HTTPExchangeID, _ head: HTTPResponseHead, _ bytes: ByteBuffer, at now: Instant
    ) {
        guard let number = exchanges[id] else { return }
        let piece = AppResponse(head, body: Array(bytes.readableBytesView))
        if isOfService(piece) { engine.pieceReceived(piece, to: number, at: now) }
    }

    private mutating func finish(
        _ id: HTTPExchangeID, _ result: Result<HTTPClientResponse, HTTPClientError>, at now: Instant
    ) {
        guard let number = exchanges.removeValue(forKey: id) else { return }
        switch result {
        case .success(let response):
            let response = AppResponse(response.head, body: response.body)
            if isOfService(response) {
                engine.responseReceived(response, to: number, at: now)
            } else {
                // The request may not have been executed.
                engine.requestFailed(number, AppFailure(.foreign, wasSent: true), at: now)
            }
        case .failure(let error): engine.requestFailed(number, AppFailure(error), at: now)
        }
    }
}

extension AppResponse {
    init(_ head: HTTPResponseHead, body: [UInt8]) {
        self.init(status: head.status, fields: head.fieldLines.map { ($0.name, $0.value) }, body: body)
    }
}
