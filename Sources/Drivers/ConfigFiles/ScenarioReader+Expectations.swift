internal import Determinism
internal import Scenario
internal import Yams

/// Reads parts of expectations that depend on each other, and checks them.
extension ScenarioReader {
    // MARK: Traffic

    /// Reports a condition without a number or a list, and attempts of certain requests.
    func check(_ traffic: Expectation.Traffic, _ fields: ScenarioFields) -> Bool {
        let checks = ScenarioFormat.traffic.object.atLeastOne
        if checks.allSatisfy({ fields[$0] == nil }), fields.knowsAllKeys {
            fields.report("\(fields.object.title) needs one of \(checks.joined(separator: ", "))")
        }
        if let node = fields["attempts"], traffic.request != .any {
            reader.report("'attempts' needs 'request: any': an attempt to connect has no request", at: node)
        }
        return true
    }

    func window(_ node: Node) -> TrafficWindow? {
        let nodes = list(node)
        let ends = nodes.enumerated().compactMap { $0.offset > 0 ? windowEnd($0.element) : reference($0.element) }
        if ends.count == 2 { return TrafficWindow(from: ends[0], to: ends[1]) }
        if nodes.count != 2 { reader.report("'between' needs two times or marks, such as [20s, shown]", at: node) }
        return nil
    }

    /// Returns a range; reports one that ends before it begins.
    func range(_ least: Int, _ most: Int, at node: Node) -> ClosedRange<Int>? {
        guard least <= most else {
            reader.report("'min' is greater than 'max'", at: node)
            return nil
        }
        return least...most
    }

    func response(_ node: Node) -> Expectation.Traffic.Response? {
        let expected = ScenarioFormat.text(of: .response)
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

    func during(_ node: Node) -> Expectation.Traffic.During? {
        guard let name = reader.text(node, expected: "flap, or the name of a link") else { return nil }
        if name == "flap" { return .flap }
        // Aliases are read as the names of their profiles.
        let link = ProfileCatalogue.builtInProfile(named: name)?.id ?? TextFile.stem(name)
        guard links.contains(link) else {
            reader.report(
                "no network has a link '\(name.prefix(40))'\(NearestName.hint(name, in: links.sorted() + ["flap"]))",
                at: node)
            return nil
        }
        return .link(link)
    }

    func requestOrRow(_ node: Node) -> RequestPattern? {
        if let name = node.scalar?.string, rows.contains(name) { return RequestPattern(method: nil, row: name) }
        return pattern(node)
    }

    // MARK: Sometimes and eventually

    /// Reads the requests of an entry of `sometimes`; reports an entry that is about several things.
    func check(_ entry: inout Sometimes, _ fields: ScenarioFields) -> Bool {
        let matching = ScenarioFormat.traffic.keys.map(\.entry.name).filter { fields[$0] != nil }
        if let pattern = fields["fault"] {
            if fields.values.count == 1 { return entry.fault != nil }
            reader.report("'fault' stands alone in an entry of 'sometimes'", at: pattern)
            return false
        }
        guard let first = matching.first else {
            checkHasState(fields, in: "'sometimes'")
            return true
        }
        guard fields["request"] != nil else {
            fields.report("'\(first)' needs 'request'")
            return false
        }
        guard matching.count == fields.values.count else {
            fields.report("an entry of 'sometimes' is either about requests or about states")
            return false
        }
        entry.traffic = ScenarioFormat.traffic.read(fields)
        return entry.traffic != nil
    }

    /// Reports an entry of `eventually` without a window, with two, or without a state.
    func checkEventually(_ fields: ScenarioFields) -> Bool {
        if fields["by"] != nil {
            if let other = fields["after"] ?? fields["within"] {
                reader.report("'eventually' has either 'by', or 'after' and 'within'", at: other)
            }
        } else if fields["after"] == nil || fields["within"] == nil {
            fields.report("'eventually' needs 'by', or 'after' and 'within'")
            return false
        }
        checkHasState(fields, in: "'eventually'")
        return true
    }

    // MARK: The end

    /// Reads the number of notes on the server and their values.
    func readServerEnd(_ node: Node?, _ expectations: inout [Expectation]) -> Bool {
        for (key, value) in entries(node, expected: "a mapping with 'count' and notes") {
            if key.scalar?.string == "count" {
                if let count = number(value, "a whole number") {
                    expectations.append(Expectation(.serverCount(count), location: location(key)))
                }
                continue
            }
            guard let row = knownRow(key), let end = ScenarioFormat.rowEnd.read(value, self) else { continue }
            if value.mapping?.isEmpty ?? true {
                let keys = ScenarioFormat.rowEnd.object.atLeastOne.joined(separator: ", ")
                reader.report("'\(row)' needs one of \(keys)", at: value)
            }
            expectations.append(
                Expectation(
                    .serverRow(row: row, revision: end.revision, title: end.title, text: end.text),
                    location: location(key)))
        }
        return true
    }

    func readLastStates(_ fields: ScenarioFields, _ expectations: inout [Expectation]) -> Bool {
        for device in deviceNames {
            guard let node = fields[device] else { continue }
            subject = device
            for item in node.sequence.map({ Array($0) }) ?? [node] {
                guard let state = ScenarioFormat.state.read(item, self) else { continue }
                expectations.append(Expectation(.finally(device: device, state), location: location(item)))
            }
        }
        return true
    }

    func readAgreement(_ node: Node?, _ expectations: inout [Expectation]) -> Bool {
        guard let node else { return true }
        let names = list(node).compactMap { $0.scalar?.string == "server" ? "server" : knownDevice($0) }
        if list(node).count < 2 {
            reader.report("'agree' needs at least two names, such as [A, server]", at: node)
        }
        if Set(names).count < names.count { reader.report("'agree' has a name twice", at: node) }
        expectations.append(Expectation(.agree(names), location: location(node)))
        return true
    }

    func readThresholds(_ node: Node?, _ expectations: inout [Expectation]) -> Bool {
        let names = Threshold.Metric.allCases.map(\.rawValue)
        for (key, value) in entries(node, expected: "a mapping from metrics to bounds") {
            guard let name = reader.text(key, expected: "a metric") else { continue }
            guard let metric = Threshold.Metric(rawValue: name) else {
                reader.report(
                    "no metric is called '\(name.prefix(40))'\(NearestName.hint(name, in: names)) "
                        + "(known: \(names.joined(separator: ", ")))", at: key)
                continue
            }
            guard let fields = fields(value, ScenarioFormat.threshold.object),
                let threshold = ScenarioFormat.threshold.read(fields, into: Threshold(metric, []))
            else { continue }
            expectations.append(Expectation(.threshold(threshold), location: location(key)))
        }
        return true
    }
}
