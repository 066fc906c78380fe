internal import ArgumentParser
internal import Foundation
internal import LinkModel
internal import ProxyServer
internal import SyncClient
internal import SyncEngine
internal import SyncStore

/// `slowlane notes`.
struct NotesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notes",
        abstract: "A notes client that works without a network: changes are kept, and sent by 'sync'.",
        discussion: """
            Examples, with a server on port 8000 and Ada's notes in ada.notes:
              slowlane notes new Milk --text '2 l' --store ada.notes
              slowlane notes sync --server 127.0.0.1:8000 --user ada:ada --store ada.notes
              slowlane notes list --store ada.notes
              slowlane notes edit Milk --text '3 l' --store ada.notes
              slowlane notes conflicts --store ada.notes
              slowlane notes resolve Milk --text '3 l, oat' --store ada.notes

            A note is named by its title, or by the beginning of its uuid. SLOWLANE_STORE, SLOWLANE_SERVER and
            SLOWLANE_USER stand in for --store, --server and --user.
            """,
        subcommands: [
            List.self, New.self, Edit.self, Delete.self, Sync.self, Conflicts.self, Resolve.self, Status.self,
        ],
        defaultSubcommand: List.self)

    /// Where the notes are.
    struct StoreOption: ParsableArguments {
        @Option(help: "The file that keeps the notes. (default: $SLOWLANE_STORE, or ./notes.db)")
        var store: String?

        var path: String { store ?? ProcessInfo.processInfo.environment["SLOWLANE_STORE"] ?? "notes.db" }
    }

    /// `slowlane notes list`.
    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lists the notes with their marks.")
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let shelf = try NotesShelf(options.path, console)
            let rows = shelf.engine.view.rows
            if rows.isEmpty { return console.print("no notes in \(options.path)", to: .progress) }
            let table = rows.map { row in
                [
                    String(row.uuid.prefix(8)), NotesShelf.mark(row),
                    row.revision.map { String($0.prefix { $0 != "-" }) } ?? "-",
                    Units.line(row.title), Units.line(row.text),
                ]
            }
            for line in Units.table([["NOTE", "STATE", "REV", "TITLE", "TEXT"]] + table) { console.print(line) }
        }
    }

    /// `slowlane notes new`.
    struct New: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Makes a note.")
        @Argument(help: "The title.") var title: String
        @Option(help: "The text.") var text = ""
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            var shelf = try NotesShelf(options.path, console)
            let uuid = try shelf.change { engine, date in
                engine.create(title: title, text: text, date: date, at: .start)
            }
            console.print(uuid)
        }
    }

    /// `slowlane notes edit`.
    struct Edit: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Changes a note.")
        @Argument(help: "The note.") var note: String
        @Option(help: "The new title.") var title: String?
        @Option(help: "The new text.") var text: String?
        @OptionGroup var options: StoreOption

        func validate() throws {
            if title == nil && text == nil { throw ValidationError("give --title, --text, or both") }
        }

        func run() async throws {
            var shelf = try NotesShelf(options.path, Console())
            let uuid = try shelf.find(note)
            try shelf.change { engine, date in
                try engine.edit(uuid, title: title, text: text, date: date, at: .start)
            }
        }
    }

    /// `slowlane notes delete`.
    struct Delete: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Deletes a note.")
        @Argument(help: "The note.") var note: String
        @OptionGroup var options: StoreOption

        func run() async throws {
            var shelf = try NotesShelf(options.path, Console())
            let uuid = try shelf.find(note)
            try shelf.change { engine, _ in try engine.delete(uuid, at: .start) }
        }
    }

    /// `slowlane notes conflicts`.
    struct Conflicts: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Shows what both sides say where they disagree.")
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let shelf = try NotesShelf(options.path, console)
            let rows = shelf.engine.view.rows.filter { $0.icon == .conflict }
            if rows.isEmpty { console.print("no conflicts", to: .progress) }
            for row in rows {
                guard let note = shelf.engine.note(row.uuid), let theirs = note.theirs else { continue }
                console.print("\(row.uuid.prefix(8)) \(Units.line(row.title))")
                for (side, content) in [
                    ("base", note.baseContent), ("mine", note.isDeleted ? nil : note.mine), ("theirs", theirs.content),
                ] {
                    let text = content.map { "\(Units.line($0.title)) | \(Units.line($0.text))" } ?? "(deleted)"
                    console.print("  \(side.padding(toLength: 7, withPad: " ", startingAt: 0)) \(text)")
                }
            }
        }
    }

    /// `slowlane notes resolve`.
    struct Resolve: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Decides about a conflict.")
        @Argument(help: "The note.") var note: String
        @Flag(help: "Keep what is here.") var mine = false
        @Flag(help: "Take what the server has.") var theirs = false
        @Option(help: "Write this title.") var title: String?
        @Option(help: "Write this text.") var text: String?
        @OptionGroup var options: StoreOption

        func validate() throws {
            guard [mine, theirs, title != nil || text != nil].count(where: { $0 }) == 1 else {
                throw ValidationError("give one of --mine, --theirs, or --text and --title")
            }
        }

        func run() async throws {
            var shelf = try NotesShelf(options.path, Console())
            let uuid = try shelf.find(note)
            let resolution: SyncEngine.Resolution =
                mine ? .mine : theirs ? .theirs : .write(title: title, text: text)
            try shelf.change { engine, date in try engine.resolve(uuid, resolution, date: date, at: .start) }
        }
    }

    /// `slowlane notes status`.
    struct Status: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Says how many notes there are, and what waits.")
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let view = try NotesShelf(options.path, console).engine.view
            let conflicts = view.rows.count { $0.icon == .conflict }
            let problems = view.rows.count { $0.icon == .error }
            console.print(
                "\(view.rows.count { !$0.isDeleted }) notes, \(view.outbox) waiting to be sent, \(conflicts) in conflict, "
                    + "\(problems) refused")
        }
    }
}

