internal import Scenario
internal import Yams

/// What the reference client cannot do or show. A program can do anything.
extension ScenarioReader {
    /// Returns whether the client of a device has a call; reports an unknown one, and wrong arguments.
    func isCall(_ name: String, _ node: Node, _ arguments: Node?, of device: String) -> Bool {
        if programNames.contains(device) { return true }
        if let app = apps[device] { return isCall(name, node, arguments, of: app.vocabulary) }
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
        guard let app = apps[actor]?.vocabulary, !app.actions.contains(name) else { return true }
        reader.report(
            "the \(app.title) has no action '\(name)' (known: \(app.actions.joined(separator: ", ")))", at: node)
        return false
    }

    /// Returns whether the client of a device can sign in and out, or have another disk; reports one that cannot.
    func isPossible(_ action: Scenario.Action, _ node: Node, of device: String) -> Bool {
        if apps[device] != nil { return true }
        if programNames.contains(device) {
            reader.report(
                "a program has its own accounts and its own files; let it act by 'call'", at: node)
            return false
        }
        if case .disk = action { return true }
        reader.report(
            "the reference client has one account for each store; another account is another device, or an app",
            at: node)
        return false
    }

    /// Returns whether an app has a call with these arguments; reports what it does not have.
    private func isCall(_ name: String, _ node: Node, _ arguments: Node?, of app: AppVocabulary) -> Bool {
        let known = app.calls.map(\.name)
        guard let call = app.call(name) else {
            reader.report(
                "the \(app.title) has no call '\(name.prefix(40))'\(NearestName.hint(name, in: known)) (known: "
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
            if argument == AppVocabulary.recordArgument, knownRow(value) == nil { return false }
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
        if let app = apps[device] { return checkValue(value, of: key, node, app.vocabulary) }
        if device == Scenario.anyDevice, !apps.isEmpty { return }
        if [.error, .marker, .field].contains(key) {
            return reader.report("the reference client has no '\(key.rawValue)'; an app has", at: node)
        }
        guard let known = ReferenceClient.values(of: key, rows: rows), !known.contains(value) else { return }
        let shown = key == .screen ? ReferenceClient.screens + ["a note"] : known
        reader.report(
            "the reference client has no \(key.rawValue) '\(value.prefix(40))'\(NearestName.hint(value, in: known)) "
                + "(known: \(shown.joined(separator: ", ")))", at: node)
    }

    /// Reports a value that an app never shows.
    private func checkValue(
        _ value: String, of key: StateCondition.Check.Key, _ node: Node, _ app: AppVocabulary
    ) {
        guard let known = app.values(of: key, rows: rows), !known.contains(value) else { return }
        let shown = key == .screen ? app.screens + (app.recordScreen.map { [$0] } ?? []) : known
        reader.report(
            "the \(app.title) has no \(key.rawValue) '\(value.prefix(40))'\(NearestName.hint(value, in: known)) "
                + "(known: \(shown.joined(separator: ", ")))", at: node)
    }

    /// Reports what a scenario with apps cannot have, and records without an app.
    func checkApps(_ fields: ScenarioFields, _ scenario: Scenario) {
        guard !scenario.apps.isEmpty else {
            guard !scenario.records.isEmpty else { return }
            return reader.report(
                "'records' belong to an app; no device has a client such as 'client: expense'",
                at: fields["server"]?.mapping?["records"] ?? fields["server"])
        }
        if scenario.server != .builtIn {
            reader.report("an app needs the built-in server", at: fields["server"])
        } else if let node = fields["workload"] {
            reader.report("the drawn actions are for notes; an app has others", at: node)
        }
        for record in scenario.records {
            guard let app = record.app, !scenario.apps.contains(app) else { continue }
            reader.report(
                "'\(record.row.prefix(40))' is a record of the \(app.vocabulary.title); no device has "
                    + "'client: \(app.rawValue)'", at: fields["server"]?.mapping?["records"])
        }
    }
}
