extension JSONValue {
    /// The value of a member; `null` if there is none, or if this value is not an object.
    public subscript(name: String) -> JSONValue { object?[name] ?? .null }

    /// The value as text; strings have no quotes.
    public var displayText: String { text ?? json }

    /// The value of an integer or a fraction.
    public var number: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .number(let number): number
        default: nil
        }
    }

    /// The elements of an array; none if this value is not an array.
    public var array: [JSONValue] {
        if case .array(let values) = self { return values }
        return []
    }
}
