/// What one packet of a modelled connection says: TCP's header in whole bytes of the stream, without the bytes.
struct Segment: Sendable {
    enum Kind: Sendable { case syn, synAck, data, ack, reset }

    var kind: Kind
    /// The first byte it carries. A FIN is a byte of the stream that takes no room.
    var start: Int64 = 0
    /// The byte after the last it carries.
    var end: Int64 = 0
    /// Whether its last byte is the FIN.
    var isFinal = false
    /// Whether it is a probe of a closed window: a byte that has been acknowledged, sent again without its byte.
    var isProbe = false
    /// Whether it ends what the application had written (PSH).
    var isPushed = false
    /// The first byte its sender has not received.
    var acknowledges: Int64 = 0
    /// What its sender has received beyond that (RFC 2018), the newest first.
    var sacks = SackBlocks()
    /// It was sent because a segment came twice (RFC 2883).
    var saysDuplicate = false
    /// When it was sent, as the sender's timestamp option says (RFC 7323).
    var timestamp: Int64 = 0
    /// The timestamp it echoes.
    var echo: Int64 = 0
    /// How many bytes its sender can take beyond `acknowledges`.
    var window: Int64 = 0

    /// The size of the IP packet.
    var packetBytes: Int {
        switch kind {
        case .syn, .synAck: PacketSize.handshake
        case .reset: PacketSize.reset
        case .data: PacketSize.header + Int(end - start) - (isFinal ? 1 : 0)
        // A SACK option takes 4 bytes (two of them padding) and 8 a block; a D-SACK is a block like any other.
        case .ack:
            PacketSize.header
                + (sacks.count == 0 && !saysDuplicate ? 0 : 4 + 8 * min(3, sacks.count + (saysDuplicate ? 1 : 0)))
        }
    }
}

/// Up to three ranges that a receiver holds beyond a gap: as many as fit beside timestamps. Kept as distances from what
/// is acknowledged, since a packet on its way is copied a few times.
struct SackBlocks: Sendable {
    private var distances: (UInt32, UInt32, UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0, 0, 0)
    private var blocks: UInt8 = 0

    var count: Int { Int(blocks) }

    /// The range at a position, given what the segment acknowledges.
    func range(_ index: Int, from base: Int64) -> Range<Int64> {
        let (start, end) =
            switch index {
            case 0: (distances.0, distances.1)
            case 1: (distances.2, distances.3)
            default: (distances.4, distances.5)
            }
        return base + Int64(start)..<base + Int64(end)
    }

    /// Appends a range beyond `base`; a fourth is left out, and what a header could not say.
    mutating func append(_ block: Range<Int64>, from base: Int64) {
        guard let start = UInt32(exactly: block.lowerBound - base), let end = UInt32(exactly: block.upperBound - base)
        else { return }
        switch blocks {
        case 0: (distances.0, distances.1) = (start, end)
        case 1: (distances.2, distances.3) = (start, end)
        case 2: (distances.4, distances.5) = (start, end)
        default: return
        }
        blocks += 1
    }
}
