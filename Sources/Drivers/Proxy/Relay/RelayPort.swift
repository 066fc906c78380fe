#if os(Linux)
internal import LinkModel

/// One proxy's connections at one relay.
final class RelayPort {
    let configuration: RelayPortConfiguration
    let token: RelayToken
    /// The relay that accepts the proxy's clients.
    let acceptor: Relay
    /// The listening socket, if this relay is the acceptor.
    let listener: CInt?
    /// The random seed of the next connection.
    var seed: UInt64
    var traffic = RelayedTraffic()
    /// Indices in the relay's table of connections.
    var connections: Set<Int> = []
    /// The connections left to detach, the most recently active last; `nil` until the port is frozen and neither
    /// reads nor accepts.
    var detachQueue: [Int]?
    /// Whether accepting waits for a free slot.
    var isWaitingForSlot = false
    /// Whether accepting is paused for a fixed time.
    var isAcceptPaused = false

    init(
        _ configuration: RelayPortConfiguration, token: RelayToken, acceptor: Relay, listener: OwnedSocket?
    ) {
        self.configuration = configuration
        self.token = token
        self.acceptor = acceptor
        self.listener = listener?.take()
        precondition(self.listener != -1, "the listening socket was given to two relays")
        seed = configuration.seed
    }

    /// Whether the port is frozen.
    var isFrozen: Bool { detachQueue != nil }

    /// The maximum number of bytes that one direction of a connection may hold now.
    var bytesHeldMax: Int { configuration.bytesHeldMax() }

    /// Returns the traffic so far, with the bytes held now.
    func traffic(_ table: [RelayedConnection?]) -> RelayedTraffic {
        var traffic = traffic
        for index in connections {
            guard let connection = table[index] else { continue }
            traffic.bytesHeld += connection.streams.up.bytesHeld + connection.streams.down.bytesHeld
        }
        return traffic
    }
}
#endif
