internal import NIOCore

/// A client connection on its way from the relay that accepted it to the relay that forwards it.
package struct AcceptedConnection: Sendable {
    /// A dial that has been started.
    struct Dial: Sendable {
        let server: OwnedSocket
        let remainingAddresses: ArraySlice<SocketAddress>
        /// See ``RelayPortConfiguration/recordDial``.
        let record: DialRecord?
    }

    let client: OwnedSocket
    /// -1 for a client that names its destination.
    let number: Int
    let seed: UInt64
    let startedAt: NIODeadline
    let proxiesPassed: [Int]
    /// `nil` if the upstream's addresses are not known yet.
    let dial: Result<Dial, IOError>?
    /// The state of a client that names its destination.
    var tunnel: TunnelRequest?
}
