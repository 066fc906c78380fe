extension IPv4PacketEncoder {
    /// An address and a port.
    public struct Endpoint: Sendable {
        /// The four bytes of the address.
        public let address: [UInt8]
        /// The port.
        public let port: UInt16

        /// Creates an endpoint.
        public init(address: [UInt8], port: UInt16) {
            self.address = address
            self.port = port
        }
    }

    /// Returns a segment without a modelled packet: no options but the MSS of a SYN, and a fixed window.
    ///
    /// - Parameter flags: The flags of the TCP header, FIN 1 to ACK 16.
    public static func segment(
        from source: Endpoint, to destination: Endpoint, flags: UInt8, sequence: UInt32, acknowledgment: UInt32,
        _ payload: [UInt8]
    ) -> [UInt8] {
        let isSYN = flags & 0x02 != 0
        var segment: [UInt8] = []
        segment.appendBig(source.port)
        segment.appendBig(destination.port)
        segment.appendBig(sequence)
        segment.appendBig(flags & 0x10 == 0 ? 0 : acknowledgment)
        segment += [isSYN ? 0x60 : 0x50, flags]
        segment.appendBig(UInt16.max)
        segment.appendBig(UInt32(0))
        if isSYN { segment += [2, 4, 0x05, 0xB4] }
        segment += payload

        var pseudo = source.address + destination.address + [0, 6]
        pseudo.appendBig(UInt16(clamping: segment.count))
        segment.setBig(checksum(pseudo + segment), at: 16)

        var header: [UInt8] = [0x45, 0]
        header.appendBig(UInt16(clamping: segment.count + 20))
        header += [0, 0, 0x40, 0, 64, 6, 0, 0] + source.address + destination.address
        header.setBig(checksum(header), at: 10)
        return header + segment
    }
}
