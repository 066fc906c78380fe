internal import ArgumentParser
internal import Client
internal import CommandSupport
internal import LiveClient
internal import Wire

extension NotesCommand {
    /// `slowlane notes list`.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the notes with their states.")
        @OptionGroup var options: StoreOption
        @Flag(help: "Print one JSON object per note.") var json = false

        func run() async throws {
            let console = Console()
            let rows = try options.read(console).view.rows
            if json {
                for row in rows { console.print(NotesJSON.row(row)) }
                return
            }
            if rows.isEmpty { return console.print("no notes in \(options.path)", to: .progress) }
            for line in NotesText.table(rows, width: Terminal.tableWidth) { console.print(line) }
        }
    }

    /// `slowlane notes show`.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show all that is stored of a note: versions, revision, and pending changes.")
        @Argument(help: "Title or uuid of the note.") var note: String
        @OptionGroup var options: StoreOption
        @Flag(help: "Print one JSON object.") var json = false

        func run() async throws {
            let console = Console()
            let notes = try options.read(console)
            let uuid = try NotesCommand.perform(console) { try notes.find(note) }
            guard let record = notes.record(uuid), let row = notes.row(uuid) else { return }
            if json {
                let attachments = try NotesCommand.perform(console) { try notes.attachments(of: uuid) }
                return console.print(NotesJSON.note(row, record, notes.entries(of: uuid), attachments))
            }
            let mine = NoteContent(record.mine)
            var lines = [
                ("note", TextTable.singleLine(uuid)), ("title", TextTable.singleLine(mine.title)),
                ("state", NotesText.state(row)),
                (
                    "revision",
                    record.base.map { TextTable.singleLine("\($0)") } ?? "none: the server is not known to have it"
                ),
                ("changed", TextTable.singleLine(mine.date)),
            ]
            for entry in notes.entries(of: uuid) { lines.append(("pending", NotesText.entry(entry))) }
            for attachment in try NotesCommand.perform(console, { try notes.attachments(of: uuid) }) {
                lines.append(("attachment", NotesText.attachment(attachment)))
            }
            for (name, value) in lines { console.print(NotesCommand.field(name, value)) }
            if let theirs = record.theirs {
                console.print("")
                let right = theirs.content.map(NoteContent.init)
                for line in NotesCommand.sideBySide(record.isDeleted ? nil : mine, right, theirs.revision) {
                    console.print(line)
                }
                let base = record.baseContent.map(NoteContent.init)
                console.print("")
                console.print(NotesCommand.field("base", NotesText.content(base)))
            } else {
                if let base = record.baseContent.map(NoteContent.init), !base.hasSameText(as: mine) {
                    console.print(NotesCommand.field("server", NotesText.content(base)))
                }
                console.print("")
                for line in NotesCommand.lines(mine.text) { console.print(line) }
            }
            if let advice = NotesCommand.advice(row) { console.print(advice, to: .progress) }
        }
    }

    /// `slowlane notes conflicts`.
    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the base, local and server versions of each note in conflict.")
        @OptionGroup var options: StoreOption
        @Flag(help: "Print one JSON object per note.") var json = false

        func run() async throws {
            let console = Console()
            let notes = try options.read(console)
            let rows = notes.view.rows.filter { $0.icon == .conflict }
            if json {
                for row in rows {
                    guard let record = notes.record(row.uuid) else { continue }
                    console.print(NotesJSON.conflict(row, record))
                }
                return
            }
            if rows.isEmpty { console.print("no conflicts", to: .progress) }
            for row in rows {
                guard let record = notes.record(row.uuid), let theirs = record.theirs else { continue }
                console.print("\(NotesText.short(row.uuid)) \(TextTable.singleLine(row.title))")
                for (side, content) in [
                    ("base", record.baseContent), ("mine", record.isDeleted ? nil : record.mine),
                    ("theirs", theirs.content),
                ] {
                    console.print(
                        "  " + NotesCommand.field(side, NotesText.content(content.map(NoteContent.init)), width: 7))
                }
            }
        }
    }

    /// `slowlane notes status`.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print counts, account, connectivity, policy, and rejected changes.",
            discussion: """
                Examples:
                  slowlane notes status
                  slowlane notes status --json
                """)
        @Flag(help: "Print one JSON object.") var json = false
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let notes = try options.read(console)
            let status = NotesStatus(notes, path: options.path)
            if json { return console.print(status.json) }
            for line in status.lines { console.print(line) }
        }
    }

    /// Returns a name and its value in columns.
    static func field(_ name: String, _ value: String, width: Int = 10) -> String {
        name + String(repeating: " ", count: max(1, width - name.count + 1)) + value
    }

    /// Returns the lines of a text, without characters that control a terminal.
    static func lines(_ text: String?) -> [String] {
        (text ?? "").split(separator: "\n", omittingEmptySubsequences: false).map { TextTable.singleLine(String($0)) }
    }

    /// Returns both versions of a note beside each other.
    static func sideBySide(_ mine: NoteContent?, _ theirs: NoteContent?, _ revision: RecordRevision?) -> [String] {
        func text(_ content: NoteContent?) -> String {
            content.map { "\($0.title ?? "")\n\n\($0.text ?? "")" } ?? "(deleted)"
        }
        let number = revision.map { ", revision \($0.description.prefix { $0 != "-" })" } ?? ""
        return SideBySide.lines(
            ("mine", text(mine)), ("theirs (server\(number))", text(theirs)), width: Terminal.outputSize.columns)
    }

    /// Returns what the user can do about a note; `nil` if there is nothing to do.
    static func advice(_ row: NotesView.Row) -> String? {
        let note = NotesText.short(row.uuid)
        switch row.icon {
        case .none, .upload: return nil
        case .conflict:
            return
                "changed both locally and on the server: 'slowlane notes resolve \(note)' with --mine, --theirs, "
                + "--text or --edit decides"
        case .error:
            return "the server rejects the change: 'slowlane notes retry \(note)' sends it again, 'edit' replaces it, "
                + "'dismiss' discards it"
        }
    }
}
