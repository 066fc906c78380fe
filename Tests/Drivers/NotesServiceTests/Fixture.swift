import HTTPTypes
import NotesContract
import NotesService
import Synchronization

/// A service with fixed clocks and predictable UUIDs, and shorthands for requests.
struct Fixture {
    let service: NotesService
    let store: NotesStore
    /// The clocks, which only tests move.
    let clock: Clock
    /// The service's log.
    let log = Log()

    /// Milliseconds since 1970 of `2026-03-01T08:00:00Z`.
    static let now = 1_772_352_000_000
    static let n1 = "00000000-0000-4000-8000-000000000001"
    static let n2 = "00000000-0000-4000-8000-000000000002"

    final class Clock: Sendable {
        private let state: Mutex<(wall: Int, monotonic: Int)>

        init(_ wall: Int) { state = Mutex((wall, 0)) }

        /// Milliseconds since 1970.
        var now: Int { state.withLock { $0.wall } }
        /// Milliseconds since the start.
        var monotonic: Int { state.withLock { $0.monotonic } }

        /// Advances both clocks.
        func advance(seconds: Int) {
            state.withLock {
                $0.wall += seconds * 1000
                $0.monotonic += seconds * 1000
            }
        }

        /// Sets the wall clock ahead or back.
        func step(seconds: Int) { state.withLock { $0.wall += seconds * 1000 } }
    }

    final class Log: Sendable {
        private let state = Mutex<[String]>([])

        var lines: [String] { state.withLock { $0 } }

        func add(_ line: String) { state.withLock { $0.append(line) } }
    }

    init(
        _ contract: APIContract = .compat, store: NotesStore? = nil, limits: NotesService.Limits = .init(),
        testHooks: TestHooks? = nil, startingAt now: Int = Fixture.now
    ) throws {
        let clock = Clock(now)
        self.clock = clock
        self.store = try store ?? NotesStore(path: nil, contract: contract)
        let made = Mutex(0)
        service = NotesService(
            store: self.store, users: ["ada": "secret", "bo": "hidden:too"], limits: limits,
            testHooks: testHooks, now: { clock.now }, monotonicNow: { clock.monotonic },
            makeUUID: {
                let number = made.withLock { (number: inout Int) -> Int in
                    number += 1
                    return number
                }
                return "aaaaaaaa-0000-4000-8000-\(String(repeating: "0", count: 12 - String(number).count))\(number)"
            },
            onLog: { [log] line in log.add(line) })
    }

    /// The notes of the user ada.
    var notes: [Note] { get throws { try store.notes(of: "ada") } }

    struct Response {
        let status: Int
        let body: String
        let head: HTTPResponse

        func field(_ name: String) -> String? { HTTPField.Name(name).flatMap { head.headerFields[$0] } }

        var note: Note? { Note(json: Array(body.utf8)) }
        var revision: String { note?.revision.description ?? "" }
    }

    /// `ada:secret` and `bo:hidden:too` as Basic credentials.
    static let ada = "Basic YWRhOnNlY3JldA=="
    static let bo = "Basic Ym86aGlkZGVuOnRvbw=="

    @discardableResult
    func send(
        _ method: String, _ path: String, _ body: String = "", as credentials: String? = Fixture.ada,
        with fields: [String: String] = [:]
    ) -> Response {
        var request = HTTPRequest(
            method: .init(rawValue: method) ?? .get, scheme: "http", authority: "localhost:8000", path: path)
        request.headerFields[.authorization] = credentials
        for (name, value) in fields {
            if let name = HTTPField.Name(name) { request.headerFields[name] = value }
        }
        let response = service.respond(to: request, body: Array(body.utf8))
        return Response(
            status: response.head.status.code, body: (try? response.body.text) ?? "the body is incomplete",
            head: response.head)
    }

    /// Creates a note and returns its revision.
    @discardableResult
    func create(_ uuid: String = Fixture.n1, title: String = "Milk", as credentials: String = Fixture.ada) -> String {
        send("POST", "/api/notes/", #"{"uuid":"\#(uuid)","title":"\#(title)","text":"two"}"#, as: credentials).revision
    }
}

/// Random UUIDs for notes.
enum UUIDs {
    static func random() -> String {
        let digits = (0..<12).map { _ in String(Int.random(in: 0...15), radix: 16) }.joined()
        return "11111111-0000-4000-8000-\(digits)"
    }
}
