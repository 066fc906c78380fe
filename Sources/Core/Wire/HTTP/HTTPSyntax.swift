/// The bytes of tokens and field values (RFC 9110, 5.6.2 and 5.5), and comparisons by bytes.
enum HTTPSyntax {
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
            UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
            true
        default: false
        }
    }

    static func isText(_ byte: UInt8) -> Bool { byte == 0x09 || (byte >= 0x20 && byte != 0x7F) }

    static func isSpace(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Returns whether two texts are the same but for the case of ASCII letters.
    static func isSame(_ left: some StringProtocol, _ right: some StringProtocol) -> Bool {
        left.utf8.count == right.utf8.count
            && zip(left.utf8, right.utf8).allSatisfy { lowered($0) == lowered($1) }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { (65...90).contains(byte) ? byte | 0x20 : byte }

    /// Returns the text without surrounding whitespace.
    static func trimmed(_ text: Substring) -> Substring {
        var rest = text
        while isSpace(rest.utf8.first) { rest = Substring(rest.utf8.dropFirst()) }
        while isSpace(rest.utf8.last) { rest = Substring(rest.utf8.dropLast()) }
        return rest
    }
}
