internal import Determinism
internal import Scenario

/// Expectations.
extension ScenarioWriter {
    static func expect(_ scenario: Scenario) throws(UnsupportedError) -> YAMLTree {
        var sections: [String: [YAMLTree]] = [:]
        var finally = FinalValues()
        var thresholds: [YAMLTree.Entry] = []
        for expectation in scenario.expectations {
            func add(_ section: String, _ item: YAMLTree) { sections[section, default: []].append(item) }
            func add(_ section: String, _ device: String, _ condition: StateCondition) {
                add(section, braces([entry(device, state(condition))]))
            }
            switch expectation.kind {
            case .traffic(let traffic): add("traffic", self.traffic(traffic))
            case .always(let device, let condition): add("always", device, condition)
            case .sometimes(let device, let condition): add("sometimes", device, condition)
            case .sometimesTraffic(let traffic): add("sometimes", self.traffic(traffic))
            case .sometimesFault(let pattern):
                var entries: [YAMLTree.Entry] = []
                if let point = pattern.point { entries.append(entry("point", .word(point.rawValue))) }
                if let request = pattern.request { entries.append(entry("request", self.pattern(request))) }
                add("sometimes", braces([entry("fault", braces(entries))]))
            case .eventually(let device, let condition, let window):
                var entries: [YAMLTree.Entry]
                switch window {
                case .by(let time): entries = [entry("by", time)]
                case .after(let mark, let within): entries = [entry("after", .word(mark)), entry("within", within)]
                }
                entries.append(entry(device, state(condition)))
                add("eventually", braces(entries))
            case .threshold(let threshold):
                let bounds = threshold.bounds.map { bound in
                    entry(
                        bound.statistic.rawValue,
                        .word(threshold.metric.isTime ? QuantityText.time(Nanoseconds(bound.max)) : "\(bound.max)"))
                }
                if thresholds.contains(where: { $0.key.flow == threshold.metric.rawValue }) {
                    throw UnsupportedError(description: "two thresholds of \(threshold.metric.rawValue)")
                }
                thresholds.append(entry(threshold.metric.rawValue, braces(bounds)))
            case .serverRow, .serverCount, .finally, .agree: try finally.add(expectation.kind)
            }
        }
        var entries = ["traffic", "always", "sometimes", "eventually"].compactMap { section in
            sections[section].map { entry(section, .list($0, isFlow: false)) }
        }
        if let tree = finally.tree(scenario) { entries.append(entry("finally", tree)) }
        if !thresholds.isEmpty { entries.append(entry("thresholds", .mapping(thresholds, isFlow: false))) }
        return .mapping(entries, isFlow: false)
    }

    // MARK: The end

    /// The values at the end.
    private struct FinalValues {
        private var server: [YAMLTree.Entry] = []
        private var devices: [String: [YAMLTree]] = [:]
        private var agree: [String]?
        private var seen: Set<String> = []

        mutating func add(_ kind: Expectation.Kind) throws(UnsupportedError) {
            switch kind {
            case .serverRow(let row, let revision, let title, let text):
                guard seen.insert(row).inserted else {
                    throw UnsupportedError(description: "two expectations of the note \(row) on the server")
                }
                var entries = revision.map { [ScenarioWriter.entry("revision", $0)] } ?? []
                entries += ScenarioWriter.content(title: title, text: text)
                server.append(ScenarioWriter.entry(row, ScenarioWriter.braces(entries)))
            case .serverCount(let count):
                guard seen.insert("count").inserted else {
                    throw UnsupportedError(description: "two expectations of the number of notes")
                }
                server.insert(ScenarioWriter.entry("count", count), at: 0)
            case .finally(let device, let condition):
                devices[device, default: []].append(ScenarioWriter.state(condition))
            case .agree(let names):
                guard agree == nil else { throw UnsupportedError(description: "two expectations of agreement") }
                agree = names
            default: break
            }
        }

