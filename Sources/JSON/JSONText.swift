//  JSON: text in both directions, for whoever speaks it.
//
//  Owns: writing with the keys in a given order; reading into values.
//
//  Does not own: what anything means.

/// JSON written with keys in a given order, and read with limits.
public enum JSONText {
    /// `{"key":value,...}` from values that are JSON already.
    public static func object(_ members: [(key: String, value: String)]) -> String {
        "{" + members.map { "\(string($0.key)):\($0.value)" }.joined(separator: ",") + "}"
    }

    /// `[value,...]` from values that are JSON already.
    public static func array(_ values: [String]) -> String { "[" + values.joined(separator: ",") + "]" }

    /// A string, or `null`.
    public static func string(_ text: String?) -> String {
        guard var text else { return "null" }
        return text.withUTF8 { bytes in
            func isPlain(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x22 && byte != 0x5C && byte != 0x7F }
            let special = bytes.reduce(0) { $0 + (isPlain($1) ? 0 : 1) }
            // An escape has six characters at most.
            return String(unsafeUninitializedCapacity: bytes.count + 2 + special * 5) { out in
                var count = 0
                func put(_ byte: UInt8) {
                    out[count] = byte
                    count += 1
                }
                put(0x22)
                for byte in bytes {
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

    private static func hexadecimal(_ digit: UInt8) -> UInt8 { digit < 10 ? 0x30 + digit : 0x57 + digit }

    /// Reads JSON; `nil` if it is none, or nested more than 64 deep.
    public static func parse(_ bytes: some Sequence<UInt8>) -> JSONValue? { JSONParser.parse(Array(bytes)) }

    /// A number as short as it can be told: `1`, `0.1`; a bug if it is not finite.
    public static func number(_ value: some BinaryFloatingPoint & CustomStringConvertible) -> String {
        precondition(value.isFinite)
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

/// What JSON says.
public enum JSONValue: Sendable {
    case null
    case bool(Bool)
    /// A whole number of 64 bits.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    case text(String)
    case array([JSONValue])
    case object(JSONObject)
    /// JSON by its form, but nothing that can be had: a string with half a surrogate, a number beyond all bounds.
    case unreadable

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

    /// The value as text; an object's keys are in order.
    public var json: String {
        switch self {
        case .null, .unreadable: "null"
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

/// Texts are the same if their bytes are: see ``ByteKey``.
extension JSONValue: Hashable {
    public static func == (left: JSONValue, right: JSONValue) -> Bool {
        switch (left, right) {
        case (.null, .null), (.unreadable, .unreadable): true
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
        case .null, .unreadable: hasher.combine(0)
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
    /// A text, `.some(nil)` for null or a missing value, `nil` for anything else.
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
