internal import Determinism

/// I15: visible state.
enum VisibleState: InvariantCheck {
    static let rule = InvariantRule(
        rule: "The icon of a pending change appears with the change and vanishes within 1 s of its acknowledgement; "
            + "a change that the server has rejected for good is shown as an error.",
        violations: "A device accepts a change and shows the note without an icon before it has sent anything; or it "
            + "shows a note as pending more than 1 s after the response to its last write, which had the text that "
            + "is shown; or it shows one as pending while its outbox is empty; or at the end it still shows a change as "
            + "pending although the server has rejected the change; or it shows an error although the change has failed "
            + "at most once, and with 5xx; or an app still shows a message that vanishes by itself 5 s after its last "
            + "event, or shows something as under way at the end; or the expense app shows the look of an offline change "
            + "while it is online, or an error without its marks.",
        worlds: "Simulated and live. Programs are checked for the first two. Messages and looks of apps are checked in "
            + "simulation.",
        blindSpots: "Texts of messages; marks and messages that stay because a disk is full or slow.",
        source: "tags s06, s12, s19, s31, s39 to s43")

    /// The longest time for which a mark stays after the response.
    private static let markMax = Nanoseconds.seconds(1)

    static func violation(in run: RunFacts) -> InvariantViolation? {
        for device in run.devices where !device.device.lacksAdapter && !run.sendsRequests(device.name) {
            if let found = missingMark(device, run) ?? staleMark(device, run) ?? emptyOutbox(device, run)
                ?? missingError(device, run) ?? falseError(device, run) ?? screen(device, run)
                ?? unfinished(device, run)
            {
                return found
            }
        }
        return nil
    }

    private static func missingMark(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        for change in run.changes
        where change.device == device.name && (change.kind == .create || change.kind == .edit) {
            guard let row = device.row(change.row, at: change.acceptedIndex), row.icon == .plain, !row.isDeleted else {
                continue
            }
            let before = device.row(change.row, at: change.startIndex)
            if let before, before.text == row.text, before.title == row.title { continue }
            // In real time, the change may have been acknowledged meanwhile.
            let isSent = device.exchanges.contains { index in
                let exchange = run.exchanges[index]
                return exchange.row == change.row && exchange.sentIndex > change.startIndex
                    && exchange.sentIndex < change.acceptedIndex
            }
            if isSent || device.isProgram { continue }
            return InvariantViolation(
                "\(device.name) shows \(change.row) without an icon at \(run.text(at: change.acceptedIndex)), although its user "
                    + "\(change.kind.verb) it and nothing was sent",
                at: change.acceptedIndex, of: device.name, change.row)
        }
        return nil
    }

    private static func staleMark(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        let writes = device.exchanges.map { run.exchanges[$0] }.filter { $0.row != nil && RunFacts.isWrite($0) }
        for (position, exchange) in writes.enumerated() {
            guard let row = exchange.row, let end = exchange.end, let status = exchange.receivedStatus,
                (200...299).contains(status), run.isAnswered(exchange), exchange.fault == nil,
                let text = exchange.contents?.text
            else { continue }
            // What comes next: a change of the user, a stop of the client, another write of the note, or the end.
            var next = run.endIndex
            if let later = writes[(position + 1)...].first(where: { $0.row == row }) {
                next = min(next, later.sentIndex)
            }
            for action in device.actions where action.moment.index > exchange.sentIndex {
                if action.mayChange(row) { next = min(next, action.moment.index) }
            }
            for stop in device.stops where stop.index > end.index { next = min(next, stop.index) }
            guard run.span(from: end.time, to: run.time(next)) > markMax else { continue }
            let limit = end.time + markMax + run.lateness.delay(from: end.time, to: end.time + markMax)
            let shown = device.rows[row]?.last { $0.time <= limit && $0.index < next }
            guard let state = shown?.after, state.icon == .upload, !state.isDeleted,
                run.textDigest(state) == text, !device.isDiskLate(from: end.index, to: run.lastIndex(until: limit))
            else { continue }
            return InvariantViolation(
                "\(device.name) shows \(row) as pending at \(RunFacts.text(limit)), 1 s after the response to its "
                    + "\(exchange.method)",
                at: end.index, of: device.name, row)
        }
        return nil
    }

    private static func emptyOutbox(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if device.isProgram { return nil }
        for change in device.changes where change.outbox == 0 && change.after?.icon == .upload {
            return InvariantViolation(
                "\(device.name) shows \(change.name) as pending at \(RunFacts.text(change.time)), and its outbox is empty",
                at: change.index, of: device.name, change.name)
        }
        return nil
    }

    private static func missingError(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if run.wasAborted || device.isProgram { return nil }
        for row in device.state?.rows ?? [] where row.icon == .upload {
            guard
                let last = device.exchanges.map({ run.exchanges[$0] }).last(where: {
                    $0.row == row.name && RunFacts.isWrite($0)
                }),
                let status = last.receivedStatus, [400, 405, 410, 413, 414, 415, 422].contains(status),
                !last.isOnPortal,
                // The contract orig rejects the repetition of an executed POST in this way.
                !(run.scenario.contract == "orig" && last.method == "POST" && status == 400),
                !device.actions.contains(where: { $0.moment.index > last.sentIndex && $0.changes(row.name) })
            else { continue }
            return InvariantViolation(
                "\(device.name) shows \(row.name) as pending at the end, although the server has rejected it (\(status)) at "
                    + "\(RunFacts.text(last.sentAt))",
                at: run.endIndex, of: device.name, row.name)
        }
        return nil
    }

    /// The number of responses with 5xx after which a client may give up a change.
    private static let serverErrorsMin = 2

    private static func falseError(_ device: RunFacts.Device, _ run: RunFacts) -> InvariantViolation? {
        if !device.isReference { return nil }
        for (name, changes) in device.rows.sorted(by: { $0.key < $1.key }) {
            var since = -1
            for change in changes {
                if change.after?.icon ?? .plain == .plain { since = change.index }
                guard change.after?.icon == .error, change.before?.icon != .error, !change.isFirst else { continue }
                var failures = 0
                let hasReason = device.exchanges.contains { index in
                    let exchange = run.exchanges[index]
                    guard exchange.row == name || exchange.row == nil, let end = exchange.end, end.index > since,
                        end.index < change.index, let status = exchange.receivedStatus
                    else { return false }
                    if status >= 500 { failures += 1 }
                    return failures >= serverErrorsMin
                        || (400...499).contains(status) && ![401, 408, 425, 429].contains(status)
                }
                if hasReason { continue }
                return InvariantViolation(
                    "\(device.name) shows an error of \(name) at \(RunFacts.text(change.time)), and the server has not "
                        + "rejected its change",
                    at: change.index, of: device.name, name)
            }
        }
        return nil
    }
}
