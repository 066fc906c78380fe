/// I1: no lost acknowledged write.
enum NoLostWrite: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A change that a device has accepted from its user is on the server, replaced by a later change of the "
            + "user, or shown as pending, conflict or error with its text.",
        violations: "At the end, the last change of a note on a device is neither on the server nor shown or kept by "
            + "the device, and no request of the device with its text was executed.",
        worlds: "Simulated and live. Not decided if the run was aborted or the server's notes were not read.",
        blindSpots: "Changes before the last one of a note, which may have been replaced on the device. Without the "
            + "contents of requests, and for programs, any executed request of the device and any write of another "
            + "client suppresses the violation.",
        source: "tags s22, s35; the legacy client lost edits made while a PUT was in flight")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        guard run.serverRows != nil, !run.wasAborted else { return nil }
        var last: [String: ExpectationEvaluator.Change] = [:]
        for change in run.changes { last["\(change.device) \(change.row)"] = change }
        for change in last.values.sorted(by: { $0.startIndex < $1.startIndex }) {
            guard let user = run.user(of: change.device), let device = run.device(change.device),
                !isKept(change, user, device, run), !isExecuted(change, user, device, run)
            else { continue }
            return InvariantViolation(
                "\(change.device) \(change.kind.verb) \(change.row) at \(RunFacts.text(change.start)), "
                    + "and the change is neither on the server nor shown as pending",
                at: change.acceptedIndex, of: change.device, change.row)
        }
        return nil
    }

    /// Returns whether the end shows a change: on the server, or on its device.
    private static func isKept(
        _ change: ExpectationEvaluator.Change, _ user: String, _ device: RunFacts.Device, _ run: RunFacts
    ) -> Bool {
        let onServer = run.finalRow(change.row, of: user)
        let shown = device.row(change.row, at: run.history.entries.count)
        if let shown, shown.icon != .plain, hasText(of: change, shown, device, run) { return true }
        // The server's side of a conflict was chosen, so there is nothing to keep.
        if case .choose(_, .theirs)? = change.stepAction { return true }
        // The user has discarded the change, or asked for another attempt.
        if case .call? = change.stepAction { return true }
        if change.kind == .keep || (change.kind == .resolve && !change.isOfStep) { return true }
        if case .choose(_, .delete)? = change.stepAction { return onServer == nil }
        if change.kind == .delete { return onServer == nil }
        guard let accepted = acceptedRow(change, device, run) else {
            return newText(of: change).map { $0 == onServer?.text } ?? (onServer == nil)
        }
        if accepted.isDeleted { return onServer == nil }
        if let before = device.row(change.row, at: change.startIndex), accepted.title == before.title,
            accepted.text == before.text, accepted.icon == .plain
        {
            // The change has changed nothing.
            return true
        }
        return onServer.map { $0.title == accepted.title && $0.text == accepted.text } ?? false
    }

    /// Returns whether a note with a mark has the text of a change: shown, or kept beside it.
    private static func hasText(
        of change: ExpectationEvaluator.Change, _ shown: History.DeviceState.Row, _ device: RunFacts.Device,
        _ run: RunFacts
    ) -> Bool {
        // A program does not publish what it keeps.
        guard device.isReference, change.kind == .create || change.kind == .edit,
            let accepted = acceptedRow(change, device, run), !accepted.isDeleted, let text = accepted.text
        else { return true }
        return shown.text == text || shown.kept.contains(text)
    }

    /// Returns whether the server has executed a change, or may have.
    private static func isExecuted(
        _ change: ExpectationEvaluator.Change, _ user: String, _ device: RunFacts.Device, _ run: RunFacts
    ) -> Bool {
        let accepted = acceptedRow(change, device, run)
        let expected = (accepted?.text ?? newText(of: change)).map(RequestContents.digest)
        let isDeletion = change.kind == .delete || accepted?.isDeleted ?? (expected == nil)
        for exchange in run.exchanges(of: change.row, user)
        where exchange.sentIndex > change.startIndex && ExpectationEvaluator.writeMethods.contains(exchange.method) {
            let isOwn = exchange.actor == change.device
            // A muted connection hides the response to a request that has arrived.
            guard isOwn ? RunFacts.mayBeExecuted(exchange) : RunFacts.isWrite(exchange) else { continue }
            guard !device.isProgram, let contents = exchange.contents else { return true }
            switch contents.body {
            case .none: if isDeletion && RunFacts.isExecuted(exchange) { return true }
            case .note(_, let text): if !isDeletion, text == nil || text == expected { return true }
            case .other: if isOwn { return true }
            }
        }
        return false
    }

    /// Returns the note as the device shows it with an accepted change; `nil` if the client was killed before it has
    /// reported the change.
    private static func acceptedRow(
        _ change: ExpectationEvaluator.Change, _ device: RunFacts.Device, _ run: RunFacts
    ) -> History.DeviceState.Row? {
        let row = device.row(change.row, at: change.acceptedIndex)
        let entries = run.history.entries
        guard let text = newText(of: change), let row, row.text != text, change.startIndex < change.acceptedIndex,
            entries.indices.contains(change.acceptedIndex)
        else { return row }
        let isReported = entries[change.startIndex...change.acceptedIndex].contains { entry in
            if case .device(change.device, _) = entry.event { true } else { false }
        }
        return isReported ? row : nil
    }

    /// Returns the text that the action of a change gives to its note; `nil` if it gives none.
    private static func newText(of change: ExpectationEvaluator.Change) -> String? {
        switch change.stepAction {
        case .create(_, _, let text)?, .edit(_, _, let text)?, .resolve(_, _, let text)?: text
        default: nil
        }
    }
}
