internal import ArgumentParser
internal import CommandSupport
internal import Foundation
internal import NotesServer
internal import NotesService
internal import Proxy

/// `slowlane notes-server`.
struct NotesServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "notes-server",
        abstract: "Run a notes server in the foreground, for testing sync clients.",
        discussion: """
            Examples:
              slowlane notes-server --user ada:secret
              slowlane notes-server --db notes.db --user ada:a --user bo:b
              slowlane notes-server --listen 0.0.0.0:8000 --user-file users.txt
              slowlane notes-server --contract strict --token-life 60 --test-hooks
              curl -u ada:secret http://127.0.0.1:8000/api/notes/
              curl http://127.0.0.1:8000/openapi.json

            The API comes from the server of an older notes app, the original server. API contracts: \(APIContract.all.map { "\($0.name), \($0.summary)" }.joined(separator: "; ")). \
            docs/reference/notes-server.md describes their differences.

            Exit status: 0 stopped; 64 wrong arguments; 65 invalid user file or database; 69 cannot bind the port.
            """)

    @Option(
        help: ArgumentHelp(
            "Address to listen on, HOST:PORT; port 0 picks a free port and prints it.", valueName: "host:port"))
    var listen = "127.0.0.1:8000"

    @Option(help: ArgumentHelp("Database file. (default: in memory, lost when the server stops)", valueName: "file"))
    var db: String?

    @Option(help: ArgumentHelp("API contract to implement: \(NotesServerCommand.contracts).", valueName: "name"))
    var contract = "compat"

    @Option(
        help: ArgumentHelp(
            "User and password, NAME:PASSWORD (repeatable). Other users of this machine can see them in the process list. "
                + "(default: the lines of $SLOWLANE_NOTES_USERS, or ada:ada and bo:bo)", valueName: "name:password"))
    var user: [String] = []

    @Option(
        help: ArgumentHelp(
            "File of users, one NAME:PASSWORD per line; lines that begin with '#' are comments.", valueName: "file"))
    var userFile: String?

    @Option(
        help: ArgumentHelp(
            "Status for unauthenticated requests: 401 or 403. (default: 401 for strict, else 403)",
            valueName: "status"))
    var unauthenticated: Int?

    @Option(
        help: ArgumentHelp(
            "Maximum number of requests per second and user; further requests get 429. (default: unlimited)",
            valueName: "number"))
    var rate: Double?

    @Option(help: ArgumentHelp("Lifetime of access tokens in seconds.", valueName: "seconds"))
    var tokenLife = NotesService.Limits().accessSeconds

    @Option(
        help: ArgumentHelp(
            "Days for which records of deleted notes and of operations (Idempotency-Key) are kept.", valueName: "days"))
    var retention = NotesService.Limits().retentionSeconds / 86_400

    @Flag(
        help:
            "Enable test hooks under /test-hooks: hold or drop responses, force responses, set the clock, restore snapshots."
    )
    var testHooks = false

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    private static let contracts = APIContract.all.map(\.name).joined(separator: ", ")

    func validate() throws {
        guard let endpoint = Endpoint(listen) else {
            throw ValidationError("--listen '\(listen)' must be HOST:PORT, such as 127.0.0.1:8000 or 8000")
        }
        if testHooks && !LocalAddresses.isLoopback(endpoint.host) {
            throw ValidationError("--test-hooks requires a loopback address, such as --listen 127.0.0.1:8000")
        }
        if !LocalAddresses.isLoopback(endpoint.host) && !hasOwnUsers {
            throw ValidationError(
                "--listen \(listen) would let other machines connect, and the default passwords are public; "
                    + "add --user NAME:PASSWORD, --user-file FILE or \(UserList.environmentName), or listen on 127.0.0.1"
            )
        }
        if let db, db.isEmpty || db == ":memory:" {
            throw ValidationError("--db '\(db)' must be a file; leave --db out to keep notes in memory")
        }
        guard [nil, 401, 403].contains(unauthenticated) else {
            throw ValidationError("--unauthenticated must be 401 or 403")
        }
        guard rate.map({ (0.001...1e6).contains($0) }) ?? true else {
            throw ValidationError("--rate must be from 0.001 to 1000000")
        }
        guard (1...10_000_000).contains(tokenLife) else {
            throw ValidationError("--token-life must be from 1 to 10000000 seconds")
        }
        guard (1...36_500).contains(retention) else {
            throw ValidationError("--retention must be from 1 to 36500 days")
        }
        guard APIContract.named[contract] != nil else {
            throw ValidationError("--contract '\(contract.prefix(40))' must be one of \(Self.contracts)")
        }
        do throws(UserList.UserListError) {
            _ = try UserList(options: user, file: nil, environment: nil)
        } catch {
            throw ValidationError(error.description)
        }
    }

    /// The users from the environment variable; `nil` if an option gives users.
    private var environmentUsers: String? {
        let text = ProcessInfo.processInfo.environment[UserList.environmentName]
        return text?.isEmpty == false && user.isEmpty && userFile == nil ? text : nil
    }

    private var hasOwnUsers: Bool { !user.isEmpty || userFile != nil || environmentUsers != nil }

    private func users() throws(UserList.UserListError) -> [String: String] {
        let users = try UserList(options: user, file: userFile, environment: environmentUsers)
        return hasOwnUsers ? users.passwords : ["ada": "ada", "bo": "bo"]
    }

    func run() async throws {
        guard let endpoint = Endpoint(listen), let contract = APIContract.named[self.contract] else {
            throw ExitStatus.usage
        }
        let console = Console()
        let users: [String: String]
        do throws(UserList.UserListError) {
            users = try self.users()
        } catch {
            console.error("\(error)")
            throw ExitStatus.invalidFile
        }
        let store: NotesStore
        do {
            store = try NotesStore(path: db, contract: contract)
        } catch {
            console.error("--db: \(error)")
            throw ExitStatus.invalidFile
        }
        var limits = NotesService.Limits()
        limits.requestsPerSecond = rate
        limits.accessSeconds = tokenLife
        limits.retentionSeconds = retention * 86_400
        let service = NotesService(
            store: store, users: users, unauthenticatedStatus: unauthenticated, limits: limits,
            testHooks: testHooks ? TestHooks() : nil, onLog: { console.print($0, to: .progress) })
        var server = ForegroundNotesServer(service, at: endpoint)
        server.contract = contract
        server.databasePath = db
        server.hasDefaultUsers = !hasOwnUsers
        server.hasTestHooks = testHooks
        server.isQuiet = quiet
        do {
            try await server.run(console)
        } catch {
            console.error("\(error)")
            throw ExitStatus.unavailable
        }
    }
}
