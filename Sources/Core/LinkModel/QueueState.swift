public import Determinism

/// The queue of one direction of a link at one moment, with the packet that is being transmitted.
public struct QueueState: Hashable, Sendable {
    /// The number of packets.
    public var packets = 0
    /// The bytes of these packets, headers included.
    public var bytes = 0
    /// The time after which a packet that enters now begins its transmission.
    public var delay = Nanoseconds.zero

    /// Creates the state of an empty queue.
    public init() {}
}
