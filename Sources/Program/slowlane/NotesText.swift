internal import Client
internal import CommandSupport
internal import Determinism
internal import LiveClient
internal import Wire

/// The texts of `slowlane notes`.
enum NotesText {
    /// Returns the state of a note in one word, and the reason if the server rejects it.
    static func state(_ row: NotesView.Row) -> String {
        switch row.icon {
        case .none: "synced"
        case .upload: row.isDeleted ? "deleting" : "pending"
        case .conflict: "CONFLICT"
        case .error: "rejected: \(TextTable.singleLine(row.problem))"
        }
    }

    /// Returns the name of a state for programs.
    static func stateName(_ row: NotesView.Row) -> String {
        switch row.icon {
        case .none: "synced"
        case .upload: "pending"
        case .conflict: "conflict"
        case .error: "rejected"
        }
    }

    /// Returns the first characters of a uuid.
    static func short(_ uuid: String) -> String { TextTable.singleLine(String(uuid.prefix(8))) }

    /// Returns a content on one line; `nil` is a deletion.
    static func content(_ content: NoteContent?) -> String {
        content.map { "\(TextTable.singleLine($0.title)) | \(TextTable.singleLine($0.text))" } ?? "(deleted)"
    }

    /// Returns the icon of a note in a table.
    static func icon(_ row: NotesView.Row) -> String {
        switch row.icon {
        case .none: " "
        case .upload: "↑"
        case .conflict: "≠"
        case .error: "!"
        }
    }

    /// Returns the table of the notes.
    static func table(_ rows: [NotesView.Row], hasIcons: Bool = false, width: Int? = nil) -> [String] {
        let table = rows.map { row in
            (hasIcons ? [icon(row)] : []) + [
                short(row.uuid), state(row), row.revision.map { String($0.prefix { $0 != "-" }) } ?? "-",
                TextTable.singleLine(row.title), TextTable.singleLine(row.text),
            ]
        }
        return TextTable.lines(
            [(hasIcons ? [" "] : []) + ["NOTE", "STATE", "REV", "TITLE", "TEXT"]] + table,
            width: width)
    }

    /// Returns whether two rows of a note look the same.
    static func hasSameLook(_ left: NotesView.Row, _ right: NotesView.Row) -> Bool {
        left.icon == right.icon && left.isDeleted == right.isDeleted && left.revision == right.revision
            && left.problem == right.problem && same(left.title, right.title) && same(left.text, right.text)
    }

    private static func same(_ left: String?, _ right: String?) -> Bool {
        left.map { ByteKey($0) } == right.map { ByteKey($0) }
    }

    /// Returns the numbers of notes, pending changes, conflicts and rejected changes.
    static func counts(_ view: NotesView) -> String {
        "\(TextTable.count(view.rows.count { !$0.isDeleted }, "note")), "
            + "\(TextTable.count(view.outbox, "pending change")), "
            + "\(view.rows.count { $0.icon == .conflict }) in conflict, "
            + "\(view.rows.count { $0.icon == .error }) rejected"
    }

    /// Returns a row as members of a JSON object.
    static func json(_ row: NotesView.Row) -> [(key: String, value: String)] {
        [
            ("note", JSONText.string(row.uuid)), ("state", JSONText.string(stateName(row))),
            ("deleted", "\(row.isDeleted)"), ("revision", JSONText.string(row.revision)),
            ("title", JSONText.string(row.title)), ("text", JSONText.string(row.text)),
            ("reason", JSONText.string(row.problem)),
        ]
    }

    /// Returns the belief about connectivity.
    static func connectivity(_ connectivity: Connectivity) -> String {
        switch connectivity {
        case .unknown: "no exchange has ended yet"
        case .online: "online"
        case .interfaceDown: "the interface is down"
        case .interfaceNotAllowed: "the interface is metered, and the policy allows unmetered ones only"
        case .suspected: "an exchange failed; a probe follows"
        case .unreachable(let failures): "unreachable, \(TextTable.count(failures, "failure"))"
        }
    }

    /// Returns a belief about connectivity in one word, for programs.
    static func connectivityName(_ connectivity: Connectivity) -> String {
        switch connectivity {
        case .unknown: "unknown"
        case .online: "online"
        case .interfaceDown: "interface-down"
        case .interfaceNotAllowed: "interface-not-allowed"
        case .suspected: "suspected"
        case .unreachable: "unreachable"
        }
    }

    /// Returns an account.
    static func account(_ account: SyncAccount) -> String {
        "\(TextTable.singleLine(account.user)) at \(TextTable.singleLine(account.server))"
    }

    /// Returns a kind of change and its attempts.
    static func entry(_ entry: OutboxEntry) -> String {
        let kind =
            switch entry.kind {
            case .create: "create"
            case .update: "update"
            case .delete: "delete"
            case .unknown(let name): "unknown kind '\(TextTable.singleLine(String(name.prefix(40))))'"
            }
        var text = kind
        if entry.attempts > 0 { text += ", \(TextTable.count(entry.attempts, "attempt"))" }
        if entry.mayBeCommitted { text += ", may have been executed" }
        if let parked = entry.parked { text += "; rejected: \(TextTable.singleLine(parked))" }
        return text
    }

    /// Returns the name of an attachment's state for programs.
    static func attachmentState(_ attachment: LocalAttachment) -> String {
        switch attachment.state {
        case .waiting: "waiting"
        case .sending: "sending"
        case .done: "done"
        case .parked: "parked"
        }
    }

    /// Returns the reason why a transfer has stopped; `nil` if it has not.
    static func attachmentReason(_ attachment: LocalAttachment) -> String? {
        if case .parked(let reason) = attachment.state { reason } else { nil }
    }

