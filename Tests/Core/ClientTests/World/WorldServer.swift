import Client
import Determinism
import HTTPTypes
import NIOCore
import NotesContract
import NotesService
import Synchronization
import Wire

/// The real notes service with a database in memory, behind rules that make it hostile.
///
/// ``writes`` and ``history`` record what it executed: the reference of every check.
final class WorldServer {
    /// A clock that only tests move.
    final class WallClock: Sendable {
        private let state = Mutex<(wall: Int, monotonic: Int)>((1_772_352_000_000, 0))

        /// Milliseconds since 1970.
        var now: Int { state.withLock { $0.wall } }
        /// Milliseconds since the start.
        var monotonic: Int { state.withLock { $0.monotonic } }

        func advance(to monotonic: Int) {
            state.withLock {
                $0.wall += max(0, monotonic - $0.monotonic)
                $0.monotonic = max($0.monotonic, monotonic)
            }
        }

        /// Sets the wall clock ahead or back.
        func step(seconds: Int) { state.withLock { $0.wall += seconds * 1000 } }
    }

    /// An executed request.
    struct Request {
        let at: Instant
        let device: String
        let method: String
        let target: String
        let status: Int

        /// Whether it is a change.
        var isWrite: Bool { method != "GET" }
    }

    /// A change that took effect: a creation, a new revision or a deletion.
    struct Write {
        let at: Instant
        let device: String
        let id: RecordID
        /// The content; `nil` after a deletion.
        let content: NoteContent?
        /// The revision; `nil` after a deletion.
        let revision: String?
        /// The index in ``writes`` of the change that this one replaced; `nil` for a creation.
        let previous: Int?
        /// Whether it is a creation.
        var isCreation = false
    }

    let contract: APIContract
    let store: NotesStore
    private let service: NotesService
    private let clock = WallClock()
    private unowned let time: VirtualTime

    var rules: [HostileRule] = []
    /// Every request that was executed, rejected requests included.
    private(set) var requests: [Request] = []
    private(set) var writes: [Write] = []
    /// The index in ``writes`` of the last change of each note.
    private(set) var latest: [RecordID: Int] = [:]
    /// The indices in ``writes`` of all revisions that the server has issued, by note.
    private(set) var issued: [RecordID: [RecordRevision: Int]] = [:]
    /// The requests whose complete bytes have arrived, executed or not.
    private(set) var arrivals: [Request] = []

    init(_ contract: APIContract, time: VirtualTime, seed: UInt64, limits: NotesService.Limits = .init()) {
        self.contract = contract
        self.time = time
        let count = Mutex(0)
        let epochs = Mutex(0)
        do {
            store = try NotesStore(path: nil, contract: contract) {
                "epoch\(seed)x\(epochs.withLock { (number: inout Int) -> Int in number += 1; return number })"
            }
        } catch {
            fatalError("\(error)")
        }
        service = NotesService(
            store: store, users: ["ada": "secret", "bo": "hidden"], limits: limits, now: { [clock] in clock.now },
            monotonicNow: { [clock] in clock.monotonic },
            makeUUID: {
                let number = count.withLock { (number: inout Int) -> Int in
                    number += 1; return number
                }
                let digits = String(number)
                return "aaaaaaaa-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
            })
    }

    /// The date of responses.
    var date: String { HTTPDate.text(unixTime: Int64(clock.now / 1000)) }

    func stepClock(seconds: Int) { clock.step(seconds: seconds) }

    /// The notes of a user by identifier.
    func notes(of user: String = "ada") -> [RecordID: Note] {
        let notes = (try? store.notes(of: user)) ?? []
        return Dictionary(uniqueKeysWithValues: notes.map { (RecordID($0.uuid), $0) })
    }

    /// The texts of the user ada by identifier.
    var texts: [RecordID: String] { notes().compactMapValues(\.text) }

    /// The history of a note: the indices in ``writes`` of the changes up to the last one.
    func history(of id: RecordID) -> [Int] {
        var chain: [Int] = []
        var next = latest[id]
        while let index = next {
            chain.append(index)
            next = writes[index].previous
        }
        return chain.reversed()
    }

    // MARK: Requests

    /// Executes a request of another client, such as a browser.
    @discardableResult
    func execute(
        _ method: String, _ target: String, _ body: String = "", as credentials: String = World.ada,
        from device: String = "web", key: String? = nil
    ) -> WireResponse {
        var request = HTTPRequest(
            method: .init(rawValue: method) ?? .get, scheme: "http", authority: "127.0.0.1:8000", path: target)
        request.headerFields[.authorization] = credentials
        if let key, let name = HTTPField.Name(NotesHTTP.idempotencyKeyName) { request.headerFields[name] = key }
        return execute(request, Array(body.utf8), from: device)
    }

