/// A string that is compared, ordered and hashed by its UTF-8 bytes.
///
/// `String` compares and hashes the canonical form (NFC). Its normalisation sorts each run of combining marks by
/// insertion, in time quadratic in the run's length: minutes for a run of 480 kB. Strings from clients are therefore
/// never used as dictionary keys or operands of `==`. JSON, HTTP and Go's maps compare bytes too.
public struct ByteKey: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The string.
    public let text: String

    /// Wraps a string.
    public init(_ text: String) { self.text = text }

    public init(stringLiteral text: String) { self.text = text }

    public var description: String { text }

    public static func == (left: ByteKey, right: ByteKey) -> Bool { left.text.hasSameBytes(as: right.text) }

    public static func < (left: ByteKey, right: ByteKey) -> Bool {
        left.text.bytesPrecede(right.text)
    }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // The terminator keeps a string and its prefix apart.
        hasher.combine(0xFF as UInt8)
    }
}

extension String {
    /// Returns whether both strings have the same UTF-8 bytes, in time linear in the shorter one.
    public func hasSameBytes(as other: String) -> Bool {
        let (left, right) = (utf8, other.utf8)
        guard left.count == right.count else { return false }
        let isEqual = left.withContiguousStorageIfAvailable { left in
            right.withContiguousStorageIfAvailable { right in Self.order(left, right) == 0 }
        }
        return (isEqual ?? nil) ?? left.elementsEqual(right)
    }

    /// Returns whether both strings have the same UTF-8 bytes, ignoring the case of ASCII letters.
    public func hasSameBytes(ignoringCase other: String) -> Bool {
        HTTPSyntax.isSame(self, other)
    }

    /// Returns whether the UTF-8 bytes precede those of another string in lexicographical order.
    func bytesPrecede(_ other: String) -> Bool {
        let precedes = utf8.withContiguousStorageIfAvailable { left in
            other.utf8.withContiguousStorageIfAvailable { right in
                let order = Self.order(left, right)
                return order < 0 || order == 0 && left.count < right.count
            }
        }
        return (precedes ?? nil) ?? utf8.lexicographicallyPrecedes(other.utf8)
    }

    /// Returns a number below, equal to or above 0 if the bytes of the common length precede, equal or follow the others.
    private static func order(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int {
        let (first, second) = (UnsafeRawBufferPointer(left), UnsafeRawBufferPointer(right))
        let count = Swift.min(first.count, second.count)
        var index = 0
        while index + 8 <= count {
            let one = first.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            let other = second.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            if one != other { return one.bigEndian < other.bigEndian ? -1 : 1 }
            index += 8
        }
        while index < count {
            if first[index] != second[index] { return first[index] < second[index] ? -1 : 1 }
            index += 1
        }
        return 0
    }
}

extension StringProtocol {
    /// Returns whether both strings have the same UTF-8 bytes, in time linear in the shorter one.
    public func hasSameBytes(as other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }

    /// Returns whether both strings have the same UTF-8 bytes, ignoring the case of ASCII letters.
    public func hasSameBytes(asLowercase other: StaticString) -> Bool {
        other.withUTF8Buffer { buffer in
            utf8.count == buffer.count
                && zip(utf8, buffer).allSatisfy { (65...90).contains($0) ? $0 | 0x20 == $1 : $0 == $1 }
        }
    }

    /// Returns whether the string has the same UTF-8 bytes as a secret.
    ///
    /// The comparison takes constant time: it depends on the length of this string, and neither on the secret nor on
    /// the position of the first difference.
    public func matchesSecret(_ secret: some StringProtocol) -> Bool {
        let (bytes, secret) = (Array(utf8), Array(secret.utf8))
        return bytes.withUnsafeBufferPointer { bytes in
            secret.withUnsafeBufferPointer { secret in
                var difference = bytes.count ^ secret.count
                var other = 0
                for byte in bytes {
                    difference |= Int(byte ^ (secret.isEmpty ? 0 : secret[other]))
                    other = other + 1 >= secret.count ? 0 : other + 1
                }
                return difference == 0
            }
        }
    }
}
