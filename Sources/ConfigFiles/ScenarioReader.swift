internal import Determinism
internal import LinkModel
internal import ScenarioModel
internal import Yams

/// A reader of scenarios; reports all errors.
final class ScenarioReader {
    let reader: YAMLReader
    var deviceNames: [String] = []
    var writerNames: [String] = []
    var rows: [String] = []
    var marks: [String] = []

    private static let sections = [
        "scenario", "name", "about", "tags", "seed", "limit", "heal", "server", "devices", "writers", "network",
        "faults",
        "steps", "expect",
    ]
    private static let unsupported = ["extends", "workload", "invariants", "matrix", "explore"]

    init(_ reader: YAMLReader) { self.reader = reader }

    func read(_ root: Node, parent: Node) -> Scenario? {
        guard let mapping = root.mapping else { return nil }
        for (key, _) in mapping where Self.unsupported.contains(key.scalar?.string ?? "") {
            reader.report("'\(key.scalar?.string ?? "")' is not supported yet", at: key)
        }
        let supported = Node.mapping(mapping.without { Self.unsupported.contains($0) })
        guard let keys = reader.mapping(supported, keys: Self.sections, in: "the scenario") else { return nil }
        if let version = keys["scenario"] {
            let text = reader.text(version, expected: "the format version, \(ScenarioFile.formatVersion)")
            if let text, text != ScenarioFile.formatVersion {
                reader.report(
                    "version '\(text.prefix(20))' is not supported; expected \(ScenarioFile.formatVersion)", at: version
                )
            }
        } else {
            reader.report("'scenario: \(ScenarioFile.formatVersion)' is missing", at: parent)
        }
        for name in ["name", "devices", "network", "expect"] where keys[name] == nil {
            reader.report("'\(name)' is missing", at: parent)
        }
        var scenario = Scenario(name: keys["name"].flatMap { reader.text($0, expected: "a name") } ?? "")
        if let node = keys["name"], !Self.isKebabCase(scenario.name) {
            reader.report("'\(scenario.name.prefix(40))' is not kebab-case, such as 'edit-conflict'", at: node)
        }
        scenario.about = keys["about"].flatMap { reader.text($0, expected: "a sentence or two") } ?? ""
        if let node = keys["seed"], let seed = number(node, "a whole number") { scenario.seed = UInt64(seed) }
        if let node = keys["limit"], let limit = time(node) { scenario.limit = limit }
        if let node = keys["heal"] {
            scenario.healAt = time(node)
            if let healAt = scenario.healAt, healAt >= scenario.limit {
                reader.report("expected a time before the limit, \(TimeFormat.short(scenario.limit))", at: node)
            }
        }
        readServer(keys["server"], &scenario)
        readWriters(keys["writers"], &scenario)
        readDevices(keys["devices"], network: keys["network"], &scenario)
        collectNames(keys["steps"])
        scenario.faults = list(keys["faults"]).compactMap(fault)
        scenario.steps = list(keys["steps"]).compactMap(step)
        if let expect = keys["expect"] { scenario.expectations = expectations(expect) }
        // A step or fault that could not be read would cause errors elsewhere.
        if reader.problems.isEmpty { check(scenario) }
        return scenario
    }

    // MARK: Server, devices and writers

    private func readServer(_ node: Node?, _ scenario: inout Scenario) {
        guard let node, let keys = reader.mapping(node, keys: ["contract", "notes"], in: "'server'") else { return }
        if let contract = keys["contract"], let text = reader.text(contract, expected: "compat, orig or strict") {
            if ["compat", "orig", "strict"].contains(text) {
                scenario.contract = text
            } else {
                reader.report("'\(text.prefix(40))': expected compat, orig or strict", at: contract)
            }
        }
        for (key, value) in keys["notes"]?.mapping ?? [:] {
            guard let row = key.scalar?.string,
                let parts = reader.mapping(value, keys: ["title", "text", "revision"], in: "a note")
            else { continue }
            rows.append(row)
            let revision = parts["revision"].flatMap { number($0, "a whole number from 1") } ?? 1
            if revision < 1 { reader.report("expected a revision of 1 or more", at: parts["revision"]) }
            scenario.notes.append(
                Scenario.SeedNote(
                    row: row, title: parts["title"].flatMap { reader.text($0, expected: "a text") },
                    text: parts["text"].flatMap { reader.text($0, expected: "a text") }, revision: max(1, revision)))
        }
    }

    private func readWriters(_ node: Node?, _ scenario: inout Scenario) {
        for (key, value) in node?.mapping ?? [:] {
            guard let name = actorName(key), let parts = reader.mapping(value, keys: ["user"], in: "'\(name)'") else {
                continue
            }
            writerNames.append(name)
            scenario.writers.append(Scenario.Writer(name: name, user: user(parts["user"], value)))
        }
    }

    private func user(_ node: Node?, _ parent: Node) -> String {
        guard let node else {
            reader.report("'user' is missing", at: parent)
            return ""
        }
        return reader.text(node, expected: "a user's name") ?? ""
    }

