/// The response to a look-up of a name.
package enum NameAnswer: Hashable, Sendable {
    /// Addresses of 4 or 16 bytes; none if the name has no addresses.
    case addresses([[UInt8]])
    /// The name does not exist (NXDOMAIN).
    case noSuchName
    /// The look-up failed (SERVFAIL).
    case failure
    /// No response.
    case nothing
}

/// A query of a resolver for one name (RFC 1035).
struct DNSQuery: Hashable, Sendable {
    /// The type of a question.
    enum Kind: UInt16 {
        case ipv4 = 1
        case ipv6 = 28

        /// The length of an address.
        var addressLength: Int { self == .ipv4 ? 4 : 16 }
    }

    /// The name in lower case, without a trailing dot.
    let name: String
    /// The type; `nil` if it is not one of addresses.
    let kind: Kind?

    /// The identifier and the flags.
    private let head: [UInt8]
    /// The bytes of the question.
    private let question: [UInt8]

    private static let headLength = 12
    /// The most addresses in a response, so that it fits into 512 bytes.
    private static let addressesMax = 12
    /// The time to live of a response in seconds: a client asks again for each of its connections, as a rule, and the
    /// proxy has the cache.
    private static let timeToLive: UInt8 = 1

    /// Reads a query; `nil` if it is not one for one name.
    init?(_ bytes: [UInt8]) {
        // Not a response, a standard query, one question.
        guard bytes.count > Self.headLength, bytes[2] & 0xF8 == 0, bytes[4] == 0, bytes[5] == 1 else { return nil }
        var labels: [String] = []
        var index = Self.headLength
        while true {
            guard index < bytes.count else { return nil }
            let length = Int(bytes[index])
            index += 1
            if length == 0 { break }
            guard length < 64, index + length < bytes.count else { return nil }
            let label = bytes[index..<index + length]
            // A dot in a label could not be told from one between labels.
            guard label.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ".") }) else { return nil }
            labels.append(String(decoding: label, as: UTF8.self).lowercased())
            index += length
        }
        guard !labels.isEmpty, index + 4 <= bytes.count else { return nil }
        // The class must be the internet.
        guard bytes[index + 2] == 0, bytes[index + 3] == 1 else { return nil }
        name = labels.joined(separator: ".")
        kind = Kind(rawValue: UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1]))
        head = Array(bytes[..<4])
        question = Array(bytes[Self.headLength..<index + 4])
    }

    /// Returns the message of a response; `nil` for none.
    func response(_ answer: NameAnswer) -> [UInt8]? {
        var addresses: [[UInt8]] = []
        let code: UInt8
        switch answer {
        case .nothing: return nil
        case .noSuchName: code = 3
        case .failure: code = 2
        case .addresses(let all):
            code = 0
            addresses = Array(all.filter { $0.count == kind?.addressLength }.prefix(Self.addressesMax))
        }
        // A response; recursion as desired, and available.
        var message = [head[0], head[1], 0x80 | head[2] & 0x01, 0x80 | code]
        message += [0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0] + question
        for address in addresses {
            // The name is that of the question.
            message += [0xC0, UInt8(Self.headLength)] + question.suffix(4)
            message += [0, 0, 0, Self.timeToLive, 0, UInt8(address.count)] + address
        }
        return message
    }
}
