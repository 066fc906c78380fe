#if TLS
internal import Determinism
internal import ForwardProxy
internal import HTTPSockets
internal import Impairment
internal import Logging
internal import NIOCore
internal import Wire

/// The interception of TLS: which connections, and what is known about their clients.
extension ProxyCore {
    /// Lets a session of a client read its first message in front of the upstream's socket.
    func addGate(to session: Session) {
        // Clients of an upstream with TLS speak HTTP; a session inside of TLS is not intercepted again.
        guard configuration.interception != nil, configuration.upstreamTLS == nil else { return }
        session.makeGate = { [weak self] session, handler in
            let limit: (Session) -> HandshakeLimit = { [weak self] session in
                self?.handshakeLimit(at: session.driver.now) ?? HandshakeLimit(at: session.driver.now)
            }
            return InterceptionGate(session, handler, limit: limit) { [weak self, weak session] hello, handler in
                guard let self, let session, let destination = interceptedDestination(hello, of: session) else {
                    return nil
                }
                let socket = InterceptionSocket(self, session, destination, hello)
                socket.connect(handler)
                return socket
            }
        }
    }

    /// Returns the server of a connection whose TLS the proxy ends: that of the client's message, or else of the
    /// connection; `nil` if the connection passes as it is.
    func interceptedDestination(_ hello: ClientHello, of session: Session) -> Destination? {
        guard let settings = configuration.interception, configuration.upstreamTLS == nil,
            InterceptionContexts.canIntercept(hello)
        else { return nil }
        let target =
            session.target?.destination
            ?? Destination(authority: "\(configuration.upstream)") ?? Destination(host: "", port: 0)
        // Names that are none pass, too.
        let name = hello.serverName.map { Destination(authority: $0, defaultPort: target.port) } ?? target
        guard let name, !interception.pinned.contains(name.host), settings.includes(name.host) else { return nil }
        return Destination(host: name.host, port: target.port)
    }

    /// Returns the time limit for the handshake of a client whose first message, or a part of it, has arrived.
    func handshakeLimit(at now: Instant) -> HandshakeLimit {
        HandshakeLimit(configuration.interception?.handshakeTimeMax ?? HandshakeLimit.timeMaxDefault, at: now)
    }

    /// Reports that a client has exceeded the limit.
    func handshakeTimedOut(_ host: String, of session: Session) {
        let limit = handshakeLimit(at: session.driver.now).text
        let reason = "TLS: the client has not completed its handshake for \(host) within \(limit)"
        session.driver.reportNotHTTP(reason, session)
        guard !isStopping, warningIsDue(&lastInterceptionWarning) else { return }
        logger.warning("connection \(session.number): \(Self.printable(reason))")
    }

    /// Records a complete handshake of a client.
    func intercepted(_ host: String) {
        interception.connections += 1
        interception.pinned.recordHandshake(host)
    }

    /// Records that a client has refused the certificate with an alert.
    func clientHasRefused(_ host: String, alert: UInt8, of session: Session) {
        let count = interception.pinned.recordAlert(host)
        let text = "the client has refused the certificate of the proxy (\(TLSFailure.name(ofAlert: alert)))"
        if count == PinnedHosts.refusalsMax {
            warnThatHostIsPinned(host, text, session)
        } else if count == 1 {
            warnOfRefusal("TLS: \(text)", host, session)
        }
    }

    /// Records that a client has closed the connection when it had the certificate.
    func clientHasClosed(_ host: String, of session: Session) {
        guard interception.pinned.recordClosing(host) == PinnedHosts.refusalsMax else { return }
        warnThatHostIsPinned(
            host, "the client has closed the connection after the certificate of the proxy", session)
    }

    private func warnThatHostIsPinned(_ host: String, _ text: String, _ session: Session) {
        warnOfRefusal(
            "TLS: \(text); it is refusal \(PinnedHosts.refusalsMax) in a row, and connections to \(host) pass as they are from now on",
            host, session)
    }

    private func warnOfRefusal(_ reason: String, _ host: String, _ session: Session) {
        session.driver.reportNotHTTP(reason, session)
        logger.warning(
            """
            \(Self.printable(reason)); if the client can trust the authority of the proxy, let it do so and restart the \
            proxy; else leave \(Self.printable(host)) out of --intercept
            """)
    }

    /// Warns that a connection could not be intercepted.
    func interceptionFailed(_ text: String, _ upstream: OriginAuthority) {
        dialsFailed += 1
        guard !isStopping, warningIsDue(&lastInterceptionWarning) else { return }
        logger.warning("cannot connect to https://\(upstream) for an intercepted client: \(Self.printable(text))")
    }
}
#endif
