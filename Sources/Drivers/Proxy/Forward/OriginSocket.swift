internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore

/// The client's end of a connection to an origin that a forward proxy has opened for requests in absolute form: several
/// of them share the client's channel, one after the other.
final class OriginSocket: SessionSocket {
    /// The time that an origin has for its FIN after that of a connection that is not needed any more.
    private static let finTimeMax = TimeAmount.seconds(10)

    private let origin: RequestForwarder.Origin
    private weak var client: ForwardClient?
    private(set) var session: Session?
    private var isEstablished = false
    /// Whether the origin's FIN has arrived.
    private var outputIsClosed = false
    /// Whether the FIN for the origin has been sent.
    private var inputIsClosed = false
    private var hasEnded = false
    /// Whether the session accepts no more bytes.
    private(set) var isFull = false

    init(_ origin: RequestForwarder.Origin, of client: ForwardClient) {
        self.origin = origin
        self.client = client
    }

    func connect(_ session: Session) {
        self.session = session
        session.clientConnected(self)
    }

    // MARK: From the client

    func send(_ bytes: ByteBuffer) { session?.receive(.bytes(bytes, from: .client)) }

    func finishSending() {
        guard !inputIsClosed else { return }
        inputIsClosed = true
        session?.receive(.inputClosed(.client))
        endIfClosed()
    }

    /// Closes the connection, which is not needed any more.
    func abandon(abortively: Bool) {
        client = nil
        guard !hasEnded else { return }
        if abortively || !isEstablished {
            end(gone: true)
        } else {
            finishSending()
            session?.driver.eventLoop.assumeIsolated().scheduleTask(in: Self.finTimeMax) { self.end(gone: true) }
        }
        session?.readCompleted()
    }

    private func endIfClosed() { if inputIsClosed && outputIsClosed { end(gone: false) } }

    /// Reports the end of the socket, later: the session may be executing actions.
    private func end(gone: Bool) {
        guard !hasEnded, let session else { return }
        hasEnded = true
        session.driver.eventLoop.assumeIsolated().execute {
            if gone { session.receive(.gone(.client)) }
            session.channelClosed(.client)
            self.session = nil
        }
    }

    // MARK: SessionSocket

    func write(_ buffer: ByteBuffer) { client?.received(buffer, from: origin) }

    func flush() { client?.flush() }

    func awaitDrain() {
        let report = { [weak self] in
            guard let session = self?.session else { return }
            session.receive(.drained(.client))
            session.readCompleted()
        }
        if let client { client.whenSent(report) } else { session?.driver.eventLoop.assumeIsolated().execute(report) }
    }

    func closeOutput() {
        guard !outputIsClosed else { return }
        outputIsClosed = true
        client?.originFinished(origin)
        // The origin has nothing more to say: its connection is not used again.
        if !inputIsClosed, client == nil { finishSending() }
        endIfClosed()
    }

    func closeAfterWrites() {
        if !outputIsClosed { client?.originFinished(origin) }
        outputIsClosed = true
        end(gone: true)
    }

    func reset() {
        guard !hasEnded else { return }
        let client = client
        let failure = session?.connectFailure ?? .unreachable
        self.client = nil
        end(gone: true)
        if isEstablished {
            client?.originReset(origin)
        } else {
            client?.originFailed(origin, failure)
        }
    }

    func resetAfterWrites() { reset() }

    func established() {
        isEstablished = true
        client?.originEstablished(origin)
    }

    func pauseReading() {
        isFull = true
        client?.updatePaused()
    }

    func resumeReading() {
        isFull = false
        client?.updatePaused()
    }

    func readIfPending() {}

    func close() { reset() }

    var bytesUnsent: Int { client?.bytesUnsent ?? 0 }

    var hasUnreadBytes: Bool { false }
}
