internal import Client
internal import Determinism
internal import Impairment
internal import LiveClient
internal import NotesContract
internal import Scenario
internal import Wire
internal import Worlds

/// The connections, exchanges and view of a device: what turns the events of its client and of its proxy into events of
/// the history. A value without clock and sockets.
///
/// A client has received a response when the proxy has delivered it and the client has read its last byte. Both report from
/// threads of their own: the later one of the two reports counts, and if the connection ends for the client before it,
/// the exchange has failed.
struct DeviceLedger {
    /// A connection of the client.
    private struct Connection {
        /// The number of the attempt on the device.
        let attempt: Int
        var isClosed = false
        /// The exchanges, by their numbers in the run, that have not ended for the client.
        var exchanges: [Int] = []
        var port: Int?
        /// The number of bytes that the client has read; the end of the stream counts as one.
        var bytesRead: Int64 = 0
        /// The responses that the proxy has delivered and the client has not read, in order: those of HTTP/1.1 arrive one
        /// after the other.
        var delivered: [Delivery] = []
    }

    /// A response that the proxy has delivered.
    private struct Delivery {
        /// The number of the exchange in the run.
        let exchange: Int
        let status: Int
        /// The number of bytes that the client must have read.
        let end: Int64
    }

    private let name: String
    /// The number of the client's process; events of earlier ones are ignored. 0 before the first start.
    private(set) var process = 0
    private var attemptCount = 0
    private var connections: [Int: Connection] = [:]
    /// The attempts of the process's connections.
    private var attempts: [HTTPConnectionID: Int] = [:]
    /// The latest connection from each port of the client.
    private var ports: [Int: Int] = [:]
    /// The number in the run of each exchange of the link, and the attempt of its connection.
    private var exchanges: [ExchangeID: (number: Int, attempt: Int?)] = [:]
    private var view = DeviceView()
    /// The view of an app.
    private var app = AppHistory()
    private var results = WriteResultReader()

    init(_ name: String) { self.name = name }

    // MARK: The client

    /// Begins a process of the client; returns its number.
    mutating func begin(_ version: ClientVersion) -> Int {
        process += 1
        attempts = [:]
        view.version = version
        view.removeAll()
        app.removeAll()
        return process
    }

    /// Records a view of an app.
    mutating func viewChanged(
        _ shown: AppView, process: Int, _ recorder: inout HistoryRecorder
    ) -> [History.Event] {
        guard process == self.process else { return [] }
        let belief = app.apply(shown, of: name)
        return [belief, app.event(of: name, &recorder)].compactMap { $0 }
    }

    /// Returns the events of the view as it is.
    mutating func viewEvents(_ recorder: inout HistoryRecorder) -> [History.Event] {
        view.event(of: name, &recorder).map { [$0] } ?? []
    }

    /// Returns the events of opening a note, or the list.
    mutating func open(_ record: RecordID?, _ recorder: inout HistoryRecorder) -> [History.Event] {
        view.open(record)
        return viewEvents(&recorder)
    }

    /// Keeps a note open that has got another identifier.
    mutating func renamed(_ record: RecordID, to other: RecordID) { view.renamed(record, to: other) }

    /// Records a change of the view.
    mutating func viewChanged(_ change: ViewChange, process: Int, _ recorder: inout HistoryRecorder) -> [History.Event]
    {
        guard process == self.process else { return [] }
        let belief = view.apply(change, of: name)
        return viewEvents(&recorder) + (belief.map { [$0] } ?? [])
    }

    /// Records an activity of the client.
    mutating func activity(
        _ activity: SyncClientActivity, process: Int, _ recorder: inout HistoryRecorder
    ) -> [History.Event] {
        guard process == self.process else { return [] }
        switch activity {
        case .connectionAttempted(let id):
            attempts[id] = attemptCount
            connections[attemptCount] = Connection(attempt: attemptCount)
            defer { attemptCount += 1 }
            return [.connectionAttempt(recorder.connection(attemptCount, of: name), device: name)]
        case .connected(let id, let port):
            guard let attempt = attempts[id] else { return [] }
            ports[port] = attempt
            connections[attempt]?.port = port
            return []
        case .read(let id, let bytes):
            guard let attempt = attempts[id] else { return [] }
            connections[attempt]?.bytesRead += Int64(bytes)
            return receiveResponses(on: attempt)
        case .connectionEnded(let id):
            guard let attempt = attempts.removeValue(forKey: id) else { return [] }
            return end(attempt, &recorder)
        case .committed(let change): return [.commit(device: name, digest: change.digest)]
        case .settled, .busy: return []
        }
    }

