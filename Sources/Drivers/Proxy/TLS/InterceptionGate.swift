internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import Wire

/// The upstream's socket of a connection while it is not known whether the proxy ends its TLS.
///
/// Reads the first message of the client from the bytes that leave the link. A connection of another protocol, for another
/// host, or whose server sends first continues with the socket itself, which gets all bytes as they are.
final class InterceptionGate: SessionSocket {
    private let handler: SocketHandler
    private weak var session: Session?
    private var reader = ClientHelloReader()
    /// The bytes so far.
    private var bytes = ByteBuffer()
    private var isDecided = false
    private let limit: (Session) -> HandshakeLimit
    private var timer: HandshakeTimer?
    /// Decides about a client's first message. Returns what replaces the socket; `nil` if the connection passes as it is.
    private let decide: (ClientHello, SocketHandler) -> (any SessionSocket)?

    init(
        _ session: Session, _ handler: SocketHandler, limit: @escaping (Session) -> HandshakeLimit,
        decide: @escaping (ClientHello, SocketHandler) -> (any SessionSocket)?
    ) {
        self.session = session
        self.handler = handler
        self.limit = limit
        self.decide = decide
    }

    /// Handles that the server has sent bytes, or the end of its stream, before the client's first message.
    func serverHasSent() { pass() }

    func write(_ buffer: ByteBuffer) {
        if isDecided { return handler.write(buffer) }
        bytes.writeImmutableBuffer(buffer)
        reader.received(buffer)
        switch reader.state {
        case .incomplete: limitHandshake()
        case .notTLS: pass()
        case .hello(let hello, end: _):
            guard let socket = decide(hello, handler) else { return pass() }
            isDecided = true
            timer?.cancel()
            session?.replaceUpstream(with: socket)
            socket.write(bytes)
        }
    }

    /// Limits the time for the client's first message, from its first byte on.
    private func limitHandshake() {
        guard timer == nil, let session else { return }
        let limit = limit(session)
        timer = HandshakeTimer(limit, of: session) { [weak self, weak session] in
            guard let self, let session, !isDecided else { return }
            session.driver.reportNotHTTP(
                "TLS: the first message of the client is not complete after \(limit.text); the connection passes as it is",
                session)
            pass()
            handler.flush()
        }
    }

    /// Passes the connection on as it is.
    private func pass() {
        guard !isDecided else { return }
        isDecided = true
        timer?.cancel()
        session?.replaceUpstream(with: handler)
        if bytes.readableBytes > 0 { handler.write(bytes) }
    }

    func closeOutput() {
        pass()
        handler.closeOutput()
    }

    func closeAfterWrites() {
        pass()
        handler.closeAfterWrites()
    }

    func resetAfterWrites() {
        pass()
        handler.resetAfterWrites()
    }

    func awaitDrain() {
        if isDecided { return handler.awaitDrain() }
        // What the reader keeps is limited, and the socket may be replaced before it could report.
        session?.driver.eventLoop.assumeIsolated().execute { [session] in
            session?.receive(.drained(.server))
            session?.readCompleted()
        }
    }

    func flush() { handler.flush() }
    func reset() { handler.reset() }
    func established() { handler.established() }
    func pauseReading() { handler.pauseReading() }
    func resumeReading() { handler.resumeReading() }
    func readIfPending() { handler.readIfPending() }
    func close() { handler.close() }
    var bytesUnsent: Int { handler.bytesUnsent + bytes.readableBytes }
    var hasUnreadBytes: Bool { handler.hasUnreadBytes }
}
