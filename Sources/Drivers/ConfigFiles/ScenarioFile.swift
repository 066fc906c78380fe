internal import Determinism
public import Scenario
internal import Yams

/// A scenario file: the scenario and its variants, each with the rows of its matrix.
public struct ScenarioFile: Sendable {
    /// The scenario without a variant; with a matrix, its first row.
    public let scenario: Scenario
    /// The variants, in the order of the file; with a matrix, the first row of each.
    public let variants: [Scenario]
    /// All runs: the scenario and its variants, each with all rows of its matrix.
    public let allRuns: [Scenario]
    /// A digest of the bytes of the file, and of all files that it names: those that it extends, profiles and traces.
    public let digest: UInt64
    /// Warnings, in the order of their lines.
    public let warnings: [Problem]

    /// Returns the runs of the scenario and its variants, or of one of them.
    ///
    /// - Parameter variant: The variant's name, `none` for the scenario itself, `nil` for all.
    public func runs(ofVariant variant: String?) -> [Scenario] {
        allRuns.filter { variant == nil || ($0.variant ?? "none") == variant }
    }

    /// The file format's version, given as `scenario: 1`.
    public static let formatVersion = "1"

    /// The greatest size of a file, in bytes.
    public static var bytesMax: Int { YAMLReader.bytesMax }

    /// Returns whether a text has the key `scenario` at the beginning of a line: whether it claims to be a scenario.
    static func isScenario(_ text: some Sequence<UInt8>) -> Bool {
        Array(text).split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }).contains { line in
            guard line.starts(with: "scenario".utf8) else { return false }
            return line.dropFirst(8).first { $0 != UInt8(ascii: " ") } == UInt8(ascii: ":")
        }
    }

    /// Parses a scenario file. Paths of profiles are relative to its folder.
    public init(parsing text: String, file: String) throws(FileError) {
        let reader = YAMLReader(file: file)
        guard let runs = ScenarioLoader(reader).runs(of: text), reader.problems.isEmpty, let first = runs.first else {
            throw reader.error
        }
        scenario = first
        allRuns = runs
        digest = reader.content.value
        warnings = YAMLReader.sorted(reader.warnings, first: file)
        var seen: Set<String> = []
        variants = runs.filter { run in run.variant.map { seen.insert($0).inserted } ?? false }
    }

    /// Returns all errors and warnings of a scenario file, in the order of their lines.
    ///
    /// - Parameter warnings: Returns further warnings of a run, if the file has no error.
    public static func problems(
        in text: String, file: String,
        warnings: (Scenario) -> [(location: SourceLocation, message: String)] = { _ in [] }
    ) -> [Problem] {
        let reader = YAMLReader(file: file)
        let runs = ScenarioLoader(reader).runs(of: text) ?? []
        for scenario in runs where reader.problems.isEmpty {
            for warning in warnings(scenario) { reader.warn(warning.message, at: warning.location) }
        }
        return YAMLReader.sorted(reader.problems + reader.warnings, first: file)
    }
}

extension Scenario {
    /// The file, as its caller named it.
    fileprivate var file: String { locations["scenario"]?.file ?? name }
}

/// A loader of scenario files: follows `extends`, and reads each variant and each row of the matrix.
final class ScenarioLoader {
    private let reader: YAMLReader
    /// The parameters of the matrix that a run uses.
    private var usedParameters: Set<String> = []
    private static let expected = "a scenario: 'scenario: 1', a name, devices, network, expect"

    init(_ reader: YAMLReader) { self.reader = reader }

    /// Returns the runs of a file; `nil` if it cannot be read at all.
    func runs(of text: String) -> [Scenario]? {
        guard let root = reader.root(of: text, expected: Self.expected), isScenario(root),
            let whole = extended(root, path: reader.file, depth: 0), let mapping = whole.mapping
        else { return nil }
        let plain = Node.mapping(mapping.without { $0 == "variants" || $0 == "extends" })
        var runs = self.runs(of: plain, variant: nil, parent: root)
        for (name, overlay) in variants(mapping) {
            let merged = merge(plain, Node.mapping(overlay))
            runs += self.runs(of: merged, variant: name, parent: nil)
            if runs.count > ScenarioFormat.runsMax {
                reader.report("more than \(ScenarioFormat.runsMax) runs", at: root)
                return nil
            }
        }
        for parameter in ScenarioMatrix(plain, reader).parameters where !usedParameters.contains(parameter.name) {
            reader.warn("the parameter '\(parameter.name)' is never used", at: reader.location(parameter.key))
        }
        return runs
    }

    private func runs(of root: Node, variant: String?, parent: Node?) -> [Scenario] {
        let matrix = ScenarioMatrix(root, reader)
        return matrix.rows(of: root, reader, used: &usedParameters).compactMap { row in
            var scenario = ScenarioReader(reader).read(row.root, parent: parent)
            scenario?.variant = variant
            scenario?.parameters = row.parameters
            return scenario
        }
    }

    /// Reports a file of another kind, and one that is too large when its aliases are written out.
    private func isScenario(_ root: Node) -> Bool {
        let keys = root.mapping?.keys.compactMap { $0.scalar?.string } ?? []
        for kind in ["profile", "timeline"] where keys.contains(kind) && !keys.contains("scenario") {
            reader.report(
                "this is a \(kind), not a scenario; 'slowlane profiles check' checks it, and 'network' names it by its "
                    + "path", at: root)
            return false
        }
        var left = ScenarioFormat.scalarsMax
        if Self.isLarger(root, than: &left) {
            reader.report("more than \(ScenarioFormat.scalarsMax) values with aliases written out", at: root)
            return false
        }
        return true
    }