        func tree(_ scenario: Scenario) -> YAMLTree? {
            var entries: [YAMLTree.Entry] = []
            if !server.isEmpty {
                entries.append(ScenarioWriter.entry("server", .mapping(server, isFlow: server.count == 1)))
            }
            for name in scenario.devices.map(\.name) {
                guard let states = devices[name] else { continue }
                entries.append(
                    ScenarioWriter.entry(name, states.count == 1 ? states[0] : .list(states, isFlow: false)))
            }
            if let agree {
                entries.append(ScenarioWriter.entry("agree", ScenarioWriter.brackets(agree.map { .word($0) })))
            }
            return entries.isEmpty ? nil : .mapping(entries, isFlow: false)
        }
    }

    // MARK: States

    static func state(_ condition: StateCondition) -> YAMLTree {
        var entries: [YAMLTree.Entry] = []
        if let row = condition.row { entries.append(entry("row", .word(row))) }
        // The order of the format, which is not that of the evaluation.
        let order = ScenarioFormat.object("state").keys.map(\.name)
        func rank(_ check: StateCondition.Check) -> Int { order.firstIndex(of: check.key.rawValue) ?? 0 }
        for check in condition.checks.sorted(by: { rank($0) < rank($1) }) {
            let isText = [.text, .title, .keeps, .screen, .control, .dialog, .toast, .error, .field].contains(check.key)
            let value: YAMLTree = isText ? .text(check.value) : .word(check.value)
            entries.append(entry(check.key.rawValue, check.isNegated ? braces([entry("not", value)]) : value))
        }
        if let since = condition.since { entries.append(entry("since", reference(since))) }
        if let until = condition.until { entries.append(entry("until", reference(until))) }
        return braces(entries)
    }

    private static func reference(_ reference: TimeReference) -> YAMLTree {
        switch reference {
        case .time(let time): .word(QuantityText.time(time))
        case .mark(let mark): .word(mark)
        case .end: .word(TimeReference.endName)
        }
    }

    // MARK: Traffic

    private static func traffic(_ traffic: Expectation.Traffic) -> YAMLTree {
        var entries = [entry("request", pattern(traffic.request))]
        if let from = traffic.from { entries.append(entry("from", .word(from))) }
        if traffic.seen != .server { entries.append(entry("seen", .word(traffic.seen.rawValue))) }
        if let (from, to) = traffic.between {
            entries.append(entry("between", brackets([reference(from), reference(to)])))
        }
        if let during = traffic.during { entries.append(entry("during", .text(during.description))) }
        switch traffic.count {
        case .range(let range)?: entries.append(entry("count", self.range(range)))
        case .budget(let least)?:
            entries.append(
                entry("count", braces((least > 0 ? [entry("min", least)] : []) + [entry("max", .word("budget"))])))
        case nil: break
        }
        if let attempts = traffic.attempts { entries.append(entry("attempts", range(attempts))) }
        if let responses = traffic.responses {
            entries.append(entry("responses", brackets(responses.map { .word($0.description) })))
        }
        if !traffic.same.isEmpty {
            entries.append(entry("same", brackets(traffic.same.map { .word($0.rawValue) })))
        }
        if let order = traffic.order {
            let items = order.map { item in
                item.method == nil && item.row != nil ? YAMLTree.word(item.row ?? "any") : pattern(item)
            }
            entries.append(entry("order", brackets(items)))
        }
        if let duplicates = traffic.duplicates { entries.append(entry("duplicates", duplicates)) }
        if let bytes = traffic.bytesDown { entries.append(entry("bytes-down", range(bytes))) }
        if let bytes = traffic.bytesUp { entries.append(entry("bytes-up", range(bytes))) }
        return braces(entries)
    }

    private static func range(_ range: ClosedRange<Int>) -> YAMLTree {
        if range.lowerBound == range.upperBound { return .word("\(range.lowerBound)") }
        var entries: [YAMLTree.Entry] = []
        if range.lowerBound > 0 || range.upperBound == .max { entries.append(entry("min", range.lowerBound)) }
        if range.upperBound < .max { entries.append(entry("max", range.upperBound)) }
        return braces(entries)
    }
}
