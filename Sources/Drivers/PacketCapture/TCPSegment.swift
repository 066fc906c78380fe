/// A TCP segment in a captured frame.
public struct TCPSegment: Sendable {
    /// An IP address and a port.
    public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        /// Four bytes (IPv4) or sixteen (IPv6).
        public let address: [UInt8]
        /// The port.
        public let port: UInt16

        public var description: String {
            if address.count == 4 { return "\(address.map(String.init).joined(separator: ".")):\(port)" }
            let groups = stride(from: 0, to: address.count, by: 2)
                .map { String(Int(address[$0]) << 8 | Int(address[$0 + 1]), radix: 16) }
            return "[\(Self.shortened(groups))]:\(port)"
        }

        /// Returns the groups with the longest run of zeros replaced by `::` (RFC 5952).
        private static func shortened(_ groups: [String]) -> String {
            var best = 0..<0
            var start = 0
            for index in 0...groups.count where index == groups.count || groups[index] != "0" {
                if index - start > max(1, best.count) { best = start..<index }
                start = index + 1
            }
            if best.isEmpty { return groups.joined(separator: ":") }
            return groups[..<best.lowerBound].joined(separator: ":") + "::"
                + groups[best.upperBound...].joined(separator: ":")
        }
    }

    /// The sender.
    public let source: Endpoint
    /// The receiver.
    public let destination: Endpoint
    /// The sequence number.
    public let sequenceNumber: UInt32
    /// The acknowledgment number.
    public let acknowledgmentNumber: UInt32
    /// The SYN flag.
    public let isSYN: Bool
    /// The ACK flag.
    public let isACK: Bool
    /// The FIN flag.
    public let isFIN: Bool
    /// The RST flag.
    public let isRST: Bool
    /// The byte of flags.
    public let flags: UInt8
    /// The options of the TCP header.
    public let options: Options
    /// The length of the IP packet on the wire.
    public let packetLength: Int
    /// The captured part of the payload.
    public let payload: [UInt8]
    /// The payload's length on the wire.
    public let payloadLength: Int

    /// The options that are read.
    public struct Options: Sendable {
        /// The maximum segment size; 0 without the option.
        public var segmentSizeMax: UInt16 = 0
        /// TSval and TSecr (RFC 7323).
        public var timestamp: (value: UInt32, echo: UInt32)?
        /// The blocks of the SACK option (RFC 2018), which do not include their ends.
        public var sackBlocks: [(start: UInt32, end: UInt32)] = []

        /// Reads the options in a range of a frame, up to the first invalid one.
        init(_ frame: UnsafeRawBufferPointer, _ range: Range<Int>) {
            var offset = range.lowerBound
            while offset < range.upperBound {
                let kind = frame[offset]
                if kind == 0 { return }
                if kind == 1 {
                    offset += 1
                    continue
                }
                guard offset + 1 < range.upperBound else { return }
                let length = Int(frame[offset + 1])
                guard length >= 2, offset + length <= range.upperBound else { return }
                switch (kind, length) {
                case (2, 4): segmentSizeMax = UInt16(big16(frame, offset + 2))
                case (8, 10): timestamp = (big32(frame, offset + 2), big32(frame, offset + 6))
                case (5, 10), (5, 18), (5, 26), (5, 34):
                    sackBlocks = stride(from: offset + 2, to: offset + length, by: 8)
                        .map { (big32(frame, $0), big32(frame, $0 + 4)) }
                default: break
                }
                offset += length
            }
        }
    }

    /// Decodes the segment in a frame; `nil` if the frame contains none, or a fragment other than the first.
    ///
    /// - Parameters:
    ///   - linkType: The link-layer header type (`LINKTYPE_`).
    ///   - keepsPayload: Whether ``payload`` is set.
    public init?(_ frame: UnsafeRawBufferPointer, linkType: Int, keepsPayload: Bool = true) {
        guard let start = Self.networkOffset(frame, linkType), start < frame.count else { return nil }
        let version = frame[start] >> 4
        let transport: Int
        /// The end of the packet, without the frame's padding; 0 if the header has no length (a packet above 64 KiB).
        var end: Int
        let from: [UInt8]
        let to: [UInt8]
        if version == 4 {
            guard frame.count >= start + 20 else { return nil }
            let fragment = big16(frame, start + 6) & 0x1FFF
            guard frame[start + 9] == 6, fragment == 0 else { return nil }
            transport = start + Int(frame[start] & 0x0F) * 4
            let length = big16(frame, start + 2)
            end = length == 0 ? 0 : start + length
            from = Array(frame[start + 12..<start + 16])
            to = Array(frame[start + 16..<start + 20])
        } else if version == 6 {
            guard frame.count >= start + 40 else { return nil }
            let length = big16(frame, start + 4)
            end = length == 0 ? 0 : start + 40 + length
            guard let offset = Self.transportOffset(frame, after: start) else { return nil }
            transport = offset
            from = Array(frame[start + 8..<start + 24])
            to = Array(frame[start + 24..<start + 40])
        } else {
            return nil
        }
        guard transport >= start + 20, frame.count >= transport + 20 else { return nil }
        let header = Int(frame[transport + 12] >> 4) * 4
        guard header >= 20 else { return nil }
        if end == 0 { end = frame.count }
        let first = transport + header
        let flags = frame[transport + 13]
        source = Endpoint(address: from, port: UInt16(big16(frame, transport)))
        destination = Endpoint(address: to, port: UInt16(big16(frame, transport + 2)))
        sequenceNumber = big32(frame, transport + 4)
        acknowledgmentNumber = big32(frame, transport + 8)
        isFIN = flags & 0x01 != 0
        isSYN = flags & 0x02 != 0
        isRST = flags & 0x04 != 0
        isACK = flags & 0x10 != 0
        payloadLength = max(0, end - first)
        let captured = min(frame.count, end)
        payload = keepsPayload && first < captured ? Array(frame[first..<captured]) : []
        self.flags = flags
        options = Options(frame, transport + 20..<max(transport + 20, min(first, frame.count)))
        packetLength = max(0, end - start)
    }

    private static func networkOffset(_ frame: UnsafeRawBufferPointer, _ linkType: Int) -> Int? {
        switch linkType {
        // Ethernet, with or without VLAN tags.
        case 1:
            var offset = 12
            while frame.count >= offset + 2, [0x8100, 0x88A8].contains(big16(frame, offset)) { offset += 4 }
            guard frame.count >= offset + 2, [0x0800, 0x86DD].contains(big16(frame, offset)) else { return nil }
            return offset + 2
        // BSD loopback.
        case 0, 108: return 4
        // Raw IP; the number differs between systems.
        case 12, 14, 101, 228, 229: return 0
        // Linux cooked capture, v1 and v2.
        case 113: return 16
        case 276: return 20
        default: return nil
        }
    }

    /// Returns the offset after IPv6 extension headers.
    private static func transportOffset(_ frame: UnsafeRawBufferPointer, after start: Int) -> Int? {
        var next = frame[start + 6]
        var offset = start + 40
        while next == 0 || next == 43 || next == 60 {
            guard frame.count >= offset + 8 else { return nil }
            next = frame[offset]
            offset += 8 + Int(frame[offset + 1]) * 8
        }
        return next == 6 ? offset : nil
    }
}

private func big16(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Int {
    Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
}

private func big32(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
    UInt32(big16(bytes, offset)) << 16 | UInt32(big16(bytes, offset + 2))
}
