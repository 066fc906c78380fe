internal import Determinism
internal import Scenario
internal import Yams

/// Reads expectations.
extension ScenarioReader {
    func expectations(_ node: Node) -> [Expectation] {
        guard let fields = fields(node, "expect") else { return [] }
        var found: [Expectation] = []
        for item in fields.list("traffic") {
            if let traffic = self.fields(item, "traffic").flatMap(traffic) {
                found.append(Expectation(.traffic(traffic), location: location(item)))
            }
        }
        for item in fields.list("always") {
            for (device, condition) in states(item, in: "'always'") {
                found.append(Expectation(.always(device: device, condition), location: location(item)))
            }
        }
        for item in fields.list("sometimes") { found += sometimes(item) }
        for item in fields.list("eventually") { found += eventually(item) }
        if let last = fields["finally"] { found += finally(last) }
        for (key, value) in entries(fields["thresholds"], expected: "a mapping from metrics to bounds") {
            if let threshold = threshold(key, value) {
                found.append(Expectation(.threshold(threshold), location: location(key)))
            }
        }
        if found.isEmpty && fields.values.count == node.mapping?.count {
            reader.report("'expect' has no expectation", at: node)
        }
        return found
    }

    // MARK: Traffic

    private func traffic(_ fields: ScenarioFields) -> Expectation.Traffic? {
        let request = fields["request"].flatMap(pattern)
        let checks = ScenarioFormat.object("traffic").atLeastOne
        if checks.allSatisfy({ fields[$0] == nil }), fields.values.count == fields.node.mapping?.count {
            reader.report("\(fields.object.title) needs one of \(checks.joined(separator: ", "))", at: fields.node)
        }
        var between: (TimeReference, TimeReference)?
        if let node = fields["between"] {
            let nodes = list(node)
            let ends = nodes.enumerated().compactMap { $0.offset > 0 ? windowEnd($0.element) : reference($0.element) }
            if ends.count == 2 {
                between = (ends[0], ends[1])
            } else if nodes.count != 2 {
                reader.report("'between' needs two times or marks, such as [20s, shown]", at: node)
            }
        }
        let from = fields["from"].flatMap(knownActor)
        let seen = fields.choice("seen").flatMap(Expectation.Traffic.Seen.init(rawValue:)) ?? .server
        let count = fields["count"].flatMap(count)
        let attempts = fields["attempts"].flatMap(attempts)
        if let node = fields["attempts"], let request, request.method != nil || request.row != nil {
            reader.report("'attempts' needs 'request: any': an attempt to connect has no request", at: node)
        }
        let responses = fields["responses"].map { _ in fields.list("responses").compactMap(response) }
        let same = fields.list("same").compactMap { node in
            oneOf(node, Expectation.Traffic.Sameness.allCases.map(\.rawValue))
                .flatMap(Expectation.Traffic.Sameness.init(rawValue:))
        }
        let during = fields["during"].flatMap(during)
        let order = fields["order"].map { _ in fields.list("order").compactMap(orderItem) }
        let duplicates = fields.integer("duplicates")
        let down = fields["bytes-down"].flatMap(bytes)
        let up = fields["bytes-up"].flatMap(bytes)
        guard let request else { return nil }
        return Expectation.Traffic(
            request: request, from: from, seen: seen, between: between, count: count, responses: responses, same: same,
            during: during, order: order, duplicates: duplicates, bytesDown: down, bytesUp: up, attempts: attempts)
    }

    private func attempts(_ node: Node) -> ClosedRange<Int>? {
        guard node.mapping != nil else { return number(node, "a number, or {min: .., max: ..}").map { $0...$0 } }
        guard let fields = fields(node, "attempts") else { return nil }
        return range(fields, node, "'attempts'", fields.integer)
    }

    /// Returns the range of the keys `min` and `max`.
    private func range(
        _ fields: ScenarioFields, _ node: Node, _ what: String, _ value: (String) -> Int?
    ) -> ClosedRange<Int>? {
        guard fields["min"] != nil || fields["max"] != nil else {
            reader.report("\(what) needs 'min' or 'max'", at: node)
            return nil
        }
        let least = value("min") ?? 0
        let most = value("max") ?? .max
        guard least <= most else {
            reader.report("'min' is greater than 'max'", at: node)
            return nil
        }
        return least...most
    }

    private func count(_ node: Node) -> Expectation.Traffic.Count? {
        guard node.mapping != nil else {
            return number(node, "a number, or {min: .., max: ..}").map { .range($0...$0) }
        }
        guard let fields = fields(node, "count") else { return nil }
        guard fields["min"] != nil || fields["max"] != nil else {
            reader.report("'count' needs 'min' or 'max'", at: node)
            return nil
        }
        let least = fields.integer("min") ?? 0
        if fields["max"]?.scalar?.string == "budget" { return .budget(min: least) }
        let most = fields["max"].map { number($0, "a whole number, or budget") ?? .max } ?? .max
        guard least <= most else {
            reader.report("'min' is greater than 'max'", at: node)
            return nil
        }
        return .range(least...most)
    }

    private func bytes(_ node: Node) -> ClosedRange<Int>? {
        guard node.mapping != nil else { return size(node).map { $0...$0 } }
        guard let fields = fields(node, "bytes") else { return nil }
        return range(fields, node, "a number of bytes", fields.size)
    }

