//  Wire/JSON: reading and writing JSON text (RFC 8259), and comparing strings by their bytes.
//
//  Owns: writing with keys in a given order; reading into values with limits.
//
//  Does not own: the schema of any document.

/// JSON text.
public enum JSONText {
    /// Returns an object, `{"key":value,...}`. The values are JSON text already.
    public static func object(_ members: [(key: String, value: String)]) -> String {
        // One array of bytes is written faster than many texts.
        var text = [UInt8(ascii: "{")]
        text.reserveCapacity(members.reduce(2) { $0 + $1.key.utf8.count + $1.value.utf8.count + 4 })
        for (key, value) in members {
            if text.count > 1 { text.append(UInt8(ascii: ",")) }
            text += string(key).utf8
            text.append(UInt8(ascii: ":"))
            text += value.utf8
        }
        text.append(UInt8(ascii: "}"))
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns an array, `[value,...]`. The values are JSON text already.
    public static func array(_ values: [String]) -> String { "[" + values.joined(separator: ",") + "]" }

    /// Returns a quoted string, or `null`.
    ///
    /// The line breaks of Unicode are escaped too (U+0085, U+2028, U+2029), because readers of JSON lines may split at
    /// them.
    public static func string(_ text: String?) -> String {
        guard var text else { return "null" }
        return text.withUTF8 { bytes in
            var special = 0
            var index = 0
            while index < bytes.count {
                if index + 8 <= bytes.count, isPlainASCII(bytes, at: index) {
                    index += 8
                } else {
                    if !isPlain(bytes[index]) { special += 1 }
                    index += 1
                }
            }
            if special == 0 {
                return String(unsafeUninitializedCapacity: bytes.count + 2) { out in
                    out[0] = 0x22
                    _ = UnsafeMutableBufferPointer(rebasing: out[1...]).update(fromContentsOf: bytes)
                    out[bytes.count + 1] = 0x22
                    return bytes.count + 2
                }
            }
            // An escape sequence has at most six characters.
            return String(unsafeUninitializedCapacity: bytes.count + 2 + special * 5) { out in
                var count = 0
                func put(_ byte: UInt8) {
                    out[count] = byte
                    count += 1
                }
                func put(_ digits: StaticString) {
                    digits.withUTF8Buffer { for byte in $0 { put(byte) } }
                }
                put(0x22)
                var index = 0
                while index < bytes.count {
                    let byte = bytes[index]
                    index += 1
                    if byte == 0xC2 || byte == 0xE2 {
                        let (text, length) = lineBreak(bytes[(index - 1)...])
                        if let text { put(text) } else { put(byte) }
                        index += length - 1
                        continue
                    }
                    if isPlain(byte) {
                        put(byte)
                        continue
                    }
                    put(0x5C)
                    switch byte {
                    case 0x22, 0x5C: put(byte)
                    case 0x0A: put(UInt8(ascii: "n"))
                    case 0x0D: put(UInt8(ascii: "r"))
                    case 0x09: put(UInt8(ascii: "t"))
                    default:
                        for digit in [UInt8(ascii: "u"), 0x30, 0x30, hexadecimal(byte >> 4), hexadecimal(byte & 15)] {
                            put(digit)
                        }
                    }
                }
                put(0x22)
                return count
            }
        }
    }

    /// Returns whether ``string(_:)`` copies a byte without a look at its neighbours.
    @inlinable public static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x22 && byte != 0x5C && byte != 0x7F && byte != 0xC2 && byte != 0xE2
    }

    /// Returns whether the eight bytes at an index are ASCII without quotation marks, backslashes and control characters.
    static func isPlainASCII(_ bytes: UnsafeBufferPointer<UInt8>, at index: Int) -> Bool {
        let word = UnsafeRawBufferPointer(bytes).loadUnaligned(fromByteOffset: index, as: UInt64.self)
        let ones: UInt64 = 0x0101_0101_0101_0101
        // The highest bit of each byte below `limit`, if no byte has it set before; a borrow can only add bits.
        func below(_ limit: UInt64, _ word: UInt64) -> UInt64 { (word &- ones &* limit) & ~word }
        let special =
            word | below(0x20, word) | below(1, word ^ ones &* 0x22) | below(1, word ^ ones &* 0x5C)
            | below(1, word ^ ones &* 0x7F)
        return special & (ones &* 0x80) == 0
    }

