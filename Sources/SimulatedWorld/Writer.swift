internal import Determinism
internal import HTTPTypes
internal import NotesContract
internal import NotesService
internal import ScenarioModel
internal import SyncEngine

/// A client that reaches the server directly. It reads a note before it changes it, unless the change is stale.
final class Writer {
    let name: String
    private unowned let world: World
    private let authorization: String
    private let ids: RandomIdentifiers
    private let resource = NotesResource()
    private var exchangeCount = 0
    /// Each note as it was read last.
    private var lastRead: [String: RemoteRecord] = [:]

    /// The reason why an action is an error.
    private struct ActionError: Error, CustomStringConvertible {
        let description: String
    }

    init(_ writer: Scenario.Writer, in world: World) {
        name = writer.name
        self.world = world
        authorization = Server.authorization(of: writer.user)
        ids = RandomIdentifiers(seed: world.seed, "user/\(name)/ids")
    }

    /// Performs an action. Returns the reason if it is an error.
    func perform(_ action: Scenario.Action) -> String? {
        do throws(ActionError) {
            switch action {
            case .create(let row, let title, let text):
                let id = ids.uuid()
                world.assign(row: row, to: id)
                try change(.create(RecordID(id), content(title, text, over: nil), operation: ids.uuid()))
            case .edit(let row, let title, let text):
                let current = try read(row)
                try change(
                    .update(
                        current.id, content(title, text, over: current.content), base: current.revision,
                        operation: ids.uuid()))
            case .delete(let row):
                let current = try read(row)
                try change(.delete(current.id, base: current.revision, operation: ids.uuid()))
            case .editStale(let row, let title, let text):
                let base = try base(of: row)
                _ = try execute(
                    .update(
                        base.id, content(title, text, over: base.content), base: base.revision, operation: ids.uuid()))
            case .deleteStale(let row):
                let base = try base(of: row)
                _ = try execute(.delete(base.id, base: base.revision, operation: ids.uuid()))
            case .send(let request): try send(request)
            case .sync: break
            case .resolve, .choose: throw ActionError(description: "a writer has no conflicts to resolve")
            case .kill, .start: throw ActionError(description: "a writer has no client to stop or start")
            case .keep, .pin, .open, .upgrade, .clock, .call:
                throw ActionError(description: "the action is not supported by writers")
            }
            return nil
        } catch {
            return error.description
        }
    }

    private func content(_ title: String?, _ text: String?, over current: RecordContent?) -> RecordContent {
        let current = current.map { NoteContent($0) }
        return NoteContent(
            title: title ?? current?.title, text: text ?? current?.text, date: Server.date(at: world.now)
        ).encoded
    }

    private func read(_ row: String) throws(ActionError) -> RemoteRecord {
        guard let record = world.recorder.record(of: row) else {
            throw ActionError(description: "no note is called '\(row)'")
        }
        let operation = SyncOperation.fetch(RecordID(String(decoding: record, as: UTF8.self)))
        let response = try execute(operation)
        guard case .record(let remote) = resource.reply(to: operation, response).result else {
            throw ActionError(description: "the server responds \(response.status) to a read of \(row)")
        }
        lastRead[row] = remote
        return remote
    }

    /// Returns a note as the writer read it last.
    private func base(of row: String) throws(ActionError) -> RemoteRecord {
        guard let base = lastRead[row] else {
            throw ActionError(description: "the writer has not read \(row) before")
        }
        return base
    }

    /// Sends a request as given; every response is a result.
    private func send(_ raw: Scenario.RawRequest) throws(ActionError) {
        let target = raw.target { row in
            world.recorder.record(of: row).map { String(decoding: $0, as: UTF8.self) }
        }
        guard let target else { throw ActionError(description: "the path names a note that does not exist yet") }
        let row = raw.rows.first.flatMap { world.recorder.record(of: $0) }
        _ = try execute(
            method: raw.method, target: target, headers: raw.headers.map { ($0.name, $0.value) },
            body: Array(raw.body.utf8), record: row)
    }

    private func change(_ operation: SyncOperation) throws(ActionError) {
        let response = try execute(operation)
        guard (200...299).contains(response.status) else {
            throw ActionError(description: "the server responds \(response.status)")
        }
    }

    /// Executes a request and records its exchange.
    private func execute(_ operation: SyncOperation) throws(ActionError) -> SyncResponse {
        let content = resource.request(for: operation)
        return try execute(
            method: content.method, target: content.target, headers: content.headers.map { ($0.name, $0.value) },
            body: content.body, record: Self.record(of: operation))
    }

    private func execute(
        method name: String, target: String, headers: [(name: String, value: String)], body: [UInt8], record: [UInt8]?
    ) throws(ActionError) -> SyncResponse {
        guard let method = HTTPRequest.Method(name) else {
            throw ActionError(description: "the method cannot be sent")
        }
        var request = HTTPRequest(method: method, scheme: "http", authority: Server.host, path: target)
        request.headerFields[.authorization] = authorization
        request.headerFields[.accept] = "application/json"
        for (name, value) in headers {
            if let name = HTTPField.Name(name) { request.headerFields[name] = value }
        }
        let number = exchangeCount
        exchangeCount += 1
        let id = world.recorder.exchange(number, of: self.name)
        let key = headers.first { $0.name == NotesHTTP.idempotencyKeyName }?.value
        world.record(
            world.recorder.request(
                number, of: self.name, method: name, record: record, key: key, bodyDigest: FNV1a.digest(body)))
        world.record(.arrived(id))
        let response = world.server.respond(to: request, body, at: world.now)
        let status = response.head.status.code
        world.record(.serverResponded(id, status: status))
        world.record(.responseReceived(id, status: status))
        do {
            return SyncResponse(
                status: status, headers: response.head.headerFields.map { (name: $0.name.rawName, value: $0.value) },
                body: Array(try response.body.text.utf8))
        } catch {
            throw ActionError(description: "the server's database cannot be read: \(error)")
        }
    }

    private static func record(of operation: SyncOperation) -> [UInt8]? {
        switch operation {
        case .fetch(let id), .create(let id, _, _), .update(let id, _, _, _), .delete(let id, _, _): Array(id.text.utf8)
        case .probe, .index: nil
        }
    }
}