    private func response(_ node: Node) -> Expectation.Traffic.Response? {
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

    private func during(_ node: Node) -> Expectation.Traffic.During? {
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

    private func orderItem(_ node: Node) -> RequestPattern? {
        if let name = node.scalar?.string, rows.contains(name) { return RequestPattern(method: nil, row: name) }
        return pattern(node)
    }

    // MARK: Other sections

    private func sometimes(_ node: Node) -> [Expectation] {
        guard let fields = fields(node, "sometimes", names: deviceNames, requires: false) else { return [] }
        let matching = ScenarioFormat.object("traffic").keys.map(\.name).filter { fields[$0] != nil }
        if let pattern = fields["fault"] {
            guard fields.values.count == 1 else {
                reader.report("'fault' stands alone in an entry of 'sometimes'", at: pattern)
                return []
            }
            return faultPattern(pattern).map { [Expectation(.sometimesFault($0), location: location(node))] } ?? []
        }
        if !matching.isEmpty {
            guard fields["request"] != nil else {
                reader.report("'\(matching[0])' needs 'request'", at: node)
                return []
            }
            guard matching.count == fields.values.count else {
                reader.report("an entry of 'sometimes' is either about requests or about states", at: node)
                return []
            }
            return traffic(fields).map { [Expectation(.sometimesTraffic($0), location: location(node))] } ?? []
        }
        return states(fields, in: "'sometimes'").map {
            Expectation(.sometimes(device: $0.device, $0.condition), location: location(node))
        }
    }

    private func faultPattern(_ node: Node) -> Expectation.FaultPattern? {
        guard let fields = fields(node, "fault-pattern") else { return nil }
        let point = fields.choice("point").flatMap(Scenario.Fault.Point.init(rawValue:))
        return Expectation.FaultPattern(
            point: point == .any ? nil : point, request: fields["request"].flatMap(pattern))
    }

    private func eventually(_ node: Node) -> [Expectation] {
        guard let fields = fields(node, "eventually", names: deviceNames) else { return [] }
        let window: Expectation.Window
        if let by = fields["by"] {
            if let other = fields["after"] ?? fields["within"] {
                reader.report("'eventually' has either 'by', or 'after' and 'within'", at: other)
            }
            guard let time = time(by) else { return [] }
            window = .by(time)
        } else if let after = fields["after"], let within = fields["within"] {
            guard let mark = knownMark(after), let span = time(within) else { return [] }
            window = .after(mark, within: span)
        } else {
            reader.report("'eventually' needs 'by', or 'after' and 'within'", at: node)
            return []
        }
        return states(fields, in: "'eventually'").map {
            Expectation(.eventually(device: $0.device, $0.condition, window), location: location(node))
        }
    }

    private func finally(_ node: Node) -> [Expectation] {
        guard let fields = fields(node, "finally", names: deviceNames) else { return [] }
        var found: [Expectation] = []
        for (key, value) in entries(fields["server"], expected: "a mapping with 'count' and notes") {
            if key.scalar?.string == "count" {
                if let count = number(value, "a whole number") {
                    found.append(Expectation(.serverCount(count), location: location(key)))
                }
                continue
            }
            guard let row = knownRow(key), let parts = self.fields(value, "row-end") else { continue }
            if parts.object.atLeastOne.allSatisfy({ parts[$0] == nil }), value.mapping?.isEmpty ?? true {
                reader.report("'\(row)' needs one of revision, title, text", at: value)
            }
            found.append(
                Expectation(
                    .serverRow(
                        row: row, revision: parts.integer("revision"), title: parts.text("title"),
                        text: parts.text("text")), location: location(key)))
        }
        for device in deviceNames {
            guard let node = fields[device] else { continue }
            for state in node.sequence.map({ Array($0) }) ?? [node] {
                guard let condition = condition(state, of: device) else { continue }
                found.append(Expectation(.finally(device: device, condition), location: location(state)))
            }
        }
        if let agree = fields["agree"] {
            let names = list(agree).compactMap { $0.scalar?.string == "server" ? "server" : knownDevice($0) }
            if list(agree).count < 2 {
                reader.report("'agree' needs at least two names, such as [A, server]", at: agree)
            }
            if Set(names).count < names.count { reader.report("'agree' has a name twice", at: agree) }
            found.append(Expectation(.agree(names), location: location(agree)))
        }
        return found
    }

    private func threshold(_ key: Node, _ value: Node) -> Threshold? {
        let names = Threshold.Metric.allCases.map(\.rawValue)
        guard let name = reader.text(key, expected: "a metric") else { return nil }
        guard let metric = Threshold.Metric(rawValue: name) else {
            reader.report(
                "no metric is called '\(name.prefix(40))'\(NearestName.hint(name, in: names)) "
                    + "(known: \(names.joined(separator: ", ")))", at: key)
            return nil
        }
        guard let fields = fields(value, "threshold") else { return nil }
        var bounds: [Threshold.Bound] = []
        for statistic in Threshold.Statistic.allCases {
            guard let node = fields[statistic.rawValue] else { continue }
            let most =
                metric.isTime
                ? time(node)?.count : number(node, "a whole number").map(Int64.init)
            if let most { bounds.append(Threshold.Bound(statistic, max: most)) }
        }
        if bounds.isEmpty && fields.values.isEmpty && value.mapping?.isEmpty ?? false {
            reader.report("a threshold needs one of \(fields.object.atLeastOne.joined(separator: ", "))", at: value)
        }
        return Threshold(metric, bounds)
    }
}
