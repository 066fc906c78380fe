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

    /// Reads JSON: dictionaries, arrays, strings, numbers, `NSNull`; `nil` if it is none.
    static func parse(_ bytes: some Sequence<UInt8>) -> Any? {
        try? JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed])
    }

    /// A string, `.some(nil)` for null or a missing value, `nil` for anything else.
    static func optionalString(_ value: Any?) -> String?? {
        guard let value, !(value is NSNull) else { return .some(nil) }
        return (value as? String).map { .some($0) }
    }
}
