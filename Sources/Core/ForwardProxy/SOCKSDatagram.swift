/// The header of a datagram between a client of SOCKS 5 and the proxy (RFC 1928, section 7): the destination of the client's
/// datagram, or the origin of a server's.
///
///     0, 0, fragment, type, address, port (2)
public enum SOCKSDatagram {
    private static let (ipv4, name, ipv6): (UInt8, UInt8, UInt8) = (1, 3, 4)
    /// The bytes before the address.
    private static let prefixBytes = 4

    /// Returns the length of a datagram's header; `nil` if the datagram is to be dropped: it has no header, or is a fragment,
    /// which the proxy does not assemble.
    public static func headerLength(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard bytes.count > prefixBytes, bytes[2] == 0 else { return nil }
        let address: Int
        switch bytes[3] {
        case ipv4: address = 4
        case name: address = 1 + Int(bytes[4])
        case ipv6: address = 16
        default: return nil
        }
        let length = prefixBytes + address + 2
        return bytes.count >= length ? length : nil
    }

    /// Returns the destination of a header of this length; `nil` if it is none.
    public static func destination(_ header: [UInt8]) -> Destination? {
        guard header.count >= prefixBytes + 3 else { return nil }
        let (text, port) = (header[prefixBytes..<(header.count - 2)], header.suffix(2).reduce(0) { $0 << 8 | Int($1) })
        let host =
            header[3] == name ? try? HostSyntax.host(text.dropFirst()) : IPAddress(bytes: Array(text))?.description
        guard let host, port > 0 else { return nil }
        return Destination(host: host, port: port)
    }

    /// Returns the header of a server's datagram.
    public static func header(of address: IPAddress, port: Int) -> [UInt8] { [0, 0, 0] + endpoint(address, port) }

    /// Returns the type, the address and the port; without an address, those of 0.0.0.0.
    static func endpoint(_ address: IPAddress?, _ port: Int) -> [UInt8] {
        let bytes = address?.bytes ?? [0, 0, 0, 0]
        return [bytes.count == 4 ? ipv4 : ipv6] + bytes + [UInt8(port >> 8 & 0xFF), UInt8(port & 0xFF)]
    }
}
