internal import ScenarioModel
internal import Yams

/// Reads expectations.
extension ScenarioReader {
    func expectations(_ node: Node) -> [Expectation] {
        let sections = ["traffic", "always", "sometimes", "eventually", "finally"]
        if let mapping = node.mapping {
            for (key, _) in mapping where key.scalar?.string == "thresholds" {
                reader.report("'thresholds' is not supported yet", at: key)
            }
        }
        guard let keys = reader.mapping(node, keys: sections + ["thresholds"], in: "'expect'") else { return [] }
        var found: [Expectation] = []
        for item in list(keys["traffic"]) {
            if let traffic = traffic(item) { found.append(Expectation(.traffic(traffic), location: location(item))) }
        }
        for item in list(keys["always"]) {
            for (device, condition) in states(item, in: "'always'") {
                found.append(Expectation(.always(device: device, condition), location: location(item)))
            }
        }
        for item in list(keys["sometimes"]) {
            for (device, condition) in states(item, in: "'sometimes'") {
                found.append(Expectation(.sometimes(device: device, condition), location: location(item)))
            }
        }
        for item in list(keys["eventually"]) { found += eventually(item) }
        if let last = keys["finally"] { found += finally(last) }
        if found.isEmpty { reader.report("'expect' has no expectation", at: node) }
        return found
    }

    private func traffic(_ node: Node) -> Expectation.Traffic? {
        let known = ["request", "from", "seen", "between", "count", "answers", "same"]
        guard let keys = reader.mapping(node, keys: known, in: "'traffic'") else { return nil }
        guard let requestNode = keys["request"] else {
            reader.report("'traffic' needs 'request'", at: node)
            return nil
        }
        guard let request = pattern(requestNode) else { return nil }
        if keys["count"] == nil && keys["answers"] == nil && keys["same"] == nil {
            reader.report("'traffic' needs 'count', 'answers' or 'same'", at: node)
        }
        var between: (TimeReference, TimeReference)?
        if let node = keys["between"] {
            let ends = list(node).compactMap(reference)
            if ends.count == 2 {
                between = (ends[0], ends[1])
            } else {
                reader.report("'between' needs two times or marks, such as [20s, shown]", at: node)
            }
        }
        let responses = keys["answers"].map { list($0).compactMap(response) }
        let same = keys["same"].map { node in
            list(node).compactMap { reader.value($0, as: Expectation.Traffic.Sameness.self) }
        }
        return Expectation.Traffic(
            request: request, from: keys["from"].flatMap(actor),
            seen: keys["seen"].flatMap { reader.value($0, as: Expectation.Traffic.Seen.self) } ?? .server,
            between: between, count: keys["count"].flatMap(count), responses: responses, same: same ?? [])
    }

    private func actor(_ node: Node) -> String? {
        let names = deviceNames + writerNames
        guard let name = reader.text(node, expected: "a device or writer") else { return nil }
        guard names.contains(name) else {
            reader.report(
                "no device or writer is called '\(name.prefix(40))'\(NearestName.hint(name, in: names))", at: node)
            return nil
        }
        return name
    }

    private func reference(_ node: Node) -> TimeReference? {
        guard let text = node.scalar?.string else {
            reader.report("expected a time or a mark", at: node)
            return nil
        }
        if text.first?.isNumber == true { return time(node).map { .time($0) } }
        return knownMark(node).map { .mark($0) }
    }

    private func count(_ node: Node) -> Expectation.Traffic.Count? {
        guard node.mapping != nil else {
            return number(node, "a number, or {min: .., max: ..}").map { .range($0...$0) }
        }
        guard let keys = reader.mapping(node, keys: ["min", "max"], in: "'count'") else { return nil }
        let least = keys["min"].flatMap { number($0, "a whole number") } ?? 0
        if keys["max"]?.scalar?.string == "budget" { return .budget(min: least) }
        let most = keys["max"].flatMap { number($0, "a whole number, or budget") } ?? .max
        guard least <= most else {
            reader.report("'min' is greater than 'max'", at: node)
            return nil
        }
        return .range(least...most)
    }

    private func response(_ node: Node) -> Expectation.Traffic.Response? {
        let expected = "a status, 2xx, lost or none"
        guard let text = reader.text(node, expected: expected) else { return nil }
        switch text {
        case "lost": return .lost
        case "none": return Expectation.Traffic.Response.none
        default: break
        }
        if text.count == 3, text.hasSuffix("xx"), let digit = Int(text.prefix(1)), (1...5).contains(digit) {
            return .statusClass(digit)
        }
        if let status = Int(text), (100...599).contains(status) { return .status(status) }
        reader.report("'\(text.prefix(40))': expected \(expected)", at: node)
        return nil
    }

