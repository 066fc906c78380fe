internal import NIOCore

/// A client connection on its way to the relay that forwards it: from the relay that accepted it, or from the link.
package struct AcceptedConnection: Sendable {
    /// A dial that has been started.
    struct Dial: Sendable {
        let server: OwnedSocket
        let remainingAddresses: ArraySlice<SocketAddress>
        /// See ``RelayPortConfiguration/recordDial``.
        let record: DialRecord?
    }

    let client: OwnedSocket
    let number: Int
    let seed: UInt64
    let startedAt: NIODeadline
    /// See ``RelayPortConfiguration/admit``.
    let proxiesPassed: [Int]
    /// `nil` if the upstream's addresses are not known yet.
    let dial: Result<Dial, IOError>?
    /// Whether the dial is established.
    var isEstablished = false

    var key: ConnectionKey { ConnectionKey(number: number, startedAt: startedAt) }
}
