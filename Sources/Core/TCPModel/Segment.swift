/// A TCP segment without its payload: the header fields, in bytes of the stream.
struct Segment: Sendable {
    enum Kind: Sendable { case syn, synAck, data, ack, reset }

    var kind: Kind
    /// The sequence number of the first byte. A FIN counts as one byte of the stream, without payload.
    var start: Int64 = 0
    /// The sequence number after the last byte.
    var end: Int64 = 0
    /// Whether the last byte is the FIN.
    var isFIN = false
    /// Whether the segment probes a zero window: it has the sequence number of an acknowledged byte and no payload.
    var isWindowProbe = false
    /// Whether the segment ends a write of the application (PSH).
    var isPSH = false
    /// The acknowledgment number: the next byte that this segment's sender expects.
    var ackNumber: Int64 = 0
    /// The SACK option (RFC 2018), the latest block first.
    var sackBlocks = SACKBlocks()
    /// Whether the segment reports a duplicate (D-SACK, RFC 2883).
    var isDSACK = false
    /// The timestamp option's value (RFC 7323).
    var timestamp: Int64 = 0
    /// The timestamp option's echo reply.
    var timestampEcho: Int64 = 0
    /// The receive window beyond `ackNumber`.
    var window: Int64 = 0

    /// The size of the IP packet.
    var packetBytes: Int {
        switch kind {
        case .syn, .synAck: PacketSize.handshake
        case .reset: PacketSize.reset
        case .data: PacketSize.header + Int(end - start) - (isFIN ? 1 : 0)
        // A SACK option takes 4 bytes (two of them padding) plus 8 per block; a D-SACK block counts as any other.
        case .ack:
            PacketSize.header
                + (sackBlocks.count == 0 && !isDSACK ? 0 : 4 + 8 * min(3, sackBlocks.count + (isDSACK ? 1 : 0)))
        }
    }
}

/// Up to three SACK blocks, the number that fits with timestamps. They are stored relative to the acknowledgment
/// number, each in one word, since a packet in flight is copied several times.
struct SACKBlocks: Sendable {
    /// The start of a block in the upper half and its end in the lower half; 0 if there is none.
    private var words: (UInt64, UInt64, UInt64) = (0, 0, 0)

    var count: Int { words.0 == 0 ? 0 : words.1 == 0 ? 1 : words.2 == 0 ? 2 : 3 }

    /// Returns the block at `index`, given the segment's acknowledgment number.
    func range(_ index: Int, from base: Int64) -> Range<Int64> {
        let word = index == 0 ? words.0 : index == 1 ? words.1 : words.2
        return base + Int64(word >> 32)..<base + Int64(word & 0xffff_ffff)
    }

    /// Appends a block above `base`. A fourth block, or one whose offsets exceed 32 bits, is omitted.
    mutating func append(_ block: Range<Int64>, from base: Int64) {
        guard let start = UInt32(exactly: block.lowerBound - base), let end = UInt32(exactly: block.upperBound - base)
        else { return }
        let word = UInt64(start) << 32 | UInt64(end)
        switch count {
        case 0: words.0 = word
        case 1: words.1 = word
        case 2: words.2 = word
        default: break
        }
    }
}
