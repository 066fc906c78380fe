#if TLS
internal import ForwardProxy
internal import HTTPSockets
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import NIOSSL
internal import Wire

/// The end of a client's TLS inside the proxy: the upstream's socket of the session that carries the bytes of TLS, and, as
/// ``PlainSocket``, the client's socket of the session that carries the bytes inside.
///
///     client -- session outside (bytes of TLS on the link) -- [ InterceptionSocket ] -- session inside -- TLS -- upstream
///
/// The upstream's handshake comes first: the client gets the protocol that the upstream has chosen, and a certificate of the
/// size of the upstream's. Sessions call the socket while they execute actions; its own events follow in a later turn of the
/// event loop. Bytes wait in two queues, which a session limits: it writes no more than
/// ``Impairment/BufferLimits/socketBytesMax`` before it awaits the drain.
final class InterceptionSocket: SessionSocket {
    private enum State {
        /// The handshake with the upstream is under way.
        case connecting
        /// The handshake with the client is under way.
        case accepting
        case established
        /// The client's TLS has failed: nothing more is read or encrypted.
        case failed
        case ended
    }

    private let core: ProxyCore
    private let authority: OriginAuthority
    private let hello: ClientHello
    private var state = State.connecting
    /// The session of the bytes of TLS, until the socket has ended.
    private var outside: Session?
    /// The session of the bytes inside.
    private var inside: Session?
    private var terminator: TLSTerminator?
    private var upstream: (channel: any Channel, tls: TLSUpstreamHandler)?
    /// Bytes of TLS from the client.
    private var ciphertext = InterceptionQueue()
    /// Bytes of the upstream.
    var plaintext = InterceptionQueue()
    private var isScheduled = false
    /// Whether the outer session closes its sockets, and whether by force.
    private var abortion: Bool?
    /// Whether the client has sent close_notify.
    private var clientHasFinished = false
    /// The client's alert that is not encrypted.
    private var plainAlert: UInt8?
    /// The number of pieces that the client's TLS has taken, and whether it has got the server's messages.
    private var piecesTaken = 0
    private var hasSent = false
    /// Whether the outer session has the FIN of the upstream's stream, or the end of the socket.
    private var outputIsClosed = false
    private var isOver = false
    /// Whether the inner session's client is closed, and whether the session has ended.
    private var insideIsClosed = false
    private var insideHasEnded = false
    private var finTimer: Scheduled<Void>?
    private var handshakeTimer: HandshakeTimer?

    /// The time that a client has for its FIN when nothing more can be said.
    private static let finTimeMax = TimeAmount.seconds(10)

    init(_ core: ProxyCore, _ outside: Session, _ destination: Destination, _ hello: ClientHello) {
        self.core = core
        self.outside = outside
        if let flow = outside.openedFlow { outside.driver.link.setIntercepted(flow) }
        self.hello = hello
        authority = OriginAuthority(destination)
    }

    private var host: String { authority.destination.host }

    // MARK: Handshakes

    /// Begins TLS with the upstream on the socket that the outer session has connected.
    func connect(_ handler: SocketHandler) {
        guard let channel = handler.leave() else { return resetClient(.serverReset) }
        do {
            let certificates = CertificateChain()
            let tls = try core.interceptionContexts.upstreamHandler(hello, authority.destination, certificates)
            let upstream = TLSUpstreamHandler(
                authority, tls, within: core.configuration.connectTimeout, on: core.eventLoop,
                onRefusal: { [weak self] in self?.upstreamHasRefused($0, sent: $1) ?? false })
            self.upstream = (channel, upstream)
            upstream.handshakeResult.assumeIsolated().whenComplete { result in
                self.upstreamIsConnected(result, channel, upstream, certificates)
            }
            try channel.pipeline.syncOperations.addHandlers(tls, upstream)
        } catch {
            channel.close(promise: nil)
            accept(TLSFailure.protocolError("\(error)"))
        }
    }

