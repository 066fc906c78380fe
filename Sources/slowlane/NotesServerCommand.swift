internal import ArgumentParser
internal import Foundation
internal import Logging
internal import NotesServer
internal import NotesService
internal import ProxyServer

/// `slowlane notes-server`.
struct NotesServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notes-server",
        abstract: "Runs a notes server in the foreground: what sync clients are tried against.",
        discussion: """
            Examples:
              slowlane notes-server --user ada:secret
              slowlane notes-server --listen 127.0.0.1:8000 --db notes.db --contract orig --user ada:a --user bo:b
              curl -u ada:secret http://127.0.0.1:8000/api/notes/

            Contracts: compat (the default) and orig; docs/notes-server.md says what they answer.
            """)

    @Option(help: "Where clients connect, HOST:PORT; port 0 takes a free one and prints it.")
    var listen = "127.0.0.1:8000"

    @Option(help: "The database file; without it notes are gone when the server stops.")
    var db: String?

    @Option(help: "Which contract it keeps: compat or orig.")
    var contract = "compat"

    @Option(help: "A user with a password, NAME:PASSWORD; may be given again. (default: ada:ada and bo:bo)")
    var user: [String] = []

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    func validate() throws {
        guard Endpoint(listen) != nil else {
            throw ValidationError("--listen '\(listen)' is not HOST:PORT (as 127.0.0.1:8000 or 8000)")
        }
        guard NotesDialect.named[contract] != nil else {
            throw ValidationError("--contract '\(contract.prefix(40))' is none of compat, orig")
        }
        for text in user {
            guard let colon = text.firstIndex(of: ":"), colon != text.startIndex, text.last != ":" else {
                throw ValidationError("--user is NAME:PASSWORD")
            }
        }
    }

    func run() async throws {
        guard let endpoint = Endpoint(listen), let dialect = NotesDialect.named[contract] else {
            throw ExitStatus.usage
        }
        let console = Console()
        let store: NotesStore
        do {
            store = try NotesStore(path: db)
        } catch {
            console.print("error: \(error)", to: .progress)
            throw ExitStatus.invalidFile
        }
        var users: [String: String] = [:]
        for text in user.isEmpty ? ["ada:ada", "bo:bo"] : user {
            let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
            users[parts[0]] = parts[1]
        }
        let happenings = Happenings()
        let isQuiet = quiet
        let service = NotesService(store: store, users: users, dialect: dialect)
        let server: NotesServer
        do {
            server = try await NotesServer.start(service, host: endpoint.host, port: endpoint.port) {
                method, path, status, span in
                if isQuiet { return }
                let milliseconds = Double(span.components.attoseconds) / 1e15 + Double(span.components.seconds) * 1e3
                console.print(
                    "\(method) \(path.prefix(100)) \(status) \(String(format: "%.1f ms", milliseconds))", to: .progress)
            }
        } catch {
            console.print("error: \(error)", to: .progress)
            throw ExitStatus.unavailable
        }
        let host = endpoint.host.contains(":") ? "[\(endpoint.host)]" : endpoint.host
        console.print(
            "listening on http://\(host):\(server.port)/api/notes/, contract \(contract), "
                + "notes in \(db ?? "memory (gone when this stops; --db FILE keeps them)")")
        if user.isEmpty { console.print("note: users ada:ada and bo:bo, as no --user was given", to: .progress) }
        if !LocalAddresses.isLoopback(endpoint.host) {
            console.print(
                "warning: passwords travel in the clear, and this address is not only this machine", to: .progress)
        }
        console.writeLater()
        _ = await happenings.next()
        await server.stop()
        console.flush()
    }
}
