internal import Scenario
internal import Yams

/// The matrix of a scenario: lists of values by parameter, and the runs with each combination.
struct ScenarioMatrix {
    let parameters: [(name: String, key: Node, values: [Node])]

    /// Reads the matrix of a scenario; reports errors.
    init(_ root: Node, _ reader: YAMLReader) {
        guard let node = root.mapping?["matrix"] else {
            parameters = []
            return
        }
        guard let mapping = node.mapping else {
            reader.report("'matrix': expected a mapping from parameters to lists of values", at: node)
            parameters = []
            return
        }
        var found: [(name: String, key: Node, values: [Node])] = []
        for (key, value) in mapping {
            guard let name = key.scalar?.string, Self.isParameter(name) else {
                reader.report("expected the name of a parameter in kebab-case", at: key)
                continue
            }
            guard let values = value.sequence, !values.isEmpty else {
                reader.report("'\(name)': expected a list with at least one value", at: value)
                continue
            }
            found.append((name, key, Array(values)))
        }
        var count = 1
        for parameter in found where count <= ScenarioFormat.runsMax { count *= parameter.values.count }
        if count > ScenarioFormat.runsMax {
            reader.report("'matrix' has more than \(ScenarioFormat.runsMax) combinations", at: node)
            found = found.map { ($0.name, $0.key, [$0.values[0]]) }
        }
        parameters = found
    }

    private static func isParameter(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
    }

    /// Returns the scenario with the values of each combination in place of the parameters; the last parameter changes
    /// first.
    ///
    /// - Parameter used: Receives the names of the parameters that the scenario uses.
    func rows(
        of root: Node, _ reader: YAMLReader, used: inout Set<String>
    ) -> [(root: Node, parameters: [Scenario.Argument])] {
        guard let mapping = root.mapping else { return [] }
        let plain = Node.mapping(mapping.without { $0 == "matrix" })
        var rows: [[Node]] = [[]]
        for parameter in parameters { rows = rows.flatMap { row in parameter.values.map { row + [$0] } } }
        var found: [(root: Node, parameters: [Scenario.Argument])] = []
        for row in rows {
            var values: [String: Node] = [:]
            for (parameter, value) in zip(parameters, row) { values[parameter.name] = value }
            let substituted = Self.substitute(plain, values, &used, reader)
            let texts = zip(parameters, row).map { parameter, value in
                Scenario.Argument(name: parameter.name, value: Self.text(of: value, in: parameter.values))
            }
            found.append((substituted, texts))
        }
        return found
    }

    /// Returns a value for output: a scalar as it is, another value as its position in the list.
    private static func text(of value: Node, in values: [Node]) -> String {
        value.scalar?.string ?? "#\((values.firstIndex(of: value) ?? 0) + 1)"
    }

    private static func substitute(
        _ node: Node, _ values: [String: Node], _ used: inout Set<String>, _ reader: YAMLReader
    ) -> Node {
        switch node {
        case .scalar(let scalar):
            guard scalar.style == .plain, scalar.string.utf8.first == UInt8(ascii: "$") else { return node }
            let name = String(scalar.string.dropFirst())
            guard isParameter(name) else { return node }
            guard let value = values[name] else {
                reader.report(
                    "no parameter is called '\(name.prefix(40))'\(NearestName.hint(name, in: values.keys.sorted())); "
                        + "parameters are in 'matrix', and a text is written as '\"$\(name.prefix(40))\"'", at: node)
                return node
            }
            used.insert(name)
            return value
        case .mapping(var mapping):
            for index in mapping.indices {
                let (key, value) = mapping[index]
                let changed = substitute(value, values, &used, reader)
                if changed != value { mapping[key] = changed }
            }
            return .mapping(mapping)
        case .sequence(var sequence):
            for index in sequence.indices { sequence[index] = substitute(sequence[index], values, &used, reader) }
            return .sequence(sequence)
        case .alias: return node
        }
    }
}
