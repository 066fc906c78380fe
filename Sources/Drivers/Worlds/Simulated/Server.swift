internal import Determinism
internal import HTTPTypes
internal import NotesContract
internal import NotesService
internal import Scenario
internal import Synchronization
internal import Wire

/// The notes server: the service with a database in memory and clocks that follow virtual time.
final class Server {
    /// The clocks of the server.
    private final class Clock: Sendable {
        private let milliseconds = Mutex(0)

        /// Milliseconds since the start.
        var monotonic: Int { milliseconds.withLock { $0 } }

        func set(_ time: Instant) { milliseconds.withLock { $0 = Int(time.sinceStart.count / 1_000_000) } }
    }

    /// The server's address.
    static let host = "127.0.0.1:8080"

    let run: RunServer
    private let clock = Clock()

    init(
        _ scenario: Scenario, seed: UInt64, storage: ServerStorage, behavior: NotesService.Behavior
    ) throws(SetupError) {
        run = try RunServer(
            scenario, seed: seed, storage: storage, behavior: behavior,
            now: { [clock] in RunServer.startMilliseconds + clock.monotonic },
            monotonicNow: { [clock] in clock.monotonic })
    }

    var service: NotesService { run.service }

    /// Sets the clocks.
    func setTime(_ time: Instant) { clock.set(time) }

    /// Returns the value of `Authorization` for a user.
    static func authorization(of user: String) -> String {
        "Basic \(Base64.encode(Array("\(user):\(RunServer.password)".utf8)))"
    }

    /// Returns the wall-clock time in the contract's date format.
    static func date(at time: Instant) -> String {
        NoteDate.text(millisecondsSince1970: RunServer.startMilliseconds + Int(time.sinceStart.count / 1_000_000))
    }

    /// Returns the response to a complete request.
    func respond(to request: HTTPRequest, _ body: [UInt8], at time: Instant) -> NotesService.Response {
        setTime(time)
        return service.respond(to: request, body: body)
    }
}