    /// Ends a connection for the client: its exchanges have failed, although their bytes may still arrive.
    private mutating func end(_ attempt: Int, _ recorder: inout HistoryRecorder) -> [History.Event] {
        guard let connection = connections[attempt], !connection.isClosed else { return [] }
        connections[attempt]?.isClosed = true
        connections[attempt]?.exchanges = []
        connections[attempt]?.delivered = []
        return [.connectionEnded(recorder.connection(attempt, of: name), device: name)]
            + connection.exchanges.map { .failed($0) }
    }

    /// Ends the exchanges whose responses are delivered and read.
    private mutating func receiveResponses(on attempt: Int) -> [History.Event] {
        var events: [History.Event] = []
        while let connection = connections[attempt], let next = connection.delivered.first,
            next.end <= connection.bytesRead
        {
            connections[attempt]?.delivered.removeFirst()
            connections[attempt]?.exchanges.removeAll { $0 == next.exchange }
            events.append(.responseReceived(next.exchange, status: next.status))
        }
        return events
    }

    // MARK: The proxy

    /// Records an event of an exchange on the connection from a port of the client.
    mutating func exchange(_ event: ExchangeEvent, port: Int, _ recorder: inout HistoryRecorder) -> [History.Event] {
        let result = results.read(event)
        switch event {
        case .requested(let id, let head, let body, _):
            let attempt = ports[port]
            let number = recorder.exchange(id.number, of: name)
            exchanges[id] = (number, attempt)
            let request = recorder.request(
                id.number, of: name, method: head.method, record: RequestSubject.record(head, body),
                key: head.value(of: NotesHTTP.idempotencyKeyName), bodyDigest: FNV1a.digest(body), connection: attempt)
            let contents = RequestFacts.event(head, body, exchange: number, &recorder)
            guard let attempt, let connection = connections[attempt] else { return [request, contents] }
            // The client may have closed its socket while the request waited to be read.
            if connection.isClosed { return [request, contents, .failed(number)] }
            connections[attempt]?.exchanges.append(number)
            return [request, contents]
        case .requestDelivered(let id): return exchanges[id].map { [.arrived($0.number)] } ?? []
        case .responseRead(let id, let status, let bytes):
            guard let number = exchanges[id]?.number else { return [] }
            return (result.map { [.writeResult(number, $0)] } ?? [])
                + [recorder.responded(number, status: status, bytes: bytes)]
        case .responseDelivered(let id, let status, let end):
            guard let (number, attempt) = exchanges[id] else { return [] }
            // A request past the client's queue has a connection of its own, of which the client reports nothing.
            guard let attempt else { return [.responseReceived(number, status: status)] }
            // Bytes written to a closed socket are not received.
            guard connections[attempt]?.exchanges.contains(number) == true else { return [] }
            connections[attempt]?.delivered.append(Delivery(exchange: number, status: status, end: end))
            return receiveResponses(on: attempt)
        case .interrupted(let id): return endExchange(id).map { [.failed($0)] } ?? []
        case .faultInjected(let id, let rule, let point, _):
            let point = Scenario.Fault.Point(rawValue: point.rawValue)
            if rule == World.storing { return [] }
            return exchanges[id].map { [.fault(index: rule, exchange: $0.number, point: point)] } ?? []
        case .requestRead(let id, let bytes):
            guard bytes > 0, let exchange = exchanges[id] else { return [] }
            return [.requestSent(exchange.number, bytes: Int(clamping: bytes))]
        case .responseStarted(let id, let head):
            if let exchange = exchanges[id] {
                recorder.responseStarted(exchange.number, entityTag: head.entityTag)
            }
            return []
        case .requestStarted, .responseSampled, .faultMissed, .protocolSwitched: return []
        case .notHTTP(let reason): return [.notice(actor: name, .notHTTP("\(reason)"))]
        }
    }

    /// Returns the port of the client on the connection of an exchange of the run.
    func port(of exchange: Int) -> Int? {
        exchanges.first { $0.value.number == exchange }?.value.attempt.flatMap { connections[$0]?.port }
    }

    /// Ends an exchange; `nil` if it had ended for the client, or began before 0 s.
    private mutating func endExchange(_ id: ExchangeID) -> Int? {
        guard let (number, attempt) = exchanges[id] else { return nil }
        guard let attempt else { return number }
        guard let index = connections[attempt]?.exchanges.firstIndex(of: number) else { return nil }
        connections[attempt]?.exchanges.remove(at: index)
        return number
    }
}

extension HTTPResponseHead {
    /// The entity tag of the response.
    var entityTag: String? { fieldLines.first { $0.name.lowercased() == "etag" }?.value }
}