    private func eventually(_ node: Node) -> [Expectation] {
        guard let keys = reader.mapping(node, keys: ["by", "after", "within"] + deviceNames, in: "'eventually'") else {
            return []
        }
        let window: Expectation.Window
        if let by = keys["by"] {
            guard let time = time(by) else { return [] }
            window = .by(time)
        } else if let after = keys["after"], let within = keys["within"] {
            guard let mark = knownMark(after), let span = time(within) else { return [] }
            window = .after(mark, within: span)
        } else {
            reader.report("'eventually' needs 'by', or 'after' and 'within'", at: node)
            return []
        }
        var found: [Expectation] = []
        for device in deviceNames {
            if let state = keys[device], let condition = condition(state) {
                found.append(Expectation(.eventually(device: device, condition, window), location: location(node)))
            }
        }
        if deviceNames.allSatisfy({ keys[$0] == nil }) { reader.report("'eventually' needs a device", at: node) }
        return found
    }

    private func finally(_ node: Node) -> [Expectation] {
        guard let keys = reader.mapping(node, keys: ["server", "agree"] + deviceNames, in: "'finally'") else {
            return []
        }
        var found: [Expectation] = []
        for (key, value) in keys["server"]?.mapping ?? [:] {
            if key.scalar?.string == "count" {
                if let count = number(value, "a whole number") {
                    found.append(Expectation(.serverCount(count), location: location(key)))
                }
                continue
            }
            guard let row = knownRow(key),
                let parts = reader.mapping(value, keys: ["revision", "title", "text"], in: "'\(row)'")
            else { continue }
            found.append(
                Expectation(
                    .serverRow(
                        row: row, revision: parts["revision"].flatMap { number($0, "a whole number") },
                        title: parts["title"].flatMap { reader.text($0, expected: "a text") },
                        text: parts["text"].flatMap { reader.text($0, expected: "a text") }), location: location(key)))
        }
        for device in deviceNames {
            if let state = keys[device], let condition = condition(state) {
                found.append(Expectation(.finally(device: device, condition), location: location(state)))
            }
        }
        if let agree = keys["agree"] {
            let names = list(agree).compactMap { $0.scalar?.string == "server" ? "server" : knownDevice($0) }
            if names.count < 2 { reader.report("'agree' needs at least two names, such as [A, server]", at: agree) }
            found.append(Expectation(.agree(names), location: location(agree)))
        }
        return found
    }

    // MARK: States

    /// Reads conditions by device.
    func states(_ node: Node, in context: String) -> [(device: String, condition: StateCondition)] {
        guard let keys = reader.mapping(node, keys: deviceNames, in: context) else { return [] }
        return deviceNames.compactMap { device in
            keys[device].flatMap(condition).map { (device, $0) }
        }
    }

    private func condition(_ node: Node) -> StateCondition? {
        let checks = StateCondition.Check.Key.allCases.map(\.rawValue)
        guard let keys = reader.mapping(node, keys: ["row"] + checks + ["since", "until"], in: "a state")
        else {
            return nil
        }
        let row = keys["row"].flatMap(knownRow)
        if keys["row"] != nil && row == nil { return nil }
        var found: [StateCondition.Check] = []
        for key in StateCondition.Check.Key.allCases {
            guard let value = keys[key.rawValue] else { continue }
            if row == nil && key != .outbox && key != .pending {
                reader.report("'\(key.rawValue)' needs 'row'", at: value)
                continue
            }
            if let check = check(key, value) { found.append(check) }
        }
        if found.count > 1, found.contains(where: { $0.key == .present && ($0.value == "true") == $0.isNegated }) {
            reader.report("an absent note has no other state", at: node)
        }
        if found.isEmpty {
            reader.report("expected one of \(checks.joined(separator: ", "))", at: node)
            return nil
        }
        return StateCondition(
            row: row, checks: found, since: keys["since"].flatMap(reference), until: keys["until"].flatMap(reference))
    }

    private func check(_ key: StateCondition.Check.Key, _ node: Node) -> StateCondition.Check? {
        var value = node
        var isNegated = false
        if node.mapping != nil {
            guard let parts = reader.mapping(node, keys: ["not"], in: "'\(key.rawValue)'"), let not = parts["not"]
            else {
                return nil
            }
            value = not
            isNegated = true
        }
        let text: String?
        switch key {
        case .icon: text = oneOf(value, ["none", "upload", "conflict", "error"])
        case .pending, .present: text = oneOf(value, ["true", "false"])
        case .outbox: text = number(value, "a whole number").map(String.init)
        case .text, .title, .keeps: text = reader.text(value, expected: "a text")
        }
        return text.map { StateCondition.Check(key: key, value: $0, isNegated: isNegated) }
    }
}
