/// The type of a record with addresses.
package enum AddressType: UInt16, Hashable, Sendable {
    /// A (RFC 1035).
    case ipv4 = 1
    /// AAAA (RFC 3596).
    case ipv6 = 28

    /// The length of an address in bytes.
    var addressLength: Int { self == .ipv4 ? 4 : 16 }
}

/// What a response of a name server says about the addresses of a name.
enum DNSAnswer: Hashable, Sendable {
    /// The addresses, at least one, and the seconds for which they may be used.
    case addresses([IPAddress], timeToLive: UInt32)
    /// The name has no addresses of the type, or does not exist (NXDOMAIN), and the seconds for which that is so.
    case none(timeToLive: UInt32)
    /// The server did not answer the question (SERVFAIL, REFUSED and others).
    case failure
    /// The response did not fit into a datagram.
    case truncated
}

/// A response of a name server (RFC 1035, section 4). Records other than those of addresses, aliases (CNAME) and
/// authorities (SOA) are left out.
struct DNSMessage: Sendable {
    let id: UInt16
    let isTruncated: Bool
    /// The response code (RCODE).
    let code: UInt8
    let name: DNSName
    /// The type of the question.
    let type: UInt16
    private var aliases: [(name: DNSName, target: DNSName, timeToLive: UInt32)] = []
    private var addresses: [(name: DNSName, address: IPAddress, timeToLive: UInt32)] = []
    /// The time to live of a negative answer: the lesser of the SOA record's and of its minimum (RFC 2308, section 5).
    private var negativeTimeToLive: UInt32?

    static let headLength = 12
    /// The longest message that is read. Without EDNS, servers send 512 bytes at most.
    static let bytesMax = 4_096
    /// The longest chain of aliases.
    private static let aliasesMax = 16
    /// The most addresses of an answer.
    private static let addressesMax = 16
    private static let (internet, cname, soa): (UInt16, UInt16, UInt16) = (1, 5, 6)
    private static let (noError, noSuchName): (UInt8, UInt8) = (0, 3)

    /// Returns the message of a query for the addresses of a name, with recursion desired.
    static func query(_ name: DNSName, _ type: AddressType, id: UInt16) -> [UInt8] {
        [UInt8(id >> 8), UInt8(id & 0xFF), 1, 0, 0, 1, 0, 0, 0, 0, 0, 0] + name.bytes
            + [UInt8(type.rawValue >> 8), UInt8(type.rawValue & 0xFF), 0, 1]
    }

    /// Reads the response to a query with one question; `nil` for other bytes.
    init?(_ bytes: [UInt8]) {
        var reader = Reader(bytes: bytes)
        guard bytes.count <= Self.bytesMax, let id = reader.number(), let flags = reader.number(),
            let questions = reader.number(), let answers = reader.number(), let authorities = reader.number(),
            reader.number() != nil
        else { return nil }
        // A response to a standard query.
        guard flags & 0xF800 == 0x8000, questions == 1, let name = reader.name(), let type = reader.number(),
            reader.number() == Self.internet
        else { return nil }
        (self.id, self.name, self.type) = (id, name, type)
        isTruncated = flags & 0x0200 != 0
        code = UInt8(flags & 0x0F)
        if isTruncated { return }
        // A record has at least 11 bytes, so that the counts of hostile messages end at the end of the bytes.
        for _ in 0..<answers {
            guard readRecord(&reader) else { return nil }
        }
        let (count, found) = (addresses.count, aliases.count)
        for _ in 0..<authorities {
            guard readRecord(&reader) else { return nil }
        }
        addresses.removeSubrange(count...)
        aliases.removeSubrange(found...)
    }

    private mutating func readRecord(_ reader: inout Reader) -> Bool {
        guard let name = reader.name(), let type = reader.number(), let network = reader.number(),
            let high = reader.number(), let low = reader.number(), let length = reader.number(),
            let end = reader.end(ofBytes: Int(length))
        else { return false }
        defer { reader.index = end }
        guard network == Self.internet else { return true }
        // RFC 2181, section 8: a value with the highest bit is 0.
        let timeToLive = high & 0x8000 == 0 ? UInt32(high) << 16 | UInt32(low) : 0
        switch type {
        case Self.cname:
            guard let target = reader.name(), reader.index == end else { return false }
            aliases.append((name, target, timeToLive))
        case Self.soa:
            // Two names, and five numbers of which the minimum is the last.
            guard reader.name() != nil, reader.name() != nil, reader.index + 20 == end else { return false }
            reader.index += 16
            guard let high = reader.number(), let low = reader.number() else { return false }
            negativeTimeToLive = min(timeToLive, UInt32(high) << 16 | UInt32(low))
        case AddressType.ipv4.rawValue, AddressType.ipv6.rawValue:
            guard let address = IPAddress(bytes: Array(reader.bytes[reader.index..<end])),
                address.bytes.count == AddressType(rawValue: type)?.addressLength
            else { return false }
            addresses.append((name, address, timeToLive))
        default: break
        }
        return true
    }

    /// Returns what the response says about its question.
    func answer(_ type: AddressType) -> DNSAnswer {
        if isTruncated { return .truncated }
        guard code == Self.noError || code == Self.noSuchName else { return .failure }
        var (owner, timeToLive) = (name, UInt32.max)
        for _ in 0..<Self.aliasesMax {
            let found = addresses.filter { $0.name == owner && $0.address.bytes.count == type.addressLength }
            if !found.isEmpty {
                return .addresses(
                    found.prefix(Self.addressesMax).map(\.address),
                    timeToLive: found.reduce(timeToLive) { min($0, $1.timeToLive) })
            }
            guard let alias = aliases.first(where: { $0.name == owner }) else {
                // Without an SOA record, the answer is not kept (RFC 2308, section 5).
                return .none(timeToLive: min(timeToLive, negativeTimeToLive ?? 0))
            }
            timeToLive = min(timeToLive, alias.timeToLive)
            owner = alias.target
        }
        return .failure
    }

    /// The bytes of a message and the place that is read next.
    private struct Reader {
        let bytes: [UInt8]
        var index = 0

        /// Reads 16 bits.
        mutating func number() -> UInt16? {
            guard index + 2 <= bytes.count else { return nil }
            defer { index += 2 }
            return UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
        }

        mutating func name() -> DNSName? { DNSName(bytes, at: &index) }

        func end(ofBytes count: Int) -> Int? { index + count <= bytes.count ? index + count : nil }
    }
}