    private func readDevices(_ node: Node?, network: Node?, _ scenario: inout Scenario) {
        guard let node else { return }
        guard let devices = node.mapping else {
            return reader.report("'devices': expected names with users, such as 'A: { user: ada }'", at: node)
        }
        var found: [(name: String, user: String, startsSynced: Bool, node: Node)] = []
        for (key, value) in devices {
            guard let name = actorName(key),
                let parts = reader.mapping(value, keys: ["user", "starts", "client"], in: "'\(name)'")
            else { continue }
            if let client = parts["client"], reader.text(client, expected: "reference") != "reference" {
                reader.report("only the reference client is supported", at: client)
            }
            let starts = parts["starts"].flatMap { oneOf($0, ["synced", "empty"]) } ?? "synced"
            deviceNames.append(name)
            found.append((name, user(parts["user"], value), starts == "synced", key))
        }
        var networks: [String: [Scenario.NetworkEntry]] = [:]
        for (key, value) in network?.mapping ?? [:] {
            guard let name = knownDevice(key) else { continue }
            networks[name] = entries(value)
        }
        for device in found {
            if networks[device.name] == nil {
                reader.report("'network' has no entry for \(device.name)", at: network ?? device.node)
            }
            scenario.devices.append(
                Scenario.Device(
                    name: device.name, user: device.user, startsSynced: device.startsSynced,
                    network: networks[device.name] ?? []))
        }
    }

