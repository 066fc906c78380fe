internal import ScenarioModel
internal import Yams

/// What the reference client cannot do or show. A program can do anything.
extension ScenarioReader {
    /// Returns whether the client of a device has a call; reports an unknown one, and wrong arguments.
    func isCall(_ name: String, _ node: Node, _ arguments: Node?, of device: String) -> Bool {
        if programNames.contains(device) { return true }
        if expenseNames.contains(device) { return isExpenseCall(name, node, arguments) }
        let known = ReferenceClient.Call.allCases.map(\.rawValue)
        guard known.contains(name) else {
            reader.report(
                "the reference client has no call '\(name.prefix(40))'\(NearestName.hint(name, in: known)) (known: "
                    + "\(known.joined(separator: ", ")))", at: node)
            return false
        }
        var hasNote = false
        for (key, value) in arguments?.mapping.map({ Array($0) }) ?? [] {
            if key.scalar?.string == "note" {
                hasNote = true
                if knownRow(value) == nil { return false }
            } else {
                reader.report(
                    "'\(name)' has no argument '\(key.scalar?.string.prefix(40) ?? "")'; it has 'note'", at: key)
            }
        }
        if !hasNote { reader.report("'\(name)' needs its note, such as 'with: { note: n1 }'", at: arguments ?? node) }
        return hasNote
    }

    /// Returns whether the client of a device has an action; reports one that it does not have.
    func isAction(_ name: String, _ node: Node, of actor: String) -> Bool {
        guard expenseNames.contains(actor), !ExpenseClient.actions.contains(name) else { return true }
        reader.report(
            "the expense app has no action '\(name)' (known: \(ExpenseClient.actions.joined(separator: ", ")))",
            at: node)
        return false
    }

    /// Returns whether the expense app has a call with these arguments; reports what it does not have.
    private func isExpenseCall(_ name: String, _ node: Node, _ arguments: Node?) -> Bool {
        let known = ExpenseClient.Call.allCases.map(\.rawValue)
        guard let call = ExpenseClient.Call(rawValue: name) else {
            reader.report(
                "the expense app has no call '\(name.prefix(40))'\(NearestName.hint(name, in: known)) (known: "
                    + "\(known.joined(separator: ", ")))", at: node)
            return false
        }
        var given: Set<String> = []
        for (key, value) in arguments?.mapping.map({ Array($0) }) ?? [] {
            let argument = key.scalar?.string ?? ""
            guard call.arguments.contains(argument) else {
                let text = call.arguments.isEmpty ? "none" : call.arguments.joined(separator: ", ")
                reader.report("'\(name)' has no argument '\(argument.prefix(40))' (known: \(text))", at: key)
                return false
            }
            given.insert(argument)
            if argument == "note", knownRow(value) == nil { return false }
        }
        guard call.needsArguments ? given.count == call.arguments.count : true else {
            reader.report("'\(name)' needs its record, such as 'with: { note: e1 }'", at: arguments ?? node)
            return false
        }
        return true
    }

    /// Returns whether the client of a device has a version; reports an unknown one.
    func isVersion(_ version: Int, _ node: Node, of device: String) -> Bool {
        if programNames.contains(device) || ReferenceClient.versions.contains(version) { return true }
        reader.report(
            "the reference client has no version \(version); it has \(ReferenceClient.versions.lowerBound) and "
                + "\(ReferenceClient.versions.upperBound)", at: node)
        return false
    }

    /// Reports a value that the reference client never shows.
    ///
    /// - Parameter device: The device, or ``Scenario/anyDevice``.
    func checkValue(_ value: String, of key: StateCondition.Check.Key, _ node: Node, on device: String) {
        let isProgram = device == Scenario.anyDevice ? !programNames.isEmpty : programNames.contains(device)
        if isProgram { return }
        let isExpense = device == Scenario.anyDevice ? !expenseNames.isEmpty : expenseNames.contains(device)
        if isExpense { return checkExpenseValue(value, of: key, node) }
        if [.error, .marker, .field].contains(key) {
            return reader.report("the reference client has no '\(key.rawValue)'; a client 'expense' has", at: node)
        }
        guard let known = ReferenceClient.values(of: key, rows: rows), !known.contains(value) else { return }
        let shown = key == .screen ? ReferenceClient.screens + ["a note"] : known
        reader.report(
            "the reference client has no \(key.rawValue) '\(value.prefix(40))'\(NearestName.hint(value, in: known)) "
                + "(known: \(shown.joined(separator: ", ")))", at: node)
    }

    /// Reports a value that the expense app never shows.
    private func checkExpenseValue(_ value: String, of key: StateCondition.Check.Key, _ node: Node) {
        guard let known = ExpenseClient.values(of: key, rows: rows), !known.contains(value) else { return }
        let shown = key == .screen ? ExpenseClient.screens + ["a report"] : known
        reader.report(
            "the expense app has no \(key.rawValue) '\(value.prefix(40))'\(NearestName.hint(value, in: known)) "
                + "(known: \(shown.joined(separator: ", ")))", at: node)
    }
}