    private func upstreamIsConnected(
        _ result: Result<Void, any Error>, _ channel: any Channel, _ tls: TLSUpstreamHandler,
        _ certificates: CertificateChain
    ) {
        guard state == .connecting, !isOver else { return }
        switch result {
        case .failure(let failure as TLSFailure): accept(failure)
        case .failure:
            core.interceptionFailed("no response to the handshake", authority)
            resetClient(.unreachable)
        case .success:
            accept(
                tls.negotiatedProtocol, tls.version, certificates.all(leaf: tls.peerCertificate)
            ) { session in
                do {
                    try channel.pipeline.syncOperations.addHandler(SocketHandler(.server, of: session, tls: tls))
                } catch {
                    _ = session.upstreamFailed()
                }
            }
        }
    }

    /// Lets the client know the reason for which the upstream's handshake has failed: its first request has a response.
    private func accept(_ failure: TLSFailure) {
        upstream = nil
        core.interceptionFailed("\(failure.text.reason); \(failure.text.remedy)", authority)
        let version1 = "http/1.1"
        guard hello.protocols.isEmpty || hello.protocols.contains(version1) else { return resetClient(.unreachable) }
        outside?.recordEnd(.unreachable)
        accept(hello.protocols.isEmpty ? nil : version1, nil, []) { [authority] session in
            _ = session.upstreamFailed(FailedUpstream(failure, upstream: "\(authority)"))
        }
    }

    /// Begins the client's TLS, and the session inside.
    private func accept(
        _ applicationProtocol: String?, _ version: TLSVersion?, _ certificates: [NIOSSLCertificate],
        _ dial: @escaping (Session) -> Void
    ) {
        guard let outside else { return }
        do {
            let context = try core.interceptionContexts.server(host, applicationProtocol, version, certificates)
            terminator = try TLSTerminator(context)
        } catch {
            core.interceptionFailed("no certificate for the client: \(error)", authority)
            upstream?.channel.close(promise: nil)
            return resetClient(.proxy)
        }
        state = .accepting
        let session = Session(inside: outside, on: core.linkDriver.linkInsideTLS(core.configuration), dial: dial)
        session.onEnd = { [weak self] in
            self?.insideHasEnded = true
            self?.schedule()
        }
        inside = session
        session.clientConnected(PlainSocket(self))
        handshakeTimer = HandshakeTimer(core.handshakeLimit(at: outside.driver.now), of: outside) { [weak self] in
            self?.clientIsLate()
        }
        schedule()
    }

    /// Ends the connection of a client that has not completed its handshake within the time limit.
    private func clientIsLate() {
        guard state == .accepting, !isOver, let outside else { return }
        core.handshakeTimedOut(host, of: outside)
        over(.handshakeTimeout)
        schedule()
    }

    /// Handles that the upstream has refused the connection after its handshake. Returns whether the client gets the
    /// reason.
    private func upstreamHasRefused(_ failure: TLSFailure, sent: ByteBuffer) -> Bool {
        guard let inside, upstream?.tls.negotiatedProtocol != InterceptionContexts.http2 else { return false }
        core.interceptionFailed("\(failure.text.reason); \(failure.text.remedy)", authority)
        return inside.upstreamFailed(FailedUpstream(failure, upstream: "\(authority)"), sent: sent)
    }

    /// Aborts the connection of a client that has no session inside.
    private func resetClient(_ reason: ConnectionEndReason) {
        outside?.recordEnd(reason)
        plaintext.end = .gone
        schedule()
    }

    // MARK: Bytes

    /// Continues in a later turn of the event loop.
    func schedule() {
        guard !isScheduled, state != .ended else { return }
        isScheduled = true
        core.eventLoop.assumeIsolated().execute { self.run() }
    }

    private func run() {
        isScheduled = false
        guard state != .ended, let outside else { return }
        if let abortion { return abort(abortively: abortion) }
        decrypt()
        encrypt()
        passEnds()
        if ciphertext.awaitsDrain, ciphertext.pieces.isEmpty {
            ciphertext.awaitsDrain = false
            outside.receive(.drained(.server))
        }
        if plaintext.awaitsDrain, plaintext.pieces.isEmpty {
            plaintext.awaitsDrain = false
            inside?.receive(.drained(.client))
        }
        outside.readCompleted()
        inside?.readCompleted()
        endIfClosed()
    }

