internal import Determinism
internal import Scenario
internal import Yams

/// Reads states of devices.
extension ScenarioReader {
    /// Reads conditions by device.
    func states(_ node: Node, in context: String) -> [(device: String, condition: StateCondition)] {
        guard let fields = fields(node, "states", names: deviceNames) else { return [] }
        return states(fields, in: context)
    }

    /// Reads the conditions in a mapping; `any` stands for at least one device.
    func states(_ fields: ScenarioFields, in context: String) -> [(device: String, condition: StateCondition)] {
        let names = [Scenario.anyDevice] + deviceNames
        if names.allSatisfy({ fields[$0] == nil }), fields.values.count == fields.node.mapping?.count {
            reader.report("\(context) needs a device, or any", at: fields.node)
        }
        return names.compactMap { name in
            fields[name].flatMap { condition($0, of: name) }.map { (name, $0) }
        }
    }

    /// Reads a condition.
    ///
    /// - Parameter device: The device. In a condition of any device, `icon` may be that of any note.
    func condition(_ node: Node, of device: String) -> StateCondition? {
        let isOfAny = device == Scenario.anyDevice
        guard let fields = fields(node, "state") else { return nil }
        let row = fields["row"].flatMap(knownRow)
        if fields["row"] != nil && row == nil { return nil }
        let needRow: [StateCondition.Check.Key] = [.present, .icon, .text, .title, .keeps, .opacity, .strike]
        var found: [StateCondition.Check] = []
        var hasErrors = fields.values.count < node.mapping?.count ?? 0
        for key in StateCondition.Check.Key.allCases {
            guard let value = fields[key.rawValue] else { continue }
            if row == nil && needRow.contains(key) && !(isOfAny && key == .icon) {
                reader.report("'\(key.rawValue)' needs 'row'", at: value)
                hasErrors = true
                continue
            }
            if let check = check(key, value, of: device) { found.append(check) } else { hasErrors = true }
        }
        if found.count > 1, found.contains(where: { $0.key == .present && ($0.value == "true") == $0.isNegated }) {
            reader.report("an absent note has no other state", at: node)
        }
        if found.isEmpty {
            if !hasErrors {
                let checks = StateCondition.Check.Key.allCases.map(\.rawValue)
                reader.report("expected one of \(checks.joined(separator: ", "))", at: node)
            }
            return nil
        }
        return StateCondition(
            row: row, checks: found, since: fields["since"].flatMap(reference),
            until: fields["until"].flatMap(reference))
    }

    private func check(
        _ key: StateCondition.Check.Key, _ node: Node, of device: String
    ) -> StateCondition.Check? {
        var value = node
        var isNegated = false
        if node.mapping != nil {
            let object =
                switch key {
                case .icon: "not-icon"
                case .pending, .present, .strike: "not-boolean"
                case .outbox: "not-number"
                case .opacity: "not-fraction"
                case .marker: "not-marker"
                default: "not-text"
                }
            guard let not = fields(node, object)?["not"] else { return nil }
            value = not
            isNegated = true
        }
        let text: String?
        switch key {
        case .icon: text = oneOf(value, ["none", "upload", "conflict", "error"])
        case .pending, .present, .strike: text = boolean(value).map { $0 ? "true" : "false" }
        case .outbox: text = integer(value, 0...ScenarioFormat.numberMax).map(String.init)
        case .opacity: text = fraction(value)
        case .marker: text = oneOf(value, AppVocabulary.markers)
        case .text, .title, .keeps, .screen, .control, .dialog, .toast, .error, .field: text = self.text(value)
        }
        if let text { checkValue(text, of: key, value, on: device) }
        return text.map { StateCondition.Check(key: key, value: $0, isNegated: isNegated) }
    }

    /// Reads a decimal number from 0 to 1.
    private func fraction(_ node: Node) -> String? {
        let expected = ScenarioFormat.text(of: .fraction)
        guard let text = reader.text(node, expected: expected) else { return nil }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        let areDigits = parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } }
        guard areDigits, parts.count <= 2, text.utf8.count <= 10, let value = Double(text), (0...1).contains(value)
        else {
            reader.report("'\(text.prefix(40))': expected \(expected)", at: node)
            return nil
        }
        // "0.50" is "0.5", and "1.0" is "1".
        let decimals = parts.count == 2 ? parts[1].reversed().drop { $0 == "0" }.reversed() : []
        return (value < 1 ? "0" : "1") + (decimals.isEmpty ? "" : "." + String(decimals))
    }
}
