/// I4: convergence.
enum Convergence: InvariantCheck {
    static let rule = InvariantRule(
        rule: "After the quiesce phase, notes without an icon equal the server's, and nothing waits to be sent.",
        violations: "At the end, a note without a pending change, conflict or error differs between a device and the "
            + "server; or a change is still shown as pending; or a note is shown as in conflict, or with an error of a "
            + "change, although device and server have the same title and text.",
        worlds: "Simulated and live. Not decided if the run was aborted or the server's notes were not read.",
        blindSpots:
            "Differences of notes that are in conflict or have an error at the end; devices that the restore phase "
            + "does not restore; records that an app does not show.",
        source: "all scenarios; the end of each is a comparison of devices and server")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        guard let rows = run.serverRows, !run.wasAborted else { return nil }
        let hasQuiesced = run.history.entries.contains {
            if case .phase(.verify) = $0.event { true } else { false }
        }
        for device in run.devices where device.device.isRestored {
            guard let state = device.state else { continue }
            var open: Set<String> = []
            // The name of a restored note may stand for two notes.
            var shown: [String: [RunFacts.Row]] = [:]
            let user = device.device.user
            for row in state.rows {
                if row.icon == .upload, hasQuiesced {
                    return InvariantViolation(
                        "\(device.name) shows \(row.name) as pending at the end", at: run.endIndex, of: device.name,
                        row.name)
                }
                if hasQuiesced, isMarkedWithoutNeed(row, rows, device, run) {
                    return InvariantViolation(
                        "\(device.name) shows \(row.name) with the icon '\(row.icon)' at the end, although it equals the server's",
                        at: run.endIndex, of: device.name, row.name)
                }
                if row.icon != .plain || row.isDeleted {
                    open.insert(row.name)
                } else {
                    shown[row.name, default: []].append(row)
                }
            }
            let stored = rows.filter { $0.user == user && !open.contains($0.name) }
            let byName = Dictionary(grouping: stored, by: \.name)
            for row in state.rows where !open.contains(row.name) {
                let found = byName[row.name] ?? []
                if found.count >= shown[row.name]?.count ?? 0,
                    found.contains(where: { $0.title == row.title && $0.text == row.text })
                {
                    continue
                }
                return InvariantViolation(
                    "\(device.name) shows \(row.name) at the end, unlike the server", at: run.endIndex, of: device.name,
                    row.name)
            }
            // A network-first app keeps only what its user has seen.
            if device.device.client.app?.vocabulary.showsAllRecords == false { continue }
            if let missing = stored.first(where: { (byName[$0.name]?.count ?? 0) > shown[$0.name]?.count ?? 0 }) {
                return InvariantViolation(
                    "\(device.name) does not show \(missing.name) at the end, and the server has it", at: run.endIndex,
                    of: device.name, missing.name)
            }
        }
        return nil
    }

    /// Returns whether a note is shown as in conflict or with an error, although it equals the server's.
    private static func isMarkedWithoutNeed(
        _ row: RunFacts.Row, _ rows: [History.ServerRow], _ device: RunFacts.Device, _ run: RunFacts
    ) -> Bool {
        guard device.isReference, !row.isDeleted, row.icon == .conflict || row.icon == .error,
            rows.contains(where: {
                $0.user == device.device.user && $0.name == row.name && $0.title == row.title && $0.text == row.text
            })
        else { return false }
        // The error may be that of a pin, which changes no text.
        if device.actions.contains(where: { $0.kind == .pin && $0.changes(row.name) }) { return false }
        // A fault may have rejected a write that the server had executed before, or the read that would tell so.
        let own = device.exchanges.map { run.exchanges[$0] }.filter { $0.row == row.name }
        return own.last?.fault == nil && own.last(where: RunFacts.isWrite)?.fault == nil
    }
}
