/// The 64-bit FNV-1a hash (Fowler, Noll and Vo): the same in every process, not cryptographic.
public struct FNV1a: Hashable, Sendable {
    /// The hash of the bytes so far.
    public private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    /// Creates the hash of no bytes.
    public init() {}

    /// Adds a byte.
    @inline(__always)
    public mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }

    /// Returns the hash of `bytes`.
    public static func digest(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash = FNV1a()
        for byte in bytes { hash.add(byte) }
        return hash.value
    }
}
