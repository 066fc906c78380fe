internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import TCPModel

/// The records of a link for its observers: packets and the events of exchanges.
struct LinkRecorder {
    /// The kinds of events that are recorded.
    private(set) var observation: SharedLink.Observation
    /// The numbers and faults of exchanges.
    var exchanges: ExchangeRegistry
    /// The first exchange whose events are recorded; the requests of earlier ones began before the recording.
    private var firstRecorded: ExchangeID
    private var packets = Deque<SharedLink.CapturedPacket>()
    private var exchangeEvents = Deque<SharedLink.TimedExchangeEvent>()

    /// Creates the recorder of a link. Exchanges are recorded from the start if their tracking is configured.
    init(_ tracking: ExchangeTracking?, _ observation: SharedLink.Observation, seed: UInt64, name: String) {
        self.observation = tracking == nil ? observation : observation.union(.exchanges)
        exchanges = ExchangeRegistry(tracking ?? ExchangeTracking(), seed: seed, name: name)
        exchanges.samplesBodies = self.observation.contains(.exchanges)
        firstRecorded = exchanges.nextID
    }

    var recordsPackets: Bool { observation.contains(.packets) }

    /// Whether the exchanges of new connections are needed: they are recorded, or faults can be injected into them.
    var needsExchanges: Bool { observation.contains(.exchanges) || exchanges.hasRules }

    mutating func setObservation(_ new: SharedLink.Observation) {
        if new.contains(.exchanges) && !observation.contains(.exchanges) { firstRecorded = exchanges.nextID }
        observation = new
        exchanges.samplesBodies = new.contains(.exchanges)
    }

    /// Records a packet, with its payload if the conduit still holds it.
    mutating func record(_ packet: PacketRecord, _ conduits: borrowing ConduitTable) {
        var payload: ByteBuffer?
        var cause: String?
        if conduits.contains(packet.flow) {
            if packet.payloadBytes > 0 {
                payload = conduits[packet.flow, packet.direction].payload(
                    at: packet.range.lowerBound, count: packet.payloadBytes)
            }
            if packet.kind == .reset { cause = conduits[packet.flow].faultCause }
        }
        packets.append(SharedLink.CapturedPacket(record: packet, payload: payload, cause: cause))
    }

    /// Records a datagram with its payload.
    mutating func record(_ packet: PacketRecord, datagram payload: ByteBuffer?, clientPort: UInt16) {
        packets.append(
            SharedLink.CapturedPacket(record: packet, payload: payload, cause: nil, datagramPort: clientPort))
    }

    mutating func record(_ event: ExchangeEvent, _ id: FlowID, at time: Instant) {
        guard observation.contains(.exchanges) else { return }
        if let exchange = event.exchange, exchange < firstRecorded { return }
        exchangeEvents.append(SharedLink.TimedExchangeEvent(flow: id, event: event, time: time))
    }

    mutating func takePacket() -> SharedLink.CapturedPacket? { packets.popFirst() }

    var hasExchangeEvents: Bool { !exchangeEvents.isEmpty }

    mutating func takeExchangeEvent() -> SharedLink.TimedExchangeEvent? { exchangeEvents.popFirst() }
}
