internal import DequeModule
internal import Determinism
public import LinkModel
internal import NIOCore

/// The counters of a link's datagrams since its creation.
public struct DatagramCounters: Hashable, Sendable {
    /// Sessions opened.
    public var sessionsOpened = 0
    /// Sessions that have ended because the limit on sessions was reached.
    public var sessionsEvicted = 0
    /// Datagrams read from sockets.
    public var received = PerDirection(up: 0, down: 0)
    /// Datagrams that have left the link, duplicates included.
    public var sent = PerDirection(up: 0, down: 0)
    /// Datagrams lost because they were longer than the MTU of the conditions.
    public var overMTU = 0
    /// Datagrams lost because the conditions let none pass (``DatagramConditions/Policy/blackhole``).
    public var blackholed = 0
    /// Datagrams discarded because too many bytes were in flight.
    public var discarded = 0
    /// Messages of the server's machine that no socket has the port (ICMP port unreachable).
    public var unreachable = 0

    /// Creates counters without traffic.
    public init() {}
}

/// The datagrams of a link: their sessions, those in flight, and the resulting actions.
struct DatagramTraffic {
    /// What crosses the link.
    enum Content: Sendable {
        case datagram(ByteBuffer)
        /// An ICMP port unreachable, from the server to the client.
        case unreachable

        var byteCount: Int {
            switch self {
            case .datagram(let payload): payload.readableBytes
            case .unreachable: 0
            }
        }
    }

    let limits: DatagramLimits
    var table = DatagramTable()
    var counters = DatagramCounters()
    var actions = Deque<SharedLink.TimedDatagramAction>()
    /// The next number of a session, unless the driver numbers them.
    var nextNumber = 0
    private var packets = PerDirection(up: PacketsInFlight<Content>(), down: PacketsInFlight<Content>())
    private var sequence: UInt64 = 0
    /// The datagrams in flight.
    private(set) var inFlight = 0
    /// The payload bytes of the datagrams in flight.
    private(set) var bytesInFlight = 0

    init(_ limits: DatagramLimits) { self.limits = limits }

    /// The time of the next arrival.
    var nextArrival: Instant {
        let next = min(packets.up.nextArrival, packets.down.nextArrival)
        return next == .max ? .never : Instant(Nanoseconds(next))
    }

    /// Returns whether the limit leaves room for a payload.
    func hasRoom(for bytes: Int) -> Bool {
        bytes <= limits.bytesMax - bytesInFlight - (inFlight + 1) * DatagramLimits.overheadBytes
    }

    /// Adds a datagram that arrives. One that would arrive after the end of modelled time is lost.
    mutating func add(_ content: Content, of id: FlowID, _ direction: Direction, arrival: Instant) {
        guard arrival <= .end else { return }
        sequence += 1
        inFlight += 1
        bytesInFlight += content.byteCount
        packets[direction].append(
            PacketInFlight(arrival: arrival.sinceStart.count, sequence: sequence, flow: id, payload: content))
    }

    /// Takes the next datagram that has arrived by `time`.
    mutating func takeArrival(
        by time: Instant
    ) -> (content: Content, flow: FlowID, direction: Direction, time: Instant)? {
        let direction: Direction =
            (packets.down.nextArrival, packets.down.nextSequence) < (packets.up.nextArrival, packets.up.nextSequence)
            ? .down : .up
        guard packets[direction].nextArrival <= time.sinceStart.count, let packet = packets[direction].popFirst()
        else { return nil }
        inFlight -= 1
        bytesInFlight -= packet.payload.byteCount
        return (packet.payload, packet.flow, direction, Instant(Nanoseconds(packet.arrival)))
    }
}
