/// An IPv4 or IPv6 address.
public struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The 4 or 16 bytes in network order.
    public let bytes: [UInt8]

    /// Creates an address from its 4 or 16 bytes; `nil` for another number of bytes.
    public init?(bytes: [UInt8]) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = bytes
    }

    /// Creates an address from its text; `nil` if it is none.
    ///
    /// An IPv4 address has four decimal numbers: the shorter, octal and hexadecimal forms of inet_aton(3) are refused,
    /// because programs disagree about them.
    public init?(_ text: String) {
        let text = Array(text.utf8)
        let isVersion6 = text.contains(UInt8(ascii: ":"))
        guard let bytes = isVersion6 ? Self.version6(text[...]) : Self.version4(text[...]) else { return nil }
        self.bytes = bytes
    }

    private static func version4(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        let bytes = parts.compactMap { part -> UInt8? in
            guard part.allSatisfy({ (48...57).contains($0) }), part.count == 1 || part.first != 48 else { return nil }
            return UInt8(String(decoding: part, as: UTF8.self))
        }
        return bytes.count == 4 ? bytes : nil
    }

    private static func version6(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let colon = UInt8(ascii: ":")
        var bytes: [UInt8] = []
        // The position of "::" in the bytes.
        var gap: Int?
        var rest = text
        if rest.starts(with: [colon, colon]) {
            gap = 0
            rest = rest.dropFirst(2)
        }
        while !rest.isEmpty {
            let part = rest.prefix { $0 != colon }
            rest = rest[part.endIndex...]
            if part.contains(UInt8(ascii: ".")) {
                guard rest.isEmpty, let version4 = version4(part) else { return nil }
                bytes += version4
                break
            }
            // The initialiser also reads a sign.
            guard (1...4).contains(part.count), part.first != UInt8(ascii: "+"), part.first != UInt8(ascii: "-"),
                let group = UInt16(String(decoding: part, as: UTF8.self), radix: 16)
            else { return nil }
            bytes += [UInt8(group >> 8), UInt8(group & 0xFF)]
            guard !rest.isEmpty else { break }
            rest = rest.dropFirst()
            if rest.first == colon {
                guard gap == nil else { return nil }
                gap = bytes.count
                rest = rest.dropFirst()
            } else if rest.isEmpty {
                return nil
            }
        }
        if let gap {
            // "::" stands for at least one group.
            guard bytes.count <= 14 else { return nil }
            bytes.insert(contentsOf: [UInt8](repeating: 0, count: 16 - bytes.count), at: gap)
        }
        return bytes.count == 16 ? bytes : nil
    }

    /// The IPv4 address in an IPv6 address that stands for one: mapped (`::ffff:0:0/96`), compatible (`::/96`), or
    /// translated by NAT64 (`64:ff9b::/96`). A connection to it may reach the IPv4 address.
    var embeddedIPv4: IPAddress? {
        // "::" and "::1" are addresses of IPv6.
        guard bytes.count == 16, Self.embeddingPrefixes.contains(Array(bytes.prefix(12))),
            bytes[1] > 0 || bytes[10] > 0 || bytes[12] > 0
        else { return nil }
        return IPAddress(bytes: Array(bytes.suffix(4)))
    }

    private static let embeddingPrefixes: [[UInt8]] = [
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0],
    ]

    /// Returns the address with all bits after the first `prefixLength` zero.
    func masked(prefixLength: Int) -> IPAddress {
        var masked = bytes
        for index in masked.indices {
            let bits = min(max(prefixLength - 8 * index, 0), 8)
            masked[index] &= UInt8(truncatingIfNeeded: 0xFF00 >> bits)
        }
        return IPAddress(bytes: masked) ?? self
    }

    /// Returns whether the address is of the same version as a network's and has its first bits.
    func isIn(_ network: IPAddress, prefixLength: Int) -> Bool {
        bytes.count == network.bytes.count
            && masked(prefixLength: prefixLength) == network.masked(prefixLength: prefixLength)
    }

    /// The text (IPv6: RFC 5952).
    public var description: String {
        guard bytes.count == 16 else { return bytes.map(String.init).joined(separator: ".") }
        if bytes.starts(with: Self.embeddingPrefixes[0]) {
            return "::ffff:" + bytes.suffix(4).map(String.init).joined(separator: ".")
        }
        let groups = stride(from: 0, to: 16, by: 2).map { UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]) }
        // The first of the longest runs of at least two zero groups.
        var longest = 0..<0
        var start = 0
        for index in 0...8 where index == 8 || groups[index] != 0 {
            if index - start > max(longest.count, 1) { longest = start..<index }
            start = index + 1
        }
        let text = { (range: Range<Int>) in
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        return longest.isEmpty ? text(0..<8) : text(0..<longest.lowerBound) + "::" + text(longest.upperBound..<8)
    }
}
