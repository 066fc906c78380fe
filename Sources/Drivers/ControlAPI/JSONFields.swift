internal import Wire

/// The members of a JSON object, read by Toxiproxy's rules: names match in any letter case, and `null` counts as
/// absent.
struct JSONFields {
    private let members: JSONObject

    /// The maximum length of a name, address or other word in bytes.
    static let wordBytesMax = 1024

    /// Parses a request body.
    init(body: [UInt8]) throws(APIError) {
        guard !body.isEmpty else { throw .badBody("EOF") }
        guard let value = JSONText.parse(body) else { throw .badBody("invalid JSON") }
        try self.init(value, "the body")
    }

    /// - Parameter description: The value's name in errors.
    init(_ value: JSONValue, _ description: String) throws(APIError) {
        guard let object = value.object else { throw .badBody("\(description) is not an object") }
        members = object
    }

    private init(_ members: JSONObject) { self.members = members }

    /// Returns the fields of these names.
    func only(_ names: [String]) -> JSONFields {
        var members = JSONObject()
        for name in names { if let value = self[name] { members[name] = value } }
        return JSONFields(members)
    }

    /// The value of a field; `nil` if it is missing or null.
    subscript(name: String) -> JSONValue? {
        let value = members[name] ?? members.firstValue { Self.matches($0, name) }
        return value == .null ? nil : value
    }

    /// Returns the names that match none of `known`, in byte order; the first `limit` of them, in one pass without
    /// sorting.
    func names(except known: [String], limit: Int = 1) -> [String] {
        members.firstNames(limit) { key in !known.contains { Self.matches(key, $0) } }
    }

    /// Returns whether a key equals a lowercase name of ASCII letters, digits and signs in any letter case. Like Go, it
    /// uses Unicode's mapping beyond ASCII: the only other character whose lowercase form is ASCII is U+212A, the sign of
    /// kelvin.
    static func matches(_ key: String, _ name: String) -> Bool {
        // Most keys differ in length, and a request may have tens of thousands of them.
        guard (name.utf8.count...3 * name.utf8.count).contains(key.utf8.count) else { return false }
        var rest = key.utf8[...]
        for byte in name.utf8 {
            if byte == UInt8(ascii: "k"), rest.starts(with: [0xE2, 0x84, 0xAA]) {
                rest = rest.dropFirst(3)
                continue
            }
            guard let first = rest.popFirst(), first == byte || isUppercase(first) && first | 0x20 == byte else {
                return false
            }
        }
        return rest.isEmpty
    }

    private static func isUppercase(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }

    func text(_ name: String, bytesMax: Int = wordBytesMax) throws(APIError) -> String? {
        guard let value = self[name] else { return nil }
        guard let text = value.text else { throw .badBody("\(name) is not a string") }
        guard text.utf8.count <= bytesMax else { throw .badBody("\(name) is longer than \(bytesMax) bytes") }
        return text
    }

    func bool(_ name: String) throws(APIError) -> Bool? {
        guard let value = self[name] else { return nil }
        guard case .bool(let bool) = value else { throw .badBody("\(name) is not true or false") }
        return bool
    }

    func integer(_ name: String) throws(APIError) -> Int64? {
        guard let value = self[name] else { return nil }
        guard case .integer(let number) = value else { throw .badBody("\(name) is not a whole number of 64 bits") }
        return number
    }

    /// Returns the field `seed`.
    func seed() throws(APIError) -> UInt64? {
        guard let number = try integer("seed") else { return nil }
        guard number >= 0 else { throw .badBody("seed is less than 0") }
        return UInt64(number)
    }

    func number(_ name: String) throws(APIError) -> Double? {
        switch self[name] {
        case nil: return nil
        case .integer(let number)?: return Double(number)
        case .number(let number)?: return number
        default: throw .badBody("\(name) is not a number")
        }
    }

    /// Returns a number as a 32-bit float, Toxiproxy's type of toxicities.
    func float(_ name: String) throws(APIError) -> Float? {
        guard let number = try number(name) else { return nil }
        guard Float(number).isFinite else { throw .badBody("\(name) is too large") }
        return Float(number)
    }

    func object(_ name: String) throws(APIError) -> JSONFields? {
        guard let value = self[name] else { return nil }
        return try JSONFields(value, name)
    }

    func array(_ name: String) throws(APIError) -> [JSONValue]? {
        guard let value = self[name] else { return nil }
        guard case .array(let values) = value else { throw .badBody("\(name) is not an array") }
        return values
    }
}
