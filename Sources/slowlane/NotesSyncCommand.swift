internal import ArgumentParser
internal import CommandSupport
internal import Foundation
internal import JSON
internal import ProxyServer
internal import SyncClient
internal import SyncEngine
internal import SyncStore

extension NotesCommand {
    /// `slowlane notes sync`.
    struct Sync: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Send pending changes and fetch changes from the server.",
            discussion: """
                Example:
                  slowlane notes sync --server 127.0.0.1:8000 --user ada:ada

                Exit status: 0 complete; 64 wrong arguments; 65 invalid store; 69 the sync is not complete within --timeout, \
                the server rejects the credentials or is not a notes server, or the store cannot be used. Pending changes \
                are kept.
                """)

        @Option(
            help: ArgumentHelp(
                "Address of the server, HOST:PORT. (default: $SLOWLANE_SERVER or 127.0.0.1:8000)",
                valueName: "host:port"))
        var server: String?

        @Option(
            help: ArgumentHelp(
                "User and password, NAME:PASSWORD. (default: $SLOWLANE_USER)", valueName: "name:password"))
        var user: String?

        @Option(help: ArgumentHelp("Time limit of the sync, in seconds.", valueName: "seconds"))
        var timeout = 120.0

        @Flag(name: .shortAndLong, help: "Print results and errors only.")
        var quiet = false

        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let environment = ProcessInfo.processInfo.environment
            let address = server ?? environment["SLOWLANE_SERVER"] ?? "127.0.0.1:8000"
            guard let endpoint = Endpoint(address), endpoint.port > 0 else {
                console.error("--server '\(address)' must be HOST:PORT, such as 127.0.0.1:8000")
                throw ExitStatus.usage
            }
            let parts = (user ?? environment["SLOWLANE_USER"] ?? "").split(separator: ":", maxSplits: 1).map(
                String.init)
            guard parts.count == 2 else {
                console.error("no user and password; add --user NAME:PASSWORD, or set SLOWLANE_USER")
                throw ExitStatus.usage
            }
            guard timeout > 0, timeout <= 86_400 else {
                console.error("--timeout \(timeout) must be above 0 and at most 86400 seconds")
                throw ExitStatus.usage
            }
            let isQuiet = quiet
            let client: SyncClient
            do {
                client = try await SyncClient.start(
                    SyncClientConfiguration(
                        host: endpoint.host, port: endpoint.port, user: parts[0], password: parts[1],
                        storePath: options.path)
                ) { event in
                    if !isQuiet, let line = Self.line(event) { console.print(line, to: .progress) }
                }
            } catch {
                throw NotesCommand.exitCode(for: error, console)
            }
            let outcome = try await client.waitUntilComplete(timeout: .seconds(timeout))
            switch outcome {
            case .complete: break
            case .paused(let reason): console.error(reason)
            case .foreignServer(let error): console.error("\(address) is \(error)")
            case .timedOut:
                console.error("the sync is not complete after \(JSONText.number(timeout)) s; pending changes are kept")
            }
            let view = try await client.view()
            await client.stop()
            let conflicts = view.rows.filter { $0.icon == .conflict }
            for row in conflicts {
                console.print(
                    "conflict: '\(TextTable.singleLine(row.title))' was changed both locally and on the server "
                        + "('slowlane notes conflicts' shows both)"
                )
            }
            for row in view.rows where row.icon == .error {
                console.print("rejected: '\(TextTable.singleLine(row.title))': \(TextTable.singleLine(row.problem))")
            }
            if !isQuiet {
                let notes = TextTable.count(view.rows.count { !$0.isDeleted }, "note")
                console.print("\(notes), \(TextTable.count(view.outbox, "pending change"))")
            }
            if outcome != .complete { throw ExitStatus.unavailable }
        }

        private static func line(_ event: SyncEvent) -> String? {
            switch event {
            case .sent(let exchange, let method, let target): "#\(exchange) \(method) \(target.prefix(80))"
            case .responded(let exchange, let status): "#\(exchange) \(status)"
            case .failed(let exchange, let reason): "#\(exchange) failed: \(reason)"
            case .commitFailed(let error): "error: \(error)"
            case .view: nil
            }
        }
    }
}
