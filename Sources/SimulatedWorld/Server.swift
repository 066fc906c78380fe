internal import Determinism
internal import HTTPTypes
internal import NotesContract
internal import NotesService
internal import ScenarioModel
internal import SyncEngine
internal import Synchronization

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
    private static let password = "secret"
    /// The wall-clock time at the start of virtual time: 2026-03-01T00:00:00Z, in milliseconds since 1970.
    static let startMilliseconds = 1_772_323_200_000

    let service: NotesService
    private let store: NotesStore
    private let users: [String]
    private let clock = Clock()

    /// Creates a server with the notes of a scenario.
    ///
    /// - Parameter assign: Called with the name and the identifier of each note.
    init(_ scenario: Scenario, seed: UInt64, assign: (String, String) -> Void) throws(SimulatedRun.SetupError) {
        guard let contract = APIContract.named[scenario.contract] else {
            throw SimulatedRun.SetupError(
                description: "\(scenario.name): the contract '\(scenario.contract.prefix(40))' does not exist")
        }
        let ids = RandomIdentifiers(seed: seed, "server/ids")
        let notes = RandomIdentifiers(seed: seed, "server/notes")
        let epochs = RandomIdentifiers(seed: seed, "server/epochs")
        users = Set(scenario.devices.map(\.user) + scenario.writers.map(\.user)).sorted()
        do {
            store = try NotesStore(path: nil, contract: contract) { epochs.short() }
            for note in scenario.notes {
                let uuid = notes.uuid()
                assign(note.row, uuid)
                for user in users {
                    try store.seed(
                        Note(
                            uuid: uuid, revision: Revision(number: note.revision, suffix: notes.uuid()),
                            date: "2026-01-01T00:00:00.000Z", title: note.title, text: note.text), owner: user)
                }
            }
        } catch {
            throw SimulatedRun.SetupError(description: "\(scenario.name): cannot create the server's notes: \(error)")
        }
        service = NotesService(
            store: store, users: Dictionary(uniqueKeysWithValues: users.map { ($0, Self.password) }),
            now: { [clock] in Self.startMilliseconds + clock.monotonic },
            monotonicNow: { [clock] in clock.monotonic }, makeUUID: { ids.uuid() })
    }

    /// Sets the clocks.
    func setTime(_ time: Instant) { clock.set(time) }

    /// Returns the value of `Authorization` for a user.
    static func authorization(of user: String) -> String { "Basic \(Base64.encode(Array("\(user):\(password)".utf8)))" }

    /// Returns the wall-clock time in the contract's date format.
    static func date(at time: Instant) -> String {
        NoteDate.text(millisecondsSince1970: startMilliseconds + Int(time.sinceStart.count / 1_000_000))
    }

    /// Returns the response to a complete request.
    func respond(to request: HTTPRequest, _ body: [UInt8], at time: Instant) -> NotesService.Response {
        setTime(time)
        return service.respond(to: request, body: body)
    }

    /// Returns the notes of all users.
    func notes() throws(NotesStoreError) -> [(user: String, note: Note)] {
        var notes: [(String, Note)] = []
        for user in users {
            for note in try store.notes(of: user) { notes.append((user, note)) }
        }
        return notes
    }
}

/// Base64 (RFC 4648, section 4).
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits = 0
            for byte in group { bits = bits << 8 | Int(byte) }
            bits <<= 8 * (3 - group.count)
            for index in 0...3 {
                let isPadding = index > group.count
                text.append(isPadding ? UInt8(ascii: "=") : alphabet[bits >> (18 - 6 * index) & 63])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
