internal import Impairment
internal import NIOCore

/// What a proxy wants of the relays.
struct RelayOrder: Sendable {
    /// Where connections go; `nil` is to be asked for each.
    let addresses: [SocketAddress]?
    /// Asks for the addresses of one connection; ``RelayLoop/dial(_:_:)`` is the answer.
    let lookUp: @Sendable (RelayToken) -> Void
    let connectTimeout: TimeAmount
    let unreachableUpstream: UnreachableUpstream
    let limits: BufferLimits
    let keepAlive: KeepAlive
    /// Names the proxy.
    let proxy: LoopDetector.ProxyNumber
    /// Told of a connection that was refused because it has passed the proxy before.
    let onLoop: @Sendable () -> Void
    let places: Places
    let numbers: ConnectionNumbers
    /// What the numbers go with.
    let seed: UInt64
    /// Told of the dials that failed.
    let onDialFailed: @Sendable (any Error) -> Void
    /// Told when connections have to wait: there is no place, or accepting one failed.
    let onWaiting: @Sendable (IOError?) -> Void
}

/// Names something that a relay watches; never used twice.
struct RelayToken: Hashable, Sendable {
    enum Kind: UInt64 {
        case bell, listener, client, server
    }

    let bits: UInt64

    init(bits: UInt64) { self.bits = bits }

    init(_ kind: Kind, relay: Int, index: Int, generation: UInt32) {
        bits = UInt64(generation) << 32 | UInt64(relay) << 26 | UInt64(index) << 2 | kind.rawValue
    }

    var kind: Kind { Kind(rawValue: bits & 3)! }
    /// The place of the relay that it is at; of a port's, nothing.
    var relay: Int { Int(bits >> 26 & 0x3F) }
    var index: Int { Int(bits >> 2 & 0xFF_FFFF) }
    var generation: UInt32 { UInt32(bits >> 32) }

    /// The same connection's other socket, or the same.
    func of(_ kind: Kind) -> RelayToken { RelayToken(bits: bits & ~3 | kind.rawValue) }
}
