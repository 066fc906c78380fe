//  JSON: text in both directions, for whoever speaks it.
//
//  Owns: writing with the keys in a given order; reading into values.
//
//  Does not own: what anything means.

internal import Foundation

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
        guard let text else { return "null" }
        var out = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": out += "\\\""
            case "\\": out += "\\\\"
            case "\n": out += "\\n"
            case "\r": out += "\\r"
            case "\t": out += "\\t"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out + "\""
    }

    /// Reads JSON; `nil` if it is none.
    public static func parse(_ bytes: some Sequence<UInt8>) -> JSONValue? {
        // Not JSONSerialization: it drops U+FEFF at the start of a string.
        try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    /// A number as short as it can be told: `1`, `0.1`; a bug if it is not finite.
    public static func number(_ value: some BinaryFloatingPoint & CustomStringConvertible) -> String {
        precondition(value.isFinite)
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}

/// What JSON says.
public enum JSONValue: Decodable, Hashable, Sendable {
    case null
    case bool(Bool)
    /// A whole number of 64 bits.
    case integer(Int64)
    /// Any other number.
    case number(Double)
    case text(String)
    case array([JSONValue])
    case object([String: JSONValue])
    /// JSON by its form, but nothing that can be had: a string with half a surrogate, a number beyond all bounds.
    case unreadable

    public init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let number = try? value.decode(Int64.self) {
            self = .integer(number)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let truth = try? value.decode(Bool.self) {
            self = .bool(truth)
        } else if let values = try? value.decode([JSONValue].self) {
            self = .array(values)
        } else if let members = try? value.decode([String: JSONValue].self) {
            self = .object(members)
        } else {
            self = .unreadable
        }
    }

    /// The members of an object.
    public var object: [String: JSONValue]? {
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
            JSONText.object(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value.json) })
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
