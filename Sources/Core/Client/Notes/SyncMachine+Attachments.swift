internal import DequeModule
public import Determinism
internal import NotesContract
internal import Wire

/// An exchange of the lane of attachments.
struct AttachmentExchange: Sendable {
    let id: HTTPExchangeID
    /// The lane's number of the request.
    let request: Int
    /// The number in events.
    let exchange: Int
}

/// Attachments: their lane has exchanges of its own, in a pool of connections of its own.
///
/// The driver executes the actions of ``takeAttachmentAction()`` after those of ``takeAction()``, and reports their
/// results.
extension SyncMachine {
    /// Returns the next action on the attachments of the store; `nil` if there is none.
    public mutating func takeAttachmentAction() -> AttachmentLane.StoreAction? { attachmentActions.popFirst() }

    /// The state of the client's work, attachments included.
    public var status: SyncStatus {
        var status = engine.status
        status.isSettled = status.isSettled && attachments.isSettled
        return status
    }

    /// Reports a result of the store or of the driver to the lane.
    public mutating func changeAttachments(at now: Instant, _ body: (inout AttachmentLane, Instant) -> Void) {
        body(&attachments, now)
        run(at: now)
    }

    /// Lets the lane proceed; returns whether it had an action.
    mutating func runAttachments(at now: Instant) -> Bool {
        if attachments.isIdle { return false }
        let engine = engine
        attachments.proceed(engine.attachmentGate, at: now) { engine.isOnServer($0) }
        var hadAction = false
        while let action = attachments.takeAction() {
            hadAction = true
            switch action {
            case .store(let action): attachmentActions.append(action)
            case .send(let number, let request): send(request, number, at: now)
            case .cancel(let number):
                guard let exchange = attachmentExchange, exchange.request == number else { continue }
                attachmentExchange = nil
                actions.append(.report(.cancelled(exchange: exchange.exchange)))
                http.cancel(exchange.id, at: now)
            case .credentialsRejected(let status):
                self.engine.attachmentCredentialsRejected(
                    status: status, generation: attachmentGeneration, at: now)
            case .historyDiffers: self.engine.attachmentHistoryDiffers(at: now)
            case .report(let progress): actions.append(.report(.attachment(progress)))
            }
        }
        return hadAction
    }

    private mutating func send(_ request: AttachmentRequest, _ number: Int, at now: Instant) {
        let exchange = engine.makeExchangeNumber()
        actions.append(.report(.sent(exchange: exchange, method: request.method, target: request.target)))
        let fields =
            (authorization.map { [(name: "Authorization", value: $0)] } ?? [])
            + request.fields.map { (name: $0.name, value: $0.value) }
        let id = http.start(
            HTTPClientRequest(method: request.method, target: request.target, fields: fields, body: request.body),
            pool: SyncRequest.Lane.attachments.rawValue, at: now)
        attachmentGeneration = engine.token.generation
        attachmentExchange = AttachmentExchange(id: id, request: number, exchange: exchange)
    }

    mutating func finishAttachmentExchange(
        _ result: Result<HTTPClientResponse, HTTPClientError>, at now: Instant
    ) {
        guard let exchange = attachmentExchange else { return }
        attachmentExchange = nil
        switch result {
        case .success(let response):
            actions.append(.report(.responded(exchange: exchange.exchange, status: response.head.status)))
            attachments.responseReceived(
                AttachmentResponse(
                    status: response.head.status,
                    fields: response.head.fieldLines.map { AttachmentRequest.Field($0.name, $0.value) }),
                body: response.body, to: exchange.request, at: now)
        case .failure(let failure):
            actions.append(.report(.failed(exchange: exchange.exchange, reason: "\(failure)")))
            attachments.requestFailed(
                failure.phase == .notSent ? .notSent : .outcomeUnknown, to: exchange.request, at: now)
        }
    }
}
