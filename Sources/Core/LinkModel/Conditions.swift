public import Determinism

/// The conditions of a link in both directions.
///
/// A change applies to packets that enter the link afterwards; packets queued or in flight keep their arrival times.
public struct Conditions: Hashable, Sendable {
    /// The conditions from client to server.
    public var up: DirectionConditions
    /// The conditions from server to client.
    public var down: DirectionConditions
    /// The delay of a DNS lookup before each modelled handshake.
    public var dnsDelay: Nanoseconds
    /// The treatment of connections.
    public var connectionPolicy: ConnectionPolicy
    /// The treatment of UDP datagrams.
    public var datagrams: DatagramConditions

    /// Creates conditions of both directions.
    public init(
        up: DirectionConditions, down: DirectionConditions, dnsDelay: Nanoseconds = .zero,
        connectionPolicy: ConnectionPolicy = .open, datagrams: DatagramConditions = .open
    ) {
        self.up = up
        self.down = down
        self.dnsDelay = dnsDelay
        self.connectionPolicy = connectionPolicy
        self.datagrams = datagrams
    }

    /// No rate limit, no delay and no loss.
    public static let clear = Conditions(up: .clear, down: .clear)

    /// The conditions of one direction.
    public subscript(direction: Direction) -> DirectionConditions {
        direction == .up ? up : down
    }

    /// Whether neither direction, nor DNS, nor datagrams are impaired.
    public var isClear: Bool { isClearForConnections && datagrams == .open }

    /// Whether neither direction nor DNS is impaired.
    @usableFromInline
    package var isClearForConnections: Bool { up.isClear && down.isClear && dnsDelay == .zero }
}
