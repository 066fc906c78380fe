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
              slowlane notes-server --listen 0.0.0.0:8000 --user-file users.txt --db notes.db
              slowlane notes-server --contract strict --token-life 60 --levers
              curl -u ada:secret http://127.0.0.1:8000/api/notes/
              curl http://127.0.0.1:8000/openapi.json

            Contracts: \(APIContract.all.map { "\($0.name), \($0.summary)" }.joined(separator: "; ")). \
            docs/notes-server.md says what they answer.
            """)

    @Option(help: "Where clients connect, HOST:PORT; port 0 takes a free one and prints it.")
    var listen = "127.0.0.1:8000"

    @Option(help: "The database file; without it notes are gone when the server stops.")
    var db: String?

    @Option(help: "Which contract it keeps: \(NotesServerCommand.contracts).")
    var contract = "compat"

    @Option(
        help: ArgumentHelp(
            "A user with a password, NAME:PASSWORD (repeatable). Other users of this machine can see it in the list of "
                + "processes. (default: the lines of SLOWLANE_NOTES_USERS, or ada:ada and bo:bo)"))
    var user: [String] = []

    @Option(help: "A file of users, one NAME:PASSWORD a line; lines that begin with '#' are skipped.")
    var userFile: String?

    @Option(help: "The status for who is not known: 401 with a challenge, or 403. (default: the contract's)")
    var unauthenticated: Int?

    @Option(help: "Requests per second of a user; over it they are refused (429). (default: any number)")
    var rate: Double?

    @Option(help: "How many seconds an access token is valid.")
    var tokenLife = NotesService.Limits().accessSeconds

    @Option(help: "How many days tombstones and the results of operations are kept.")
    var retention = NotesService.Limits().retentionSeconds / 86_400

    @Flag(help: "Let tests hold and lose answers, force statuses, stop the clock and restore snapshots, under /levers.")
    var levers = false

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    private static let contracts = APIContract.all.map(\.name).joined(separator: ", ")

    func validate() throws {
        guard let endpoint = Endpoint(listen) else {
            throw ValidationError("--listen '\(listen)' is not HOST:PORT (as 127.0.0.1:8000 or 8000)")
        }
        if levers && !LocalAddresses.isLoopback(endpoint.host) {
            throw ValidationError("--levers is for a server on this machine only: --listen 127.0.0.1:8000")
        }
        if !LocalAddresses.isLoopback(endpoint.host) && !hasOwnUsers {
            throw ValidationError(
                "--listen \(listen) takes connections from other machines, and the default passwords are known to everybody: "
                    + "add --user NAME:PASSWORD, --user-file FILE or \(NotesUsers.environmentName), or listen on 127.0.0.1"
            )
        }
        if let db, db.isEmpty || db == ":memory:" {
            throw ValidationError("--db '\(db)' is no file; name one, or leave --db out to keep notes in memory")
        }
        guard [nil, 401, 403].contains(unauthenticated) else {
            throw ValidationError("--unauthenticated is 401 or 403")
        }
        guard rate.map({ (0.001...1e6).contains($0) }) ?? true else {
            throw ValidationError("--rate is a number from 0.001 to 1000000")
        }
        guard (1...10_000_000).contains(tokenLife) else {
            throw ValidationError("--token-life is a number of seconds from 1 to 10000000")
        }
        guard (1...36_500).contains(retention) else {
            throw ValidationError("--retention is a number of days from 1 to 36500")
        }
        guard APIContract.named[contract] != nil else {
            throw ValidationError("--contract '\(contract.prefix(40))' is none of \(Self.contracts)")
        }
        do throws(NotesUsers.UsersError) {
            var users = NotesUsers()
            for text in user { try users.add(text, from: "--user") }
        } catch {
            throw ValidationError(error.description)
        }
    }

    /// The users of the environment, which count if no others are given.
    private var environmentUsers: String? {
        let text = ProcessInfo.processInfo.environment[NotesUsers.environmentName]
        return text?.isEmpty == false && user.isEmpty && userFile == nil ? text : nil
    }

    private var hasOwnUsers: Bool { !user.isEmpty || userFile != nil || environmentUsers != nil }

    private func users() throws(NotesUsers.UsersError) -> [String: String] {
        var users = NotesUsers()
        for text in user { try users.add(text, from: "--user") }
        if let userFile { try users.add(file: userFile) }
        if let environmentUsers {
            try users.add(lines: environmentUsers) { "\(NotesUsers.environmentName), line \($0)" }
        }
        return hasOwnUsers ? users.passwords : ["ada": "ada", "bo": "bo"]
    }

    func run() async throws {
        guard let endpoint = Endpoint(listen), let contract = APIContract.named[self.contract] else {
            throw ExitStatus.usage
        }
        let console = Console()
        let users: [String: String]
        do throws(NotesUsers.UsersError) {
            users = try self.users()
        } catch {
            console.print("error: \(error)", to: .progress)
            throw ExitStatus.invalidFile
        }
        let store: NotesStore
        do {
            store = try NotesStore(path: db, contract: contract)
        } catch {
            console.print("error: --db: \(error)", to: .progress)
            throw ExitStatus.invalidFile
        }
        let happenings = Happenings()
        let isQuiet = quiet
        var limits = NotesService.Limits()
        limits.requestsPerSecond = rate
        limits.accessSeconds = tokenLife
        limits.retentionSeconds = retention * 86_400
        let service = NotesService(
            store: store, users: users, unauthenticatedStatus: unauthenticated, limits: limits,
            testHooks: levers ? TestHooks() : nil, onLog: { console.print($0, to: .progress) })
        let server: NotesServer
        do {
            server = try await NotesServer.start(service, host: endpoint.host, port: endpoint.port) {
                method, path, status, span in
                if isQuiet { return }
                let milliseconds = span / .milliseconds(1)
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
        if !hasOwnUsers { console.print("note: users ada:ada and bo:bo, as no --user was given", to: .progress) }
        if levers {
            console.print("note: whoever reaches /levers on this machine moves the server's levers", to: .progress)
        }
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
