internal import Client
internal import LiveClient
internal import NotesContract
internal import Scenario
internal import Wire
internal import Worlds

/// A writer in real time: requests to the server, each on a connection of its own.
actor WriterDriver {
    nonisolated let name: String
    private let world: LiveRunWorld
    private let user: String
    private let call: HTTPCall
    private var client: WriterClient

    init(_ writer: Scenario.Writer, in world: LiveRunWorld, server: LiveServer.Address) {
        name = writer.name
        self.world = world
        user = writer.user
        let credentials = Base64.encode(Array("\(writer.user):\(RunServer.password)".utf8))
        call = HTTPCall(
            host: server.host, port: server.port, authorization: "Basic \(credentials)")
        client = WriterClient(writer.name, seed: world.seed)
    }

    /// Executes an order.
    func execute(_ order: LiveRunWorld.Order) async {
        guard case .perform(let act, actor: _, let action) = order.action else { return }
        world.executed(order)
        do {
            try await perform(action)
            world.finished(act)
        } catch {
            world.finished(act, error)
        }
    }

    private func perform(_ action: Scenario.Action) async throws {
        if try world.execute(action, of: user) { return }
        let date = SyncClient.date()
        client = try world.withRecorder { recorder throws(ActionError) in
            var client = client
            guard let record = try client.begin(action, recorder, date: date), let row = action.row else {
                return (client, [])
            }
            return (client, recorder.assign(row: row, to: Array(record.text.utf8)))
        }
        while let request = client.takeRequest() { try client.received(await execute(request)) }
    }

    /// Sends a request and records its exchange.
    private func execute(_ request: WriterClient.Request) async throws -> SyncResponse {
        let id = world.withRecorder { [name, user] recorder in
            let event = recorder.request(
                request.number, of: name, method: request.content.method, record: request.record, key: request.key,
                bodyDigest: request.bodyDigest)
            let id = recorder.exchange(request.number, of: name)
            return (id, [event, RequestFacts.event(request.content, user: user, exchange: id, &recorder)])
        }
        do {
            let response = try await call.execute(request.content)
            world.withRecorder { recorder in
                let bytes = request.content.body.count
                recorder.responseStarted(id, entityTag: response.header("ETag"))
                return (
                    (),
                    (bytes > 0 ? [.requestSent(id, bytes: bytes)] : []) + [
                        .arrived(id),
                        recorder.responded(id, status: response.status, bytes: Int64(response.body.count)),
                        .responseReceived(id, status: response.status),
                    ]
                )
            }
            return response
        } catch {
            world.record(.failed(id))
            throw error
        }
    }
}
