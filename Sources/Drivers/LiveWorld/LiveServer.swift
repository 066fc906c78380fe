internal import NotesServer
internal import Proxy
internal import Scenario
internal import Worlds

/// The server of a run in real time: the built-in one, a program, or one that runs already.
enum LiveServer: Sendable {
    case builtIn(NotesServer)
    case program(ProgramServer)
    case url(Address)

    /// Where a server is reached.
    struct Address: Sendable {
        let endpoint: Endpoint
        /// The path before those of requests, without a slash at its end.
        var path = ""
        /// What the links of the devices end the server's TLS with; `nil` for a server that speaks HTTP.
        var interception: ServerInterception?

        var host: String { endpoint.host }
        var port: Int { endpoint.port }
    }

    /// Starts the server of a scenario, and waits until it is ready.
    static func start(
        _ scenario: Scenario, _ notes: RunServer?, _ world: LiveRunWorld, _ folder: RunFolder
    ) async throws -> LiveServer {
        switch scenario.server {
        case .run(let program, let ready):
            return .program(try await ProgramServer.start(program, ready: ready, world, folder))
        case .url(let text):
            guard let url = ServerURL(text) else { throw SetupError("'\(text.prefix(80))' is not the URL of a server") }
            return .url(Address(endpoint: Endpoint(host: url.host, port: url.port), path: url.path))
        case .builtIn:
            guard let notes else { throw SetupError("the built-in server has no notes") }
            return .builtIn(try await NotesServer.start(notes.service, host: "127.0.0.1", port: 0))
        }
    }

    /// Where it is reached.
    var address: Address {
        switch self {
        case .builtIn(let server): Address(endpoint: Endpoint(host: "127.0.0.1", port: server.port))
        case .program(let server): server.address
        case .url(let address): address
        }
    }

    /// The output of a program.
    var output: ProgramOutput? { if case .program(let server) = self { server.output } else { nil } }

    /// Ends a server that was started for the run.
    func stop() async {
        switch self {
        case .builtIn(let server): await server.stop()
        case .program(let server): await server.stop()
        case .url: break
        }
    }
}
