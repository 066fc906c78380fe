public import Determinism
public import Impairment
public import LinkModel
internal import Synchronization

/// The kinds of events that an observer of a proxy receives.
public struct ObservationSet: OptionSet, Hashable, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Events of HTTP exchanges, on connections that are opened after the observation starts.
    public static let exchanges = ObservationSet(rawValue: 1)
    /// Packets on the modelled link.
    public static let packets = ObservationSet(rawValue: 2)
    /// Changes of the conditions and of the treatment of new connections.
    public static let conditions = ObservationSet(rawValue: 4)
    /// The proxy's status, once per interval; while it does not change, only the first ones
    /// (``ProxyObservation/equalStatusesMax``).
    public static let status = ObservationSet(rawValue: 8)
    /// Connections on the link that open and close; those that are open when the observation starts are reported first.
    public static let connections = ObservationSet(rawValue: 16)

    /// The events that the link must record. Connections cannot use the fast path while it records.
    var link: SharedLink.Observation {
        var observation: SharedLink.Observation = []
        if contains(.exchanges) { observation.insert(.exchanges) }
        if contains(.packets) { observation.insert(.packets) }
        return observation
    }
}

/// An event of an observed proxy.
public enum ProxyEvent: Sendable {
    /// An event of an HTTP exchange of the connection with this number, at a time of the model.
    case exchange(ExchangeEvent, connection: Int, at: Instant)
    /// A connection has opened or closed.
    case connection(ConnectionEvent)
    /// A packet on the modelled link.
    case packet(PacketEvent)
    /// New conditions, and the resulting treatment of new connections.
    case conditions(Conditions, SYNTreatment)
    /// The status of the proxy.
    case status(ProxyStatus)
    /// Events that were dropped at this position of the stream, because it was full.
    case dropped(Int)
}

/// The opening or the end of a connection of an observed proxy.
public struct ConnectionEvent: Hashable, Sendable {
    /// The number of the connection.
    public let number: Int
    /// The client's address.
    public let client: Endpoint?
    /// The host and port that the client of a forward proxy has named; `nil` for a proxy of one upstream.
    public let destination: Endpoint?
    /// The time at which the client connected.
    public let opened: Instant
    /// The end; `nil` for an open connection.
    public let end: End?
    /// Whether the connection was open before the observation, so that exchanges may precede the observed ones.
    public let isEarlier: Bool
    /// Whether it is a session of datagrams.
    public internal(set) var isDatagrams = false

    /// The end of a connection.
    public struct End: Hashable, Sendable {
        /// The time.
        public let time: Instant
        /// The reason.
        public let reason: ConnectionEndReason
        /// Payload bytes read from the sockets.
        public let bytesRead: PerDirection<Int>

        /// Creates an end.
        public init(time: Instant, reason: ConnectionEndReason, bytesRead: PerDirection<Int>) {
            self.time = time
            self.reason = reason
            self.bytesRead = bytesRead
        }
    }

    /// Creates an event.
    public init(
        number: Int, client: Endpoint?, destination: Endpoint? = nil, opened: Instant, end: End? = nil,
        isEarlier: Bool = false
    ) {
        self.number = number
        self.client = client
        self.destination = destination
        self.opened = opened
        self.end = end
        self.isEarlier = isEarlier
    }
}

/// The first cause of the end of a connection.
public enum ConnectionEndReason: String, Hashable, Sendable {
    /// The client has sent a FIN.
    case clientClosed = "client closed"
    /// The client has sent a RST, or its socket has failed.
    case clientReset = "client reset"
    /// The server has sent a FIN.
    case serverClosed = "server closed"
    /// The server has sent a RST, or its socket has failed.
    case serverReset = "server reset"
    /// No upstream could be reached.
    case unreachable
    /// The client has not completed its handshake with the proxy in time (``ForwardProxy/HandshakeLimit``).
    case handshakeTimeout = "handshake timeout"
    /// No datagram has passed for the idle time.
    case idle
    /// The limit on sessions of datagrams was reached.
    case evicted
    /// A fault.
    case fault
    /// A call, new conditions, or the end of the proxy.
    case proxy
}

/// An observation of a running proxy, with a bounded stream of events.
///
/// The observation ends when the stream's iterator is released or its task is cancelled, and when the proxy stops. The
/// proxy never waits for an observer: events that do not fit into the stream are dropped and counted.
public struct ProxyObservation: Sendable {
    /// The events, in the order in which they happened.
    public let events: AsyncStream<ProxyEvent>
    /// The connections that left the fast path because the observation started.
    public let connectionsMoved: Int
    /// The time of ``Determinism/Instant/start`` of the events, in nanoseconds since 1970 by ``ProcessClock``.
    public let startUnixNanoseconds: Int64
    let droppedTotal: DropCounter

    /// Events dropped so far.
    public var eventsDropped: Int { droppedTotal.count.load(ordering: .relaxed) }

    /// The default time between two ``ProxyEvent/status(_:)`` events.
    public static let statusInterval = Nanoseconds.seconds(1)
    /// The number of statuses in a row without a change that are sent. Afterwards the proxy is idle, and its status is
    /// read once per ``idleStatusInterval`` until it changes.
    public static let equalStatusesMax = 12
    /// The time between two readings of the status of an idle proxy, unless ``statusInterval`` is longer.
    public static let idleStatusInterval = Nanoseconds.seconds(1)
    /// The default limit on events that wait to be read.
    public static let bufferedEventsMaxDefault = 4096

    /// The number of dropped events of an observation; written on the event loop.
    final class DropCounter: Sendable {
        let count = Atomic<Int>(0)
    }
}

/// The sending side of an observation. Used on its proxy's event loop only.
final class ProxyObserver {
    let set: ObservationSet
    /// The time between two status events.
    let statusInterval: Nanoseconds
    private let continuation: AsyncStream<ProxyEvent>.Continuation
    private let droppedTotal: ProxyObservation.DropCounter
    /// Events dropped since the last one that was sent.
    private var droppedNow = 0
    private var lastStatus: ProxyStatus?
    /// The number of statuses since that have not differed.
    private var equalStatuses = 0

    init(
        _ set: ObservationSet, statusInterval: Nanoseconds, _ continuation: AsyncStream<ProxyEvent>.Continuation,
        _ droppedTotal: ProxyObservation.DropCounter
    ) {
        self.set = set
        self.statusInterval = statusInterval
        self.continuation = continuation
        self.droppedTotal = droppedTotal
    }

    /// Sends an event, or drops it if the stream is full. The stream drops new events, so that each gap has one
    /// position.
    func send(_ event: ProxyEvent) {
        if droppedNow > 0 {
            guard case .enqueued = continuation.yield(.dropped(droppedNow)) else { return drop() }
            droppedNow = 0
        }
        if case .dropped = continuation.yield(event) { drop() }
    }

    /// Sends a status, unless the proxy is idle. Returns the time after which the next one is due.
    func send(_ status: ProxyStatus) -> Nanoseconds {
        equalStatuses = status == lastStatus ? equalStatuses + 1 : 0
        lastStatus = status
        if equalStatuses > ProxyObservation.equalStatusesMax {
            // No overflow in a day-long idle time.
            equalStatuses = ProxyObservation.equalStatusesMax
            return max(statusInterval, ProxyObservation.idleStatusInterval)
        }
        send(.status(status))
        return statusInterval
    }

    private func drop() {
        droppedNow += 1
        droppedTotal.count.add(1, ordering: .relaxed)
    }

    func finish() { continuation.finish() }
}
