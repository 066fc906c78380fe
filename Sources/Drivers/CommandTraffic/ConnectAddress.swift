internal import ForwardProxy

/// The address argument of connect(2): an IPv4 or IPv6 address with a port.
package struct ConnectAddress: Hashable, Sendable, CustomStringConvertible {
    /// The 4 or 16 bytes of the address.
    package let bytes: [UInt8]
    /// The port.
    package let port: Int

    /// The longest address of the families below (`sizeof(struct sockaddr_un)`).
    static let lengthMax = 110
    /// Linux's numbers of the address families.
    private static let (local, ipv4, ipv6): (UInt16, UInt16, UInt16) = (1, 2, 10)
    /// The sockets of services that look names up for the C library.
    private static let nameServices = [
        "/var/run/nscd/socket", "/run/nscd/socket", "/run/systemd/resolve/io.systemd.Resolve",
    ]
    /// `sizeof(struct sockaddr_in)`, and that of `struct sockaddr_in6` without the scope, which the kernel accepts.
    private static let (ipv4Length, ipv6Length) = (16, 24)
    /// The first bytes of an IPv4 address that is mapped into IPv6.
    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]

    /// Whether the family is IPv6, also for a mapped IPv4 address.
    let isIPv6Family: Bool

    /// Reads Linux's `struct sockaddr`; `nil` for other families and for structures that are too short.
    package init?(_ structure: [UInt8]) {
        switch (Self.family(structure), structure.count) {
        case (Self.ipv4, Self.ipv4Length...):
            bytes = Array(structure[4..<8])
            isIPv6Family = false
        case (Self.ipv6, Self.ipv6Length...):
            let address = Array(structure[8..<24])
            bytes = address.starts(with: Self.mapped) ? Array(address.suffix(4)) : address
            isIPv6Family = true
        default: return nil
        }
        port = Int(structure[2]) << 8 | Int(structure[3])
    }

    /// Returns the family of a structure: the first two bytes in the order of the machine, which is little-endian.
    private static func family(_ structure: [UInt8]) -> UInt16? {
        structure.count >= 2 ? UInt16(structure[0]) | UInt16(structure[1]) << 8 : nil
    }

    /// Returns whether a structure is the address of a service that looks names up for the C library.
    static func isNameService(_ structure: [UInt8]) -> Bool {
        guard family(structure) == local else { return false }
        let path = String(decoding: structure.dropFirst(2).prefix { $0 != 0 }, as: UTF8.self)
        return nameServices.contains(path)
    }

    /// Whether the address is on the loopback interface. The kernel connects unspecified addresses to it, too.
    package var isLoopback: Bool {
        if bytes.count == 4 { return bytes[0] == 127 || isUnspecified }
        return isUnspecified || (bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1)
    }

    /// Whether all bits of the address are 0.
    var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }

    /// The address as text, an unspecified one as the loopback address that the kernel connects.
    package var host: String {
        if isUnspecified { return bytes.count == 4 ? "127.0.0.1" : "::1" }
        return IPAddress(bytes: bytes)?.description ?? ""
    }

    package var description: String { bytes.count == 4 ? "\(host):\(port)" : "[\(host)]:\(port)" }
}
