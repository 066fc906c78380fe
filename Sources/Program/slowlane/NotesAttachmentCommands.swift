internal import ArgumentParser
internal import Client
internal import CommandSupport
internal import Foundation
internal import LiveClient
internal import Wire

extension NotesCommand {
    /// `slowlane notes attach`.
    struct Attach: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Attach a copy of a file to a note; the next sync uploads it.",
            discussion: """
                The file may be deleted afterwards. A file of more than 64 MiB is refused, because the server does not \
                accept it. To repeat an upload that the server has rejected, attach the same file again.

                Examples:
                  slowlane notes attach Milk list.pdf
                  slowlane notes attach Milk scan0001.jpg --name receipt.jpg
                """)
        @Argument(help: "Title or uuid of the note.") var note: String
        @Argument(help: "File to attach.", completion: .file()) var file: String
        @Option(help: "Name of the attachment. (default: the name of the file)") var name: String?
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let notes = try options.open(console)
            try NotesCommand.perform(console) {
                let attachment = try notes.attach(notes.find(note), file: file, name: name)
                console.print(NotesText.attachment(attachment), to: .progress)
            }
        }
    }

    /// `slowlane notes detach`.
    struct Detach: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Remove an attachment from the store.",
            discussion: """
                The server keeps what it has, the whole attachment or a part of an upload, unless --on-server is given. After \
                --on-server, another content can be attached under the name.

                Examples:
                  slowlane notes detach Milk list.pdf
                  slowlane notes detach Milk list.pdf --on-server
                """)
        @Argument(help: "Title or uuid of the note.") var note: String
        @Argument(help: "Name of the attachment.") var name: String
        @Flag(help: "Delete the attachment on the server, too, at the next sync.") var onServer = false
        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let notes = try options.open(console)
            try NotesCommand.perform(console) {
                if onServer { return try notes.requestDeletion(notes.find(note), name: name) }
                let found = try notes.attachments(of: notes.find(note)).filter {
                    "\($0.name)".hasSameBytes(as: name)
                }
                guard !found.isEmpty else {
                    console.error(
                        "no attachment '\(TextTable.singleLine(String(name.prefix(60))))' of this note ('slowlane notes "
                            + "attachments' lists them)")
                    throw ExitStatus.usage
                }
                for attachment in found { try notes.detach(attachment) }
            }
        }
    }

    /// `slowlane notes attachments`.
    struct Attachments: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the attachments of a note that this store uploads or downloads.")
        @Argument(help: "Title or uuid of the note.") var note: String
        @OptionGroup var options: StoreOption
        @Flag(help: "Print one JSON object per attachment.") var json = false

        func run() async throws {
            let console = Console()
            let notes = try options.read(console)
            let attachments = try NotesCommand.perform(console) { try notes.attachments(of: notes.find(note)) }
            if json {
                for attachment in attachments { console.print(NotesJSON.attachment(attachment)) }
                return
            }
            if attachments.isEmpty { return console.print("no attachments", to: .progress) }
            for attachment in attachments { console.print(NotesText.attachment(attachment)) }
        }
    }

    /// `slowlane notes fetch`.
    struct Fetch: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Download an attachment of a note.",
            discussion: """
                A download that was interrupted continues where it ended. The file is written when its digest is correct.

                Examples:
                  slowlane notes fetch Milk list.pdf --server 127.0.0.1:8000 --user ada:ada
                  slowlane notes fetch Milk list.pdf -o copy.pdf --force --user ada:ada

                Exit status: 0 written; 64 wrong arguments; 65 invalid store; 69 not complete within --timeout, no such \
                attachment, or the file cannot be written.
                """)
        @Argument(help: "Title or uuid of the note.") var note: String
        @Argument(help: "Name of the attachment.") var name: String

        @Option(
            name: [.customShort("o"), .long],
            help: ArgumentHelp("File to write. (default: the name of the attachment)", valueName: "file"))
        var output: String?

        @Flag(help: "Replace an existing file.")
        var force = false

        @Option(
            help: ArgumentHelp(
                "Server, HOST:PORT, http://HOST:PORT or https://HOST[:PORT]. (default: $SLOWLANE_SERVER or 127.0.0.1:8000)",
                valueName: "address"))
        var server: String?

        @OptionGroup var connection: ServerOption

        @Option(help: ArgumentHelp("Time limit of the download, in seconds.", valueName: "seconds"))
        var timeout = 120.0

        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let address = server ?? ProcessInfo.processInfo.environment["SLOWLANE_SERVER"] ?? "127.0.0.1:8000"
            let configuration = try connection.configuration(server: address, store: options.path, console)
            guard timeout > 0, timeout <= 86_400 else {
                console.error("--timeout \(timeout) must be above 0 and at most 86400 seconds")
                throw ExitStatus.usage
            }
            let notes = try options.open(console)
            let uuid = try NotesCommand.perform(console) { try notes.find(note) }
            let file = output ?? name
            try checkTarget(file, console)
            let requested = try NotesCommand.perform(console) { try notes.requestDownload(uuid, name: name) }
            // A process that synchronises the store already does the download, too.
            var client: SyncClient?
            do {
                client = try await SyncClient.start(configuration, interface: connection.networkInterface)
            } catch let error as SyncStoreError where error.kind == .inUse {
                console.print("\(error); it downloads the attachment", to: .progress)
            } catch {
                throw NotesCommand.exitCode(for: error, console)
            }
            let problem = try await wait(for: requested.id, notes, client)
            await client?.stop()
            if let problem {
                try NotesCommand.perform(console) { try discard(requested.id, notes) }
                console.error("cannot fetch '\(TextTable.singleLine(name))': \(problem)")
                throw ExitStatus.unavailable
            }
            try checkTarget(file, console)
            try NotesCommand.perform(console) {
                guard let done = try notes.attachments().first(where: { $0.id == requested.id }) else { return }
                try notes.moveDownload(done, to: file)
            }
        }

        /// Removes a download that has stopped for good.
        private func discard(_ id: Int, _ notes: OfflineNotes) throws {
            for found in try notes.attachments() where found.id == id && !found.isPending { try notes.detach(found) }
        }

        private func checkTarget(_ file: String, _ console: Console) throws {
            guard !force, FileManager.default.fileExists(atPath: file) else { return }
            console.error("\(file) exists; give --force to replace it, or another file with --output")
            throw ExitStatus.unavailable
        }

        /// Waits for the end of a download; returns the reason if it has failed.
        private func wait(for id: Int, _ notes: OfflineNotes, _ client: SyncClient?) async throws -> String? {
            let end = ContinuousClock.now + .seconds(timeout)
            while true {
                guard let found = try notes.attachments().first(where: { $0.id == id }) else {
                    return "the note was deleted"
                }
                switch found.state {
                case .done: return nil
                case .parked(let reason): return reason
                case .waiting, .sending: break
                }
                if let client, let problem = try await problem(of: client) { return problem }
                guard ContinuousClock.now < end else {
                    return
                        "the download is not complete after \(JSONText.number(timeout)) s; the next fetch continues it"
                }
                try await Task.sleep(for: .milliseconds(50))
            }
        }

        private func problem(of client: SyncClient) async throws -> String? {
            let status = try await client.status()
            if let mismatch = status.mismatch { return "\(mismatch)" }
            if let reason = status.pauseReason { return reason }
            if status.connectivity == .interfaceNotAllowed { return "the interface is metered" }
            return nil
        }
    }
}
