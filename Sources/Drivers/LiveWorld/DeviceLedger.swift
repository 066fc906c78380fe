internal import Client
internal import HTTPSockets
internal import Impairment
internal import Scenario
internal import Wire
internal import Worlds

/// The client and the exchanges of a device: what turns the events of its client and of its proxy into events of the history.
/// A value without clock and sockets.
struct DeviceLedger {
    private let name: String
    /// The number of the client's process; events of earlier ones are ignored. 0 before the first start.
    private(set) var process = 0
    private var exchanges: ExchangeLedger
    /// The connections of the process.
    private var connections: [HTTPConnectionID: ExchangeLedger.ConnectionID] = [:]
    /// The latest connection from each port of the client, and the port of each.
    private var connectionsByPort: [Int: ExchangeLedger.ConnectionID] = [:]
    private var ports: [ExchangeLedger.ConnectionID: Int] = [:]
    private var view = DeviceView()
    /// The view of an app.
    private var app = AppHistory()

    init(_ name: String) {
        self.name = name
        exchanges = ExchangeLedger(name)
    }

    // MARK: The client

    /// Begins a process of the client; returns its number.
    mutating func begin(_ version: ClientVersion) -> Int {
        process += 1
        connections = [:]
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

    /// Records the state of a connection.
    mutating func connection(
        _ activity: ClientChannels.Activity, process: Int, _ recorder: inout HistoryRecorder
    ) -> [History.Event] {
        guard process == self.process else { return [] }
        switch activity {
        case .attempted(let id):
            let (connection, event) = exchanges.attempt(&recorder)
            connections[id] = connection
            return [event]
        case .connected(let id, let port):
            guard let connection = connections[id] else { return [] }
            connectionsByPort[port] = connection
            ports[connection] = port
            return []
        case .read(let id, let bytes): return connections[id].map { exchanges.read(bytes, on: $0) } ?? []
        case .ended(let id): return connections.removeValue(forKey: id).map { exchanges.end($0, &recorder) } ?? []
        }
    }

    /// Records a commit.
    func committed(digest: UInt64, process: Int) -> [History.Event] {
        process == self.process ? [.commit(device: name, digest: digest)] : []
    }

    // MARK: The proxy

    /// Records an event of an exchange on the connection from a port of the client.
    mutating func exchange(_ event: ExchangeEvent, port: Int, _ recorder: inout HistoryRecorder) -> [History.Event] {
        exchanges.exchange(event, on: connectionsByPort[port], &recorder)
    }

    /// Returns the port of the client on the connection of an exchange of the run.
    func port(of exchange: Int) -> Int? { exchanges.exchange(exchange)?.connection.flatMap { ports[$0] } }
}
