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
        /// The port of the client of a datagram; `nil` for the packets of connections.
        public var datagramPort: UInt16?
    }

    /// The kinds of events that are recorded now.
    public var observation: Observation { recorder.observation }

    /// Starts and stops the recording of packets and exchanges on a running link.
    ///
    /// Packets are recorded from the next one on. Exchanges are recorded whose request begins from now on, on every
    /// connection whose exchanges are tracked (``SharedLink/untrackedConnectionCount``). Events and packets recorded
    /// before a change can still be taken.
    public mutating func setObservation(_ new: Observation, at time: Instant) {
        advance(to: time)
        recordPackets()
        if new.contains(.packets) != observation.contains(.packets) { tcp.setRecording(new.contains(.packets)) }
        recorder.setObservation(new)
    }

    /// Takes the next packet that was offered to the link, if packets are recorded.
    public mutating func takePacket() -> CapturedPacket? { recorder.takePacket() }

    /// Whether ``takeExchangeEvent()`` returns an event.
    public var hasExchangeEvents: Bool { recorder.hasExchangeEvents }

    /// Takes the next event of an exchange, if exchanges are recorded.
    public mutating func takeExchangeEvent() -> TimedExchangeEvent? { recorder.takeExchangeEvent() }

    /// Records the packets that were offered to the link since the last call, with their payloads.
    mutating func recordPackets() {
        guard recorder.recordsPackets else { return }
        while let record = tcp.takeRecord() { recorder.record(record, conduits) }
    }

    /// Reports the end of the connection to its tracker.
    mutating func trackEnd(_ id: FlowID) {
        conduits[id].tracker?.connectionEnded()
        while let action = conduits[id].tracker?.takeAction() {
            if case .report(let event) = action { recorder.record(event, id, at: now) }
        }
    }
}