    /// Creates or replaces a note as another client; returns its revision.
    @discardableResult
    func write(_ id: RecordID, title: String? = nil, text: String?) -> String {
        let date = NoteDate.text(millisecondsSince1970: clock.now)
        var draft = [
            ("uuid", JSONText.string(id.text)), ("date", JSONText.string(date)), ("title", JSONText.string(title)),
            ("text", JSONText.string(text)),
        ]
        let response: WireResponse
        if let old = notes()[id] {
            draft.append(("revision", JSONText.string(old.revision.description)))
            response = execute("PUT", World.path(id), JSONText.object(draft))
        } else {
            response = execute("POST", NotesHTTP.notesPath, JSONText.object(draft))
        }
        precondition(
            response.status < 300, "the web client cannot write: \(String(decoding: response.body, as: UTF8.self))")
        return Note(json: response.body)?.revision.description ?? ""
    }

    /// Deletes a note as another client.
    func remove(_ id: RecordID) {
        guard let revision = notes()[id]?.revision.description else { return }
        let response = execute("DELETE", "\(World.path(id))?revision=\(revision)")
        precondition(response.status == 204)
    }

    /// Executes a request and records its effect.
    func execute(_ request: HTTPRequest, _ body: [UInt8], from device: String) -> WireResponse {
        clock.advance(to: Int(time.now.sinceStart.count / 1_000_000))
        let response = service.respond(to: request, body: body)
        let text = (try? response.body.text) ?? ""
        let wire = WireResponse(
            status: response.head.status.code,
            headers: response.head.headerFields.map { ($0.name.rawName, $0.value) }, body: Array(text.utf8))
        requests.append(
            Request(
                at: time.now, device: device, method: request.method.rawValue, target: request.path ?? "",
                status: wire.status))
        if (200...299).contains(wire.status), request.method != .get {
            recordWrite(request, wire, from: device)
        }
        return wire
    }

    private func recordWrite(_ request: HTTPRequest, _ response: WireResponse, from device: String) {
        if request.method == .delete {
            guard let id = World.id(ofPath: request.path ?? ""), let previous = latest[id],
                writes[previous].revision != nil
            else { return }
            append(
                Write(
                    at: time.now, device: device, id: id, content: nil, revision: nil, previous: previous))
        } else if let object = JSONText.parse(response.body)?.object, let uuid = object["uuid"]?.text,
            let revision = object["revision"]?.text
        {
            let id = RecordID(uuid)
            let previous = latest[id]
            // A repeated operation, or a change that changes nothing, has an earlier revision.
            if issued[id]?[RecordRevision(revision)] != nil { return }
            issued[id, default: [:]][RecordRevision(revision)] = writes.count
            let content = NoteContent(
                title: object["title"]?.text, text: object["text"]?.text, date: object["date"]?.text ?? "")
            append(
                Write(
                    at: time.now, device: device, id: id, content: content, revision: revision, previous: previous,
                    isCreation: request.method == .post))
        }
    }

    private func append(_ write: Write) {
        latest[write.id] = writes.count
        writes.append(write)
    }

    // MARK: Hostility

    /// The identifier of the history of ada's notes; `nil` in the original contract.
    private var historyOfNotes: String? {
        var request = HTTPRequest(method: .get, scheme: "http", authority: World.host, path: "/api/")
        request.headerFields[.authorization] = World.ada
        return HTTPField.Name(NotesHTTP.historyName).flatMap {
            service.respond(to: request, body: []).head.headerFields[$0]
        }
    }

    /// Returns a forged response as this server would send it: one with the marker names the history, too.
    func sign(_ response: WireResponse) -> WireResponse {
        let names = response.headers.map { $0.name.lowercased() }
        guard names.contains(NotesHTTP.markerName.lowercased()), !names.contains(NotesHTTP.historyName.lowercased()),
            let history = historyOfNotes
        else { return response }
        return response.with(NotesHTTP.historyName, history)
    }

    /// Records a request that has arrived and returns the effect of the first rule that matches it.
    func arrive(_ request: HTTPRequest, from device: String) -> HostileRule.Effect? {
        let target = request.path ?? ""
        arrivals.append(
            Request(at: time.now, device: device, method: request.method.rawValue, target: target, status: 0))
        for index in rules.indices {
            let rule = rules[index]
            if let method = rule.method, method != request.method.rawValue { continue }
            if let devices = rule.devices, !devices.contains(device) { continue }
            guard rule.matches(target) else { continue }
            rules[index].matchedRequests += 1
            if rule.nth.contains(rules[index].matchedRequests) { return rule.effect }
        }
        return nil
    }
}