    /// Returns the escape sequence and the number of bytes of a line break of Unicode at the beginning of `bytes`; `nil`
    /// and 1 if there is none.
    private static func lineBreak(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> (text: StaticString?, length: Int) {
        if bytes.starts(with: [0xC2, 0x85]) { return ("\\u0085", 2) }
        if bytes.starts(with: [0xE2, 0x80, 0xA8]) { return ("\\u2028", 3) }
        if bytes.starts(with: [0xE2, 0x80, 0xA9]) { return ("\\u2029", 3) }
        return (nil, 1)
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 { digit < 10 ? 0x30 + digit : 0x57 + digit }

    /// Parses JSON; `nil` if the text is not JSON in UTF-8, or is nested more than 64 levels deep.
    public static func parse(_ bytes: some Sequence<UInt8>) -> JSONValue? { JSONParser.parse(Array(bytes)) }

    /// Returns the shortest text of a finite number: `1`, `0.1`.
    public static func number(_ value: some BinaryFloatingPoint & CustomStringConvertible) -> String {
        precondition(value.isFinite, "JSON has no infinity and no NaN")
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

/// A JSON value.
public enum JSONValue: Sendable {
    case null
    case bool(Bool)
    /// A 64-bit integer.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    case text(String)
    case array([JSONValue])
    case object(JSONObject)
    /// Valid JSON that the other cases cannot represent: a string with an unpaired surrogate, or a number out of range.
    case unrepresentable

    /// The members of an object.
    public var object: JSONObject? {
        if case .object(let members) = self { return members }
        return nil
    }

    /// The text of a string.
    public var text: String? {
        if case .text(let text) = self { return text }
        return nil
    }

    /// The value as JSON text; the keys of an object are in byte order.
    public var json: String {
        switch self {
        case .null, .unrepresentable: "null"
        case .bool(let truth): truth ? "true" : "false"
        case .integer(let number): "\(number)"
        case .number(let number): JSONText.number(number)
        case .text(let text): JSONText.string(text)
        case .array(let values): JSONText.array(values.map(\.json))
        case .object(let members):
            JSONText.object(members.map { ($0.key, $0.value.json) })
        }
    }
}

/// Strings are compared by their bytes, see ``ByteKey``.
extension JSONValue: Hashable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null), (.unrepresentable, .unrepresentable): true
        case (.bool(let left), .bool(let right)): left == right
        case (.integer(let left), .integer(let right)): left == right
        case (.number(let left), .number(let right)): left == right
        case (.text(let left), .text(let right)): left.hasSameBytes(as: right)
        case (.array(let left), .array(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null, .unrepresentable: hasher.combine(0)
        case .bool(let truth): hasher.combine(truth)
        case .integer(let number): hasher.combine(number)
        case .number(let number): hasher.combine(number)
        case .text(let text): hasher.combine(ByteKey(text))
        case .array(let values): hasher.combine(values)
        case .object(let members): hasher.combine(members)
        }
    }
}

extension JSONValue? {
    /// The string; `.some(nil)` for null or a missing value, `nil` for any other type.
    public var optionalText: String?? {
        switch self {
        case nil, .null: .some(nil)
        case .text(let text): .some(text)
        default: nil
        }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral text: String) { self = .text(text) }
    public init(booleanLiteral truth: Bool) { self = .bool(truth) }
    public init(integerLiteral number: Int64) { self = .integer(number) }
    public init(arrayLiteral values: JSONValue...) { self = .array(values) }
    public init(dictionaryLiteral members: (String, JSONValue)...) {
        var object = JSONObject()
        for (name, value) in members { object[name] = value }
        self = .object(object)
    }
}
