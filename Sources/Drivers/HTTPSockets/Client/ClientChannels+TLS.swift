internal import ForwardProxy
internal import NIOCore
internal import Wire

/// Connections with TLS.
extension ClientChannels {
    /// Adds the handlers of TLS to a channel, if the target has TLS.
    func addTLS(to channel: any Channel, of id: HTTPConnectionID) throws {
        #if TLS
        guard let settings = target.tls else { return }
        let tls = try settings.handler()
        let handler = TLSUpstreamHandler(
            settings.authority, tls, within: Self.connectTimeout, on: channel.eventLoop,
            onRefusal: { [weak self, weak channel] failure, _ in
                // The server does not accept the certificate of the client, or demands one.
                self?.closed(id, how: .other(failure.description))
                channel?.close(promise: nil)
                return true
            })
        try channel.pipeline.syncOperations.addHandlers(tls, handler)
        #endif
    }

    /// Returns the channel when its handshake is complete; at once without TLS.
    static func handshake(of channel: any Channel, on eventLoop: any EventLoop) -> EventLoopFuture<any Channel> {
        #if TLS
        if let handler = handler(of: channel) { return handler.handshakeResult.map { channel } }
        #endif
        return eventLoop.makeSucceededFuture(channel)
    }

    /// Lets a channel be closed without close_notify, as the end of the process would close it.
    static func skipCloseNotify(of channel: any Channel) { handler(of: channel)?.closesAbortively() }

    /// Returns whether the server has ended its stream without close_notify. A message that has no other end may then be
    /// incomplete (RFC 9112, 9.8).
    static func isTruncated(_ channel: any Channel) -> Bool { handler(of: channel)?.isTruncated == true }

    private static func handler(of channel: any Channel) -> TLSUpstreamHandler? {
        #if TLS
        try? channel.pipeline.syncOperations.handler(type: TLSUpstreamHandler.self)
        #else
        nil
        #endif
    }
}

extension HTTPConnectError {
    /// Describes a failed handshake.
    init(_ failure: TLSFailure) {
        switch failure {
        case .unknownAuthority: self = .untrustedCertificate(failure.description)
        case .expired, .notYetValid: self = .expiredCertificate(failure.description)
        case .wrongName: self = .wrongName(failure.description)
        case .alert, .notTLS, .closed, .protocolError: self = .tlsFailed(failure.description)
        }
    }
}
