internal import ArgumentParser
internal import Foundation
internal import ProxyServer
internal import SyncClient
internal import SyncEngine
internal import SyncStore

extension NotesCommand {
    /// `slowlane notes sync`.
    struct Sync: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sends what waits, and fetches what others have changed.",
            discussion: """
                Ends when both are done (0), or after --timeout with what still waits (69); nothing is lost by that.

                Example: slowlane notes sync --server 127.0.0.1:8000 --user ada:ada --store ada.notes
                """)

        @Option(help: "The server, HOST:PORT. (default: $SLOWLANE_SERVER, or 127.0.0.1:8000)")
        var server: String?

        @Option(help: "NAME:PASSWORD. (default: $SLOWLANE_USER)")
        var user: String?

        @Option(help: "How many seconds to try.")
        var timeout = 120.0

        @Flag(name: .shortAndLong, help: "Print nothing but errors.")
        var quiet = false

        @OptionGroup var options: StoreOption

        func run() async throws {
            let console = Console()
            let environment = ProcessInfo.processInfo.environment
            let address = server ?? environment["SLOWLANE_SERVER"] ?? "127.0.0.1:8000"
            guard let endpoint = Endpoint(address), endpoint.port > 0 else {
                console.print("error: --server '\(address)' is not HOST:PORT (as 127.0.0.1:8000)", to: .progress)
                throw ExitStatus.usage
            }
            let parts = (user ?? environment["SLOWLANE_USER"] ?? "").split(separator: ":", maxSplits: 1).map(
                String.init)
            guard parts.count == 2 else {
                console.print("error: give --user NAME:PASSWORD", to: .progress)
                throw ExitStatus.usage
            }
            guard timeout > 0, timeout <= 86_400 else {
                console.print("error: --timeout \(timeout) is not within 0 to 86400 seconds", to: .progress)
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
                throw NotesShelf.told(error, console)
            }
            let isDone = try await settle(client, console)
            let view = try await client.view()
            await client.stop()
            let conflicts = view.rows.filter { $0.icon == .conflict }
            for row in conflicts {
                console.print(
                    "conflict: '\(Units.line(row.title))' was changed here and there ('slowlane notes conflicts' shows both)"
                )
            }
            for row in view.rows where row.icon == .error {
                console.print("refused: '\(Units.line(row.title))': \(Units.line(row.problem))")
            }
            if !isQuiet { console.print("\(view.rows.count { !$0.isDeleted }) notes, \(view.outbox) waiting") }
            if !isDone { throw ExitStatus.unavailable }
        }

        /// Waits until nothing is left to do; gives whether that came in time.
        private func settle(_ client: SyncClient, _ console: Console) async throws -> Bool {
            let end = ContinuousClock.now + .seconds(timeout)
            while ContinuousClock.now < end {
                let progress = try await client.status()
                if let reason = progress.pauseReason {
                    console.print("error: \(reason)", to: .progress)
                    return false
                }
                if let error = progress.foreignServer {
                    console.print("error: \(server ?? "the server") is \(error)", to: .progress)
                    return false
                }
                if progress.isSettled { return true }
                try await Task.sleep(for: .milliseconds(20))
            }
            console.print("error: not done within \(timeout) s; what waits is kept", to: .progress)
            return false
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
