internal import JSON

/// The members of a JSON object as Toxiproxy reads them: names in any letter case, unknown ones ignored, `null` as if it were
/// not there.
struct Fields {
    private let members: JSONObject

    /// Bytes of a name or another word. Longer ones are refused unread.
    static let wordBytesMax = 1024

    /// Reads a request's body.
    init(body: [UInt8]) throws(APIFailure) {
        guard !body.isEmpty else { throw .badBody("EOF") }
        guard let value = JSONText.parse(body) else { throw .badBody("invalid JSON") }
        try self.init(value, "the body")
    }

    init(_ value: JSONValue, _ what: String) throws(APIFailure) {
        guard let object = value.object else { throw .badBody("\(what) is not an object") }
        members = object
    }

    /// The value of a field; `nil` if it is missing or null.
    subscript(name: String) -> JSONValue? {
        let value = members[name] ?? members.firstValue { Self.isName(name, $0) }
        return value == .null ? nil : value
    }

    /// Whether a key is a name in whatever case; in Unicode's sense for those beyond ASCII, as Go has it.
    private static func isName(_ name: String, _ key: String) -> Bool {
        // No letter's small form is more than three bytes shorter.
        key.utf8.count <= 3 * name.utf8.count && key.lowercased().hasSameBytes(as: name)
    }

    func text(_ name: String, bytesMax: Int = wordBytesMax) throws(APIFailure) -> String? {
        guard let value = self[name] else { return nil }
        guard let text = value.text else { throw .badBody("\(name) is not a string") }
        guard text.utf8.count <= bytesMax else { throw .badBody("\(name) is longer than \(bytesMax) bytes") }
        return text
    }

    func bool(_ name: String) throws(APIFailure) -> Bool? {
        guard let value = self[name] else { return nil }
        guard case .bool(let truth) = value else { throw .badBody("\(name) is not true or false") }
        return truth
    }

    func integer(_ name: String) throws(APIFailure) -> Int64? {
        guard let value = self[name] else { return nil }
        guard case .integer(let number) = value else { throw .badBody("\(name) is not a whole number of 64 bits") }
        return number
    }

    /// The field `seed`.
    func seed() throws(APIFailure) -> UInt64? {
        guard let number = try integer("seed") else { return nil }
        guard number >= 0 else { throw .badBody("seed is less than 0") }
        return UInt64(number)
    }

    func number(_ name: String) throws(APIFailure) -> Double? {
        switch self[name] {
        case nil: return nil
        case .integer(let number)?: return Double(number)
        case .number(let number)?: return number
        default: throw .badBody("\(name) is not a number")
        }
    }

    /// A number of 32 bits, as Toxiproxy keeps toxicities.
    func float(_ name: String) throws(APIFailure) -> Float? {
        guard let number = try number(name) else { return nil }
        guard Float(number).isFinite else { throw .badBody("\(name) is too large") }
        return Float(number)
    }

    func object(_ name: String) throws(APIFailure) -> Fields? {
        guard let value = self[name] else { return nil }
        return try Fields(value, name)
    }

    func array(_ name: String) throws(APIFailure) -> [JSONValue]? {
        guard let value = self[name] else { return nil }
        guard case .array(let values) = value else { throw .badBody("\(name) is not an array") }
        return values
    }
}