    /// Returns an attachment with its size and state.
    static func attachment(_ attachment: LocalAttachment) -> String {
        let size = attachment.size.map { ", \($0) B" } ?? ""
        let state =
            switch attachment.state {
            case .waiting: "waiting"
            case .sending: attachment.direction == .download ? "receiving" : "sending"
            case .done: "done"
            case .parked(let reason): "stopped: \(TextTable.singleLine(reason))"
            }
        let name = TextTable.singleLine("\(attachment.name)")
        return "\(attachment.direction.rawValue) \(name)\(size): \(state)"
    }

    /// Returns the rules of a policy with their numbers.
    static func policy(_ policy: SyncPolicy) -> [String] {
        [
            "retries after \(seconds(policy.firstDelay)), doubled up to \(seconds(policy.longestDelay)), "
                + "each reduced at random to between 50 % and 100 %",
            "at most \(policy.attemptsMax(duringOutage: .seconds(1800))) attempts in an outage of 30 min; "
                + "Retry-After respected up to \(seconds(policy.retryAfterMax))",
            "index every \(seconds(policy.poll)); \(policy.serverErrorsMax) server errors (500) reject a change; "
                + "changes from \(policy.largeBytes) B have a connection of their own",
            "interfaces: \(policy.interfaces.rawValue), for attachments \(policy.attachmentInterfaces.rawValue); "
                + "first request within \(seconds(policy.recoverySpread)) of a recovery",
        ]
    }

    /// Returns a policy as a JSON object.
    static func json(_ policy: SyncPolicy) -> String {
        func milliseconds(_ time: Nanoseconds) -> String { "\(time.count / 1_000_000)" }
        return JSONText.object([
            ("first_delay_ms", milliseconds(policy.firstDelay)),
            ("longest_delay_ms", milliseconds(policy.longestDelay)),
            ("jitter", JSONText.array(["0.5", "1"])), ("poll_ms", milliseconds(policy.poll)),
            ("server_errors_max", "\(policy.serverErrorsMax)"),
            ("recovery_spread_ms", milliseconds(policy.recoverySpread)),
            ("retry_after_max_ms", milliseconds(policy.retryAfterMax)), ("large_bytes", "\(policy.largeBytes)"),
            ("interfaces", JSONText.string(policy.interfaces.rawValue)),
            ("attachment_interfaces", JSONText.string(policy.attachmentInterfaces.rawValue)),
            ("attempts_max_in_30_min", "\(policy.attemptsMax(duringOutage: .seconds(1800)))"),
        ])
    }

    /// Returns the line of an event that the user must know of when it happens; `nil` for any other.
    static func alert(_ event: SyncEvent) -> String? {
        switch event {
        case .commitFailed(let reason): "error: \(reason); nothing is sent until the store can be written"
        case .commitRecovered: "the store can be written again"
        case .quarantined(let id, let reason): "unreadable: \(short(id.text)): \(TextTable.singleLine(reason))"
        default: nil
        }
    }

    /// Returns the line of an attachment whose transfer has stopped; `nil` for any other event.
    static func stoppedTransfer(_ event: SyncEvent) -> String? {
        guard case .attachment(let progress) = event, case .parked = progress.attachment.state else { return nil }
        return attachment(progress.attachment)
    }

    /// Returns the reason of a problem in words, with the remedy if the reason does not show it.
    static func cause(_ problem: SyncProblem) -> String {
        let remedy =
            switch problem.kind {
            case .certificateUntrusted: "; trust its authority with --ca FILE"
            case .certificateExpired: "; renew the certificate of the server, or check the clocks of both machines"
            case .certificateWrongName: "; use a name of the certificate in --server"
            case .tlsFailed: "; give http://HOST:PORT for a server without TLS"
            default: ""
            }
        return TextTable.singleLine(problem.reason) + remedy
    }

    /// Returns the error of a client that sends nothing until the user acts, for a reason.
    static func pause(_ reason: String) -> String { "\(TextTable.singleLine(reason)); pending changes are kept" }

    /// Returns the error of a client whose account is not the store's.
    ///
    /// - Parameter adoption: What the user does to adopt the store.
    static func mismatch(_ mismatch: AccountMismatch, adoption: String) -> String {
        "\(TextTable.singleLine("\(mismatch)")); nothing was sent or deleted; name another file with --store, or "
            + "\(adoption): pending changes are sent to this server, notes that it does not have become conflicts, and "
            + "nothing is deleted"
    }

    /// Returns the line of an event of an exchange; `nil` for any other.
    static func exchange(_ event: SyncEvent) -> String? {
        switch event {
        case .sent(let exchange, let method, let target):
            "#\(exchange) \(method) \(TextTable.singleLine(String(target.prefix(80))))"
        case .responded(let exchange, let status): "#\(exchange) \(status)"
        case .failed(let exchange, let reason): "#\(exchange) failed: \(TextTable.singleLine(reason))"
        case .cancelled(let exchange): "#\(exchange) cancelled"
        default: nil
        }
    }

    /// Returns a duration as `1 s`, `0.5 s`, `24 h`.
    static func seconds(_ duration: Nanoseconds) -> String {
        let milliseconds = duration.count / 1_000_000
        if milliseconds >= 3_600_000, milliseconds % 3_600_000 == 0 { return "\(milliseconds / 3_600_000) h" }
        if milliseconds % 1000 == 0 { return "\(milliseconds / 1000) s" }
        return "\(JSONText.number(Double(milliseconds) / 1000)) s"
    }
}
