public import Wire

/// The fields of a record, or the messages about them: texts by name.
public struct RecordFields: Hashable, Sendable, ExpressibleByDictionaryLiteral {
    /// The maximum number of fields.
    public static let countMax = 32
    /// The longest name in bytes.
    public static let nameBytesMax = 64
    /// The longest value in bytes.
    public static let valueBytesMax = 4096

    private var values: [ByteKey: String] = [:]

    /// Creates no fields.
    public init() {}

    public init(dictionaryLiteral elements: (String, String)...) {
        for (name, value) in elements { values[ByteKey(name)] = value }
    }

    /// Creates fields from a JSON object; `nil` if it has another value than texts, or exceeds a limit.
    public init?(_ json: JSONValue) {
        guard let object = json.object, object.count <= Self.countMax else { return nil }
        for (name, value) in object {
            guard let text = value.text, name.utf8.count <= Self.nameBytesMax, text.utf8.count <= Self.valueBytesMax
            else { return nil }
            values[ByteKey(name)] = text
        }
    }

    /// The value of a field; `nil` if there is none.
    public subscript(name: String) -> String? {
        get { values[ByteKey(name)] }
        set { values[ByteKey(name)] = newValue }
    }

    /// Whether there are no fields.
    public var isEmpty: Bool { values.isEmpty }

    /// The number of fields.
    public var count: Int { values.count }

    /// The fields in the order of the bytes of their names.
    public var sorted: [(name: String, value: String)] {
        values.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
    }

    /// Returns the fields with those of another change over them.
    public func merging(_ changed: RecordFields) -> RecordFields {
        var merged = self
        merged.values.merge(changed.values) { _, new in new }
        return merged
    }

    /// Returns whether all these fields have the same values in `other`.
    public func isContained(in other: RecordFields) -> Bool {
        values.allSatisfy { other.values[$0.key] == $0.value }
    }

    /// The fields as a JSON object.
    public var json: JSONValue {
        var object = JSONObject()
        for (name, value) in sorted { object[name] = .text(value) }
        return .object(object)
    }
}
