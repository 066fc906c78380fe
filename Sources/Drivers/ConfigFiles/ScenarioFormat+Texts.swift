/// Texts of shapes.
extension ScenarioFormat {
    /// Returns `a, b or c`.
    static func alternatives(_ words: [String]) -> String {
        words.count < 2 ? words.joined() : "\(words.dropLast().joined(separator: ", ")) or \(words[words.count - 1])"
    }

    /// Returns a shape in words.
    public static func text(of shape: Shape) -> String {
        switch shape {
        case .version: "the version, \(ScenarioFile.formatVersion)"
        case .text: "a text"
        case .kebabCase: "a name in kebab-case"
        case .integer(let range) where [numberMax, seedMax].contains(range.upperBound):
            range.lowerBound == 0 ? "a whole number" : "a whole number from \(range.lowerBound)"
        case .integer(let range): "a whole number from \(range.lowerBound) to \(range.upperBound)"
        case .fraction: "a number from 0 to 1"
        case .boolean: "true or false"
        case .time: "a time such as '20s' or '3m20s', up to 24 hours"
        case .signedTime: "a shift such as '+6h' or '-30m'"
        case .percentage: "a percentage such as '50 %'"
        case .size: "a number of bytes, such as '2MB'"
        case .choice(let words): alternatives(words)
        case .name(let kind): "a \(kind.text)"
        case .timeOrMark: "a time or a mark"
        case .request: "a request such as 'PUT n1', 'POST any' or 'any'"
        case .response: "a status, 2xx, lost or none"
        case .invariant: "an invariant such as 'no-lost-write' or 'I1'"
        case .path: "a path relative to the file"
        case .link: "a link: a profile's name or path, or conditions"
        case .anything: "any value"
        case .list(let shape, _, _): "a list: \(text(of: shape))"
        case .object(let name): "a mapping with \(names(of: object(name)))"
        case .map(let kind, let shape): "a mapping: \(kind.text) to \(text(of: shape))"
        case .either(let shapes): shapes.map { text(of: $0) }.joined(separator: "; or ")
        }
    }

    private static func names(of object: Object) -> String {
        var names = object.keys.map(\.name)
        if let named = object.named { names.insert("a \(named.kind.text)", at: min(named.position, names.count)) }
        return names.joined(separator: ", ")
    }
}

/// Explanations of keys.
extension ScenarioFormat {
    /// A key with its position in the format.
    public struct Entry: Sendable {
        /// The position, such as `faults.point`; `*` stands for a name.
        public let path: String
        /// The key.
        public let key: Key
    }

    /// The position of each mapping: the keys that lead to it; the first one if there are several.
    private static let paths: [String: String] = {
        var paths = ["scenario": ""]
        var queue = ["scenario"]
        while !queue.isEmpty {
            let name = queue.removeFirst()
            let parent = object(name)
            let prefix = paths[name] ?? ""
            func visit(_ shape: Shape, _ path: String) {
                switch shape {
                case .object(let child):
                    if paths[child] == nil, child != "variant" {
                        paths[child] = path
                        queue.append(child)
                    }
                case .list(let inner, _, _): visit(inner, path)
                case .map(_, let inner): visit(inner, path + ".*")
                case .either(let shapes): for inner in shapes { visit(inner, path) }
                default: break
                }
            }
            for key in parent.keys { visit(key.shape, prefix.isEmpty ? key.name : "\(prefix).\(key.name)") }
            if let named = parent.named { visit(named.shape, "\(prefix).*") }
        }
        return paths
    }()

    /// Returns the position of a mapping; empty for the whole file.
    public static func path(of object: Object) -> String { paths[object.name] ?? object.name }

    /// Returns the keys with a name or a position such as `faults.point`, in the order of the table.
    public static func entries(named name: String) -> [Entry] {
        var found: [Entry] = []
        for object in objects where object.name != "variant" && !object.name.hasPrefix("not-") {
            let prefix = path(of: object)
            for key in object.keys {
                let entry = Entry(path: prefix.isEmpty ? key.name : "\(prefix).\(key.name)", key: key)
                if key.name == name || entry.path == name || entry.path.replacing(".*", with: "") == name {
                    found.append(entry)
                }
            }
        }
        return found
    }

    /// The names of all keys, each once, sorted.
    public static let keyNames: [String] = Set(
        objects.filter { $0.name != "variant" }.flatMap { $0.keys.map(\.name) }
    ).sorted()

    /// Returns the mapping in a shape; `nil` if it has none.
    public static func object(in shape: Shape) -> Object? {
        switch shape {
        case .object(let name): object(name)
        case .list(let inner, _, _), .map(_, let inner): object(in: inner)
        case .either(let shapes): shapes.lazy.compactMap { object(in: $0) }.first
        default: nil
        }
    }
}
