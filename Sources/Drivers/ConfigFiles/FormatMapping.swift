internal import Scenario
internal import Yams

/// A mapping of the format, declared once: the table of its keys, its reader and its writer.
struct FormatMapping<Value: Sendable>: Sendable {
    /// Keys that are names given by the scenario.
    struct Named: Sendable {
        let keys: ScenarioFormat.NamedKeys
        /// Returns the names that are known.
        let names: @Sendable (ScenarioReader) -> [String]
        /// Reads the values of the names; returns whether the mapping's value can be used.
        let read: @Sendable (ScenarioFields, inout Value) -> Bool
        let write: @Sendable (Value) -> [YAMLTree.Entry]

        init(
            _ keys: ScenarioFormat.NamedKeys, names: @escaping @Sendable (ScenarioReader) -> [String],
            read: @escaping @Sendable (ScenarioFields, inout Value) -> Bool,
            write: @escaping @Sendable (Value) -> [YAMLTree.Entry] = { _ in [] }
        ) {
            self.keys = keys
            self.names = names
            self.read = read
            self.write = write
        }
    }

    /// The mapping in the table.
    let object: ScenarioFormat.Object
    let keys: [FormatKey<Value>]
    private let named: Named?
    private let blank: @Sendable (SourceLocation) -> Value
    private let check: @Sendable (inout Value, ScenarioFields) -> Bool

    /// Declares a mapping.
    ///
    /// - Parameters:
    ///   - needsKey: Whether at least one key must be present.
    ///   - blank: Returns a value with the defaults of all keys.
    ///   - check: Reports what several keys contradict; returns whether the value can be used.
    init(
        _ name: String, _ title: String, _ keys: [FormatKey<Value>], named: Named? = nil,
        needsKey: Bool = false, blank: @escaping @Sendable (SourceLocation) -> Value,
        check: @escaping @Sendable (inout Value, ScenarioFields) -> Bool = { _, _ in true }
    ) {
        func names(_ group: FormatKey<Value>.Group) -> [String] {
            keys.filter { $0.group == group }.map(\.entry.name)
        }
        object = ScenarioFormat.Object(
            name, title, keys.map(\.entry), named: named?.keys, exactlyOne: names(.exactlyOne),
            atLeastOne: needsKey ? keys.map(\.entry.name) : names(.atLeastOne))
        self.keys = keys
        self.named = named
        self.blank = blank
        self.check = check
    }

    /// Reads a value; reports what is wrong with it. `nil` if a value is missing without which there is none.
    func read(_ node: Node, _ reader: ScenarioReader) -> Value? {
        reader.fields(node, object, names: named?.names(reader) ?? []).flatMap { read($0) }
    }

    /// Reads the values of a mapping.
    ///
    /// - Parameter start: The value with what the keys do not give; `nil` for one with the defaults.
    func read(_ fields: ScenarioFields, into start: Value? = nil) -> Value? {
        let (value, isWhole) = readParts(fields, into: start)
        return isWhole ? value : nil
    }

    /// Reads the values of a mapping; returns what has been read, and whether nothing is missing without which there is
    /// no value.
    func readParts(_ fields: ScenarioFields, into start: Value? = nil) -> (value: Value, isWhole: Bool) {
        var fields = fields
        var value = start ?? blank(fields.reader.location(fields.node))
        // In the canonical order, in which later values may refer to earlier ones.
        for (index, key) in keys.enumerated() {
            if let named, named.keys.position == index, !named.read(fields, &value) { fields.isWhole = false }
            if !key.read(fields, &value) { fields.isWhole = false }
        }
        if let named, named.keys.position >= keys.count, !named.read(fields, &value) { fields.isWhole = false }
        let isUsable = check(&value, fields)
        return (value, isUsable && fields.isWhole)
    }

    /// Returns the keys that are written, in canonical order.
    ///
    /// - Parameter other: The entries of names that the value does not have.
    func entries(_ value: Value, named other: [YAMLTree.Entry] = []) -> [YAMLTree.Entry] {
        var entries = keys.map { key in key.write(value).map { ScenarioWriter.entry(key.entry.name, $0) } }
        if let named {
            entries.insert(contentsOf: named.write(value) + other, at: min(named.keys.position, entries.count))
        }
        return entries.compactMap(\.self)
    }

    /// Returns a value as it is written, in braces.
    func tree(_ value: Value, named other: [YAMLTree.Entry] = []) -> YAMLTree {
        ScenarioWriter.braces(entries(value, named: other))
    }
}
