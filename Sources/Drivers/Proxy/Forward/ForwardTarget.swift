internal import ForwardProxy
internal import NIOCore

/// The destination of a forward proxy's connection.
struct ForwardTarget {
    /// The host and port that the client has named.
    let destination: Destination
    /// The addresses to dial, in order; empty if a rule refuses the connection.
    let addresses: [SocketAddress]
}