    private func decrypt() {
        guard let terminator else { return }
        while let piece = ciphertext.next() {
            if state == .failed || clientHasFinished { continue }
            piecesTaken += 1
            if state == .accepting { plainAlert = Self.plainAlert(piece) }
            terminator.receive(piece)
            while let event = terminator.takeEvent() { process(event) }
            passBytes()
        }
    }

    /// Returns the alert at the end of a client's bytes that is not encrypted: clients with OpenSSL refuse a certificate of
    /// TLS 1.3 before they change their keys, so that the server's TLS cannot read the reason.
    private static func plainAlert(_ bytes: ByteBuffer) -> UInt8? {
        // A record of type alert with two bytes: the level and the description (RFC 8446, 5.1 and 6).
        guard let record = bytes.getBytes(at: bytes.writerIndex - 7, length: 7), bytes.readableBytes >= 7,
            record[0] == 21, record[1] == 3, record[3] == 0, record[4] == 2
        else { return nil }
        return record[6]
    }

    private func process(_ event: TLSTerminator.Event) {
        switch event {
        case .established:
            state = .established
            handshakeTimer?.cancel()
            core.intercepted(host)
        case .bytes(let bytes): if !insideIsClosed { inside?.receive(.bytes(bytes, from: .client)) }
        case .finished:
            clientHasFinished = true
            if !insideIsClosed { inside?.receive(.inputClosed(.client)) }
        case .failed(let error):
            guard state != .failed else { return }
            var alert = plainAlert
            if case .alert(let encrypted) = TLSFailure(error, nil, upstream: authority) { alert = encrypted }
            if let alert, PinnedHosts.isAboutCertificate(alert: alert), inside?.bytesRead.up == 0, let outside {
                core.clientHasRefused(host, alert: alert, of: outside)
            }
            state = .failed
        }
    }

    private func encrypt() {
        guard let terminator, state == .established else { return }
        while let piece = plaintext.next() {
            terminator.send(piece)
            passBytes()
        }
    }

    /// Passes bytes of TLS to the client.
    private func passBytes() {
        while let bytes = terminator?.takeBytes() {
            hasSent = true
            if !outputIsClosed { outside?.receive(.bytes(bytes, from: .server)) }
        }
    }

    // MARK: Ends

    private func passEnds() {
        if state == .failed {
            // The alert has been passed; the client's FIN may follow.
            plaintext.drop()
            closeInside()
            finish(.clientClosed)
        }
        if let end = ciphertext.takeEnd() { clientHasEnded(end) }
        if state == .established || plaintext.end == .gone, let end = plaintext.takeEnd() { upstreamHasEnded(end) }
        if clientHasFinished, plaintext.endIsPassed, !insideIsClosed {
            insideIsClosed = true
            inside?.channelClosed(.client)
        }
    }

    private func clientHasEnded(_ end: InterceptionEnd) {
        guard case .finished = end else { return over(end == .gone ? .clientReset : .proxy) }
        if clientHasFinished || state == .failed { return }
        if state == .accepting, piecesTaken == 1, hasSent, outside?.hasDelivered == true, let outside {
            core.clientHasClosed(host, of: outside)
        }
        // Without close_notify the stream is cut short.
        closeInside()
        if state == .connecting { over(.clientClosed) } else { finish(.clientClosed) }
    }

    private func upstreamHasEnded(_ end: InterceptionEnd) {
        let reason = inside?.endReason ?? .proxy
        switch end {
        case .finished: finish(reason)
        case .closed:
            finish(reason)
            closeInside()
        case .gone: over(reason)
        }
    }

    /// Ends the stream to the client: with close_notify, unless the upstream's had none or the client's TLS has failed.
    private func finish(_ reason: ConnectionEndReason) {
        guard !outputIsClosed, !isOver else { return }
        if state == .established, upstream?.tls.isTruncated != true {
            terminator?.finish()
            passBytes()
        }
        outputIsClosed = true
        outside?.recordEnd(reason)
        outside?.receive(.inputClosed(.server))
        // The last events of the client's TLS.
        while let event = terminator?.takeEvent() { process(event) }
    }

