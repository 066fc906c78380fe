/// The members of a JSON object, keyed by the bytes of their names and iterated in the order of those bytes.
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral, Sequence {
    /// A value and the position of its first appearance.
    private struct Member: Sendable {
        let position: Int
        var value: JSONValue
    }

    private var members: [ByteKey: Member] = [:]
    private var nextPosition = 0

    /// Creates an object without members.
    public init() {}

    public init(dictionaryLiteral members: (String, JSONValue)...) {
        for (name, value) in members { self[name] = value }
    }

    /// The number of members.
    public var count: Int { members.count }

    /// Whether the object has no members.
    public var isEmpty: Bool { members.isEmpty }

    /// The names in byte order.
    public var keys: [String] { members.keys.sorted().map(\.text) }

    /// The members in the order in which they were added, which is that of the source text.
    public var membersInSourceOrder: [(key: String, value: JSONValue)] {
        members.sorted { $0.value.position < $1.value.position }.map { ($0.key.text, $0.value.value) }
    }

    /// The value of the member with a name.
    public subscript(name: String) -> JSONValue? {
        get { members[ByteKey(name)]?.value }
        set {
            let key = ByteKey(name)
            guard let newValue else {
                members[key] = nil
                return
            }
            let count = members.count
            members[key, default: Member(position: nextPosition, value: newValue)].value = newValue
            if members.count > count { nextPosition += 1 }
        }
    }

    /// Returns the value of the first matching name in byte order, in one pass without sorting.
    public func firstValue(where isIncluded: (String) -> Bool) -> JSONValue? {
        members.filter { isIncluded($0.key.text) }.min { $0.key < $1.key }?.value.value
    }

    /// Returns an object with the same names and transformed values.
    public func mapValues(_ transform: (JSONValue) -> JSONValue) -> JSONObject {
        var object = self
        object.members = members.mapValues { Member(position: $0.position, value: transform($0.value)) }
        return object
    }

    public func makeIterator() -> AnyIterator<(key: String, value: JSONValue)> {
        var rest = members.sorted { $0.key < $1.key }.makeIterator()
        return AnyIterator { rest.next().map { ($0.key.text, $0.value.value) } }
    }

    /// Returns whether both objects have the same members, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.members.count == right.members.count
            && left.members.allSatisfy { key, member in right.members[key]?.value == member.value }
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(members.mapValues(\.value)) }
}
