internal import Determinism
internal import HTTPTypes
public import Impairment
internal import NotesContract
public import Scenario
internal import Wire

/// The connections and exchanges of a device: what turns the events of its client's sockets and of its link into events of
/// the history, in both worlds. A value without clock and sockets.
///
/// A client has received a response when the link has delivered it and the client has read its last byte. In real time both
/// are reported by threads of their own: the later one of the two reports counts, and if the connection ends for the client
/// before it, the exchange has failed.
public struct ExchangeLedger: Sendable {
    /// A connection of the device.
    public struct ConnectionID: Hashable, Sendable {
        fileprivate let number: Int
        /// The number of the client's attempt to connect; `nil` for a request past the client's queue.
        public let attempt: Int?
    }

    private struct Connection {
        var isClosed = false
        /// The exchanges, by their numbers in the run, that have not ended for the client.
        var exchanges: [Int] = []
        /// The number of bytes that the client has read; the end of the stream counts as one.
        var bytesRead: Int64 = 0
        /// The responses that the link has delivered and the client has not read, in order: those of HTTP/1.1 arrive one
        /// after the other.
        var delivered: [Delivery] = []
    }

    /// A response that the link has delivered.
    private struct Delivery {
        /// The number of the exchange in the run.
        let exchange: Int
        let status: Int
        /// The number of bytes that the client must have read.
        let end: Int64
    }

    private struct Exchange {
        let number: Int
        /// The connection; `nil` if the client has not reported it.
        let connection: ConnectionID?
    }

    private let name: String
    private var attemptCount = 0
    private var connections: [Connection] = []
    private var exchanges: [ExchangeID: Exchange] = [:]
    /// The exchanges on connections that are not known, by their numbers in the run, that have not ended.
    private var unconnected: Set<Int> = []
    private var results = WriteResultReader()

    /// Creates the ledger of a device without connections.
    public init(_ name: String) { self.name = name }

    // MARK: The client

    /// Records a connection that the client tries to open.
    public mutating func attempt(
        _ recorder: inout HistoryRecorder
    ) -> (connection: ConnectionID, event: History.Event) {
        let event = History.Event.connectionAttempt(recorder.connection(attemptCount, of: name), device: name)
        defer { attemptCount += 1 }
        return (add(attempt: attemptCount), event)
    }

    /// Adds the connection of a request past the client's queue.
    public mutating func addConnection() -> ConnectionID { add(attempt: nil) }

    private mutating func add(attempt: Int?) -> ConnectionID {
        connections.append(Connection())
        return ConnectionID(number: connections.count - 1, attempt: attempt)
    }

    /// Records bytes that the client has read; the end of the stream counts as one.
    public mutating func read(_ bytes: Int, on id: ConnectionID) -> [History.Event] {
        connections[id.number].bytesRead += Int64(bytes)
        return receiveResponses(on: id)
    }

    /// Records that the client has read all that has arrived: in virtual time, reading takes no time.
    public mutating func readAll(on id: ConnectionID) -> [History.Event] {
        if let last = connections[id.number].delivered.last { connections[id.number].bytesRead = last.end }
        return receiveResponses(on: id)
    }

    /// Ends the exchanges whose responses are delivered and read.
    private mutating func receiveResponses(on id: ConnectionID) -> [History.Event] {
        var events: [History.Event] = []
        while let next = connections[id.number].delivered.first, next.end <= connections[id.number].bytesRead {
            connections[id.number].delivered.removeFirst()
            connections[id.number].exchanges.removeAll { $0 == next.exchange }
            events.append(.responseReceived(next.exchange, status: next.status))
        }
        return events
    }

    /// Ends a connection for the client: its exchanges have failed, although their bytes may still arrive.
    public mutating func end(_ id: ConnectionID, _ recorder: inout HistoryRecorder) -> [History.Event] {
        let connection = connections[id.number]
        guard !connection.isClosed else { return [] }
        connections[id.number].isClosed = true
        connections[id.number].exchanges = []
        connections[id.number].delivered = []
        let ended = id.attempt.map { attempt in
            History.Event.connectionEnded(recorder.connection(attempt, of: name), device: name)
        }
        return [ended].compactMap { $0 } + connection.exchanges.map { .failed($0) }
    }

