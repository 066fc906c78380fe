internal import Determinism
internal import Synchronization

/// Random identifiers of a named stream.
public final class RandomIdentifiers: Sendable {
    private let stream: Mutex<RandomStream>

    /// Creates the identifiers of a stream.
    public init(seed: UInt64, _ name: String) { stream = Mutex(RandomStream(seed: seed, name)) }

    /// Returns a UUID (RFC 9562, version 4).
    public func uuid() -> String {
        let (high, low) = stream.withLock { ($0.next(), $0.next()) }
        // Version 4 and the variant of RFC 9562.
        let text = Self.hexadecimal(high & 0xFFFF_FFFF_FFFF_0FFF | 0x4000)
        let rest = Self.hexadecimal(low & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000)
        var result: [UInt8] = []
        for (index, digit) in (text + rest).utf8.enumerated() {
            if [8, 12, 16, 20].contains(index) { result.append(UInt8(ascii: "-")) }
            result.append(digit)
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns eight hexadecimal digits.
    public func short() -> String { String(Self.hexadecimal(stream.withLock { $0.next() }).prefix(8)) }

    /// Returns 64 random bits.
    public func bits() -> UInt64 { stream.withLock { $0.next() } }

    private static func hexadecimal(_ value: UInt64) -> String {
        let text = String(value, radix: 16)
        return String(repeating: "0", count: 16 - text.utf8.count) + text
    }
}
