internal import ForwardProxy
internal import NIOCore

/// The state of a forward proxy's client until its tunnel is established.
package struct TunnelRequest: Sendable {
    var negotiation: Negotiation
    /// The destination that is known without the client's request: a supervisor or the firewall has redirected the
    /// connection. Such a client gets no reply.
    let redirected: Destination?
    /// The destination, once it is known.
    var destination: Destination?
    /// The last step of the negotiation, if it is not ``ForwardProxy/Negotiation/Step/open(_:)``.
    var step: Negotiation.Step?
    /// The reason for which the tunnel cannot be established.
    var failure: ConnectFailure?

    init(_ negotiation: Negotiation, redirected: Destination?) {
        self.negotiation = negotiation
        self.redirected = redirected
        destination = redirected
    }
}

/// The requests of a relay to a forward proxy, which serves the clients that the relay does not. The closures are called on
/// relay threads and must not block.
package struct TunnelCallbacks: Sendable {
    /// Requests the addresses of a destination; they are passed to ``RelayLoop/dial(_:_:)``.
    let resolve: @Sendable (RelayedTunnel) -> Void
    /// Called when a tunnel is established.
    let onEstablished: @Sendable (RelayToken) -> Void
    /// Takes over a client for which the relay cannot establish a tunnel.
    let takeOver: @Sendable (DetachedConnection) -> Void
}

/// A client that has named the destination of its tunnel.
package struct RelayedTunnel: Sendable {
    let token: RelayToken
    let destination: Destination
    let client: SocketAddress?
}