    /// Ends the exchanges on connections that are not known: their client was killed.
    public mutating func endUnconnected() -> [History.Event] {
        defer { unconnected = [] }
        return unconnected.sorted().map { .failed($0) }
    }

    // MARK: The link

    /// Records an event of an exchange.
    ///
    /// - Parameter connection: The connection; `nil` if the client has not reported it. A response on such a connection is
    ///   received when the link has delivered it.
    public mutating func exchange(
        _ event: ExchangeEvent, on connection: ConnectionID?, _ recorder: inout HistoryRecorder
    ) -> [History.Event] {
        let result = results.read(event)
        switch event {
        case .requested(let id, let head, let body, _):
            let number = recorder.exchange(id.number, of: name)
            exchanges[id] = Exchange(number: number, connection: connection)
            let request = recorder.request(
                id.number, of: name, method: head.method, record: RequestSubject.record(head, body),
                key: head.value(of: NotesHTTP.idempotencyKeyName), bodyDigest: FNV1a.digest(body),
                connection: connection?.attempt)
            let contents = RequestFacts.event(head, body, exchange: number, &recorder)
            guard let connection else {
                unconnected.insert(number)
                return [request, contents]
            }
            // The client may have closed its socket while the request waited to be read.
            if connections[connection.number].isClosed { return [request, contents, .failed(number)] }
            connections[connection.number].exchanges.append(number)
            return [request, contents]
        case .requestDelivered(let id): return exchanges[id].map { [.arrived($0.number)] } ?? []
        case .responseRead(let id, let status, let bytes):
            guard let number = exchanges[id]?.number else { return [] }
            return (result.map { [.writeResult(number, $0)] } ?? [])
                + [recorder.responded(number, status: status, bytes: bytes)]
        case .responseDelivered(let id, let status, let end):
            guard let exchange = exchanges[id], isOpen(exchange) else { return [] }
            guard let connection = exchange.connection else {
                unconnected.remove(exchange.number)
                return [.responseReceived(exchange.number, status: status)]
            }
            connections[connection.number].delivered.append(
                Delivery(exchange: exchange.number, status: status, end: end))
            return receiveResponses(on: connection)
        case .interrupted(let id):
            // A request that was interrupted itself has a number, and no events.
            let number = recorder.exchange(id.number, of: name)
            guard let exchange = exchanges[id], isOpen(exchange) else { return [] }
            unconnected.remove(number)
            if let connection = exchange.connection {
                connections[connection.number].exchanges.removeAll { $0 == number }
            }
            return [.failed(number)]
        case .faultInjected(let id, let rule, let point, _):
            // Faults with negative numbers are not those of the scenario.
            guard rule >= 0, let number = exchanges[id]?.number else { return [] }
            return [.fault(index: rule, exchange: number, point: .at(point))]
        case .requestRead(let id, let bytes):
            guard bytes > 0, let number = exchanges[id]?.number else { return [] }
            return [.requestSent(number, bytes: Int(clamping: bytes))]
        case .responseStarted(let id, let head):
            if let number = exchanges[id]?.number {
                recorder.responseStarted(number, entityTag: head.fields.value(of: .eTag))
            }
            return []
        case .protocolSwitched(let id):
            if let number = exchanges[id]?.number { unconnected.remove(number) }
            return []
        case .requestStarted, .responseSampled, .faultMissed, .pings, .tls, .handshakeFault, .streamFault:
            return []
        case .notHTTP(let reason): return [.notice(actor: name, .notHTTP("\(reason)"))]
        }
    }

    /// Whether an exchange has not ended for the client. Bytes written to a closed socket are not received.
    private func isOpen(_ exchange: Exchange) -> Bool {
        guard let connection = exchange.connection else { return unconnected.contains(exchange.number) }
        return connections[connection.number].exchanges.contains(exchange.number)
    }

    /// Returns the exchange of the link with a number in the run, and its connection if it is known.
    public func exchange(_ number: Int) -> (id: ExchangeID, connection: ConnectionID?)? {
        exchanges.first { $0.value.number == number }.map { ($0.key, $0.value.connection) }
    }
}
