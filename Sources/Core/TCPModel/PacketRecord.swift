public import Determinism
public import LinkModel

/// A packet offered to a link, with its fate: one line of a capture.
public struct PacketRecord: Sendable {
    /// The kind of segment, or a datagram of UDP.
    public enum Kind: Hashable, Sendable { case syn, synAck, data, ack, reset, datagram }

    /// The fate of the packet.
    public enum Fate: Hashable, Sendable {
        /// The packet arrives.
        case arrives
        /// The packet is lost before the queue.
        case lost
        /// The queue is full.
        case dropped
        /// No packet passes in this direction.
        case outage
    }

    /// The connection.
    public let flow: FlowID
    /// The number of the connection on its link, from 0.
    public let connectionNumber: Int
    /// The direction.
    public let direction: Direction
    /// The time at which the packet was offered.
    public let time: Instant
    /// The arrival time; for a packet that does not arrive, the time after the propagation delay alone.
    public let arrival: Instant
    /// The kind of segment.
    public let kind: Kind
    /// The fate of the packet.
    public let fate: Fate
    /// The bytes of the stream, the FIN counted as one; for a segment without bytes, an empty range at the next byte.
    public let range: Range<Int64>
    /// Whether the last of these bytes is the FIN.
    public let isFIN: Bool
    /// Whether the segment ends a write of the application (PSH).
    public let isPSH: Bool
    /// Whether the segment probes a zero window.
    public let isWindowProbe: Bool
    /// Whether it is the first packet of its sender, as a RST in response to a SYN is.
    public let isFirstOfSender: Bool
    /// Whether some of the bytes, or the SYN, have been sent before.
    public let isRetransmission: Bool
    /// The acknowledgment number: the next byte that this packet's sender expects.
    public let ackNumber: Int64
    /// The ranges of the SACK option.
    public let sackRanges: [Range<Int64>]
    /// Whether the segment reports a duplicate segment (D-SACK).
    public let isDSACK: Bool
    /// The receive window beyond ``ackNumber``, in bytes.
    public let window: Int64
    /// The timestamp option's value (TSval).
    public let timestamp: Instant
    /// The timestamp option's echo reply (TSecr).
    public let timestampEcho: Instant
    /// The size of the IP packet in bytes.
    public let bytes: Int

    /// The bytes of payload.
    public var payloadBytes: Int {
        switch kind {
        case .data: Int(range.upperBound - range.lowerBound) - (isFIN ? 1 : 0)
        case .datagram: bytes - PacketSize.datagramHeader
        case .syn, .synAck, .ack, .reset: 0
        }
    }
}

extension PacketRecord {
    /// Creates the record of a datagram; one that travels in fragments is recorded as one packet.
    init(
        datagram bytes: Int, of flow: FlowID, number: Int, _ direction: Direction, at time: Instant, arrival: Instant,
        _ fate: Fate
    ) {
        self.init(
            flow: flow, connectionNumber: number, direction: direction, time: time, arrival: arrival, kind: .datagram,
            fate: fate, range: 0..<0, isFIN: false, isPSH: false, isWindowProbe: false, isFirstOfSender: false,
            isRetransmission: false, ackNumber: 0, sackRanges: [], isDSACK: false, window: 0, timestamp: time,
            timestampEcho: time, bytes: bytes + PacketSize.datagramHeader)
    }
}
