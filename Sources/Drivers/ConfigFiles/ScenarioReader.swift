internal import Determinism
internal import LinkModel
internal import Scenario
internal import Yams

/// A reader of scenarios; reports all errors.
final class ScenarioReader {
    let reader: YAMLReader
    var deviceNames: [String] = []
    var writerNames: [String] = []
    /// The devices whose clients are programs, which take every act and may show any value.
    var programNames: Set<String> = []
    /// The devices whose client is an app.
    var apps: [String: Scenario.App] = [:]
    var rows: Set<String> = []
    var marks: Set<String> = []
    /// The names of the links of all networks.
    var links: Set<String> = []

    init(_ reader: YAMLReader) { self.reader = reader }

    /// Reads a scenario.
    ///
    /// - Parameters:
    ///   - root: The file's keys, merged with those of a variant and of other files.
    ///   - parent: The location of missing keys; `nil` if they have been reported.
    func read(_ root: Node, parent: Node?) -> Scenario? {
        let countBefore = reader.problems.count
        guard let fields = fields(root, "scenario", requires: false) else { return nil }
        if let version = fields["scenario"] {
            let text = reader.text(version, expected: "the format version, \(ScenarioFile.formatVersion)")
            if let text, text != ScenarioFile.formatVersion {
                reader.report(
                    "version '\(text.prefix(20))' is not supported; expected \(ScenarioFile.formatVersion)", at: version
                )
            }
        } else if let parent {
            reader.report("'scenario: \(ScenarioFile.formatVersion)' is missing", at: parent)
        }
        for key in ScenarioFormat.object("scenario").keys where key.isRequired && key.name != "scenario" {
            if fields[key.name] == nil, let parent { reader.report("'\(key.name)' is missing", at: parent) }
        }
        var scenario = Scenario(name: fields.kebabCase("name") ?? "")
        scenario.about = fields.text("about") ?? ""
        scenario.tags = fields.list("tags").compactMap(kebabCase)
        for (name, node) in fields.values { scenario.locations[name] = reader.location(node) }
        readSeed(fields["seed"], &scenario)
        if let limit = fields.time("limit") { scenario.limit = limit }
        if let node = fields["restore"] {
            scenario.restoreAt = time(node)
            if let restoreAt = scenario.restoreAt, restoreAt >= scenario.limit {
                reader.report("expected a time before the limit, \(TimeFormat.short(scenario.limit))", at: node)
            }
        }
        readServer(fields["server"], &scenario)
        readPolicy(fields["policy"], &scenario)
        readWriters(fields["writers"], &scenario)
        guard readDevices(fields["devices"], network: fields["network"], &scenario) else { return nil }
        checkApps(fields, scenario)
        collectNames(fields["steps"])
        scenario.faults = fields.list("faults").compactMap(fault)
        scenario.steps = fields.list("steps").compactMap(step)
        scenario.workload = fields.list("workload").compactMap(workload)
        if let expect = fields["expect"] { scenario.expectations = expectations(expect) }
        if let node = fields["invariants"] { scenario.invariants = invariants(node) }
        scenario.exploration = fields["explore"].flatMap(exploration)
        // A step or fault that could not be read would cause errors elsewhere.
        if reader.problems.count == countBefore { check(scenario) }
        if reader.problems.count == countBefore { checkPrograms(of: scenario) }
        if reader.problems.count == countBefore { warn(of: scenario) }
        return scenario
    }

    private func readSeed(_ node: Node?, _ scenario: inout Scenario) {
        guard let node else { return }
        if node.scalar?.string == "commit" {
            scenario.seedOrigin = .commit
        } else if let seed = number(node, "a whole number, or commit", max: ScenarioFormat.seedMax) {
            scenario.seed = UInt64(seed)
        }
    }

    private func invariants(_ node: Node) -> Scenario.Invariants {
        if node.mapping == nil {
            return oneOf(node, ["standard", "all"]) == "all" ? .all : .standard
        }
        guard let fields = fields(node, "invariants") else { return .standard }
        let added = fields.list("add").compactMap(invariant)
        var dropped: [Scenario.Invariant] = []
        for item in fields.list("drop") {
            guard let found = invariant(item) else { continue }
            if added.contains(found) {
                reader.report("'\(found.rawValue)' is both added and dropped", at: item)
            } else if !Scenario.Invariants.standardMembers.contains(found) {
                reader.report("'\(found.rawValue)' is not in the standard set", at: item)
            }
            dropped.append(found)
        }
        return Scenario.Invariants(adding: added, dropping: dropped)
    }

    private func invariant(_ node: Node) -> Scenario.Invariant? {
        guard let text = reader.text(node, expected: "an invariant such as 'no-lost-write' or 'I1'") else { return nil }
        guard let found = Scenario.Invariant(named: text) else {
            let names = Scenario.Invariant.allCases.map(\.rawValue)
            reader.report(
                "no invariant is called '\(text.prefix(40))'\(NearestName.hint(text, in: names)) "
                    + "(known: \(names.joined(separator: ", ")), or I1 to I\(names.count))", at: node)
            return nil
        }
        return found
    }

    private func exploration(_ node: Node) -> Scenario.Exploration? {
        guard let fields = fields(node, "explore") else { return nil }
        let parts =
            fields["vary"] == nil
            ? Scenario.Exploration.Part.allCases
            : fields.list("vary").compactMap { reader.value($0, as: Scenario.Exploration.Part.self) }
        return fields.integer("seeds").map { Scenario.Exploration(seeds: $0, vary: parts) }
    }
}