    private static func isLarger(_ node: Node, than left: inout Int) -> Bool {
        left -= 1
        if left < 0 { return true }
        switch node {
        case .mapping(let mapping):
            for (key, value) in mapping where isLarger(key, than: &left) || isLarger(value, than: &left) { return true }
        case .sequence(let sequence): for item in sequence where isLarger(item, than: &left) { return true }
        case .scalar, .alias: break
        }
        return false
    }

    // MARK: Variants

    private func variants(_ root: Node.Mapping) -> [(name: String, overlay: Node.Mapping)] {
        guard let node = root["variants"] else { return [] }
        guard let named = node.mapping else {
            reader.report("'variants': expected a mapping from names to changed keys", at: node)
            return []
        }
        var found: [(name: String, overlay: Node.Mapping)] = []
        let keys = ScenarioFormat.object("variant").keys.map(\.name)
        for (key, overlay) in named {
            guard let name = key.scalar?.string, let changes = overlay.mapping else {
                reader.report("'variants': expected a name and a mapping of changed keys", at: key)
                continue
            }
            if name == "none"
                || !name.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 45 })
            {
                reader.report(
                    "'\(name.prefix(40))': expected a name of a variant in kebab-case, other than 'none'", at: key)
            }
            if reader.mapping(overlay, keys: keys, in: "a variant", synonyms: ScenarioFormat.synonyms) != nil {
                for key in ScenarioFormat.object("variant").keys where key.isRequired {
                    guard let node = changes[key.name], node.isNull else { continue }
                    reader.report("'\(key.name)' cannot be taken back: every scenario needs it", at: node)
                }
                found.append((name, changes.without { !keys.contains($0) }))
            }
        }
        return found
    }

    /// Returns the overlay on the base: mappings are merged, null takes a key back, and other values are replaced.
    ///
    /// - Parameter isFile: Whether the overlay is a file, whose variants are not merged with those of the base.
    private func merge(_ base: Node, _ overlay: Node, isFile: Bool = false) -> Node {
        guard let merged = base.mapping, let changes = overlay.mapping else {
            reportNulls(in: overlay)
            return overlay
        }
        var pairs: [(Node, Node)?] = merged.map { ($0.key, $0.value) }
        var positions: [Node: Int] = [:]
        for (index, pair) in merged.enumerated() { positions[pair.key] = index }
        for (key, value) in changes {
            if let index = positions[key], let inherited = pairs[index] {
                pairs[index] = value.isNull ? nil : (inherited.0, merge(inherited.1, value))
            } else if value.isNull {
                reportNull(key)
            } else {
                if !isFile || key.scalar?.string != "variants" { reportNulls(in: value) }
                pairs.append((key, value))
            }
        }
        return .mapping(
            Node.Mapping(pairs.compactMap { $0 }, merged.tag, merged.style, changes.mark ?? merged.mark))
    }

    /// Reports the nulls of mappings that have nothing to take back; those in lists are values.
    private func reportNulls(in value: Node) {
        guard let mapping = value.mapping else { return }
        for (key, value) in mapping {
            if value.isNull { reportNull(key) } else { reportNulls(in: value) }
        }
    }

    private func reportNull(_ key: Node) {
        let name = key.scalar?.string.prefix(40) ?? ""
        reader.report(
            "'\(name)' is null, which takes an inherited key back, and no key '\(name)' is inherited", at: key)
    }

    // MARK: Other files

    /// Returns a file's keys merged with those of the files that it extends; `nil` after an error.
    private func extended(_ root: Node, path: String, depth: Int) -> Node? {
        guard let mapping = root.mapping, let node = mapping["extends"] else { return root }
        guard let name = reader.text(node, expected: "the path of a scenario file"), !name.isEmpty else { return nil }
        guard depth < ScenarioFormat.extendsMax else {
            reader.report(
                "more than \(ScenarioFormat.extendsMax) files extend one another; a file may not extend itself",
                at: node)
            return nil
        }
        guard !name.hasPrefix("/") else {
            reader.report("expected a path relative to this file", at: node)
            return nil
        }
        let other = TextFile.path(name, inFolderOf: path)
        guard let text = otherText(other, node) else { return nil }
        guard let base = reader.root(ofOther: text, file: other, expected: Self.expected), isScenario(base),
            let whole = extended(base, path: other, depth: depth + 1), let inherited = whole.mapping
        else { return nil }
        return merge(
            .mapping(inherited.without { $0 == "variants" || $0 == "name" || $0 == "extends" }), root,
            isFile: true)
    }

    private func otherText(_ path: String, _ node: Node) -> String? {
        do {
            let text = try TextFile.read(path, bytesMax: YAMLReader.bytesMax)
            if text.utf8.count <= YAMLReader.bytesMax { return text }
            reader.report("\(path) is larger than \(YAMLReader.bytesMax / 1024) KiB", at: node)
            return nil
        } catch {
            reader.report("cannot read \(path): \(error.reason)", at: node)
            return nil
        }
    }
}

extension Node {
    /// Whether the value is null: nothing, `~` or `null` without quotes.
    fileprivate var isNull: Bool {
        guard let scalar, scalar.style == .plain || scalar.style == .any else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }
}

extension Node.Mapping {
    /// Returns the mapping without some keys, at the same source location.
    func without(_ isDropped: (String) -> Bool) -> Node.Mapping {
        Node.Mapping(
            filter { !isDropped($0.key.scalar?.string ?? "") }.map { ($0.key, $0.value) }, tag, style, mark)
    }
}
