public import ScenarioModel
internal import Yams

/// A scenario file: the scenario and its variants.
public struct ScenarioFile: Sendable {
    /// The scenario without a variant.
    public let scenario: Scenario
    /// The variants, in the order of the file.
    public let variants: [Scenario]

    /// Returns the scenario and its variants, or one of them.
    ///
    /// - Parameter variant: The variant's name, `none` for the scenario itself, `nil` for all.
    public func runs(ofVariant variant: String?) -> [Scenario] {
        ([scenario] + variants).filter { variant == nil || ($0.variant ?? "none") == variant }
    }

    /// The file format's version, given as `scenario: 1`.
    public static let formatVersion = "1"

    /// Returns whether a text has the key `scenario` at the beginning of a line: whether it claims to be a scenario.
    public static func isScenario(_ text: String) -> Bool {
        text.utf8.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }).contains { line in
            guard line.starts(with: "scenario".utf8) else { return false }
            return line.dropFirst(8).first { $0 != UInt8(ascii: " ") } == UInt8(ascii: ":")
        }
    }

    /// Parses a scenario file. Paths of profiles are relative to its folder.
    public init(parsing text: String, file: String) throws(FileError) {
        let reader = YAMLReader(file: file)
        guard let root = reader.root(of: text, expected: "a scenario: 'scenario: 1', a name, devices, network, expect"),
            let mapping = root.mapping
        else { throw reader.error }
        let variantsKey = mapping.keys.first { $0.scalar?.string == "variants" }
        let plainRoot = Node.mapping(mapping.without { $0 == "variants" })
        let scenario = ScenarioReader(reader).read(plainRoot, parent: root)
        var variants: [Scenario] = []
        if let variantsKey, let overlays = mapping[variantsKey] {
            guard let named = overlays.mapping else {
                reader.report("'variants': expected a mapping from names to changed keys", at: overlays)
                throw reader.error
            }
            // Errors of the scenario would be repeated for each variant.
            for (key, overlay) in named where reader.problems.isEmpty {
                guard let name = key.scalar?.string, overlay.mapping != nil else {
                    reader.report("'variants': expected a name and a mapping of changed keys", at: key)
                    continue
                }
                var variant = ScenarioReader(reader).read(Self.merge(plainRoot, overlay), parent: overlay)
                variant?.variant = name
                if let variant { variants.append(variant) }
            }
        }
        guard let scenario, reader.problems.isEmpty else { throw reader.error }
        self.scenario = scenario
        self.variants = variants
    }

    /// Returns the overlay on the base: mappings are merged, other values replaced.
    private static func merge(_ base: Node, _ overlay: Node) -> Node {
        guard var merged = base.mapping, let changes = overlay.mapping else { return overlay }
        for (key, value) in changes { merged[key] = merged[key].map { merge($0, value) } ?? value }
        return .mapping(merged)
    }
}

extension Node.Mapping {
    /// Returns the mapping without some keys, at the same source location.
    func without(_ isDropped: (String) -> Bool) -> Node.Mapping {
        Node.Mapping(
            filter { !isDropped($0.key.scalar?.string ?? "") }.map { ($0.key, $0.value) }, tag, style, mark)
    }
}
