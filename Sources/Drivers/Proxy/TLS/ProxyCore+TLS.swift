#if TLS
internal import ForwardProxy
internal import HTTPSockets
internal import Logging
internal import NIOCore
internal import NIOSSL

/// Connections to an upstream with TLS.
extension ProxyCore {
    /// Adds the handlers of TLS to the channel of a dial. Returns the one that reports the result; `nil` without TLS.
    func addTLS(
        to channel: any Channel, of session: Session, within timeout: TimeAmount
    ) throws -> TLSUpstreamHandler? {
        guard let settings = configuration.upstreamTLS else { return nil }
        let tls = try settings.handler()
        let handler = TLSUpstreamHandler(
            settings.authority, tls, within: timeout, on: eventLoop,
            rewriter: UpstreamRewriter(settings.authority, rewrites: settings.rewritesHost),
            onRefusal: { [weak self, weak session] failure, sent in
                guard let self, let session, tlsFailed(failure, for: session, sent: sent) else { return false }
                return true
            },
            onRewriting: { [weak self, weak session] in self?.log($0, connection: session?.number ?? -1) })
        try channel.pipeline.syncOperations.addHandlers(tls, handler)
        return handler
    }

    /// Returns the channel of a dial when its handshake is complete.
    func whenTLSIsEstablished(
        on connected: EventLoopFuture<any Channel>, of session: Session
    ) -> EventLoopFuture<any Channel> {
        connected.assumeIsolated().flatMap { channel in
            do {
                let handler = try channel.pipeline.syncOperations.handler(type: TLSUpstreamHandler.self)
                return handler.handshakeResult.map { channel }
            } catch {
                return self.eventLoop.makeFailedFuture(TLSFailure.closed)
            }
        }.flatMapErrorThrowing { error in
            if let failure = error as? TLSFailure { session.tlsFailure = failure }
            throw error
        }.nonisolated()
    }

    /// Handles a handshake that has failed: the client learns the reason if it sends a request. Returns whether the
    /// connection still needed the upstream.
    @discardableResult
    func tlsFailed(_ failure: TLSFailure, for session: Session, sent: ByteBuffer = ByteBuffer()) -> Bool {
        let authority = configuration.upstreamTLS?.authority.description ?? ""
        guard session.upstreamFailed(FailedUpstream(failure, upstream: authority), sent: sent) else { return false }
        dialFailed(failure)
        return true
    }

    private func log(_ action: UpstreamRewriter.Action, connection: Int) {
        switch action {
        case .rewrote(let rewriting):
            rewritings.count(rewriting)
            logger.debug("connection \(connection): \(Self.printable("\(rewriting)"))")
        case .passesUnchanged(let reason):
            logger.debug("connection \(connection): the bytes pass unchanged: \(Self.printable(reason))")
        case .send, .reply: break
        }
    }
}

extension RewritingCounts {
    fileprivate mutating func count(_ rewriting: UpstreamRewriting) {
        switch rewriting {
        case .host: hosts += 1
        case .location: locations += 1
        case .cookie: cookies += 1
        }
    }
}
#endif