    /// Closes the inner session's client by force.
    private func closeInside() {
        guard !insideIsClosed, let inside else { return }
        insideIsClosed = true
        ciphertext.isPaused = false
        inside.receive(.gone(.client))
        inside.channelClosed(.client)
    }

    /// Ends the socket by force, and with it the inner session.
    private func over(_ reason: ConnectionEndReason) {
        guard !isOver else { return }
        isOver = true
        closeInside()
        if inside == nil { resetUpstream() }
        outputIsClosed = true
        outside?.recordEnd(reason)
        outside?.receive(.gone(.server))
    }

    /// Aborts a connection to the upstream that has no session.
    private func resetUpstream() {
        guard let upstream else { return }
        self.upstream = nil
        upstream.tls.closesAbortively()
        ResetOnClose.arm(upstream.channel)
        upstream.channel.close(promise: nil)
    }

    /// Closes everything at once.
    private func abort(abortively: Bool) {
        isOver = true
        if inside == nil { resetUpstream() }
        if let inside, !insideHasEnded {
            // The upstream's socket may be open, although the client's is closed.
            if !inside.isClosed { inside.close(abortively: abortively) }
            if !insideIsClosed { inside.channelClosed(.client) }
            insideIsClosed = true
        }
        endIfClosed()
    }

    private func endIfClosed() {
        let isDone = isOver || (outputIsClosed && ciphertext.endIsPassed)
        if !isDone, insideIsClosed, outputIsClosed, finTimer == nil {
            finTimer = core.eventLoop.assumeIsolated().scheduleTask(in: Self.finTimeMax) {
                self.over(.proxy)
                self.schedule()
            }
        }
        guard isDone, let outside else { return }
        if inside != nil, !insideHasEnded { return closeInside() }
        state = .ended
        finTimer?.cancel()
        handshakeTimer?.cancel()
        terminator?.close()
        (terminator, inside, upstream) = (nil, nil, nil)
        self.outside = nil
        outside.channelClosed(.server)
    }

    /// Returns the traffic that the requests inside may still cause.
    func remainingTraffic(at now: NIODeadline, idleTimeMin: TimeAmount) -> RemainingTraffic {
        if ciphertext.byteCount > 0 || plaintext.byteCount > 0 { return .pending }
        return inside?.remainingTraffic(at: now, idleTimeMin: idleTimeMin) ?? .unknown
    }

    // MARK: SessionSocket of the outer session

    func write(_ buffer: ByteBuffer) {
        ciphertext.append(buffer)
        schedule()
    }

    func awaitDrain() {
        ciphertext.awaitsDrain = true
        schedule()
    }

    func closeOutput() { endCiphertext(.finished) }
    func closeAfterWrites() { endCiphertext(.closed) }
    func resetAfterWrites() { endCiphertext(.gone) }

    func reset() {
        if outside?.isClosed == true {
            abortion = true
            return schedule()
        }
        ciphertext.drop()
        endCiphertext(.gone)
    }

    func close() {
        abortion = abortion ?? false
        schedule()
    }

    private func endCiphertext(_ end: InterceptionEnd) {
        // A client that does not await its handshake has given up.
        if state == .connecting { ciphertext.drop() }
        // A RST may follow a FIN.
        if ciphertext.end == nil || end == .gone {
            ciphertext.end = end
            ciphertext.endIsPassed = false
        }
        schedule()
    }

    func pauseReading() { plaintext.isPaused = true }

    func resumeReading() {
        plaintext.isPaused = false
        schedule()
    }

    func flush() {}
    func established() {}
    func readIfPending() {}
    var bytesUnsent: Int { ciphertext.byteCount }
    var hasUnreadBytes: Bool { false }

    // MARK: The inner session's client

    func endPlaintext(_ end: InterceptionEnd) {
        if plaintext.end == nil || end == .gone {
            plaintext.end = end
            plaintext.endIsPassed = false
        }
        schedule()
    }

    func setInsidePaused(_ isPaused: Bool) {
        ciphertext.isPaused = isPaused && !insideIsClosed
        if !isPaused { schedule() }
    }
}
#endif
