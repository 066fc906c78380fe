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

    /// Adds bytes, in one loop if they are contiguous.
    public mutating func add(contentsOf bytes: some Sequence<UInt8>) {
        var hash = self
        let isDone: Void? = bytes.withContiguousStorageIfAvailable { for byte in $0 { hash.add(byte) } }
        if isDone == nil { for byte in bytes { hash.add(byte) } }
        self = hash
    }

    /// Returns the hash of `bytes`.
    public static func digest(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash = FNV1a()
        hash.add(contentsOf: bytes)
        return hash.value
    }
}
