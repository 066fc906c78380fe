internal import Client
internal import CommandSupport
internal import LiveClient
internal import Wire

/// The state of a store and of its synchronisation, for people and for programs.
struct NotesStatus {
    private let notes: OfflineNotes
    private let path: String
    private let view: NotesView
    private let state: SyncState?
    private let policy = SyncPolicy()

    init(_ notes: OfflineNotes, path: String) {
        self.notes = notes
        self.path = path
        view = notes.view
        state = notes.syncState
    }

    private var rejected: [NotesView.Row] { view.rows.filter { $0.icon == .error } }

    /// The attachments; none if the store cannot be read now.
    private var attachments: [LocalAttachment] { (try? notes.attachments()) ?? [] }

    private var conflicts: [NotesView.Row] { view.rows.filter { $0.icon == .conflict } }

    private var quarantine: [(id: String, reason: String)] {
        notes.status.quarantine.sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
    }

    /// The lines of `slowlane notes status`.
    var lines: [String] {
        var lines = [NotesText.counts(view)]
        func add(_ name: String, _ value: String) { lines.append(NotesCommand.field(name, value)) }
        add("store", path)
        add("account", notes.account.map(NotesText.account) ?? "none: the first sync decides")
        add("last sync", state?.lastSync.map { TextTable.singleLine($0) } ?? "never")
        if let process = notes.syncProcess {
            let failures = (state?.failures ?? 0) > 0 ? ", \(TextTable.count(state?.failures ?? 0, "failure"))" : ""
            add(
                "sync",
                "running (process \(process)): \(TextTable.singleLine(state?.connectivity ?? "unknown"))\(failures)")
        } else {
            add("sync", "not running; 'slowlane notes sync' sends pending changes")
        }
        if let problem = state?.problem {
            add("problem", TextTable.singleLine(state?.cause.map { "\($0): \(problem)" } ?? problem))
        }
        for (index, line) in NotesText.policy(policy).enumerated() { add(index == 0 ? "policy" : "", line) }
        for row in conflicts {
            add("conflict", "\(NotesText.short(row.uuid)) \(TextTable.singleLine(row.title))")
        }
        for row in rejected {
            add(
                "rejected",
                "\(NotesText.short(row.uuid)) \(TextTable.singleLine(row.title)): \(TextTable.singleLine(row.problem))")
        }
        for attachment in attachments where attachment.state != .done {
            add("attachment", "\(NotesText.short(attachment.record.text)) \(NotesText.attachment(attachment))")
        }
        for (id, reason) in quarantine {
            add("unreadable", "\(NotesText.short(id)): \(TextTable.singleLine(reason))")
        }
        return lines
    }

    /// The object of `slowlane notes status --json`.
    var json: String {
        let account = notes.account.map { account in
            JSONText.object([
                ("user", JSONText.string(account.user)), ("server", JSONText.string(account.server)),
                ("history", JSONText.string(account.history)),
            ])
        }
        func list(_ rows: [NotesView.Row]) -> String {
            JSONText.array(
                rows.map { row in
                    JSONText.object([
                        ("note", JSONText.string(row.uuid)), ("title", JSONText.string(row.title)),
                        ("reason", JSONText.string(row.problem)),
                    ])
                })
        }
        return JSONText.object([
            ("type", JSONText.string("status")), ("version", "1"), ("store", JSONText.string(path)),
            ("notes", "\(view.rows.count { !$0.isDeleted })"), ("pending", "\(view.outbox)"),
            ("conflicts", list(conflicts)), ("rejected", list(rejected)),
            (
                "unreadable",
                JSONText.array(
                    quarantine.map { id, reason in
                        JSONText.object([("note", JSONText.string(id)), ("reason", JSONText.string(reason))])
                    })
            ),
            (
                "attachments",
                JSONText.array(
                    attachments.filter { $0.state != .done }.map { JSONText.object(NotesJSON.members($0)) })
            ),
            ("account", account ?? "null"), ("sync_process", notes.syncProcess.map { "\($0)" } ?? "null"),
            ("sync", state?.json ?? "null"), ("policy", NotesText.json(policy)),
        ])
    }
}
