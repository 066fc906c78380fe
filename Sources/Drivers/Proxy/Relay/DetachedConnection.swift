package import LinkModel
package import NIOCore

/// A connection taken out of a relay, with everything needed to continue it elsewhere.
package struct DetachedConnection: Sendable {
    package let status: RelayedConnectionStatus
    /// The random seed of the connection.
    package let seed: UInt64
    package let client: OwnedSocket
    /// `nil` if no dial was established.
    package let server: OwnedSocket?
    /// Bytes read from a socket and not written to the other; not counted in ``RelayedTraffic/bytesRead``.
    package let pending: PerDirection<ByteBuffer>
    /// The directions in which a FIN was forwarded.
    package let isFinished: PerDirection<Bool>
    /// See ``RelayPortConfiguration/Admission``.
    package let proxiesPassed: [Int]
    /// See ``RelayPortConfiguration/recordDial``.
    package let dialRecords: [DialRecord]
    /// A forward proxy's client whose tunnel is not established.
    package var tunnel: TunnelRequest?
}
