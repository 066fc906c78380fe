/// I10: deletions stick.
enum DeletesStick: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A deleted note returns only if a user has decided so.",
        violations: "A note that the server has deleted is on the server at the end, and no client has created it "
            + "again or resolved a conflict of it; or a note that was deleted on a device appears there again without "
            + "a conflict or error, and no user has acted on it and no other client has written it; or a device creates "
            + "another note with the text of its user's edit of a note that the server has deleted.",
        worlds: "Simulated and live. The end is checked only if the server's notes were read.",
        blindSpots:
            "Notes for which steps send requests around the client (`send`, `raw`); notes that the contract orig, which "
            + "has no tombstones, creates again with a late or repeated POST.",
        source: "tags s20, s21, s23; the legacy client dropped its tombstone whatever the response was")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        onServer(run) ?? inViews(run) ?? underOtherName(run)
    }

    private static func onServer(_ run: RunFacts) -> InvariantViolation? {
        var seen: Set<RunFacts.Note> = []
        let deletions = run.exchanges.filter {
            $0.method == "DELETE" && RunFacts.isWrite($0) && RunFacts.isExecuted($0)
        }
        for deletion in deletions.sorted(by: { $0.arrivedIndex < $1.arrivedIndex }) {
            // The first one has deleted the note. A later one may be a repetition, or arrive after the decision that the
            // note returns and before its creation.
            guard let note = run.note(of: deletion), seen.insert(note).inserted,
                run.finalRow(note.row, of: note.user) != nil,
                !run.exchanges(of: note.row, note.user).contains(where: { NoDuplicateEffect.isLateCreation($0, run) }),
                !hasDecision(note, after: deletion.arrivedIndex, run)
            else { continue }
            return InvariantViolation(
                "\(note.row) was deleted at \(RunFacts.text(deletion.sentAt)), and is on the server at the end",
                at: deletion.arrivedIndex, of: deletion.actor, note.row)
        }
        return nil
    }

    /// Returns whether a user has decided after an entry that a deleted note returns.
    private static func hasDecision(_ note: RunFacts.Note, after index: Int, _ run: RunFacts) -> Bool {
        // A server that keeps deletions lets no request bring the note back.
        let keepsDeletions = run.scenario.server == .builtIn && run.scenario.contract != "orig"
        for entry in run.history.entries[min(index, run.history.entries.count)...] {
            guard case .action(let actor, let action) = entry.event, run.user(of: actor, at: index) == note.user else {
                continue
            }
            switch action.kind {
            case .send: if !keepsDeletions { return true }
            case .create, .resolve: if action.row == note.row { return true }
            default: continue
            }
        }
        return false
    }

    private static func inViews(_ run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !device.isProgram && !run.hasRawRequests(of: device.device.user) {
            for change in run.changes where change.device == device.name && change.kind == .delete {
                guard let found = revival(change, device, run) else { continue }
                return InvariantViolation(
                    "\(device.name) shows \(change.row) again at \(RunFacts.text(found.time)), after its deletion at "
                        + "\(RunFacts.text(change.start))",
                    at: found.index, of: device.name, change.row)
            }
        }
        return nil
    }

    private static func revival(
        _ deletion: ExpectationEvaluator.Change, _ device: RunFacts.Device, _ run: RunFacts
    ) -> RunFacts.RowChange? {
        guard let changes = device.rows[deletion.row] else { return nil }
        let user = device.device.user
        if run.exchanges(of: deletion.row, user).contains(where: { NoDuplicateEffect.isLateCreation($0, run) }) {
            return nil
        }
        guard
            let found = changes.first(where: { change in
                change.index > deletion.acceptedIndex
                    && change.after.map { !$0.isDeleted && $0.icon != .conflict && $0.icon != .error } ?? false
            })
        else { return nil }
        for other in run.devices where other.device.user == user {
            for action in other.actions
            where action.moment.index > deletion.startIndex && action.moment.index <= found.index {
                if action.kind != .delete && action.mayChange(deletion.row) {
                    return nil
                }
            }
        }
        let hasOtherWriter = run.exchanges(of: deletion.row, user).contains {
            $0.actor != device.name && RunFacts.mayBeExecuted($0) && $0.method != "DELETE" && $0.sentIndex < found.index
        }
        // A rejected deletion is announced, and then taken back.
        let wasAnnounced = changes.contains { change in
            change.index > deletion.acceptedIndex && change.index < found.index
                && [.conflict, .error].contains(change.after?.icon)
        }
        return hasOtherWriter || wasAnnounced ? nil : found
    }

    /// Returns the first creation of a note, by a client and not by its user, that brings a deleted note back.
    private static func underOtherName(_ run: RunFacts) -> InvariantViolation? {
        let digests = run.changes.map { digest(of: $0, run) }
        for device in run.devices where device.isReference && !run.hasRawRequests(of: device.device.user) {
            for index in device.exchanges {
                let exchange = run.exchanges[index]
                guard exchange.method == "POST", RunFacts.isWrite(exchange), RunFacts.isExecuted(exchange),
                    let text = exchange.contents?.text,
                    let last = run.changes.indices.last(where: {
                        digests[$0] == text && run.changes[$0].device == device.name
                            && run.changes[$0].startIndex < exchange.sentIndex
                    }), case let change = run.changes[last],
                    change.kind == .edit, exchange.row != change.row,
                    run.exchanges(of: change.row, device.device.user).contains(where: {
                        $0.method == "DELETE" && RunFacts.isExecuted($0) && $0.arrivedIndex < exchange.sentIndex
                    })
                else { continue }
                let wasAsked = device.actions.contains { action in
                    action.moment.index > change.startIndex && action.moment.index < exchange.sentIndex
                        && action.kind != .edit && action.mayChange(change.row)
                }
                if wasAsked { continue }
                return InvariantViolation(
                    "\(device.name) creates a note at \(RunFacts.text(exchange.sentAt)) with the text of its user's edit of "
                        + "\(change.row), which was deleted on the server",
                    at: exchange.sentIndex, of: device.name, change.row)
            }
        }
        return nil
    }

    private static func digest(of change: ExpectationEvaluator.Change, _ run: RunFacts) -> UInt64? {
        switch change.stepAction {
        case .create(_, _, let text?)?, .edit(_, _, let text?)?, .resolve(_, _, let text?)?:
            let shown = run.devices.first { $0.name == change.device }?.row(change.row, at: change.acceptedIndex)
            return shown?.text == text ? run.textDigest(shown) : RequestContents.digest(text)
        default: return nil
        }
    }
}
