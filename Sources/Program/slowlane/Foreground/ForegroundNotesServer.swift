internal import CommandSupport
internal import Foundation
internal import NotesServer
internal import NotesService
internal import Proxy

/// A notes server in the foreground, until a signal stops it.
struct ForegroundNotesServer {
    private let service: NotesService
    private let endpoint: Endpoint
    /// The API contract.
    var contract = APIContract.compat
    /// The path of the database; `nil` if the notes are in memory.
    var databasePath: String?
    /// Whether the users are the default ones, whose passwords are public.
    var hasDefaultUsers = false
    /// Whether test hooks are enabled.
    var hasTestHooks = false
    /// Whether only results are printed.
    var isQuiet = false

    /// Creates a server of a service.
    init(_ service: NotesService, at endpoint: Endpoint) {
        self.service = service
        self.endpoint = endpoint
    }

    /// Runs the server. Throws if it cannot listen.
    func run(_ console: Console) async throws {
        // A signal may arrive as soon as the line "listening" is printed.
        let events = ForegroundEvents()
        let server = try await NotesServer.start(service, host: endpoint.host, port: endpoint.port) {
            [isQuiet] method, path, status, span in
            if isQuiet { return }
            let milliseconds = String(format: "%.1f ms", span / .milliseconds(1))
            console.print("\(method) \(path.prefix(100)) \(status) \(milliseconds)", to: .progress)
        }
        announce(port: server.port, console)
        console.writeAsynchronously()
        _ = await events.next()
        await server.stop()
        console.flush()
    }

    private func announce(port: Int, _ console: Console) {
        console.print(
            "listening on http://\(Endpoint(host: endpoint.host, port: port))/api/notes/, contract \(contract), "
                + "notes in \(databasePath ?? "memory (lost when the server stops; --db FILE keeps them)")")
        if hasDefaultUsers {
            console.print("note: no --user was given; the users are ada:ada and bo:bo", to: .progress)
        }
        if hasTestHooks {
            console.print(
                "note: test hooks are enabled; any program on this machine can use /test-hooks", to: .progress)
        }
        if !LocalAddresses.isLoopback(endpoint.host) {
            console.print(
                "warning: passwords are sent unencrypted, and other machines can reach this address", to: .progress)
        }
    }
}
