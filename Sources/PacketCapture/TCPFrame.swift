/// A TCP segment found in a captured frame.
public struct TCPFrame: Sendable {
    /// An address with a port.
    public struct Endpoint: Hashable, Sendable, CustomStringConvertible {
        /// Four bytes or sixteen.
        public let address: [UInt8]
        /// The port.
        public let port: UInt16

        public var description: String {
            if address.count == 4 { return "\(address.map(String.init).joined(separator: ".")):\(port)" }
            let groups = stride(from: 0, to: address.count, by: 2)
                .map { String(Int(address[$0]) << 8 | Int(address[$0 + 1]), radix: 16) }
            return "[\(Self.shortened(groups))]:\(port)"
        }

        /// The longest run of zero groups is left out (RFC 5952).
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

    /// Who sent it.
    public let source: Endpoint
    /// Whom to.
    public let destination: Endpoint
    /// The first byte's number.
    public let sequence: UInt32
    /// The next byte its sender expects.
    public let acknowledges: UInt32
    /// SYN.
    public let isSyn: Bool
    /// ACK.
    public let isAck: Bool
    /// FIN.
    public let isFin: Bool
    /// RST.
    public let isReset: Bool
    /// The bytes it carries, as far as they were captured.
    public let payload: [UInt8]
    /// How many it carried.
    public let payloadLength: Int

    /// Finds the segment in a frame; `nil` if there is none, or only a later fragment of one.
    ///
    /// - Parameter linkType: How the frame begins, as libpcap numbers it (`LINKTYPE_`).
    public init?(_ frame: UnsafeRawBufferPointer, linkType: Int) {
        guard let start = Self.networkOffset(frame, linkType), start < frame.count else { return nil }
        let version = frame[start] >> 4
        let transport: Int
        /// Where the packet ends, padding of the frame left out; 0 is not said (a packet larger than 64 KiB).
        var end: Int
        let from: [UInt8]
        let to: [UInt8]
        if version == 4 {
            guard frame.count >= start + 20 else { return nil }
            let fragment = Self.big16(frame, start + 6) & 0x1FFF
            guard frame[start + 9] == 6, fragment == 0 else { return nil }
            transport = start + Int(frame[start] & 0x0F) * 4
            let length = Self.big16(frame, start + 2)
            end = length == 0 ? 0 : start + length
            from = Array(frame[start + 12..<start + 16])
            to = Array(frame[start + 16..<start + 20])
        } else if version == 6 {
            guard frame.count >= start + 40 else { return nil }
            let length = Self.big16(frame, start + 4)
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
        source = Endpoint(address: from, port: UInt16(Self.big16(frame, transport)))
        destination = Endpoint(address: to, port: UInt16(Self.big16(frame, transport + 2)))
        sequence = Self.big32(frame, transport + 4)
        acknowledges = Self.big32(frame, transport + 8)
        isFin = flags & 0x01 != 0
        isSyn = flags & 0x02 != 0
        isReset = flags & 0x04 != 0
        isAck = flags & 0x10 != 0
        payloadLength = max(0, end - first)
        let captured = min(frame.count, end)
        payload = first < captured ? Array(frame[first..<captured]) : []
    }

    private static func networkOffset(_ frame: UnsafeRawBufferPointer, _ linkType: Int) -> Int? {
        switch linkType {
        // Ethernet, with VLAN tags or without.
        case 1:
            var offset = 12
            while frame.count >= offset + 2, [0x8100, 0x88A8].contains(big16(frame, offset)) { offset += 4 }
            guard frame.count >= offset + 2, [0x0800, 0x86DD].contains(big16(frame, offset)) else { return nil }
            return offset + 2
        // BSD's loopback.
        case 0, 108: return 4
        // Raw IP; some systems number it otherwise.
        case 12, 14, 101, 228, 229: return 0
        // Linux "cooked".
        case 113: return 16
        case 276: return 20
        default: return nil
        }
    }

    /// Skips IPv6's extension headers.
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

    private static func big16(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> Int {
        Int(bytes[offset]) << 8 | Int(bytes[offset + 1])
    }

    private static func big32(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
        UInt32(big16(bytes, offset)) << 16 | UInt32(big16(bytes, offset + 2))
    }
}
