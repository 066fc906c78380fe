internal import Determinism
internal import ForwardProxy
internal import NIOCore

/// The timer of the time limit for a client's handshake. Used on its session's event loop only.
final class HandshakeTimer {
    private var limit: HandshakeLimit
    private weak var session: Session?
    private var scheduled: Scheduled<Void>?
    private let onExpiry: () -> Void

    /// Starts the timer.
    ///
    /// - Parameter onExpiry: Called once, when the client has exceeded the limit.
    init(_ limit: HandshakeLimit, of session: Session, onExpiry: @escaping () -> Void) {
        self.limit = limit
        self.session = session
        self.onExpiry = onExpiry
        schedule()
    }

    private func schedule() {
        guard let session else { return }
        let delay = max(.zero, limit.nextDeadline - session.driver.now)
        scheduled = session.driver.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(delay.count)) {
            [weak self] in self?.fire()
        }
    }

    private func fire() {
        guard scheduled != nil, let session else { return }
        if limit.advance(to: session.driver.now, isCarrying: session.isCarrying) { return onExpiry() }
        schedule()
    }

    /// Stops the timer.
    func cancel() {
        scheduled?.cancel()
        scheduled = nil
    }
}
