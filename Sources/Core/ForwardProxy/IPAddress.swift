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
    public init?(_ text: String) { return nil }

    public var description: String { "" }
}
