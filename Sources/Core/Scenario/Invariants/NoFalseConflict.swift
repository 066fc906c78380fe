/// I9: no false conflict.
enum NoFalseConflict: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A device shows a conflict of a note only if another client has really written the note.",
        violations: "A note of a device gets the icon of a conflict, and every write of the note by another client "
            + "of the user was rejected, was shown by the device without an icon before, or was replaced by a write of "
            + "the device itself.",
        worlds: "Simulated and live. Without the contents of requests, any write of another client excuses a conflict.",
        blindSpots: "Two conflicts that one write has caused, if the device has never shown the text of that write.",
        source: "tag s13; the legacy client took its own lost write for a conflict")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !run.sendsRequests(device.name) {
            for (row, changes) in device.rows.sorted(by: { $0.key < $1.key }) {
                if let found = violation(device, row, changes, run) { return found }
            }
        }
        return nil
    }

    private static func violation(
        _ device: RunFacts.Device, _ row: String, _ changes: [RunFacts.RowChange], _ run: RunFacts
    ) -> InvariantViolation? {
        guard changes.contains(where: { $0.after?.icon == .conflict }) else { return nil }
        let exchanges = run.exchanges(of: row, device.device.user)
        // A write that was rejected for certain causes no conflict.
        let others = exchanges.filter { exchange in
            exchange.actor != device.name && ExpectationEvaluator.writeMethods.contains(exchange.method)
                && (exchange.contents == nil || exchange.serverStatus.map { (200...299).contains($0) } ?? true)
        }
        let own = exchanges.filter {
            $0.actor == device.name && RunFacts.isWrite($0) && RunFacts.isExecuted($0) && $0.contents != nil
        }
        var seen: Set<Int> = []
        var wasInConflict = false
        for change in changes {
            let isInConflict = change.after?.icon == .conflict
            defer { wasInConflict = isInConflict }
            if let shown = change.after, shown.icon == .plain, let digest = run.textDigest(shown) {
                for other in others where other.respondedIndex.map({ $0 < change.index }) ?? false {
                    if other.contents?.text == digest { seen.insert(other.id) }
                }
            }
            guard isInConflict, !wasInConflict else { continue }
            let cause = others.contains { other in
                guard other.sentIndex < change.index, !seen.contains(other.id) else { return false }
                return !own.contains { hasReplaced(other, $0, before: change.index) }
            }
            if cause { continue }
            let isFirst = !others.contains { $0.sentIndex < change.index }
            return InvariantViolation(
                "\(device.name) shows a conflict of \(row) at \(RunFacts.text(change.time)), "
                    + "and no other client has written it" + (isFirst ? "" : " since"),
                at: change.index, of: device.name, row)
        }
        return nil
    }

    /// Returns whether a write of the device has replaced the result of another client's write, or a later one, before
    /// an entry.
    private static func hasReplaced(
        _ other: History.Exchange, _ own: History.Exchange, before index: Int
    ) -> Bool {
        guard let responded = other.respondedIndex, own.sentIndex > responded, own.respondedIndex ?? .max < index,
            let base = own.contents?.base?.number, let result = RunFacts.resultingRevision(other)
        else { return false }
        return base >= result
    }
}
