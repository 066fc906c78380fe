public import Determinism
public import NotesContract

/// The state machine of the deletion of an attachment, or of an upload that is not complete, on the server.
///
///     DELETE -> done, also if the server has none
///     no response -> wait, DELETE again
///
/// Inputs and actions work as those of ``AttachmentUpload``.
public struct AttachmentDeletion: Sendable {
    /// An action for the driver.
    public enum Action: Hashable, Sendable {
        /// Send the request.
        case send(AttachmentRequest)
        /// The server does not have the attachment any more.
        case finished
        /// The deletion has stopped.
        case failed(AttachmentTransferError)
    }

    private enum Phase {
        case sending(id: Int)
        case waiting(until: Instant)
        case ended
    }

    private let target: String
    private let policy: AttachmentPolicy
    private var jitter: RandomStream
    private var phase = Phase.ended
    private var actions: [Action] = []
    private var requestsCount = 0
    private var failures = 0

    /// Creates a deletion; it starts at once.
    ///
    /// - Parameters:
    ///   - uuid: The note.
    ///   - seed: The random seed of delays.
    public init(uuid: String, name: AttachmentName, policy: AttachmentPolicy = AttachmentPolicy(), seed: UInt64) {
        target = AttachmentHTTP.path(of: uuid, name)
        self.policy = policy
        jitter = RandomStream(seed: seed, "attachment/deletion")
        send()
    }

    /// Returns the next action; `nil` if there is none.
    public mutating func takeAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

    /// The time at which ``advance(to:)`` has an effect; `nil` if only an input has one.
    public var nextDeadline: Instant? {
        if case .waiting(let until) = phase { return until }
        return nil
    }

    /// Advances the time.
    public mutating func advance(to now: Instant) {
        if case .waiting(let until) = phase, until <= now { send() }
    }

    /// Ends the current delay.
    public mutating func retry() { if case .waiting = phase { send() } }

    /// Records that a request ended without a response.
    public mutating func requestFailed(to id: Int, at now: Instant) {
        if case .sending(id) = phase { wait(at: now) }
    }

    /// Records the response to a request.
    public mutating func responseReceived(_ response: AttachmentResponse, to id: Int, at now: Instant) {
        guard case .sending(id) = phase else { return }
        // A captive portal or a gateway.
        guard response.isFromNotesServer else { return wait(at: now, atLeast: response.retryAfter) }
        switch response.status {
        case 200...299, 404, 410: end(.finished)
        case 401, 403: end(.failed(.unauthenticated(status: response.status)))
        case 408, 429, 500...599: wait(at: now, atLeast: response.retryAfter)
        default: end(.failed(.rejected(status: response.status)))
        }
    }

    private mutating func send() {
        let request = AttachmentRequest(
            id: requestsCount, method: "DELETE", target: target, fields: [], range: 0..<0, body: [])
        requestsCount += 1
        phase = .sending(id: request.id)
        actions.append(.send(request))
    }

    private mutating func wait(at now: Instant, atLeast span: Nanoseconds = .zero) {
        failures = min(failures + 1, 1 << 20)
        let delay = policy.delay(afterFailures: failures, random: &jitter)
        phase = .waiting(until: now + max(delay, min(span, policy.retryAfterMax)))
    }

    private mutating func end(_ action: Action) {
        phase = .ended
        actions.append(action)
    }
}

extension LocalAttachment {
    /// Returns whether the transfer is an upload of a name that another one deletes first.
    func follows(_ other: LocalAttachment) -> Bool {
        direction == .upload && other.direction == .deletion && other.record == record && other.name == name
    }
}
