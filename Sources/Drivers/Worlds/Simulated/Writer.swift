internal import Client
internal import HTTPTypes
internal import NotesService
internal import Scenario

/// A client that reaches the server directly, without a link: its requests take no time.
final class Writer {
    let name: String
    private unowned let world: SimulatedWorld
    let user: String
    private let authorization: String
    private var client: WriterClient

    init(_ writer: Scenario.Writer, in world: SimulatedWorld) {
        name = writer.name
        self.world = world
        user = writer.user
        authorization = Server.authorization(of: writer.user)
        client = WriterClient(name, seed: world.seed)
    }

    /// Performs an action. Returns the reason if it is an error.
    func perform(_ action: Scenario.Action) -> String? {
        do throws(ActionError) {
            if let record = try client.begin(action, world.recorder, date: Server.date(at: world.now)),
                let row = action.row
            {
                world.assign(row: row, to: record.text)
            }
            while let request = client.takeRequest() { try client.received(try execute(request)) }
            return nil
        } catch {
            return error.description
        }
    }

    /// Executes a request and records its exchange.
    private func execute(_ content: WriterClient.Request) throws(ActionError) -> SyncResponse {
        guard let method = HTTPRequest.Method(content.content.method) else {
            throw ActionError("the method cannot be sent")
        }
        var request = HTTPRequest(
            method: method, scheme: "http", authority: Server.host, path: content.content.target)
        request.headerFields[.authorization] = authorization
        request.headerFields[.accept] = "application/json"
        for (name, value) in content.content.headers {
            if let name = HTTPField.Name(name) { request.headerFields[name] = value }
        }
        let id = world.recorder.exchange(content.number, of: name)
        world.record(
            world.recorder.request(
                content.number, of: name, method: content.content.method, record: content.record, key: content.key,
                bodyDigest: content.bodyDigest))
        world.record(RequestFacts.event(content.content, user: user, exchange: id, &world.recorder))
        if !content.content.body.isEmpty { world.record(.requestSent(id, bytes: content.content.body.count)) }
        world.record(.arrived(id))
        let response = world.server.respond(to: request, content.content.body, at: world.now)
        let status = response.head.status.code
        do {
            let body = Array(try response.body.text.utf8)
            world.recorder.responseStarted(id, entityTag: response.head.headerFields[.eTag])
            world.record(world.recorder.responded(id, status: status, bytes: Int64(body.count)))
            world.record(.responseReceived(id, status: status))
            return SyncResponse(
                status: status, headers: response.head.headerFields.map { (name: $0.name.rawName, value: $0.value) },
                body: body)
        } catch {
            throw ActionError("the server's database cannot be read: \(error)")
        }
    }
}
