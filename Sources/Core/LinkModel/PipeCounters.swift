/// The packet counters of one direction of a link since its creation. Bytes on the fast path are not counted.
///
/// The counters have 64 bits: at 100 Gbit/s, the fastest link, the byte counter lasts 23 years.
public struct PipeCounters: Hashable, Sendable {
    /// Packets transmitted.
    public var packets = 0
    /// Bytes of these packets, headers included.
    public var bytes = 0
    /// Packets lost before the queue.
    public var packetsLost = 0
    /// Packets queued a second time.
    public var packetsDuplicated = 0
    /// Packets dropped at a full queue.
    public var packetsDropped = 0
    /// Packets offered with bytes that had been sent before.
    public var retransmissions = 0
    /// The highest queue depth, in packets.
    public var queueDepthMax = 0
}
