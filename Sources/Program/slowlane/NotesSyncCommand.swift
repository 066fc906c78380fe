internal import ArgumentParser
internal import Client
internal import CommandSupport
internal import Foundation
internal import LiveClient
internal import Synchronization
internal import Wire

extension NotesCommand {
    /// `slowlane notes sync`.
    struct Sync: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send pending changes and fetch changes from the server.",
            discussion: """
                Examples:
                  slowlane notes sync --server 127.0.0.1:8000 --user ada:ada
                  slowlane notes sync --user ada:ada --timeout 10 --quiet
                  slowlane notes sync --user ada:ada --interface unmetered
                  slowlane notes sync --server https://localhost --ca ca.pem --user ada:ada
                  slowlane notes sync --server 127.0.0.1:8001 --user ada:ada --adopt

                A store belongs to one user at one server. --adopt assigns it to another one: pending changes are sent \
                there, notes that the server does not have become conflicts, and nothing is deleted. The command shows \
                the numbers and asks first.

                Exit status: 0 complete; 1 complete, but notes are in conflict or rejected, or --adopt not confirmed; 64 wrong arguments; 65 invalid store, or the store \
                of another account; 69 not complete within --timeout, credentials rejected, an attachment not transferred, \
                not a notes server, the store cannot be used, or another process synchronises it; 130 interrupted. Pending \
                changes are kept.
                """)

        @Option(
            help: ArgumentHelp(
                "Server, HOST:PORT, http://HOST:PORT or https://HOST[:PORT]. (default: $SLOWLANE_SERVER or 127.0.0.1:8000)",
                valueName: "address"))
        var server: String?

        @OptionGroup var connection: ServerOption

        @Option(help: ArgumentHelp("Time limit of the sync, in seconds.", valueName: "seconds"))
        var timeout = 120.0

        @Flag(help: "Assign the store to this user and server (asks first).")
        var adopt = false

        @Flag(help: "Do not ask.")
        var yes = false

        @Flag(name: .shortAndLong, help: "Print results and errors only.")
        var quiet = false

        @Flag(help: "Print one JSON object with the result.")
        var json = false

        @Flag(name: .shortAndLong, help: "Print each request and response.")
        var verbose = false

        @OptionGroup var options: StoreOption

        func run() async throws {
            let address = server ?? ProcessInfo.processInfo.environment["SLOWLANE_SERVER"] ?? "127.0.0.1:8000"
            let isQuiet = quiet || json
            let console = Console(wantsStatusLine: !isQuiet, hasPrompt: false)
            let configuration = try connection.configuration(server: address, store: options.path, console)
            guard timeout > 0, timeout <= 86_400 else {
                console.error("--timeout \(timeout) must be above 0 and at most 86400 seconds")
                throw ExitStatus.usage
            }
            let progress = SyncProgress(console, isVerbose: verbose && !isQuiet)
            // A signal may arrive as soon as the first request is printed.
            let events = ForegroundEvents()
            let client: SyncClient
            do {
                client = try await SyncClient.start(configuration, interface: connection.networkInterface) { event, _ in
                    progress.receive(event)
                }
            } catch {
                throw NotesCommand.exitCode(for: error, console)
            }
            let interruption = Task {
                guard await events.next() != nil else { return }
                await client.stop()
                // Stopping the client does not end a question that waits for a line on the terminal.
                try await Task.sleep(for: .seconds(1))
                Foundation.exit(ExitStatus.interrupted.rawValue)
            }
            let reporting = isQuiet ? nil : Task { await progress.run() }
            var outcome = try await client.waitUntilComplete(timeout: .seconds(timeout))
            if case .accountMismatch(let mismatch) = outcome, adopt {
                guard try await confirmAdoption(client, mismatch, console) else {
                    await client.stop()
                    throw ExitStatus.failed
                }
                try await client.adopt()
                outcome = try await client.waitUntilComplete(timeout: .seconds(timeout))
            }
            reporting?.cancel()
            console.clearStatus()
            if outcome == .stopped {
                console.print("interrupted; pending changes are kept", to: .progress)
                throw ExitStatus.interrupted
            }
            let view = try await client.view()
            let waiting = try await client.attachments().filter { $0.state != .done }
            let problem = try await client.status().problem
            await client.stop()
            interruption.cancel()
            let hasDecisions = view.rows.contains { $0.icon == .conflict || $0.icon == .error }
            report(outcome, problem, address, console)
            if json {
                console.print(NotesJSON.sync(result(of: outcome, waiting, view), problem, view, waiting))
            } else {
                report(view, waiting, console)
            }
            switch outcome {
            case .complete where waiting.isEmpty:
                guard hasDecisions else { break }
                console.error("the sync is complete, but \(decisions(in: view)); see 'slowlane notes status'")
                throw ExitStatus.failed
            case .accountMismatch: throw ExitStatus.invalidFile
            default: throw ExitStatus.unavailable
            }
        }

        /// Returns the result in one word, for programs.
        private func result(
            of outcome: SyncClient.Completion, _ waiting: [LocalAttachment], _ view: NotesView
        ) -> String {
            switch outcome {
            case .complete where !waiting.isEmpty: "attachments-waiting"
            case .complete where view.rows.contains(where: { $0.icon == .conflict }): "conflicts"
            case .complete where view.rows.contains(where: { $0.icon == .error }): "rejected"
            case .complete: "complete"
            case .paused: "paused"
            case .accountMismatch: "account-mismatch"
            case .foreignServer: "foreign-server"
            case .interfaceNotAllowed: "interface-not-allowed"
            case .timedOut: "timed-out"
            case .stopped: "interrupted"
            }
        }

        private func decisions(in view: NotesView) -> String {
            let conflicts = view.rows.count { $0.icon == .conflict }
            let rejected = view.rows.count { $0.icon == .error }
            let parts = [
                conflicts > 0 ? "\(TextTable.count(conflicts, "note")) in conflict" : nil,
                rejected > 0 ? "\(TextTable.count(rejected, "rejected change"))" : nil,
            ]
            return parts.compactMap(\.self).joined(separator: " and ")
        }

        private func confirmAdoption(
            _ client: SyncClient, _ mismatch: AccountMismatch, _ console: Console
        ) async throws -> Bool {
            let view = try await client.view()
            console.print("\(mismatch)", to: .progress)
            console.print("--adopt assigns the store to \(NotesText.account(mismatch.found)):", to: .progress)
            let notes = view.rows.count { !$0.isDeleted }
            for line in [
                "\(TextTable.count(view.outbox, "pending change")) of \(TextTable.count(notes, "note")) will be sent to "
                    + "this server",
                "notes that this server does not have become conflicts", "nothing is deleted",
            ] { console.print("  \(line)", to: .progress) }
            return yes || NotesCommand.confirm("adopt?", console)
        }

        private func report(
            _ outcome: SyncClient.Completion, _ problem: SyncProblem?, _ address: String, _ console: Console
        ) {
            switch outcome {
            case .complete, .stopped: break
            case .paused(let reason): console.error(NotesText.pause(reason))
            case .foreignServer(let error): console.error("\(address) is \(error); pending changes are kept")
            case .accountMismatch(let mismatch):
                console.error(NotesText.mismatch(mismatch, adoption: "give --adopt"))
            case .interfaceNotAllowed:
                console.error(
                    "the interface is metered, and --interface unmetered does not allow it; pending changes are kept; "
                        + "give --interface any to send them")
            case .timedOut:
                let cause = problem.map { ": \(address): \(NotesText.cause($0))" } ?? ""
                console.error(
                    "the sync is not complete after \(JSONText.number(timeout)) s\(cause); pending changes are kept")
            }
        }

        private func report(_ view: NotesView, _ waiting: [LocalAttachment], _ console: Console) {
            for row in view.rows where row.icon == .conflict {
                console.print(
                    "conflict: '\(TextTable.singleLine(row.title))' was changed both locally and on the server "
                        + "('slowlane notes conflicts' shows both)"
                )
            }
            for row in view.rows where row.icon == .error {
                console.print("rejected: '\(TextTable.singleLine(row.title))': \(TextTable.singleLine(row.problem))")
            }
            for attachment in waiting {
                let title = view.rows.first { RecordID($0.uuid) == attachment.record }?.title
                let advice =
                    attachment.isPending
                    ? "" : " ('slowlane notes retry \(NotesText.short(attachment.record.text))' transfers it again)"
                console.print(
                    "not transferred: '\(TextTable.singleLine(title))': \(NotesText.attachment(attachment))\(advice)")
            }
            if !quiet {
                let notes = TextTable.count(view.rows.count { !$0.isDeleted }, "note")
                let changes = TextTable.count(view.outbox, "pending change")
                let attachments =
                    waiting.isEmpty ? "" : ", \(TextTable.count(waiting.count, "attachment")) not transferred"
                console.print("\(notes), \(changes)\(attachments)")
            }
        }
    }
}

