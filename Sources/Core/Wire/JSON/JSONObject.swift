/// The members of a JSON object, keyed by the bytes of their names and iterated in the order of those bytes.
///
/// Most objects have few members, whose names are compared one after the other; others have an index of their names.
public struct JSONObject: Hashable, Sendable, ExpressibleByDictionaryLiteral, Sequence {
    private struct Member: Sendable {
        let key: ByteKey
        var value: JSONValue
    }

    /// The members in the order of their first appearance.
    private var members: [Member] = []
    /// The positions of the members; `nil` for at most ``searchedMax`` members.
    private var positions: [ByteKey: Int]?

    /// The maximum number of members without an index.
    private static let searchedMax = 12

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
    public var keys: [String] { sorted.map(\.key.text) }

    /// The members in the order in which they were added, which is that of the source text.
    public var membersInSourceOrder: [(key: String, value: JSONValue)] { members.map { ($0.key.text, $0.value) } }

    /// The value of the member with a name.
    public subscript(name: String) -> JSONValue? {
        get { position(of: ByteKey(name)).map { members[$0].value } }
        set {
            let key = ByteKey(name)
            let position = position(of: key)
            switch (position, newValue) {
            case (let position?, let newValue?): members[position].value = newValue
            case (nil, let newValue?):
                positions?[key] = members.count
                members.append(Member(key: key, value: newValue))
                if positions == nil, members.count > Self.searchedMax { index() }
            case (let position?, nil):
                members.remove(at: position)
                if positions != nil { index() }
            case (nil, nil): break
            }
        }
    }

    private func position(of key: ByteKey) -> Int? {
        if let positions { return positions[key] }
        return members.firstIndex { $0.key == key }
    }

    private mutating func index() {
        positions = Dictionary(uniqueKeysWithValues: members.enumerated().map { ($0.element.key, $0.offset) })
    }

    private var sorted: [Member] { members.sorted { $0.key < $1.key } }

    /// Returns the value of the first matching name in byte order, in one pass without sorting.
    public func firstValue(where isIncluded: (String) -> Bool) -> JSONValue? {
        members.filter { isIncluded($0.key.text) }.min { $0.key < $1.key }?.value
    }

    /// Returns the first matching names in byte order, at most `limit`, in one pass without sorting all of them.
    public func firstNames(_ limit: Int, where isIncluded: (String) -> Bool) -> [String] {
        var first: [ByteKey] = []
        guard limit > 0 else { return [] }
        for member in members where first.count < limit || member.key < first[first.count - 1] {
            guard isIncluded(member.key.text) else { continue }
            first.insert(member.key, at: first.firstIndex { member.key < $0 } ?? first.count)
            if first.count > limit { first.removeLast() }
        }
        return first.map(\.text)
    }

    /// Returns an object with the same names and transformed values.
    public func mapValues(_ transform: (JSONValue) -> JSONValue) -> JSONObject {
        var object = self
        for index in members.indices { object.members[index].value = transform(members[index].value) }
        return object
    }

    public func makeIterator() -> AnyIterator<(key: String, value: JSONValue)> {
        var rest = sorted.makeIterator()
        return AnyIterator { rest.next().map { ($0.key.text, $0.value) } }
    }

    /// Returns whether both objects have the same members, in any order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.members.count == right.members.count
            && left.members.allSatisfy { member in right[member.key.text] == member.value }
    }

    public func hash(into hasher: inout Hasher) {
        for member in sorted {
            hasher.combine(member.key)
            hasher.combine(member.value)
        }
    }
}
