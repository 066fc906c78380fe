/// I12: only validated responses count.
enum ValidatedAnswersOnly: InvariantCheck {
    static let rule = InvariantRule(
        rule: "A response of another origin, of another media type, without its end or about another note changes no "
            + "note and completes no change.",
        violations: "After an invalid or incomplete response, a device shows a text that no client has written, a "
            + "note vanishes without a deletion, or the icon of a pending change vanishes although no response of "
            + "the server has been received since the change.",
        worlds: "Simulated and live. Not for users for whom steps send requests around the client (`send`, `raw`).",
        blindSpots: "Texts of generated notes; the effects of an invalid response that look like those of a valid "
            + "one.",
        source: "tags s24, s26, s29; RFC 9112, section 8 (incomplete messages)")

    static func violation(in run: RunFacts) -> InvariantViolation? {
        let generated = Set(run.scenario.fill?.rows ?? [])
        for device in run.devices where !run.hasRawRequests(of: device.device.user) {
            guard let invalid = firstInvalid(device, run) else { continue }
            for change in device.changes where change.index > invalid {
                if change.isFirst && device.isProgram { continue }
                if let found = invention(change, device, generated, run) ?? disappearance(change, device, run)
                    ?? completion(change, device, run)
                {
                    return found
                }
            }
        }
        return nil
    }

    /// Returns the index of the end of a device's first exchange without a complete response of the server.
    private static func firstInvalid(_ device: RunFacts.Device, _ run: RunFacts) -> Int? {
        for index in device.exchanges {
            let exchange = run.exchanges[index]
            if let end = exchange.end, !run.isAnswered(exchange) || exchange.fault != nil { return end.index }
        }
        return nil
    }

    // MARK: Texts

    private static func invention(
        _ change: RunFacts.RowChange, _ device: RunFacts.Device, _ generated: Set<String>, _ run: RunFacts
    ) -> InvariantViolation? {
        guard let row = change.after, row.text != change.before?.text, let text = row.text,
            !generated.contains(row.name),
            !isWritten(text, row.name, device, run)
        else { return nil }
        return InvariantViolation(
            "\(device.name) shows a text of \(row.name) at \(RunFacts.text(change.time)) that no client has written",
            at: change.index, of: device.name, row.name)
    }

    private static func isWritten(
        _ text: String, _ name: String, _ device: RunFacts.Device, _ run: RunFacts
    ) -> Bool {
        if let seed = run.scenario.notes.first(where: { $0.row == name }), seed.text == text { return true }
        if run.stepTexts[name]?.contains(text) ?? false { return true }
        let digest = RequestContents.digest(text)
        let user = device.device.user
        // Without contents nothing is known of the texts of writes.
        let isKnown = run.exchanges(of: name, user).contains { exchange in
            guard ExpectationEvaluator.writeMethods.contains(exchange.method) else { return false }
            guard let contents = exchange.contents else { return true }
            return contents.text == digest || contents.body == .other
        }
        if isKnown { return true }
        // The note may have been known under another name, or not at all.
        return !run.scenario.notes.contains { $0.row == name }
            && !run.changes.contains { $0.row == name && $0.kind == .create }
    }

    // MARK: Notes

    private static func disappearance(
        _ change: RunFacts.RowChange, _ device: RunFacts.Device, _ run: RunFacts
    ) -> InvariantViolation? {
        guard change.after == nil, let before = change.before else { return nil }
        let user = device.device.user
        let isDeleted = run.exchanges(of: before.name, user).contains {
            $0.method == "DELETE" && $0.sentIndex < change.index
        }
        if isDeleted { return nil }
        for other in run.devices where other.device.user == user {
            if other.actions.contains(where: {
                $0.moment.index <= change.index && $0.mayChange(before.name)
                    && $0.kind != .edit && $0.kind != .create
            }) {
                return nil
            }
        }
        // A note without a name may be the one that another note was replaced by.
        guard
            run.scenario.notes.contains(where: { $0.row == before.name })
                || run.scenario.fill?.rows.contains(before.name) ?? false
        else { return nil }
        return InvariantViolation(
            "\(before.name) vanishes from \(device.name) at \(RunFacts.text(change.time)) without a deletion",
            at: change.index, of: device.name, before.name)
    }

    // MARK: Changes

    private static func completion(
        _ change: RunFacts.RowChange, _ device: RunFacts.Device, _ run: RunFacts
    ) -> InvariantViolation? {
        guard let before = change.before, before.icon == .upload, !change.isFirst,
            change.after.map({ $0.icon == .plain }) ?? before.isDeleted,
            let last = run.changes.last(where: {
                $0.device == device.name && $0.row == change.name && $0.startIndex < change.index
            }), last.acceptedIndex < change.index
        else { return nil }
        let isConfirmed = device.exchanges.contains { index in
            let exchange = run.exchanges[index]
            guard exchange.row == change.name || exchange.row == nil, !exchange.isOnPortal,
                let responded = exchange.respondedIndex, responded < change.index
            else { return false }
            // In real time, the end may be recorded after the view.
            guard let end = exchange.end, end.index < change.index else { return true }
            return end.index > last.startIndex && run.isAnswered(exchange)
        }
        if isConfirmed { return nil }
        return InvariantViolation(
            "\(device.name) shows \(change.name) as synchronised at \(RunFacts.text(change.time)), and has received no response "
                + "of the server since the change at \(RunFacts.text(last.start))",
            at: change.index, of: device.name, change.name)
    }
}
