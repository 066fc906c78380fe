internal import Determinism
public import LinkModel
public import TCPModel

/// An encoder of modelled packets as IPv4 and TCP or UDP headers with payload: sizes, sequence numbers, options and checksums
/// are those of a connection over Ethernet with timestamps, window scaling and SACK.
public struct IPv4PacketEncoder: Sendable {
    /// The ports of the client (`up`) and of the server (`down`).
    public var ports: PerDirection<UInt16>

    /// Creates an encoder.
    public init(ports: PerDirection<UInt16>) { self.ports = ports }

    /// The addresses of the client, 10.0.0.2, and of the server, 10.0.0.1. They are always IPv4, as are the modelled
    /// sizes.
    private static let addresses = PerDirection<[UInt8]>(up: [10, 0, 0, 2], down: [10, 0, 0, 1])
    private static let windowScale = 7

    /// Returns a packet's bytes. If the packet has a payload and `payload` is `nil`, the result contains only headers
    /// and is shorter than ``PacketRecord/bytes``.
    public func encode(_ record: PacketRecord, payload: [UInt8]?) -> [UInt8] {
        if record.kind == .datagram { return encodeDatagram(record, payload: payload) }
        let direction = record.direction
        let first = initialSequenceNumber(record.connectionNumber)
        let isHandshake = record.kind == .syn || record.kind == .synAck
        var sequence = first &+ UInt32(truncatingIfNeeded: record.range.lowerBound) &+ (isHandshake ? 0 : 1)
        // A RST of an end that has sent no SYN has sequence number 0 (RFC 9293, section 3.10.7.1).
        if record.kind == .reset && record.isFirstOfSender { sequence = 0 }
        // A window probe repeats a byte that has been acknowledged.
        if record.isWindowProbe { sequence &-= 1 }
        let acknowledges = first &+ UInt32(truncatingIfNeeded: record.ackNumber) &+ 1
        let options = options(record, first)

        var flags: UInt8 = 0
        switch record.kind {
        case .syn: flags = 0x02
        case .synAck: flags = 0x12
        case .data: flags = 0x10 | (record.isPSH ? 0x08 : 0) | (record.isFIN ? 0x01 : 0)
        case .ack: flags = 0x10
        case .reset: flags = 0x14
        case .datagram: break
        }
        let window = isHandshake ? min(65535, record.window) : record.window >> Int64(Self.windowScale)

        var segment: [UInt8] = []
        segment.appendBig(ports[direction])
        segment.appendBig(ports[direction.opposite])
        segment.appendBig(sequence)
        segment.appendBig(flags & 0x10 == 0 ? 0 : acknowledges)
        segment.append(UInt8((20 + options.count) / 4) << 4)
        segment.append(flags)
        segment.appendBig(UInt16(clamping: record.kind == .reset ? 0 : window))
        segment.appendBig(UInt16(0))
        segment.appendBig(UInt16(0))
        segment += options
        segment += payload ?? []

        // The checksum of a missing payload is unknown. Readers accept 0 in a truncated packet.
        if payload != nil || record.payloadBytes == 0 {
            var pseudo = Self.addresses[direction] + Self.addresses[direction.opposite] + [0, 6]
            pseudo.appendBig(UInt16(segment.count))
            segment.setBig(Self.checksum(pseudo + segment), at: 16)
        }

        return header(of: record, protocol: 6) + segment
    }

    /// Returns the bytes of a datagram; one that travels in fragments is one long packet. The checksum is left out, as UDP
    /// over IPv4 permits, if the payload is not known.
    private func encodeDatagram(_ record: PacketRecord, payload: [UInt8]?) -> [UInt8] {
        let direction = record.direction
        var datagram: [UInt8] = []
        datagram.appendBig(ports[direction])
        datagram.appendBig(ports[direction.opposite])
        datagram.appendBig(UInt16(clamping: record.payloadBytes + 8))
        datagram.appendBig(UInt16(0))
        if let payload {
            datagram += payload
            var pseudo = Self.addresses[direction] + Self.addresses[direction.opposite] + [0, 17]
            pseudo.appendBig(UInt16(clamping: datagram.count))
            let checksum = Self.checksum(pseudo + datagram)
            datagram.setBig(checksum == 0 ? 0xFFFF : checksum, at: 6)
        }
        return header(of: record, protocol: 17) + datagram
    }

