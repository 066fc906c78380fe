internal import ArgumentParser
internal import CommandSupport
internal import Foundation
internal import LiveClient

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
              slowlane notes show Milk
              slowlane notes conflicts
              slowlane notes resolve Milk --edit
              slowlane notes watch --server 127.0.0.1:8000 --user ada:ada
              slowlane notes attach Milk list.pdf
              slowlane notes list --store ada.notes    # another store

            NOTE is the title of a note, or the first 4 or more characters of its uuid. The environment variables \
            SLOWLANE_STORE, SLOWLANE_SERVER and SLOWLANE_USER are the defaults of --store, --server and --user. All \
            commands but 'sync' and 'watch --server' work while another process synchronises the store.
            """,
        subcommands: [
            List.self, Show.self, New.self, Edit.self, Delete.self, Sync.self, Watch.self, Conflicts.self, Resolve.self,
            Retry.self, Dismiss.self, Status.self, Attach.self, Attachments.self, Fetch.self, Detach.self,
        ],
        defaultSubcommand: List.self)

    /// The option that names the store.
    struct StoreOption: ParsableArguments {
        @Option(
            help: ArgumentHelp(
                "File with the notes; the first change or sync creates it. (default: $SLOWLANE_STORE or ./notes.db)",
                valueName: "file"))
        var store: String?

        var path: String { store ?? ProcessInfo.processInfo.environment["SLOWLANE_STORE"] ?? "notes.db" }

        /// Reads the store, which may be read-only; prints an error and throws an exit status if it cannot be read.
        func read(_ console: Console) throws -> OfflineNotes {
            try NotesCommand.perform(console) { try OfflineNotes(reading: path) }
        }

        /// Opens the store for changes, and creates it if there is none; prints an error and throws an exit status if it cannot be used.
        func open(_ console: Console, readsNotes: Bool = true) throws -> OfflineNotes {
            try NotesCommand.perform(console) { try OfflineNotes(path: path, readsNotes: readsNotes) }
        }
    }

    /// Returns a closure's result; prints an error and throws an exit status if it fails.
    static func perform<Result>(_ console: Console, _ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch let exit as ExitCode {
            throw exit
        } catch {
            throw exitCode(for: error, console)
        }
    }

    /// Prints an error and returns its exit status.
    static func exitCode(for error: any Error, _ console: Console) -> ExitCode {
        console.error("\(error)")
        if error is OfflineNotes.NoteError { return ExitStatus.usage }
        if error is SyncClient.AttachmentError { return ExitStatus.unavailable }
        switch (error as? SyncStoreError)?.kind {
        case .newer, .foreign, .unreadable: return ExitStatus.invalidFile
        case .missing, .inUse, .unwritable: return ExitStatus.unavailable
        case .notLeaseHolder, nil: return ExitStatus.internalError
        }
    }

    /// Asks a question on standard error and returns whether the line that follows on standard input is `y` or `yes`.
    static func confirm(_ question: String, _ console: Console) -> Bool {
        console.print("\(question) [y/N]", to: .progress)
        guard let line = readLine() else {
            console.print(
                "not confirmed: standard input has ended; give --yes to confirm without a question", to: .progress)
            return false
        }
        return ["y", "yes"].contains(line.trimmingCharacters(in: .whitespaces).lowercased())
    }
}