/// The progress of a sync that takes more than 2 s, and its events that concern the user.
private final class SyncProgress: Sendable {
    private struct State {
        var exchanges = 0
        var outbox = 0
        var connectivity = Connectivity.unknown
        var attachment: AttachmentProgress?
    }

    private static let quietTime = Duration.seconds(2)
    /// The interval of the status line on a terminal, and of lines elsewhere.
    private static let drawInterval = Duration.milliseconds(500)
    private static let logInterval = Duration.seconds(10)

    private let console: Console
    private let isVerbose: Bool
    private let state = Mutex(State())
    private let start = ContinuousClock.now

    init(_ console: Console, isVerbose: Bool) {
        self.console = console
        self.isVerbose = isVerbose
    }

    func receive(_ event: SyncEvent) {
        switch event {
        case .view(let change):
            state.withLock {
                $0.outbox = change.outbox
                $0.connectivity = change.connectivity
            }
        case .responded: state.withLock { $0.exchanges += 1 }
        case .attachment(let progress):
            state.withLock { $0.attachment = progress.attachment.isPending ? progress : nil }
        default: break
        }
        if let line = NotesText.alert(event) ?? (isVerbose ? NotesText.exchange(event) : nil) {
            console.print(line, to: .progress)
        }
    }

    /// Reports the progress until the task is cancelled.
    func run() async {
        try? await Task.sleep(for: Self.quietTime)
        while !Task.isCancelled {
            let state = state.withLock { $0 }
            var line =
                "\(TextTable.count(state.outbox, "pending change")), \(TextTable.count(state.exchanges, "response")), "
                + "\((ContinuousClock.now - start).components.seconds) s: \(NotesText.connectivity(state.connectivity))"
            if let progress = state.attachment {
                let name = TextTable.singleLine("\(progress.attachment.name)")
                let size = progress.attachment.size.map { " of \($0 >> 10)" } ?? ""
                line += "; \(name): \(progress.transferred >> 10)\(size) KiB"
            }
            if console.hasStatusLine {
                console.show(status: line)
            } else {
                console.print(line, to: .progress)
            }
            try? await Task.sleep(for: console.hasStatusLine ? Self.drawInterval : Self.logInterval)
        }
    }
}
