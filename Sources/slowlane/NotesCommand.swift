internal import ArgumentParser
internal import CommandSupport
internal import Foundation
internal import ProxyServer
internal import SyncClient
internal import SyncEngine
internal import SyncStore

/// `slowlane notes`.
struct NotesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notes",
        abstract: "An offline-first notes client: changes are stored locally and sent by 'sync'.",
        discussion: """
            Examples, with a server on port 8000:
              slowlane notes new Milk --text '2 l'
              slowlane notes sync --server 127.0.0.1:8000 --user ada:ada
              slowlane notes list
              slowlane notes edit Milk --text '3 l'
              slowlane notes conflicts
              slowlane notes resolve Milk --text '3 l, oat'
              slowlane notes list --store ada.notes    # another store

            NOTE is the title of a note, or the first 4 or more characters of its uuid. The environment variables \
            SLOWLANE_STORE, SLOWLANE_SERVER and SLOWLANE_USER are the defaults of --store, --server and --user.
            """,
        subcommands: [
            List.self, New.self, Edit.self, Delete.self, Sync.self, Conflicts.self, Resolve.self, Status.self,
        ],
        defaultSubcommand: List.self)

    /// The option that names the store.
    struct StoreOption: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "File with the notes, created if missing. (default: $SLOWLANE_STORE or ./notes.db)", valueName: "file"))
        var store: String?

        var path: String { store ?? ProcessInfo.processInfo.environment["SLOWLANE_STORE"] ?? "notes.db" }
    }

    /// `slowlane notes list`.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "List the notes with their states.")
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let rows = try NotesCommand.open(options.path, console).view.rows
            if rows.isEmpty { return console.print("no notes in \(options.path)", to: .progress) }
            let table = rows.map { row in
                [
                    String(row.uuid.prefix(8)), NotesCommand.state(row),
                    row.revision.map { String($0.prefix { $0 != "-" }) } ?? "-",
                    TextTable.singleLine(row.title), TextTable.singleLine(row.text),
                ]
            }
            for line in TextTable.lines([["NOTE", "STATE", "REV", "TITLE", "TEXT"]] + table) { console.print(line) }
        }
    }

    /// `slowlane notes new`.
    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Create a note and print its uuid.")
        @Argument(help: "Title of the note.") var title: String
        @Option(help: "Text of the note.") var text = ""
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            var notes = try NotesCommand.open(options.path, console)
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
            var notes = try NotesCommand.open(options.path, console)
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
            var notes = try NotesCommand.open(options.path, console)
            try NotesCommand.perform(console) { try notes.delete(notes.find(note)) }
        }
    }

    /// `slowlane notes conflicts`.
    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Show the base, local and server versions of each note in conflict.")
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let notes = try NotesCommand.open(options.path, console)
            let rows = notes.view.rows.filter { $0.icon == .conflict }
            if rows.isEmpty { console.print("no conflicts", to: .progress) }
            for row in rows {
                guard let note = notes.note(row.uuid), let theirs = note.theirs else { continue }
                console.print("\(row.uuid.prefix(8)) \(TextTable.singleLine(row.title))")
                for (side, content) in [
                    ("base", note.baseContent), ("mine", note.isDeleted ? nil : note.mine), ("theirs", theirs.content),
                ] {
                    let text =
                        content.map { "\(TextTable.singleLine($0.title)) | \(TextTable.singleLine($0.text))" }
                        ?? "(deleted)"
                    console.print("  \(side.padding(toLength: 7, withPad: " ", startingAt: 0)) \(text)")
                }
            }
        }
    }

    /// `slowlane notes resolve`.
    struct Resolve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Resolve a conflict: keep a version, or write a new one.")
        @Argument(help: "Title or uuid of the note.") var note: String
        @Flag(help: "Keep the local version.") var mine = false
        @Flag(help: "Keep the server's version.") var theirs = false
        @Option(help: "New title, instead of both versions.") var title: String?
        @Option(help: "New text, instead of both versions.") var text: String?
        @OptionGroup var options: StoreOption

        func validate() throws {
            guard [mine, theirs, title != nil || text != nil].count(where: { $0 }) == 1 else {
                throw ValidationError("give --mine, --theirs, or a new --text or --title")
            }
        }

        func run() async throws {
            let console = Console()
            var notes = try NotesCommand.open(options.path, console)
            let resolution: SyncEngine.Resolution =
                mine ? .mine : theirs ? .theirs : .write(title: title, text: text)
            try NotesCommand.perform(console) { try notes.resolve(notes.find(note), resolution) }
        }
    }

    /// `slowlane notes status`.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Print the numbers of notes, pending changes and conflicts.")
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let view = try NotesCommand.open(options.path, console).view
            let conflicts = view.rows.count { $0.icon == .conflict }
            let problems = view.rows.count { $0.icon == .error }
            console.print(
                "\(TextTable.count(view.rows.count { !$0.isDeleted }, "note")), "
                    + "\(TextTable.count(view.outbox, "pending change")), \(conflicts) in conflict, "
                    + "\(problems) rejected"
            )
        }
    }
}

extension NotesCommand {
    /// Opens the store at a path; prints an error and throws an exit status if it cannot be used.
    fileprivate static func open(_ path: String, _ console: Console) throws -> OfflineNotes {
        do {
            return try OfflineNotes(path: path)
        } catch {
            throw exitCode(for: error, console)
        }
    }

    /// Runs a change; prints an error and throws an exit status if it fails.
    fileprivate static func perform(_ console: Console, _ change: () throws -> Void) throws {
        do {
            try change()
        } catch {
            throw exitCode(for: error, console)
        }
    }

    /// Prints an error and returns its exit status.
    static func exitCode(for error: any Error, _ console: Console) -> ExitCode {
        console.error("\(error)")
        if error is OfflineNotes.NoteError { return ExitStatus.usage }
        switch (error as? SyncStoreError)?.kind {
        case .newer, .foreign, .unreadable: return ExitStatus.invalidFile
        case .inUse, .unwritable: return ExitStatus.unavailable
        case .notLeaseHolder, nil: return ExitStatus.internalError
        }
    }

    fileprivate static func state(_ row: NotesView.Row) -> String {
        switch row.icon {
        case .none: "synced"
        case .upload: row.isDeleted ? "deleting" : "pending"
        case .conflict: "CONFLICT"
        case .error: "rejected: \(TextTable.singleLine(row.problem))"
        }
    }
}
