internal import Determinism
public import Wire

/// All that an app stores: values by keys such as `record/e1`.
public struct AppState: Hashable, Sendable {
    private var values: [ByteKey: [UInt8]]

    /// Creates a state; empty by default.
    public init(_ values: [(key: String, value: [UInt8])] = []) {
        self.values = Dictionary(values.map { (ByteKey($0.key), $0.value) }) { _, last in last }
    }

    /// Whether nothing is stored.
    public var isEmpty: Bool { values.isEmpty }

    /// The value with a key; `nil` if there is none.
    public subscript(key: String) -> [UInt8]? { values[ByteKey(key)] }

    /// Returns the JSON with a key; `nil` if there is none.
    public func json(_ key: String) -> JSONValue? { self[key].flatMap { JSONText.parse($0) } }

    /// The values whose keys begin with a prefix, with the rest of each key, in the order of the bytes of the keys.
    public func values(under prefix: String) -> [(key: String, value: [UInt8])] {
        values.filter { $0.key.text.utf8.starts(with: prefix.utf8) }.sorted { $0.key < $1.key }
            .map { (String(decoding: $0.key.text.utf8.dropFirst(prefix.utf8.count), as: UTF8.self), $0.value) }
    }

    /// Applies a change.
    public mutating func apply(_ change: AppChange) {
        for (key, value) in change.values { values[key] = value }
    }
}

/// A change of what an app stores, to be committed as a whole.
public struct AppChange: Hashable, Sendable {
    /// Changed values; `nil` removes one.
    fileprivate(set) var values: [ByteKey: [UInt8]?] = [:]

    /// Creates an empty change.
    public init() {}

    /// Whether nothing changes.
    public var isEmpty: Bool { values.isEmpty }

    /// Sets a value, or removes it.
    public mutating func set(_ key: String, _ value: [UInt8]?) { values[ByteKey(key)] = .some(value) }

    /// Sets a value to JSON, or removes it.
    public mutating func set(_ key: String, json: JSONValue?) { set(key, json.map { Array($0.json.utf8) }) }

    /// Adds a later change.
    public mutating func formUnion(_ later: AppChange) { values.merge(later.values) { _, new in new } }

    /// The changes in the order of the bytes of their keys.
    public var sorted: [(key: String, value: [UInt8]?)] {
        values.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
    }

    /// A digest of the change that is the same in every process and build.
    public var digest: UInt64 {
        var bytes: [UInt8] = []
        // 0xFF is not in UTF-8, so that keys and values are kept apart.
        for (key, value) in sorted {
            bytes += key.utf8
            bytes.append(0xFF)
            if let value {
                bytes += "\(value.count) ".utf8
                bytes += value
            }
            bytes.append(0xFF)
        }
        return FNV1a.digest(bytes)
    }
}
