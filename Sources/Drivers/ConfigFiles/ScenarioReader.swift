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
    /// The device or writer whose state or action is read.
    var subject = ""

    init(_ reader: YAMLReader) { self.reader = reader }

    /// Reads a scenario.
    ///
    /// - Parameters:
    ///   - root: The file's keys, merged with those of a variant and of other files.
    ///   - parent: The location of missing keys; `nil` if they have been reported.
    func read(_ root: Node, parent: Node?) -> Scenario? {
        let countBefore = reader.problems.count
        guard let fields = fields(root, ScenarioFormat.scenario.object, requires: false) else { return nil }
        for key in fields.object.keys where key.isRequired && fields[key.name] == nil {
            let isVersion = key.name == "scenario"
            if let parent {
                reader.report(
                    "'\(key.name)\(isVersion ? ": \(ScenarioFile.formatVersion)" : "")' is missing", at: parent)
            }
        }
        var start = Scenario(name: "")
        for (name, node) in fields.values { start.locations[name] = reader.location(node) }
        let scenario = ScenarioFormat.scenario.readParts(fields, into: start).value
        // A step or fault that could not be read would cause errors elsewhere.
        if reader.problems.count == countBefore { check(scenario) }
        if reader.problems.count == countBefore { checkPrograms(of: scenario) }
        if reader.problems.count == countBefore { warn(of: scenario) }
        return scenario
    }

    func isVersion(_ node: Node?) -> Bool {
        guard let node else { return false }
        let text = reader.text(node, expected: "the format version, \(ScenarioFile.formatVersion)")
        if let text, text != ScenarioFile.formatVersion {
            reader.report(
                "version '\(text.prefix(20))' is not supported; expected \(ScenarioFile.formatVersion)", at: node)
        }
        return true
    }

    func checkRestore(_ scenario: Scenario, _ node: Node?) -> Bool {
        if let time = scenario.restoreAt, time >= scenario.limit {
            reader.report("expected a time before the limit, \(TimeFormat.short(scenario.limit))", at: node)
        }
        return true
    }

    func readServer(_ node: Node?, _ scenario: inout Scenario) -> Bool {
        guard let node, let fields = fields(node, ScenarioFormat.server.object) else { return true }
        scenario = ScenarioFormat.server.readParts(fields, into: scenario).value
        return true
    }

    // MARK: Invariants

    func invariant(_ node: Node) -> Scenario.Invariant? {
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

    /// Reports invariants that are dropped in vain.
    func check(_ invariants: Scenario.Invariants, _ fields: ScenarioFields) -> Bool {
        for item in fields["drop"]?.sequence.map({ Array($0) }) ?? [] {
            guard let found = item.scalar.flatMap({ Scenario.Invariant(named: $0.string) }) else { continue }
            if invariants.added.contains(found) {
                reader.report("'\(found.rawValue)' is both added and dropped", at: item)
            } else if !Scenario.Invariants.standardMembers.contains(found) {
                reader.report("'\(found.rawValue)' is not in the standard set", at: item)
            }
        }
        return true
    }
}