    private func header(of record: PacketRecord, protocol number: UInt8) -> [UInt8] {
        var header: [UInt8] = [0x45, 0]
        header.appendBig(UInt16(clamping: record.bytes))
        header.appendBig(UInt16(0))
        header += [0x40, 0, 64, number, 0, 0]
        header += Self.addresses[record.direction] + Self.addresses[record.direction.opposite]
        header.setBig(Self.checksum(header), at: 10)
        return header
    }

    /// Returns the comment of a packet, such as "retransmission; lost on the link"; `nil` for an ordinary packet.
    public static func comment(for record: PacketRecord, cause: String?) -> String? {
        var remarks: [String] = []
        if record.isRetransmission { remarks.append("retransmission") }
        if record.isWindowProbe { remarks.append("window probe") }
        if record.isDSACK { remarks.append("D-SACK") }
        switch record.fate {
        case .arrives: break
        case .lost: remarks.append("lost on the link")
        case .dropped: remarks.append("dropped: queue full")
        case .outage: remarks.append("lost: outage")
        }
        if let cause { remarks.append(cause) }
        return remarks.isEmpty ? nil : remarks.joined(separator: "; ")
    }

    /// Returns a connection's initial sequence number. Connections differ, since ports are reused.
    private func initialSequenceNumber(_ number: Int) -> UInt32 {
        UInt32(truncatingIfNeeded: number) &* 0x9E37_79B9
    }

    private func options(_ record: PacketRecord, _ first: UInt32) -> [UInt8] {
        if record.kind == .reset { return [] }
        var timestamps: [UInt8] = [8, 10]
        timestamps.appendBig(UInt32(truncatingIfNeeded: record.timestamp.sinceStart.count / 1_000_000))
        timestamps.appendBig(UInt32(truncatingIfNeeded: record.timestampEcho.sinceStart.count / 1_000_000))
        if record.kind == .syn || record.kind == .synAck {
            return [2, 4, 0x05, 0xB4, 4, 2] + timestamps + [1, 3, 3, UInt8(Self.windowScale)]
        }
        var options = [1, 1] + timestamps
        var blocks = record.sackRanges
        if record.isDSACK {
            // The model does not tell which bytes arrived twice; any block below the acknowledgment number is a D-SACK
            // (RFC 2883).
            blocks.insert(max(0, record.ackNumber - 1)..<record.ackNumber, at: 0)
        }
        blocks = Array(blocks.prefix(3))
        // The modelled size of a data segment leaves no room for SACK blocks.
        if !blocks.isEmpty && record.kind == .ack {
            options += [1, 1, 5, UInt8(2 + 8 * blocks.count)]
            for block in blocks {
                options.appendBig(first &+ UInt32(truncatingIfNeeded: block.lowerBound) &+ 1)
                options.appendBig(first &+ UInt32(truncatingIfNeeded: block.upperBound) &+ 1)
            }
        }
        return options
    }

    /// Returns the Internet checksum (RFC 1071).
    static func checksum(_ bytes: [UInt8]) -> UInt16 {
        var sum: UInt32 = 0
        for (index, byte) in bytes.enumerated() { sum &+= index % 2 == 0 ? UInt32(byte) << 8 : UInt32(byte) }
        while sum > 0xFFFF { sum = (sum & 0xFFFF) + (sum >> 16) }
        return ~UInt16(sum)
    }
}

extension [UInt8] {
    mutating func appendBig(_ value: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: value.bigEndian) { append(contentsOf: $0) }
    }

    mutating func setBig(_ value: UInt16, at offset: Int) {
        self[offset] = UInt8(value >> 8)
        self[offset + 1] = UInt8(truncatingIfNeeded: value)
    }
}
