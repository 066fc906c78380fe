/// I3: no silent overwrite.
enum NoSilentOverwrite: InvariantCheck {
    static let rule = InvariantRule(
        rule: "The executed writes of a note form one chain: each replaces the result of the one before, and a text "
            + "that a write drops was shown to a user before.",
        violations: "The server has executed two writes that replace the same revision; or it has executed a write "
            + "that names no revision; or a device's write has replaced the text of another client, and the device "
            + "has never shown or kept that text; or a device sends a write of a note that it shows in conflict.",
        worlds: "Simulated and live. The contents of requests are needed; bodies above 64 KiB are not read.",
        blindSpots: "Whether a merged text contains the text that it replaces; writes that leave the text unchanged, "
            + "such as new titles; what the user of a program has seen.",
        source: "tags s12, s21; RFC 9110, section 13.1.1 (lost updates)")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for (note, indices) in run.exchangesByNote.sorted(by: { ($0.value.first ?? 0) < ($1.value.first ?? 0) }) {
            let writes = indices.map { run.exchanges[$0] }
                .filter { RunFacts.isWrite($0) && RunFacts.isExecuted($0) && $0.contents != nil }
            // In the order in which the server has executed them.
            let executed = writes.sorted {
                ($0.respondedIndex ?? $0.arrivedIndex) < ($1.respondedIndex ?? $1.arrivedIndex)
            }
            if let found = fork(note, executed, run) ?? unseen(note, writes, run) { return found }
        }
        return undecided(run)
    }

    /// Returns the first write that a device has sent while it showed a conflict of the note.
    private static func undecided(_ run: RunFacts) -> InvariantViolation? {
        for device in run.devices where device.isReference && !run.sendsRequests(device.name) {
            for index in device.exchanges {
                let exchange = run.exchanges[index]
                guard let row = exchange.row, RunFacts.isWrite(exchange), !run.heldBack.contains(exchange.id),
                    !run.isRestored(exchange),
                    let since = conflictStart(row, device, at: exchange.sentIndex),
                    since < exchange.dialIndex ?? exchange.sentIndex,
                    // The request of a decision is recorded before the view that follows it.
                    !device.actions.contains(where: {
                        $0.moment.index > since && $0.moment.index < exchange.sentIndex && isDecision($0, row)
                    })
                else { continue }
                return InvariantViolation(
                    "\(device.name) sends \(exchange.method) \(row) at \(RunFacts.text(exchange.sentAt)), and its user has "
                        + "not decided about the conflict that it shows",
                    at: exchange.sentIndex, of: device.name, row)
            }
        }
        return nil
    }

    /// Returns the index of the view since which a device shows a conflict of a note; `nil` if it shows none.
    private static func conflictStart(_ row: String, _ device: RunFacts.Device, at index: Int) -> Int? {
        guard let changes = device.rows[row], let last = changes.lastIndex(where: { $0.index <= index }),
            changes[last].after?.icon == .conflict
        else { return nil }
        let before = changes[...last].lastIndex { $0.after?.icon != .conflict }
        return changes[before.map { $0 + 1 } ?? 0].index
    }

    private static func isDecision(_ action: RunFacts.UserAction, _ row: String) -> Bool {
        switch action.kind {
        case .call: true
        case .resolve, .keep: action.changes(row)
        default: false
        }
    }

    private static func fork(
        _ note: RunFacts.Note, _ writes: [History.Exchange], _ run: RunFacts
    ) -> InvariantViolation? {
        // A note that was created again may have the same revisions again.
        if writes.count(where: { $0.method == "POST" }) > 1 { return nil }
        var replaced: [UInt64: (exchange: History.Exchange, write: ExpectationEvaluator.Write)] = [:]
        var isDeleted = false
        for exchange in writes {
            let wasDeleted = isDeleted
            // The response to a repeated PUT after the deletion is that of its first execution.
            if exchange.method == "POST" { isDeleted = false }
            if exchange.method == "DELETE" { isDeleted = true }
            guard exchange.method == "PUT" || exchange.method == "DELETE" else { continue }
            // A server that keeps deletions accepts the deletion of a deleted note, which changes nothing.
            if wasDeleted && isDeleted { continue }
            guard let contents = exchange.contents else { continue }
            guard let base = contents.base else {
                if run.scenario.server != .builtIn { continue }
                return InvariantViolation(
                    "the server has executed \(exchange.method) \(note.row) of \(exchange.actor) at "
                        + "\(RunFacts.text(exchange.sentAt)), which names no revision",
                    at: exchange.sentIndex, of: exchange.actor, note.row)
            }
            let write = ExpectationEvaluator.Write(exchange)
            guard let first = replaced[base.digest] else {
                replaced[base.digest] = (exchange, write)
                continue
            }
            // A request with the same key is an attempt of the same write.
            if first.write == write { continue }
            return InvariantViolation(
                "\(first.exchange.method) of \(first.exchange.actor) at \(RunFacts.text(first.exchange.sentAt)) and "
                    + "\(exchange.method) of \(exchange.actor) at \(RunFacts.text(exchange.sentAt)) have both replaced revision "
                    + "\(base.number.map(String.init) ?? "") of \(note.row)",
                at: exchange.sentIndex, of: exchange.actor, note.row)
        }
        return nil
    }

    private static func unseen(
        _ note: RunFacts.Note, _ writes: [History.Exchange], _ run: RunFacts
    ) -> InvariantViolation? {
        var results: [Int: History.Exchange] = [:]
        for exchange in writes {
            if let base = exchange.contents?.base?.number, exchange.method == "PUT" || exchange.method == "DELETE",
                let lost = results[base], lost.actor != exchange.actor, lost.method != "DELETE",
                let device = run.device(exchange.actor), !device.isProgram, !run.sendsRequests(device.name),
                let text = lost.contents?.text, text != exchange.contents?.text,
                !hasShown(text, of: note.row, device, before: exchange.sentIndex, run)
            {
                return InvariantViolation(
                    "\(device.name) replaces the text of \(note.row) by \(lost.actor) with \(exchange.method) at "
                        + "\(RunFacts.text(exchange.sentAt)), and has never shown it",
                    at: exchange.sentIndex, of: device.name, note.row)
            }
            if let number = RunFacts.resultingRevision(exchange) { results[number] = exchange }
        }
        return nil
    }

    /// Returns whether a device has shown or kept a text of a note before an entry.
    private static func hasShown(
        _ text: UInt64, of row: String, _ device: RunFacts.Device, before index: Int, _ run: RunFacts
    ) -> Bool {
        for change in device.rows[row] ?? [] where change.index < index {
            guard let shown = change.after else { continue }
            if run.textDigest(shown) == text { return true }
            if shown.kept.contains(where: { RequestContents.digest($0) == text }) { return true }
        }
        return false
    }
}
