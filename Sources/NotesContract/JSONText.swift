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
    static func parse(_ bytes: some Sequence<UInt8>) -> JSONValue? {
        // Not JSONSerialization: it drops U+FEFF at the start of a string.
        try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }
}

/// What JSON says, as far as notes have it.
enum JSONValue: Decodable, Hashable {
    case null
    case text(String)
    case array([JSONValue])
    case object([String: JSONValue])
    /// A number or a truth value: no note has one, but for `deleted`.
    case other(Bool?)

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let members = try? value.decode([String: JSONValue].self) {
            self = .object(members)
        } else if let values = try? value.decode([JSONValue].self) {
            self = .array(values)
        } else {
            self = .other(try? value.decode(Bool.self))
        }
    }

    var object: [String: JSONValue]? {
        if case .object(let members) = self { return members }
        return nil
    }

    var text: String? {
        if case .text(let text) = self { return text }
        return nil
    }
}

extension JSONValue? {
    /// A text, `.some(nil)` for null or a missing value, `nil` for anything else.
    var optionalText: String?? {
        switch self {
        case nil, .null: .some(nil)
        case .text(let text): .some(text)
        default: nil
        }
    }
}