/// The notes of a command that does not go to the network: changes are made durable and wait.
struct NotesShelf {
    private let store: SyncStore
    private(set) var engine: SyncEngine
    private let console: Console

    init(_ path: String, _ console: Console) throws {
        self.console = console
        do {
            store = try SyncStore(path: path)
            engine = SyncEngine(restoring: try store.load(), seed: .random(in: 0...(.max)))
        } catch {
            throw Self.told(error, console)
        }
        engine.interfaceChanged(isUp: false, at: .start)
    }

    /// Says what is wrong with a store; gives the status to end with.
    static func told(_ error: any Error, _ console: Console) -> ExitCode {
        console.print("error: \(error)", to: .progress)
        switch (error as? SyncStoreError)?.kind {
        case .newer, .unreadable: return ExitStatus.invalidFile
        case .inUse, .unwritable: return ExitStatus.unavailable
        case nil: return ExitStatus.internalError
        }
    }

    @discardableResult
    mutating func change<Value>(
        _ body: (inout SyncEngine, String) throws -> Value
    ) throws -> Value {
        var next = engine
        do {
            let value = try body(&next, SyncClient.date())
            while case .commit(let change)? = next.takeAction() { try store.commit(change) }
            engine = next
            return value
        } catch let refusal as SyncEngine.NoteError {
            console.print(
                "error: \(refusal == .notInConflict ? "the note is not in conflict" : "no such note")", to: .progress)
            throw ExitStatus.usage
        } catch {
            throw Self.told(error, console)
        }
    }

    /// The note of a title, or of the beginning of a uuid.
    func find(_ name: String) throws -> String {
        let rows = engine.view.rows.filter { !$0.isDeleted || $0.icon == .conflict || $0.icon == .error }
        let found = rows.filter { $0.title == name || (name.count >= 4 && $0.uuid.hasPrefix(name.lowercased())) }
        guard let only = found.first, found.count == 1 else {
            let reason = found.isEmpty ? "no note is called" : "\(found.count) notes are called"
            console.print("error: \(reason) '\(name.prefix(60))' ('slowlane notes list' shows all)", to: .progress)
            throw ExitStatus.usage
        }
        return only.uuid
    }

    static func mark(_ row: NotesView.Row) -> String {
        switch row.icon {
        case .none: "synced"
        case .upload: row.isDeleted ? "deleting" : "waiting"
        case .conflict: "CONFLICT"
        case .error: "refused: \(Units.line(row.problem))"
        }
    }
}
