/// How a receiver's window grows: while it does, every segment is acknowledged at once.
///
/// Linux opens the window by two segments for each that arrives (`tcp_grow_window`), up to what the receive buffer
/// allows, and lets the buffer grow with what the application has read in the last round trip
/// (`tcp_rcv_space_adjust`). Each step sets the quick-ACK flag. On a slow link that makes ACKs, and so round-trip
/// samples, of nearly every segment of a transfer of some 100 kB; what the sender's time-out is in mid-transfer, and so
/// when it tries again after an outage, hangs on it.
struct WindowGrowth: Sendable {
    /// What the window has grown to: `rcv_ssthresh`, 64 KiB at first.
    private(set) var window: Int64 = 65_535
    /// What the buffer allows: `tcp_rmem` of 128 KiB at first, of which a full segment fills 1448 in 2304 bytes.
    private var allowed: Int64 = 131_072 * 1448 / 2304
    /// What the application read in the last round trip that counted.
    private var readBefore: Int64 = 10 * Int64(PacketSize.segmentMax)
    private var measuredFrom: Int64 = 0
    private var measuredAt: Int64 = 0
    /// The round trip as the receiver sees it, from timestamps.
    private var roundTrip: Int64 = 0
    private var lastEcho: Int64 = 0

    /// The buffer grows no further: `tcp_rmem[2]`, as much as it can be filled with payload.
    private static let allowedMax: Int64 = 33_554_432 * 1448 / 2304
    /// Shorter segments do not open the window.
    private static let segmentMin: Int64 = 128

    /// Takes a segment in order, with how many bytes of the stream the application has read; gives whether the window
    /// has grown.
    mutating func take(_ segment: Segment, readUpTo: Int64, at now: Int64) -> Bool {
        let size = segment.end - segment.start
        if size >= Int64(PacketSize.segmentMax), segment.echo > 0, segment.echo != lastEcho {
            lastEcho = segment.echo
            let sample = now - segment.echo + 1
            roundTrip = roundTrip == 0 ? sample : roundTrip + (sample - roundTrip) / 8
        }
        if roundTrip > 0 && now - measuredAt >= roundTrip {
            // The round trip is known from the first full segment on, and a stream of small ones may have carried any
            // number of bytes before. More than the buffer can ever hold says no more than that it must grow to its
            // limit, and leaves the product below 2^52.
            let read = min(readUpTo - measuredFrom, Self.allowedMax)
            if read > readBefore {
                // Twice what was read, and as much again as it has risen, twice: the sender may be in slow start.
                let wanted = 2 * read + 2 * (2 * read * (read - readBefore) / readBefore)
                allowed = max(allowed, min(wanted, Self.allowedMax))
                readBefore = read
            }
            measuredFrom = readUpTo
            measuredAt = now
        }
        guard size >= Self.segmentMin, window < allowed else { return false }
        window = min(allowed, window + 2 * Int64(PacketSize.segmentMax))
        return true
    }
}
