public import Determinism
public import LinkModel
public import NIOCore
public import TCPModel

extension SharedLink {
    /// The kinds of events that are recorded for observers of a link.
    public struct Observation: OptionSet, Hashable, Sendable {
        public let rawValue: Int

        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Events of exchanges: ``SharedLink/takeExchangeEvent()``.
        public static let exchanges = Observation(rawValue: 1)
        /// Packets: ``SharedLink/takePacket()``.
        public static let packets = Observation(rawValue: 2)
    }

    /// An event of an exchange with its connection and its modelled time.
    public struct TimedExchangeEvent: Sendable {
        /// The connection.
        public let flow: FlowID
        /// The event.
        public let event: ExchangeEvent
        /// The modelled time of the event.
        public let time: Instant
    }

    /// A packet that was offered to the link, with its payload.
    public struct CapturedPacket: Sendable {
        /// The packet.
        public let record: PacketRecord
        /// The payload; `nil` if there is none, or if it is a retransmission of bytes that have been written to a
        /// socket.
        public let payload: ByteBuffer?
        /// The injected fault that caused the packet, if there is one.
        public let cause: String?
    }

    /// The kinds of events that are recorded now.
    public var observation: Observation { recorder.observation }

    /// Starts and stops the recording of packets and exchanges on a running link.
    ///
    /// Packets are recorded from the next one on. Exchanges are recorded on connections opened from now on: on older
    /// ones, the start of the next message is unknown. When the recording of exchanges stops, a connection remains
    /// tracked only if faults may be injected into its exchanges; those exchanges are recorded again when the recording
    /// resumes. Events and packets recorded before a change can still be taken.
    public mutating func setObservation(_ new: Observation, at time: Instant) {
        advance(to: time)
        recordPackets()
        if new.contains(.packets) != observation.contains(.packets) { tcp.setRecording(new.contains(.packets)) }
        recorder.setObservation(new)
        if recorder.tracksExchanges { return }
        for id in conduits.openConnections { conduits[id].tracker = nil }
    }

    /// Takes the next packet that was offered to the link, if packets are recorded.
    public mutating func takePacket() -> CapturedPacket? { recorder.takePacket() }

    /// Takes the next event of an exchange, if exchanges are recorded.
    public mutating func takeExchangeEvent() -> TimedExchangeEvent? { recorder.takeExchangeEvent() }

    /// Records the packets that were offered to the link since the last call, with their payloads.
    mutating func recordPackets() {
        guard recorder.recordsPackets else { return }
        while let record = tcp.takeRecord() { recorder.record(record, conduits) }
    }

    // MARK: Faults

    /// Injects a fault into an exchange whose request has been read (``ExchangeEvent/requested(_:_:body:subject:)``).
    /// Returns whether it can apply: nothing of the response has been read, and no other fault applies.
    ///
    /// - Parameter rule: The number that ``ExchangeEvent/faultInjected(_:rule:)`` reports.
    @discardableResult
    public mutating func injectFault(
        _ action: FaultAction, rule: Int, into exchange: ExchangeID, of id: FlowID, at time: Instant
    ) -> Bool {
        advance(to: time)
        guard conduits.contains(id) else { return false }
        return conduits[id].tracker?.setFault(ExchangeRegistry.Fault(rule: rule, action: action), of: exchange) ?? false
    }

    /// Withdraws the faults of ``injectFault(_:rule:into:of:at:)`` that have not begun to apply.
    public mutating func withdrawFaults(at time: Instant) {
        advance(to: time)
        for id in conduits.openConnections { conduits[id].tracker?.withdrawFaults() }
    }

    // MARK: Exchanges

    /// Passes bytes that enter the link to the connection's tracker, and sends those that the tracker releases.
    mutating func track(_ buffer: ByteBuffer, _ id: FlowID, _ direction: Direction) {
        if direction == .up {
            conduits[id].tracker?.receivedRequestBytes(buffer, &recorder.exchanges)
            _ = takeTrackerActions(id)
            return send(buffer, id, .up)
        }
        conduits[id].tracker?.receivedResponseBytes(buffer, &recorder.exchanges)
        let (passing, mustAbort) = takeTrackerActions(id)
        if let passing { send(passing, id, .down) }
        if mustAbort && conduits.contains(id) { injectAbort(id) }
    }

    /// Passes the server's FIN to the connection's tracker. Returns whether a fault has aborted the connection.
    mutating func trackResponseStreamEnd(_ id: FlowID) -> Bool {
        guard conduits[id].tracker != nil else { return false }
        conduits[id].tracker?.responseStreamEnded(&recorder.exchanges)
        if takeTrackerActions(id).mustAbort {
            injectAbort(id)
            return true
        }
        // The last bytes of the response may have been written before its end was known.
        recordWrite(0, id, .down)
        return false
    }

    /// Reports the number of bytes written to a socket to the connection's tracker.
    mutating func recordWrite(_ bytes: Int, _ id: FlowID, _ direction: Direction) {
        guard conduits[id].tracker != nil else { return }
        if direction == .up {
            conduits[id].tracker?.wroteRequestBytes(bytes)
        } else {
            conduits[id].tracker?.wroteResponseBytes(bytes)
        }
        _ = takeTrackerActions(id)
    }

    /// Reports the end of the connection to its tracker.
    mutating func trackEnd(_ id: FlowID) {
        conduits[id].tracker?.connectionEnded()
        _ = takeTrackerActions(id)
    }

    /// Records the tracker's events. Returns the response bytes that may enter the link, and whether a fault aborts the
    /// connection after them.
    private mutating func takeTrackerActions(_ id: FlowID) -> (passing: ByteBuffer?, mustAbort: Bool) {
        var passing: ByteBuffer?
        var mustAbort = false
        while let action = conduits[id].tracker?.takeAction() {
            switch action {
            case .report(let event): recorder.record(event, id, at: now)
            case .pass(let bytes): passing = bytes
            case .abort: mustAbort = true
            }
        }
        return (passing, mustAbort)
    }

    /// Aborts a connection as if the server had crashed: its RST crosses the link.
    private mutating func injectAbort(_ id: FlowID) {
        emit(.reset(.server), id)
        conduits[id].faultCause = "fault: response withheld, connection aborted"
        peerGone(.server, id)
    }
}
