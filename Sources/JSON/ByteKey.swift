/// A text that is compared, ordered and hashed by its UTF-8 bytes.
///
/// `String` compares and hashes the canonical form (NFC). Its normalisation sorts each run of combining marks by insertion,
/// in time quadratic in the run's length: minutes for a 480 kB run. Text from outside is therefore never a dictionary key
/// or an operand of `==` as a `String`. As in JSON, HTTP and Go's maps, two texts are the same if their bytes are.
public struct ByteKey: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The text.
    public let text: String

    /// Wraps a text.
    public init(_ text: String) { self.text = text }

    public init(stringLiteral text: String) { self.text = text }

    public var description: String { text }

    public static func == (left: ByteKey, right: ByteKey) -> Bool { left.text.hasSameBytes(as: right.text) }

    public static func < (left: ByteKey, right: ByteKey) -> Bool {
        left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
    }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        // So that no text is the beginning of another.
        hasher.combine(0xFF as UInt8)
    }
}

extension StringProtocol {
    /// Returns whether the UTF-8 of both texts is the same, in time linear in the shorter one.
    public func hasSameBytes(as other: some StringProtocol) -> Bool {
        utf8.count == other.utf8.count && utf8.elementsEqual(other.utf8)
    }

    /// Returns whether the text is `other` but for the letter case of ASCII.
    public func hasSameBytes(asLowercase other: StaticString) -> Bool {
        other.withUTF8Buffer { buffer in
            utf8.count == buffer.count
                && zip(utf8, buffer).allSatisfy { (65...90).contains($0) ? $0 | 0x20 == $1 : $0 == $1 }
        }
    }
}
