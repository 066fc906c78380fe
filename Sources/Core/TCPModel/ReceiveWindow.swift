/// The growth of the receive window, during which every segment is acknowledged at once.
///
/// Linux opens the window by two segments for each segment received (`tcp_grow_window`), up to the size of the receive
/// buffer, and grows the buffer with the bytes that the application read in the last round trip
/// (`tcp_rcv_space_adjust`). Each step sets the quick-ACK flag. On a slow link nearly every segment of a transfer of
/// some 100 kB is therefore acknowledged and yields a round-trip sample, which determines the sender's RTO in
/// mid-transfer, and so its first retransmission after an outage.
struct ReceiveWindow: Sendable {
    /// The current window (`rcv_ssthresh`), 64 KiB at first.
    private(set) var size: Int64 = 65_535
    /// The limit that the buffer sets: `tcp_rmem` of 128 KiB at first. A full segment of 1448 bytes takes 2304 bytes of
    /// it (`truesize`).
    private var sizeMax: Int64 = 131_072 * 1448 / 2304
    /// The bytes that the application read in the last measured round trip (`rcvq_space.space`).
    private var bytesReadBefore: Int64 = 10 * Int64(PacketSize.segmentMax)
    private var measuredFrom: Int64 = 0
    private var measuredAt: Int64 = 0
    /// The receiver's round-trip estimate, from timestamps.
    private var roundTrip: Int64 = 0
    private var lastTimestampEcho: Int64 = 0

    /// The limit of the buffer, `tcp_rmem[2]`, in bytes of payload.
    private static let bufferMax: Int64 = 33_554_432 * 1448 / 2304
    /// Shorter segments do not open the window.
    private static let segmentMin: Int64 = 128

    /// Updates the window after a segment received in order, when the application has read up to `readUpTo`. Returns
    /// whether the window has grown.
    mutating func grow(with segment: Segment, readUpTo: Int64, at now: Int64) -> Bool {
        let bytes = segment.end - segment.start
        if bytes >= Int64(PacketSize.segmentMax), segment.timestampEcho > 0, segment.timestampEcho != lastTimestampEcho
        {
            lastTimestampEcho = segment.timestampEcho
            let sample = now - segment.timestampEcho + 1
            roundTrip = roundTrip == 0 ? sample : roundTrip + (sample - roundTrip) / 8
        }
        if roundTrip > 0 && now - measuredAt >= roundTrip {
            // The first full segment may come after any number of bytes in small segments. Clamping to the limit of the
            // buffer does not change the result and keeps the product below 2^52.
            let read = min(readUpTo - measuredFrom, Self.bufferMax)
            if read > bytesReadBefore {
                // Twice the bytes read, plus twice the growth since the last measurement: the sender may be in slow
                // start.
                let wanted = 2 * read + 2 * (2 * read * (read - bytesReadBefore) / bytesReadBefore)
                sizeMax = max(sizeMax, min(wanted, Self.bufferMax))
                bytesReadBefore = read
            }
            measuredFrom = readUpTo
            measuredAt = now
        }
        guard bytes >= Self.segmentMin, size < sizeMax else { return false }
        size = min(sizeMax, size + 2 * Int64(PacketSize.segmentMax))
        return true
    }
}