    private func actorName(_ key: Node) -> String? {
        guard let name = key.scalar?.string else {
            reader.report("expected a name", at: key)
            return nil
        }
        let isName = name.first.map { $0.isASCII && $0.isUppercase } ?? false
        guard isName, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }) else {
            reader.report(
                "'\(name.prefix(40))': expected a name of ASCII letters and digits that begins with a capital letter, such as 'A'",
                at: key)
            return nil
        }
        if deviceNames.contains(name) || writerNames.contains(name) {
            reader.report("'\(name)' is defined twice", at: key)
        }
        return name
    }

    // MARK: The network

    private func entries(_ node: Node) -> [Scenario.NetworkEntry] {
        guard let mapping = node.mapping else {
            reader.report("expected a mapping from times to links, such as '20s: 100-loss'", at: node)
            return []
        }
        let timeline = TimelineReader(reader)
        var found: [Scenario.NetworkEntry] = []
        var last: Nanoseconds?
        for (key, value) in mapping {
            var isSignalled = true
            var plain = value
            if let parts = value.mapping, let signalled = parts["signalled"] {
                isSignalled = oneOf(signalled, ["true", "false"]) != "false"
                plain = .mapping(parts.without { $0 == "signalled" })
            }
            let start = time(key)
            if let start {
                if let last, start <= last {
                    reader.report("expected a time later than the entry before", at: key)
                } else if last == nil && start != .zero {
                    reader.report("the first entry must be at 0s", at: key)
                }
                last = start
            }
            guard let phase = timeline.phase(plain), let start else { continue }
            if case .ramp = phase { reader.report("'ramp' is not supported in scenarios", at: value) }
            found.append(Scenario.NetworkEntry(at: start, phase, isSignalled: isSignalled))
        }
        return found
    }

    // MARK: Faults and steps

    /// Collects the notes and marks of all steps, because earlier keys may refer to them.
    private func collectNames(_ node: Node?) {
        for step in node?.sequence ?? [] {
            if let node = step.mapping?["mark"], let mark = node.scalar?.string {
                if marks.contains(mark) { reader.report("mark '\(mark.prefix(40))' is set twice", at: node) }
                marks.append(mark)
            }
            for (_, value) in step.mapping ?? [:] {
                if let row = value.mapping?["create"]?.scalar?.string, !rows.contains(row) { rows.append(row) }
            }
        }
    }

    private func fault(_ node: Node) -> Scenario.Fault? {
        let known = ["request", "nth", "times", "to", "point", "then"]
        guard let keys = reader.mapping(node, keys: known, in: "a fault") else { return nil }
        for name in ["request", "point", "then"] where keys[name] == nil {
            reader.report("a fault needs '\(name)'", at: node)
        }
        guard let request = keys["request"].flatMap(pattern), let point = keys["point"], let then = keys["then"] else {
            return nil
        }
        if reader.text(point, expected: "committed") != "committed" {
            reader.report("only the point 'committed' is supported", at: point)
        }
        guard let action = reader.value(then, as: Scenario.Fault.Action.self) else { return nil }
        let nth = keys["nth"].flatMap { number($0, "a whole number from 1") } ?? 1
        if nth < 1 { reader.report("expected 'nth' of 1 or more", at: keys["nth"]) }
        var mustFire = true
        if let times = keys["times"] {
            if let bounds = times.mapping, let least = bounds["min"] {
                mustFire = number(least, "a whole number") != 0
            } else if times.scalar?.string != "1" {
                reader.report("'times': only 1 and {min: 0} are supported", at: times)
            }
        }
        return Scenario.Fault(
            request: request, nth: max(1, nth), device: keys["to"].flatMap(knownDevice), action: action,
            mustFire: mustFire, location: location(node))
    }

    private func step(_ node: Node) -> Scenario.Step? {
        let actors = deviceNames + writerNames
        let known = ["at", "after", "delay", "when", "within", "mark"]
        guard let keys = reader.mapping(node, keys: known + actors, in: "a step") else { return nil }
        let acting = actors.filter { keys[$0] != nil }
        // A step without an action sets a mark.
        guard acting.count == 1 || (acting.isEmpty && keys["mark"] != nil) else {
            reader.report(
                "a step needs an action of one device or writer (\(actors.joined(separator: ", ")))", at: node)
            return nil
        }
        let triggers = ["at", "after", "when"].filter { keys[$0] != nil }
        guard triggers.count == 1, let triggerNode = keys[triggers[0]] else {
            reader.report("a step needs one of 'at', 'after' and 'when'", at: node)
            return nil
        }
        let trigger: Scenario.Step.Trigger
        switch triggers[0] {
        case "at":
            guard let time = time(triggerNode) else { return nil }
            trigger = .at(time)
        case "after":
            guard let mark = knownMark(triggerNode) else { return nil }
            trigger = .after(mark, delay: keys["delay"].flatMap(time) ?? .zero)
        default:
            guard let (device, condition) = states(triggerNode, in: "'when'").first else { return nil }
            trigger = .when(device: device, condition, within: keys["within"].flatMap(time) ?? Timeline.timeMax)
        }
        var step: (actor: String, action: Scenario.Action)?
        if let actor = acting.first, let actionNode = keys[actor] {
            guard let action = action(actionNode, by: actor) else { return nil }
            step = (actor, action)
        }
        return Scenario.Step(
            trigger: trigger, action: step, mark: keys["mark"]?.scalar?.string, location: location(node))
    }

    // MARK: Values

    func list(_ node: Node?) -> [Node] {
        guard let node else { return [] }
        guard let sequence = node.sequence else {
            reader.report("expected a list", at: node)
            return []
        }
        return Array(sequence)
    }

    func location(_ node: Node) -> SourceLocation {
        SourceLocation(file: reader.file, line: node.mark?.line ?? 1, column: node.mark?.column ?? 1)
    }

    func time(_ node: Node) -> Nanoseconds? {
        guard let text = reader.text(node, expected: "a time such as '20s'") else { return nil }
        do {
            return try Quantity.time(text)
        } catch {
            reader.report(error.message, at: node)
            return nil
        }
    }

    func number(_ node: Node, _ expected: String) -> Int? {
        guard let text = reader.text(node, expected: expected) else { return nil }
        guard let number = Int(text), (0...1_000_000_000).contains(number) else {
            reader.report("'\(text.prefix(40))': expected \(expected)", at: node)
            return nil
        }
        return number
    }

    func oneOf(_ node: Node, _ values: [String]) -> String? {
        let expected = values.joined(separator: " or ")
        guard let text = reader.text(node, expected: expected) else { return nil }
        guard values.contains(text) else {
            reader.report(
                "'\(text.prefix(40))': expected \(expected)\(NearestName.hint(text, in: values))", at: node)
            return nil
        }
        return text
    }

    private func known(_ node: Node, _ names: [String], kind: String) -> String? {
        guard let name = reader.text(node, expected: "a \(kind)") else { return nil }
        guard names.contains(name) else {
            reader.report("no \(kind) is called '\(name.prefix(40))'\(NearestName.hint(name, in: names))", at: node)
            return nil
        }
        return name
    }

    func knownDevice(_ node: Node) -> String? { known(node, deviceNames, kind: "device") }
    func knownRow(_ node: Node) -> String? { known(node, rows, kind: "note") }
    func knownMark(_ node: Node) -> String? { known(node, marks, kind: "mark") }

    func pattern(_ node: Node) -> RequestPattern? {
        guard let text = reader.text(node, expected: "a request such as 'PUT n1', 'POST any' or 'any'") else {
            return nil
        }
        if text == "any" { return RequestPattern(method: nil, row: nil) }
        let words = text.split(separator: " ").map(String.init)
        let methods = ["GET", "POST", "PUT", "DELETE", "any"]
        guard words.count == 2, methods.contains(words[0]) else {
            reader.report("'\(text.prefix(40))': expected a request such as 'PUT n1', 'POST any' or 'any'", at: node)
            return nil
        }
        guard words[1] == "any" || rows.contains(words[1]) else {
            reader.report("no note is called '\(words[1].prefix(40))'\(NearestName.hint(words[1], in: rows))", at: node)
            return nil
        }
        return RequestPattern(
            method: words[0] == "any" ? nil : words[0], row: words[1] == "any" ? nil : words[1])
    }

    private static func isKebabCase(_ name: String) -> Bool {
        !name.isEmpty && name.utf8.allSatisfy { (97...122).contains($0) || (48...57).contains($0) || $0 == 45 }
    }
}
