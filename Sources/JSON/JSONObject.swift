/// The members of a JSON object, by the bytes of their names and iterated in the order of those.
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral, Sequence {
    private var members: [ByteKey: JSONValue] = [:]

    /// An object without members.
    public init() {}

    public init(dictionaryLiteral members: (String, JSONValue)...) {
        for (name, value) in members { self[name] = value }
    }

    /// How many there are.
    public var count: Int { members.count }

    /// Whether there are none.
    public var isEmpty: Bool { members.isEmpty }

    /// Their names, in order.
    public var keys: [String] { members.keys.sorted().map(\.text) }

    /// The value of a name.
    public subscript(name: String) -> JSONValue? {
        get { members[ByteKey(name)] }
        set { members[ByteKey(name)] = newValue }
    }

    /// Returns the value of the first name, in order of bytes, that meets a condition, in one pass without sorting.
    public func firstValue(where isIncluded: (String) -> Bool) -> JSONValue? {
        members.filter { isIncluded($0.key.text) }.min { $0.key < $1.key }?.value
    }

    /// The same names with other values.
    public func mapValues(_ transform: (JSONValue) -> JSONValue) -> JSONObject {
        var object = self
        object.members = members.mapValues(transform)
        return object
    }

    public func makeIterator() -> AnyIterator<(key: String, value: JSONValue)> {
        var rest = members.sorted { $0.key < $1.key }.makeIterator()
        return AnyIterator { rest.next().map { ($0.key.text, $0.value) } }
    }
}
