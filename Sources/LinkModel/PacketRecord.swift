/// A packet that was offered to a link, and what became of it: one line of a capture.
public struct PacketRecord: Sendable {
    /// What it is.
    public enum Kind: Hashable, Sendable { case syn, synAck, data, ack, reset }

    /// What became of it.
    public enum Fate: Hashable, Sendable {
        /// It arrives.
        case arrives
        /// It is lost before the queue.
        case lost
        /// It found the queue full.
        case dropped
        /// Nothing gets through.
        case cut
    }

    /// The connection.
    public let flow: FlowID
    /// How many connections the link had before it.
    public let number: Int
    /// Where it goes.
    public let direction: Direction
    /// When it was offered.
    public let time: Instant
    /// When it arrives at the other end, or would have if it had not been lost and nothing had been before it.
    public let arrival: Instant
    /// What it is.
    public let kind: Kind
    /// What becomes of it.
    public let fate: Fate
    /// Its bytes of the stream, the FIN being one; empty at the place of the next byte if it has none.
    public let range: Range<Int64>
    /// Whether the last of these bytes is the FIN.
    public let isFinal: Bool
    /// Whether it ends what the application had written (PSH).
    public let isPushed: Bool
    /// Whether it asks if a closed window has opened.
    public let isProbe: Bool
    /// Whether its sender had sent nothing before: a RST that answers a SYN.
    public let isFirst: Bool
    /// Whether some of its bytes, or its SYN, had been sent before.
    public let isRetransmission: Bool
    /// The first byte that its sender has not received.
    public let acknowledges: Int64
    /// What its sender has received beyond that.
    public let received: [Range<Int64>]
    /// Whether it says that a segment came twice.
    public let saysDuplicate: Bool
    /// How many bytes its sender can take beyond ``acknowledges``.
    public let window: Int64
    /// The timestamp option's two values.
    public let timestamp: Instant
    /// The one that is echoed.
    public let echo: Instant
    /// The size of the IP packet.
    public let bytes: Int

    /// How many bytes of payload it carries.
    public var payloadBytes: Int { kind == .data ? Int(range.upperBound - range.lowerBound) - (isFinal ? 1 : 0) : 0 }
}
