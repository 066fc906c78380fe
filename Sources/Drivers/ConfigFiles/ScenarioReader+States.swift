internal import Scenario
internal import Yams

/// Checks of states of devices.
extension ScenarioReader {
    /// Reads the state that a mapping has for a device.
    func state(of device: String, _ fields: ScenarioFields) -> DeviceState? {
        guard let node = fields[device] else { return nil }
        subject = device
        return ScenarioFormat.state.read(node, self).map { DeviceState(device, $0) }
    }

    /// Reads states of devices.
    func states(_ node: Node, in context: String) -> [DeviceState]? {
        guard let fields = fields(node, ScenarioFormat.states.object, names: deviceNames) else { return nil }
        checkHasState(fields, in: context)
        return ScenarioFormat.states.read(fields)
    }

    /// Reports a mapping without a state.
    func checkHasState(_ fields: ScenarioFields, in context: String) {
        if fields.knowsAllKeys, ([Scenario.anyDevice] + deviceNames).allSatisfy({ fields[$0] == nil }) {
            fields.report("\(context) needs a device, or any")
        }
    }

    /// Reads the state of one device.
    func oneState(_ node: Node, in context: String) -> DeviceState? {
        let states = states(node, in: context) ?? []
        if states.count > 1 { reader.report("\(context) has the state of one device; write a step for each", at: node) }
        if let node = node.mapping?.first?.value.mapping?.first(where: { $0.key.scalar?.string == "since" })?.key {
            reader.report("\(context) has no 'since'", at: node)
        }
        return states.first
    }

    /// Returns whether a check has its note; reports a missing one. In a condition of any device, `icon` may be that of any
    /// note.
    func isAboutNote(_ key: StateCondition.Check.Key, _ node: Node, _ fields: ScenarioFields) -> Bool {
        let needNote: [StateCondition.Check.Key] = [.present, .icon, .text, .title, .keeps, .opacity, .strike]
        guard fields["row"] == nil, needNote.contains(key), key != .icon || subject != Scenario.anyDevice else {
            return true
        }
        reader.report("'\(key.rawValue)' needs 'row'", at: node)
        return false
    }

    /// Reports a state without a check, and one of an absent note.
    func check(_ condition: inout StateCondition, _ fields: ScenarioFields) -> Bool {
        let keys = StateCondition.Check.Key.allCases
        // The order of the evaluation, which is not that of the format.
        condition.checks.sort { (keys.firstIndex(of: $0.key) ?? 0) < (keys.firstIndex(of: $1.key) ?? 0) }
        let checks = condition.checks
        if checks.count > 1, checks.contains(where: { $0.key == .present && ($0.value == "true") == $0.isNegated }) {
            fields.report("an absent note has no other state")
        }
        if checks.isEmpty, fields.isWhole, fields.knowsAllKeys {
            fields.report("expected one of \(keys.map(\.rawValue).joined(separator: ", "))")
        }
        return !checks.isEmpty
    }

    /// Reads a decimal number from 0 to 1.
    func fraction(_ node: Node) -> String? {
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
