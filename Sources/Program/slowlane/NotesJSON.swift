internal import Client
internal import LiveClient
internal import Wire

/// The JSON objects of `slowlane notes` with `--json`; each has a `type` and a `version`.
enum NotesJSON {
    /// Returns the state of a note.
    static func row(_ row: NotesView.Row) -> String { object("note", NotesText.json(row)) }

    /// Returns all that is stored of a note.
    static func note(
        _ row: NotesView.Row, _ record: LocalRecord, _ entries: [OutboxEntry], _ attachments: [LocalAttachment]
    ) -> String {
        object(
            "note",
            NotesText.json(row) + versions(record) + [
                ("pending", JSONText.array(entries.map(entry))),
                ("attachments", JSONText.array(attachments.map { JSONText.object(members($0)) })),
            ])
    }

    /// Returns the versions of a note in conflict.
    static func conflict(_ row: NotesView.Row, _ record: LocalRecord) -> String {
        object("conflict", [("note", JSONText.string(row.uuid))] + versions(record))
    }

    /// Returns an attachment.
    static func attachment(_ attachment: LocalAttachment) -> String { object("attachment", members(attachment)) }

    /// Returns the result of a sync.
    static func sync(
        _ result: String, _ problem: SyncProblem?, _ view: NotesView, _ waiting: [LocalAttachment]
    ) -> String {
        object(
            "sync",
            [
                ("result", JSONText.string(result)), ("cause", JSONText.string(problem?.kind.rawValue)),
                ("reason", JSONText.string(problem?.reason)), ("notes", "\(view.rows.count { !$0.isDeleted })"),
                ("pending", "\(view.outbox)"), ("conflicts", "\(view.rows.count { $0.icon == .conflict })"),
                ("rejected", "\(view.rows.count { $0.icon == .error })"), ("attachments", "\(waiting.count)"),
            ])
    }

    private static func object(_ type: String, _ members: [(key: String, value: String)]) -> String {
        JSONText.object([("type", JSONText.string(type)), ("version", "1")] + members)
    }

    /// Returns the versions of a note; `null` is a deletion, or a version that does not exist.
    private static func versions(_ record: LocalRecord) -> [(key: String, value: String)] {
        [
            ("base", content(record.baseContent, record.base)),
            ("mine", content(record.isDeleted ? nil : record.mine, nil)),
            ("theirs", content(record.theirs?.content, record.theirs?.revision)),
        ]
    }

    private static func content(_ content: RecordContent?, _ revision: RecordRevision?) -> String {
        guard let content = content.map(NoteContent.init) else { return "null" }
        return JSONText.object([
            ("revision", JSONText.string(revision.map { "\($0)" })), ("title", JSONText.string(content.title)),
            ("text", JSONText.string(content.text)),
        ])
    }

    private static func entry(_ entry: OutboxEntry) -> String {
        let kind =
            switch entry.kind {
            case .create: "create"
            case .update: "update"
            case .delete: "delete"
            case .unknown(let name): name
            }
        return JSONText.object([
            ("kind", JSONText.string(kind)), ("attempts", "\(entry.attempts)"),
            ("may_be_committed", "\(entry.mayBeCommitted)"), ("reason", JSONText.string(entry.parked)),
        ])
    }

    /// Returns an attachment as members of a JSON object.
    static func members(_ attachment: LocalAttachment) -> [(key: String, value: String)] {
        [
            ("note", JSONText.string(attachment.record.text)), ("name", JSONText.string("\(attachment.name)")),
            ("direction", JSONText.string(attachment.direction.rawValue)),
            ("size", attachment.size.map { "\($0)" } ?? "null"),
            ("state", JSONText.string(NotesText.attachmentState(attachment))),
            ("reason", JSONText.string(NotesText.attachmentReason(attachment))),
        ]
    }
}
