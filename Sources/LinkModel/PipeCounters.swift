/// What has passed one direction of a link since it was made. Bytes on the straight path are not counted.
///
/// Counts of 64 bits: at 100 Gbit/s, the fastest link, the bytes would take 23 years to fill one.
public struct PipeCounters: Hashable, Sendable {
    /// Packets put on the link.
    public var packets = 0
    /// Bytes of these packets, headers included.
    public var bytes = 0
    /// Packets lost before the queue.
    public var packetsLost = 0
    /// Packets that entered the queue a second time.
    public var packetsDuplicated = 0
    /// Packets dropped because the queue was full.
    public var packetsDropped = 0
    /// Packets offered that repeat bytes which had been sent before.
    public var retransmissions = 0
    /// The deepest the queue has been, in packets.
    public var queueDepthMax = 0
}
