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

/// A query of a resolver for one name (RFC 1035), and the message that responds to it.
package struct DNSQuery: Hashable, Sendable {
    /// The name in lower case, without a trailing dot.
    package let name: String
    /// The type; `nil` if it is not one of addresses.
    package let type: AddressType?

    /// The identifier and the flags.
    private let head: [UInt8]
    /// The bytes of the question.
    private let question: [UInt8]

    /// The most addresses in a response, so that it fits into 512 bytes.
    private static let addressesMax = 12

    /// Reads a query; `nil` if it is not one for one name.
    package init?(_ bytes: [UInt8]) {
        // Not a response, a standard query, one question.
        guard bytes.count > DNSMessage.headLength, bytes[2] & 0xF8 == 0, bytes[4] == 0, bytes[5] == 1 else {
            return nil
        }
        var index = DNSMessage.headLength
        guard let name = DNSName(bytes, at: &index)?.text, index + 4 <= bytes.count else { return nil }
        // The class must be the internet.
        guard bytes[index + 2] == 0, bytes[index + 3] == 1 else { return nil }
        self.name = name
        type = AddressType(rawValue: UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1]))
        head = Array(bytes[..<4])
        question = Array(bytes[DNSMessage.headLength..<index + 4])
    }

    /// Returns the message of a response; `nil` for none.
    ///
    /// - Parameter timeToLive: The time for which the client may use the addresses, in seconds.
    package func response(_ answer: NameAnswer, timeToLive: UInt8) -> [UInt8]? {
        var addresses: [[UInt8]] = []
        let code: UInt8
        switch answer {
        case .nothing: return nil
        case .noSuchName: code = 3
        case .failure: code = 2
        case .addresses(let all):
            code = 0
            addresses = Array(all.filter { $0.count == type?.addressLength }.prefix(Self.addressesMax))
        }
        // A response; recursion as desired, and available.
        var message = [head[0], head[1], 0x80 | head[2] & 0x01, 0x80 | code]
        message += [0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0] + question
        for address in addresses {
            // The name is that of the question.
            message += [0xC0, UInt8(DNSMessage.headLength)] + question.suffix(4)
            message += [0, 0, 0, timeToLive, 0, UInt8(address.count)] + address
        }
        return message
    }
}
