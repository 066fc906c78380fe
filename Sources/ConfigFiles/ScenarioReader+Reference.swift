internal import ScenarioModel
internal import Yams

/// What the reference client cannot do or show. A program can do anything.
extension ScenarioReader {
    /// Returns whether the client of a device has a call; reports an unknown one, and wrong arguments.
    func isCall(_ name: String, _ node: Node, _ arguments: Node?, of device: String) -> Bool {
        if programNames.contains(device) { return true }
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
        guard !isProgram, let known = ReferenceClient.values(of: key, rows: rows), !known.contains(value) else {
            return
        }
        let shown = key == .screen ? ReferenceClient.screens + ["a note"] : known
        reader.report(
            "the reference client has no \(key.rawValue) '\(value.prefix(40))'\(NearestName.hint(value, in: known)) "
                + "(known: \(shown.joined(separator: ", ")))", at: node)
    }
}
