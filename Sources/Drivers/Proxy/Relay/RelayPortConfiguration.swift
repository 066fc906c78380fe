package import LinkModel
package import NIOCore

/// An entry in a register of dials, withdrawn when its last reference is released.
package typealias DialRecord = any AnyObject & Sendable

/// The treatment of one proxy's connections by the relays. The closures are called on relay threads and must not block.
package struct RelayPortConfiguration: Sendable {
    /// The upstream's addresses; `nil` requests them for each connection by ``resolveUpstream``.
    let addresses: [SocketAddress]?
    /// The time limit of all dials of one connection together.
    let connectTimeout: TimeAmount
    /// The time between dials to one address and the next (RFC 8305, Connection Attempt Delay).
    let attemptDelay: TimeAmount
    /// Whether a client gets a RST if the upstream cannot be reached; otherwise it gets a FIN.
    let resetsClientOnDialFailure: Bool
    /// The limits on connections.
    let slots: ConnectionSlots
    /// The source of connection numbers.
    let numbers: ConnectionNumbers
    /// The random seed of the connections.
    let seed: UInt64
    /// Returns the most bytes that one direction of a connection may hold now.
    let bytesHeldMax: @Sendable () -> Int
    /// Admits an accepted socket; returns `nil` if the connection must be reset.
    let admit: @Sendable (CInt) -> Admission?
    /// The requests to a forward proxy; `nil` for a proxy of one upstream.
    let tunnels: TunnelCallbacks?
    /// Sets options of an upstream socket before it connects.
    let configureUpstreamSocket: @Sendable (CInt) -> Void
    /// Records a dial before it starts, and binds its socket if the record needs a local port. Takes the socket, the
    /// address and ``Admission/proxiesPassed``; returns `nil` if the dial needs no record. The record lives until the
    /// socket closes.
    let recordDial: @Sendable (CInt, SocketAddress, [Int]) -> DialRecord?
    /// Requests the upstream's addresses for a connection; they are passed to ``RelayLoop/dial(_:_:)``.
    let resolveUpstream: @Sendable (RelayToken) -> Void
    /// Called when all dials of a connection have failed, with the last error.
    let onDialFailed: @Sendable (any Error) -> Void
    /// Called when clients wait in the kernel's backlog: with `nil` if no slot is free, with the error if `accept`
    /// failed.
    let onAcceptPaused: @Sendable (IOError?) -> Void
    /// Called with the bytes read in each direction when a relay has closed a connection and released its slot.
    let onClosed: (@Sendable (RelayToken, PerDirection<Int>) -> Void)?

    /// An accepted client.
    package struct Admission: Sendable {
        /// The numbers of the proxies of this process through which the connection has passed.
        package var proxiesPassed: [Int] = []
        /// The state of a client that names its destination.
        package var tunnel: TunnelRequest?

        package init() {}
    }

    /// Creates a configuration; the parameters are described at the properties.
    package init(
        addresses: [SocketAddress]?, connectTimeout: TimeAmount, attemptDelay: TimeAmount,
        resetsClientOnDialFailure: Bool, slots: ConnectionSlots, numbers: ConnectionNumbers, seed: UInt64,
        bytesHeldMax: @escaping @Sendable () -> Int,
        admit: @escaping @Sendable (CInt) -> Admission?,
        tunnels: TunnelCallbacks? = nil,
        configureUpstreamSocket: @escaping @Sendable (CInt) -> Void,
        recordDial: @escaping @Sendable (CInt, SocketAddress, [Int]) -> DialRecord?,
        resolveUpstream: @escaping @Sendable (RelayToken) -> Void,
        onDialFailed: @escaping @Sendable (any Error) -> Void,
        onAcceptPaused: @escaping @Sendable (IOError?) -> Void,
        onClosed: (@Sendable (RelayToken, PerDirection<Int>) -> Void)? = nil
    ) {
        self.addresses = addresses
        self.connectTimeout = connectTimeout
        self.attemptDelay = attemptDelay
        self.resetsClientOnDialFailure = resetsClientOnDialFailure
        self.slots = slots
        self.numbers = numbers
        self.seed = seed
        self.bytesHeldMax = bytesHeldMax
        self.admit = admit
        self.tunnels = tunnels
        self.configureUpstreamSocket = configureUpstreamSocket
        self.recordDial = recordDial
        self.resolveUpstream = resolveUpstream
        self.onDialFailed = onDialFailed
        self.onAcceptPaused = onAcceptPaused
        self.onClosed = onClosed
    }
}
