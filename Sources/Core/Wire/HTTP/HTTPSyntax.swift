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

    /// Returns the index of the first byte, from an index on, that is not a printable character of ASCII; the number of bytes
    /// if there is none.
    static func firstSpecial(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index + 8 <= bytes.count {
            let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
            let ones: UInt64 = 0x0101_0101_0101_0101
            // The highest bit of the first special byte. A borrow or a carry can only add bits behind it.
            let special = (word | (word &- ones &* 0x20) | (word &+ ones)) & (ones &* 0x80)
            if special != 0 { return index + special.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < bytes.count, (0x20..<0x7F).contains(bytes[index]) { index += 1 }
        return index
    }

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
