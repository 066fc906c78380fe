/// I8: read your writes.
enum ReadYourWrites: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A device never shows an older text of a note than its user's last edit, unless it shows a conflict or "
            + "an error.",
        violations: "After an edit, a device shows another pending text before its user changes the note again; or "
            + "after an edit, a device shows an earlier text again, without a conflict or error, although no client has "
            + "written that text since.",
        worlds: "Simulated and live. Programs are checked as far as their adapters print views.",
        blindSpots: "Views between two reports of a client.",
        source: "tags s14, s15; the legacy client replaced newer texts by the response to an older PUT")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for (position, change) in run.changes.enumerated() {
            let text: String
            switch change.stepAction {
            case .create(_, _, let new?)?, .edit(_, _, let new?)?, .resolve(_, _, let new?)?: text = new
            default: continue
            }
            guard let device = run.device(change.device), let changes = device.rows[change.row] else { continue }
            let next = run.changes[(position + 1)...].first { $0.device == change.device && $0.row == change.row }
            let end = next?.startIndex ?? run.history.entries.count
            if let found = violation(change, text, changes, end, run) { return found }
        }
        return nil
    }

    private static func violation(
        _ change: ExpectationEvaluator.Change, _ text: String, _ changes: [RunFacts.RowChange], _ end: Int,
        _ run: RunFacts
    ) -> InvariantViolation? {
        var isPending = false
        var hasShown = false
        for state in changes where state.index >= change.startIndex && state.index < end {
            guard let row = state.after else {
                isPending = false
                continue
            }
            defer { if row.text == text { hasShown = true } }
            if row.icon == .upload {
                if row.text == text {
                    isPending = true
                } else if isPending, !row.isDeleted {
                    return InvariantViolation(
                        "\(change.device) shows another text of \(change.row) at "
                            + "\(RunFacts.text(state.time)) than the pending change",
                        at: state.index, of: change.device, change.row)
                }
                continue
            }
            isPending = false
            if row.icon == .plain, hasShown, !row.isDeleted, let shown = row.text, shown != text,
                changes.contains(where: { $0.index < change.startIndex && $0.after?.text == shown }),
                !isWritten(shown, change, state.index, run)
            {
                return InvariantViolation(
                    "\(change.device) shows an older text of \(change.row) at \(RunFacts.text(state.time)) than the "
                        + "change at \(RunFacts.text(change.start))",
                    at: state.index, of: change.device, change.row)
            }
        }
        return nil
    }

    /// Returns whether another client may have written a text after a change.
    private static func isWritten(
        _ text: String, _ change: ExpectationEvaluator.Change, _ index: Int, _ run: RunFacts
    ) -> Bool {
        guard let user = run.user(of: change.device) else { return true }
        let digest = RequestContents.digest(text)
        return run.exchanges(of: change.row, user).contains { exchange in
            exchange.actor != change.device && RunFacts.mayBeExecuted(exchange) && exchange.sentIndex < index
                && (exchange.end.map { $0.index > change.startIndex } ?? true)
                && (exchange.contents?.text.map { $0 == digest } ?? true)
        }
    }
}
