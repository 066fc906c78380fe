/// Identifies a port, a socket or the wakeup descriptor in epoll events and requests. A port or connection never reuses
/// the token of an earlier one.
package struct RelayToken: Hashable, Sendable {
    enum Kind: UInt64 {
        case wakeup, listener, client, server
    }

    /// From the highest bit: 32 bits generation, 6 bits relay, 24 bits index, 2 bits kind.
    let bits: UInt64

    private static let relayCountMax = 1 << 6
    private static let indexCountMax = 1 << 24

    init(bits: UInt64) { self.bits = bits }

    init(_ kind: Kind, relay: Int, index: Int, generation: UInt32) {
        precondition(relay < Self.relayCountMax && index < Self.indexCountMax, "a relay token field is out of range")
        bits = UInt64(generation) << 32 | UInt64(relay) << 26 | UInt64(index) << 2 | kind.rawValue
    }

    var kind: Kind { Kind(rawValue: bits & 3)! }
    /// The index of the connection's relay; 0 for a port, which exists at all relays.
    package var relay: Int { Int(bits >> 26 & 0x3F) }
    /// The index of the connection in its relay's table.
    var index: Int { Int(bits >> 2 & 0xFF_FFFF) }
    var generation: UInt32 { UInt32(bits >> 32) }

    /// Returns the token of another socket of the same connection.
    func with(_ kind: Kind) -> RelayToken { RelayToken(bits: bits & ~3 | kind.rawValue) }
}
