internal import ArgumentParser
internal import Client
internal import CommandSupport
internal import LiveClient

extension NotesCommand {
    /// `slowlane notes new`.
    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create a note and print its uuid.")
        @Argument(help: "Title of the note.") var title: String
        @Option(help: "Text of the note.") var text = ""
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            var notes = try options.open(console, readsNotes: false)
            try NotesCommand.perform(console) { console.print(try notes.create(title: title, text: text)) }
        }
    }

    /// `slowlane notes edit`.
    struct Edit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Edit the title or text of a note.")
        @Argument(help: "Title or uuid of the note.") var note: String
        @Option(help: "New title.") var title: String?
        @Option(help: "New text.") var text: String?
        @OptionGroup var options: StoreOption

        func validate() throws {
            if title == nil && text == nil { throw ValidationError("give --title, --text, or both") }
        }

        func run() async throws {
            let console = Console()
            var notes = try options.open(console)
            try NotesCommand.perform(console) { try notes.edit(notes.find(note), title: title, text: text) }
        }
    }

    /// `slowlane notes delete`.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Delete a note.")
        @Argument(help: "Title or uuid of the note.") var note: String
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            var notes = try options.open(console)
            try NotesCommand.perform(console) { try notes.delete(notes.find(note)) }
        }
    }

    /// `slowlane notes retry`.
    struct Retry: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send a rejected change, or transfer stopped attachments, again at the next sync.",
            discussion: """
                An attachment is transferred again from the store's copy; the original file is not needed.

                Example:
                  slowlane notes retry Milk
                """)
        @Argument(help: "Title or uuid of the note.") var note: String
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            var notes = try options.open(console)
            try NotesCommand.perform(console) { try notes.retry(notes.find(note)) }
        }
    }

    /// `slowlane notes dismiss`.
    struct Dismiss: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Discard a rejected change.",
            discussion: """
                The note gets the server's last known version again; without one it is removed. The local version is \
                lost; the command prints it and asks first.

                Examples:
                  slowlane notes dismiss Milk
                  slowlane notes dismiss Milk --yes
                """)
        @Argument(help: "Title or uuid of the note.") var note: String
        @Flag(help: "Do not ask.") var yes = false
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            var notes = try options.open(console)
            let uuid = try NotesCommand.perform(console) { try notes.find(note) }
            guard let record = notes.record(uuid), notes.row(uuid)?.icon == .error else {
                throw NotesCommand.exitCode(for: OfflineNotes.NoteError(.notParked), console)
            }
            let base = record.baseContent.map(NoteContent.init)
            console.print("the server rejects: \(TextTable.singleLine(notes.row(uuid)?.problem))", to: .progress)
            if record.isDeleted {
                console.print("lost: the deletion of \(NotesText.content(NoteContent(record.mine)))", to: .progress)
            } else {
                console.print("lost: \(NotesText.content(NoteContent(record.mine)))", to: .progress)
            }
            console.print(
                base.map { "kept: \(NotesText.content($0))" } ?? "kept: nothing; the note is removed from the store",
                to: .progress)
            guard yes || NotesCommand.confirm("discard the change?", console) else { throw ExitStatus.failed }
            try NotesCommand.perform(console) { try notes.dismiss(uuid) }
        }
    }
}
