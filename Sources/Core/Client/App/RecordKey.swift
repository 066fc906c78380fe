internal import Wire

/// The identifier of a record: 1 to 64 ASCII letters, digits, `-` and `_`.
public struct RecordKey: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The longest identifier in bytes.
    public static let bytesMax = 64

    private let key: ByteKey

    /// Creates an identifier; `nil` if the text is none.
    public init?(_ text: String) {
        guard (1...Self.bytesMax).contains(text.utf8.count), text.utf8.allSatisfy(Self.isAllowed) else { return nil }
        key = ByteKey(text)
    }

    /// The text.
    public var text: String { key.text }

    public var description: String { text }

    public static func < (left: RecordKey, right: RecordKey) -> Bool { left.key < right.key }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
