//  TCPModel/Calibration: the conditions of a link, estimated from captured packets of TCP connections that used it.
//
//  Owns: the fates and queueing times of packets, as far as one end sees them; estimates of rate, delay, queue, loss, jitter
//  and outages with their intervals; the transfers of a capture and their replay on the model.
//
//  Does not own: capture files (PacketCapture), profiles and traces as files (ConfigFiles), texts (the command).

public import LinkModel

/// A packet of a TCP connection in a capture.
public struct CapturedPacket: Sendable {
    /// The flags of the TCP header that the analysis uses.
    public struct Flags: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let fin = Flags(rawValue: 0x01)
        public static let syn = Flags(rawValue: 0x02)
        public static let reset = Flags(rawValue: 0x04)
        public static let push = Flags(rawValue: 0x08)
        public static let ack = Flags(rawValue: 0x10)
    }

    /// The time in nanoseconds since the first packet of the capture, within ``timeMax``.
    public var time: Int64
    /// The number of the connection, from 0.
    public var connection: Int
    /// The direction.
    public var direction: Direction
    /// The flags.
    public var flags: Flags
    /// The sequence number.
    public var sequenceNumber: UInt32
    /// The acknowledgment number.
    public var acknowledgmentNumber: UInt32
    /// The bytes of payload on the wire. More than a segment if the capturing host merges segments (GRO, TSO).
    public var payloadBytes: Int
    /// The bytes of the IP packet.
    public var packetBytes: Int
    /// The timestamp option (RFC 7323): TSval and TSecr.
    public var timestamp: (value: UInt32, echo: UInt32)?
    /// The maximum segment size of a SYN's option; 0 without the option.
    public var segmentSizeMax: UInt16
    /// The blocks of the SACK option (RFC 2018), which do not include their ends.
    public var sackBlocks: [(start: UInt32, end: UInt32)]

    /// The longest capture, 30 days; times beyond it count as it.
    public static let timeMax: Int64 = 30 * 86_400 * 1_000_000_000

    /// Creates a packet.
    public init(
        time: Int64, connection: Int, direction: Direction, flags: Flags, sequenceNumber: UInt32,
        acknowledgmentNumber: UInt32, payloadBytes: Int, packetBytes: Int,
        timestamp: (value: UInt32, echo: UInt32)?, segmentSizeMax: UInt16,
        sackBlocks: [(start: UInt32, end: UInt32)]
    ) {
        self.time = time
        self.connection = connection
        self.direction = direction
        self.flags = flags
        self.sequenceNumber = sequenceNumber
        self.acknowledgmentNumber = acknowledgmentNumber
        self.payloadBytes = payloadBytes
        self.packetBytes = packetBytes
        self.timestamp = timestamp
        self.segmentSizeMax = segmentSizeMax
        self.sackBlocks = sackBlocks
    }
}
