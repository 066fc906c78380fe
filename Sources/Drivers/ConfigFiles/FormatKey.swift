internal import Scenario
internal import Yams

/// A key of a mapping: its entry in the table, and how its value becomes a part of the mapping's value.
struct FormatKey<Whole: Sendable>: Sendable {
    typealias Key = ScenarioFormat.Key

    /// Keys of which a mapping needs one.
    enum Group { case exactlyOne, atLeastOne }

    let entry: Key
    private(set) var group: Group?
    /// Reads the key's value into that of the mapping; returns whether the mapping's value can be used.
    let read: @Sendable (ScenarioFields, inout Whole) -> Bool
    /// Returns the value as it is written; `nil` if the key is left out.
    let write: @Sendable (Whole) -> YAMLTree?

    init(
        _ entry: Key, read: @escaping @Sendable (ScenarioFields, inout Whole) -> Bool,
        write: @escaping @Sendable (Whole) -> YAMLTree?
    ) {
        self.entry = entry
        self.read = read
        self.write = write
    }

    /// A key whose value is taken from the mapping's value and put into it by functions.
    ///
    /// - Parameters:
    ///   - isNeeded: Whether the mapping's value is of no use if the key is there and cannot be read.
    ///   - get: Returns the value that is written; `nil` if the key is left out.
    private init<Value>(
        _ entry: Key, _ codec: FormatCodec<Value>, isNeeded: Bool, get: @escaping @Sendable (Whole) -> Value?,
        set: @escaping @Sendable (inout Whole, Value) -> Void
    ) {
        let name = entry.name
        let isRequired = entry.isRequired
        self.init(
            entry,
            read: { fields, whole in
                guard let node = fields[name] else { return !isRequired }
                if codec.limitsLength, !fields.hasLength(name) { return !isNeeded }
                guard let value = codec.read(node, fields.reader) else { return !isNeeded }
                set(&whole, value)
                return true
            }, write: { whole in get(whole).map(codec.write) })
    }

    /// A key that must be present.
    static func required<Value>(
        _ name: String, _ path: any WritableKeyPath<Whole, Value> & Sendable, _ codec: FormatCodec<Value>,
        _ about: String
    ) -> Self {
        Self(
            Key(name, codec.shape, required: true, about), codec, isNeeded: true, get: { $0[keyPath: path] },
            set: { $0[keyPath: path] = $1 })
    }

    /// A key with a default, which is not written.
    static func key<Value: Equatable>(
        _ name: String, _ path: any WritableKeyPath<Whole, Value> & Sendable, _ codec: FormatCodec<Value>,
        default value: Value, _ about: String
    ) -> Self {
        key(name, path, codec, default: value, as: codec.write(value).flow, about)
    }

    /// A key with a default, which is not written.
    ///
    /// - Parameter text: The default in words; `nil` if it needs none.
    static func key<Value: Equatable>(
        _ name: String, _ path: any WritableKeyPath<Whole, Value> & Sendable, _ codec: FormatCodec<Value>,
        default value: Value, as text: String?, _ about: String
    ) -> Self {
        Self(
            Key(name, codec.shape, default: text, about), codec, isNeeded: false,
            get: { $0[keyPath: path] == value ? nil : $0[keyPath: path] }, set: { $0[keyPath: path] = $1 })
    }

    /// A key of a value that may be missing.
    ///
    /// - Parameter isNeeded: Whether the mapping has no value if the key is there and cannot be read.
    static func optional<Value>(
        _ name: String, _ path: any WritableKeyPath<Whole, Value?> & Sendable, _ codec: FormatCodec<Value>,
        default text: String? = nil, isNeeded: Bool = false, _ about: String
    ) -> Self {
        Self(
            Key(name, codec.shape, default: text, about), codec, isNeeded: isNeeded, get: { $0[keyPath: path] },
            set: { $0[keyPath: path] = $1 })
    }

    /// A key of a part of a value with cases. If it is there and cannot be read, the mapping has no value.
    static func part<Value>(
        _ name: String, _ codec: FormatCodec<Value>, default text: String? = nil, _ about: String,
        get: @escaping @Sendable (Whole) -> Value?, set: @escaping @Sendable (inout Whole, Value) -> Void
    ) -> Self {
        Self(Key(name, codec.shape, default: text, about), codec, isNeeded: true, get: get, set: set)
    }

    /// A key of a part of a value with cases, which excludes the other alternatives of the mapping.
    static func alternative<Value>(
        _ name: String, _ codec: FormatCodec<Value>, _ about: String, get: @escaping @Sendable (Whole) -> Value?,
        set: @escaping @Sendable (inout Whole, Value) -> Void
    ) -> Self {
        var key = part(name, codec, about, get: get, set: set)
        key.group = .exactlyOne
        return key
    }

    /// The key as one of those of which the mapping needs at least one.
    var amongAtLeastOne: Self {
        var key = self
        key.group = .atLeastOne
        return key
    }
}
