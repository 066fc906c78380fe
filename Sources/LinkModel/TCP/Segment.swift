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

/// Up to three ranges that a receiver holds beyond a gap: as many as fit beside timestamps.
struct SackBlocks: Sendable {
    private(set) var count = 0
    private var first = Range<Int64>(uncheckedBounds: (0, 0))
    private var second = Range<Int64>(uncheckedBounds: (0, 0))
    private var third = Range<Int64>(uncheckedBounds: (0, 0))

    subscript(index: Int) -> Range<Int64> {
        switch index {
        case 0: first
        case 1: second
        default: third
        }
    }

    mutating func append(_ block: Range<Int64>) {
        switch count {
        case 0: first = block
        case 1: second = block
        case 2: third = block
        default: return
        }
        count += 1
    }
}
