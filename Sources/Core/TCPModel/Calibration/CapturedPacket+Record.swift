internal import Determinism
public import LinkModel

extension CapturedPacket {
    /// Creates the TCP packet that a capture at one end of a modelled link contains, or `nil` if the packet does not arrive
    /// there or is a datagram.
    ///
    /// - Parameters:
    ///   - record: The packet on the link.
    ///   - end: The end of the capture.
    ///   - connection: The number of the connection.
    public init?(_ record: PacketRecord, at end: Side, connection: Int) {
        let isOutbound = record.direction == end.sendDirection
        guard isOutbound || record.fate == .arrives, record.kind != .datagram else { return nil }
        let isHandshake = record.kind == .syn || record.kind == .synAck
        var flags: Flags =
            switch record.kind {
            case .syn: .syn
            case .synAck: [.syn, .ack]
            case .data, .ack: .ack
            case .reset: [.reset, .ack]
            case .datagram: []
            }
        if record.isFIN { flags.insert(.fin) }
        if record.isPSH { flags.insert(.push) }
        func number(_ position: Int64) -> UInt32 { UInt32(truncatingIfNeeded: position) &+ 1 }
        var blocks = record.sackRanges
        if record.isDSACK { blocks.insert(max(0, record.ackNumber - 1)..<record.ackNumber, at: 0) }
        let sequence = number(record.range.lowerBound) &- (isHandshake ? 1 : 0) &- (record.isWindowProbe ? 1 : 0)
        func milliseconds(_ count: Int64) -> UInt32 { UInt32(truncatingIfNeeded: count / 1_000_000) }
        self.init(
            time: min(
                (isOutbound ? record.time : record.arrival).sinceStart.count, Self.timeMax), connection: connection,
            direction: record.direction, flags: flags, sequenceNumber: sequence,
            acknowledgmentNumber: flags.contains(.ack) ? number(record.ackNumber) : 0,
            payloadBytes: record.payloadBytes,
            packetBytes: record.bytes,
            timestamp: record.kind == .reset
                ? nil
                : (
                    milliseconds(record.timestamp.sinceStart.count), milliseconds(record.timestampEcho.sinceStart.count)
                ),
            segmentSizeMax: isHandshake ? UInt16(PacketSize.segmentMax + 12) : 0,
            sackBlocks: record.kind == .ack
                ? blocks.prefix(3).map { (number($0.lowerBound), number($0.upperBound)) } : [])
    }
}
