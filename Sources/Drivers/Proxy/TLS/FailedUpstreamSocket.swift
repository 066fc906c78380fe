internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The server's end of a session whose upstream could not be connected by TLS: it responds to the first request with the
/// reason, and resets a connection of another protocol.
///
/// Events are reported later, because the session may be executing actions.
final class FailedUpstreamSocket: SessionSocket {
    private var session: Session?
    private var upstream: FailedUpstream
    private var isDecided = false
    private var hasResponded = false
    private var timer: Scheduled<Void>?

    /// The longest time for which the client's request is awaited.
    private static let requestTimeMax = TimeAmount.seconds(30)

    init(_ session: Session, _ upstream: FailedUpstream) {
        self.session = session
        self.upstream = upstream
        timer = session.driver.eventLoop.assumeIsolated().scheduleTask(in: Self.requestTimeMax) { self.end() }
    }

    func write(_ buffer: ByteBuffer) {
        guard !isDecided else { return }
        switch upstream.received(buffer) {
        case .undecided: break
        case .reset: end()
        case .respond(let response):
            isDecided = true
            hasResponded = true
            timer?.cancel()
            later { session in
                session.receive(.bytes(response, from: .server))
                session.receive(.inputClosed(.server))
                session.readCompleted()
            }
        }
    }

    /// Reports the end of the socket.
    private func end(gone: Bool = true) {
        isDecided = true
        timer?.cancel()
        later { session in
            self.session = nil
            if gone { session.receive(.gone(.server)) }
            session.channelClosed(.server)
        }
    }

    private func later(_ body: @escaping (Session) -> Void) {
        session?.driver.eventLoop.assumeIsolated().execute {
            if let session = self.session { body(session) }
        }
    }

    func awaitDrain() {
        later { session in
            session.receive(.drained(.server))
            session.readCompleted()
        }
    }

    func closeOutput() { end(gone: !hasResponded) }
    func closeAfterWrites() { end() }
    func reset() { end() }
    func resetAfterWrites() { end() }
    func close() { end() }
    func flush() {}
    func established() {}
    func pauseReading() {}
    func resumeReading() {}
    func readIfPending() {}
    var bytesUnsent: Int { 0 }
    var hasUnreadBytes: Bool { false }
}
