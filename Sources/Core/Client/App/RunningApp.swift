public import Determinism
public import NIOCore
public import Wire

/// An app of a scenario as the engine of a client, whichever app it is.
public struct RunningApp: Engine {
    private var app: any AppEngine
    private let markerField: String
    private var lastView: AppView?

    /// Creates the engine of an app.
    public init(_ app: some AppEngine) {
        self.app = app
        markerField = type(of: app).markerField
    }

    public var connectionsMax: Int { app.connectionsMax }
    public var nextDeadline: Instant? { app.nextDeadline }
    public var isSettled: Bool { app.isSettled }
    public var isBusy: Bool { app.isBusy }

    // MARK: Inputs

    public mutating func started(_ interface: NetworkInterface, at now: Instant) { app.started(interface, at: now) }

    public mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant) {
        app.interfaceChanged(interface, at: now)
    }

    /// The device's wall clock was set.
    public mutating func wallClockChanged(_ clock: WallClock, at now: Instant) {
        app.wallClockChanged(clock, at: now)
    }

    /// The user acts.
    public mutating func perform(_ act: AppAct, at now: Instant) throws(AppActError) { try app.perform(act, at: now) }

    public mutating func committed(at now: Instant) { app.committed(at: now) }

    public mutating func commitFailed(_ reason: String, at now: Instant) { app.commitFailed(at: now) }

    public mutating func advance(to now: Instant) { app.advance(to: now) }

    public mutating func pieceReceived(
        _ bytes: ByteBuffer, of head: HTTPResponseHead, to number: Int, at now: Instant
    ) {
        let piece = AppResponse(head, body: Array(bytes.readableBytesView))
        if isOfService(piece) { app.pieceReceived(piece, to: number, at: now) }
    }

    public mutating func responseReceived(
        _ response: HTTPClientResponse, to number: Int, at now: Instant
    ) -> AppView? {
        let response = AppResponse(response.head, body: response.body)
        if isOfService(response) {
            app.responseReceived(response, to: number, at: now)
        } else {
            // The request may not have been executed.
            app.requestFailed(number, AppFailure(.foreign, wasSent: true), at: now)
        }
        return nil
    }

    public mutating func requestFailed(_ number: Int, _ error: HTTPClientError, at now: Instant) -> AppView? {
        app.requestFailed(number, AppFailure(error), at: now)
        return nil
    }

    private func isOfService(_ response: AppResponse) -> Bool { response[markerField] == "1" }

    // MARK: Actions

    public mutating func nextAction(at now: Instant) -> EngineAction<AppChange, AppView>? {
        switch app.nextAction() {
        case .commit(let change)?: .commit(change)
        case .send(let request)?:
            .send(
                EngineRequest(
                    number: request.number,
                    HTTPClientRequest(
                        method: request.method, target: request.target, fields: request.fields, body: request.body,
                        isStreamed: request.isStreamed), pool: request.pool))
        case .cancel(let number)?: .cancel(number)
        case nil: nil
        }
    }

    /// Returns the view if it has changed. A change that is not durable is not shown.
    public mutating func takeViewChange() -> AppView? {
        guard !app.isCommitPending else { return nil }
        let view = app.view
        guard view != lastView else { return nil }
        lastView = view
        return view
    }
}

extension AppResponse {
    init(_ head: HTTPResponseHead, body: [UInt8]) {
        self.init(status: head.status, fields: head.fieldLines.map { ($0.name, $0.value) }, body: body)
    }
}
