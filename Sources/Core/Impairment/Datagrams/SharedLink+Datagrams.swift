internal import DequeModule
public import Determinism
public import LinkModel
public import NIOCore
internal import TCPModel

/// An instruction for the sockets of a session of datagrams.
public enum DatagramAction: Sendable {
    /// Open the socket to the server, for the datagrams of this client.
    case open(DatagramAddress, number: Int)
    /// Send a datagram: to the server (`up`) or to the client.
    case send(ByteBuffer, Direction)
    /// Replace the socket to the server by one with another port.
    case rebind
    /// Report to the client that no socket has the server's port (ICMP port unreachable).
    case reportUnreachable
    /// Close the socket to the server; the payload bytes are those read from the sockets. No action of the session follows.
    case close(DatagramSessionEnd, bytesRead: PerDirection<Int>)
}

/// The cause of the end of a session.
public enum DatagramSessionEnd: Hashable, Sendable {
    /// No datagram has passed for the idle time.
    case idle
    /// The limit on sessions was reached.
    case evicted
    /// A call.
    case closed
}

/// The state of a session of datagrams.
public struct DatagramSessionStatus: Hashable, Sendable {
    /// The identifier, which is unique among the sessions of the link.
    public let id: FlowID
    /// The number of the session.
    public let number: Int
    /// The client.
    public let client: DatagramAddress
    /// The time of the first datagram.
    public let opened: Instant
    /// Payload bytes read from the sockets.
    public let bytesRead: PerDirection<Int>
}

/// Datagrams, which share the link with the connections.
///
/// A session is the datagrams of one client, by address and port. Each datagram is a packet, or several fragments, of the
/// link: it is lost, queued, delayed, reordered and duplicated as the segments of connections are. Toxics, faults of
/// exchanges and captive portals do not apply to datagrams; a captive portal lets none pass.
extension SharedLink {
    /// An action with its session and its modelled time.
    public struct TimedDatagramAction: Sendable {
        /// The session.
        public let flow: FlowID
        /// The action.
        public let action: DatagramAction
        /// The modelled time of the action.
        public let time: Instant
    }

    // MARK: State

    /// The number of sessions.
    public var datagramSessionCount: Int { datagrams.table.count }

    /// The counters.
    public var datagramCounters: DatagramCounters { datagrams.counters }

    /// The number of datagrams in flight.
    public var datagramsInFlight: Int { datagrams.inFlight }

    /// The sessions.
    public var datagramSessions: [DatagramSessionStatus] {
        datagrams.table.all.map { id in
            let session = datagrams.table[id]
            return DatagramSessionStatus(
                id: id, number: session.number, client: session.client, opened: session.opened,
                bytesRead: session.bytesRead)
        }
    }

    /// Returns the client of a session.
    public func client(ofDatagramSession id: FlowID) -> DatagramAddress? {
        datagrams.table.contains(id) ? datagrams.table[id].client : nil
    }

    /// Whether a client's datagrams get an ICMP port unreachable.
    public var refusesDatagrams: Bool {
        tcp.conditions.connectionPolicy.refusesConnections || tcp.conditions.datagrams.policy == .refuse
    }

    /// Whether a datagram would leave the link at once and nobody records it, so that it may bypass the link.
    public var passesDatagramsAtOnce: Bool {
        tcp.conditions.isClear && tcp.conditions.connectionPolicy == .open && tcp.timeline == nil && !hasOutage(.up)
            && !hasOutage(.down) && !observation.contains(.packets) && datagrams.inFlight == 0
    }

    /// The deadline of datagrams: the next arrival, or the end of an idle session.
    var datagramDeadline: Instant {
        guard let oldest = datagrams.table.oldest else { return datagrams.nextArrival }
        return min(datagrams.nextArrival, datagrams.table[oldest].lastUsed + datagramIdleMax)
    }

    private var datagramIdleMax: Nanoseconds {
        tcp.conditions.datagrams.idle.map { max(.milliseconds(1), $0) } ?? datagrams.limits.idleMax
    }

    // MARK: Datagrams

    /// Processes a datagram of a client.
    ///
    /// - Parameter number: Called for the number of a new session; by default the link's next one.
    /// - Returns: The session; `nil` if the conditions let no datagram pass.
    @discardableResult
    public mutating func receiveDatagram(
        _ payload: ByteBuffer, from client: DatagramAddress, number: (() -> Int)? = nil, at time: Instant
    ) -> FlowID? {
        advance(to: time)
        guard admitsDatagram(.up), let id = openDatagramSession(of: client, number: number, at: now) else { return nil }
        offer(payload, of: id, .up)
        return id
    }

    /// Processes a datagram of the server of a session. Datagrams for sessions that have ended are ignored.
    public mutating func receiveDatagram(_ payload: ByteBuffer, fromServerOf id: FlowID, at time: Instant) {
        advance(to: time)
        guard datagrams.table.contains(id), admitsDatagram(.down) else { return }
        datagrams.table.use(id, at: now)
        offer(payload, of: id, .down)
    }

    /// Processes the message that no socket has the port of a session's server, which crosses the link to the client.
    public mutating func receiveUnreachable(fromServerOf id: FlowID, at time: Instant) {
        advance(to: time)
        guard datagrams.table.contains(id) else { return }
        datagrams.counters.unreachable += 1
        guard admitsDatagram(.down), datagrams.hasRoom(for: 0) else { return }
        // The message contains the headers of the datagram (RFC 792).
        let arrivals = offerPacket(PacketSize.datagramHeader, of: id, .down)
        // Captures contain TCP and UDP only.
        if recorder.recordsPackets { _ = tcp.takeRecord() }
        if let arrival = arrivals.first { datagrams.add(.unreachable, of: id, .down, arrival: arrival) }
        advance(to: now)
    }

    /// Returns whether datagrams pass at all; otherwise one is lost.
    private mutating func admitsDatagram(_ direction: Direction) -> Bool {
        if tcp.conditions.connectionPolicy == .open && tcp.conditions.datagrams.policy == .open { return true }
        datagrams.counters.received[direction] += 1
        datagrams.counters.blackholed += 1
        tcp.loseDatagram(direction)
        return false
    }

    /// Offers a datagram of a session to the link.
    private mutating func offer(_ payload: ByteBuffer, of id: FlowID, _ direction: Direction) {
        let bytes = payload.readableBytes
        recordReceived(1, bytes: bytes, of: id, direction)
        if let mtu = tcp.conditions.datagrams.mtu, bytes + PacketSize.datagramHeader > mtu {
            datagrams.counters.overMTU += 1
            return tcp.loseDatagram(direction)
        }
        guard datagrams.hasRoom(for: bytes) else { return datagrams.counters.discarded += 1 }
        let arrivals = offerPacket(bytes, of: id, direction)
        if recorder.recordsPackets, let record = tcp.takeRecord() {
            recorder.record(record, datagram: payload, clientPort: datagrams.table[id].client.port)
        }
        if let arrival = arrivals.first { datagrams.add(.datagram(payload), of: id, direction, arrival: arrival) }
        if let copy = arrivals.copy { datagrams.add(.datagram(payload), of: id, direction, arrival: copy) }
        if arrivals.first.map({ $0 <= now }) == true || arrivals.copy.map({ $0 <= now }) == true { advance(to: now) }
    }

    private mutating func offerPacket(_ bytes: Int, of id: FlowID, _ direction: Direction) -> DatagramArrivals {
        recordPackets()
        let session = datagrams.table[id]
        var flow = session.flow
        defer { datagrams.table[id].flow = flow }
        return tcp.offerDatagram(bytes: bytes, on: &flow, of: id, number: session.number, direction, at: now)
    }

    private mutating func recordReceived(_ count: Int, bytes: Int, of id: FlowID, _ direction: Direction) {
        datagrams.counters.received[direction] += count
        datagrams.table[id].bytesRead[direction] += bytes
        bytesRead[direction] += bytes
    }

    /// Delivers the datagrams that have arrived, and ends idle sessions. Returns whether none is left.
    mutating func advanceDatagrams() -> Bool {
        guard datagramDeadline <= now else { return true }
        var eventsLeft = eventsPerCallMax
        while eventsLeft > 0, let arrival = datagrams.takeArrival(by: now) {
            eventsLeft -= 1
            guard datagrams.table.contains(arrival.flow) else { continue }
            switch arrival.content {
            case .datagram(let payload):
                datagrams.counters.sent[arrival.direction] += 1
                bytesCarried[arrival.direction] += payload.readableBytes
                emit(.send(payload, arrival.direction), arrival.flow, at: arrival.time)
            case .unreachable: emit(.reportUnreachable, arrival.flow, at: arrival.time)
            }
        }
        while eventsLeft > 0, let oldest = datagrams.table.oldest {
            let idleEnd = datagrams.table[oldest].lastUsed + datagramIdleMax
            guard idleEnd <= now else { return true }
            eventsLeft -= 1
            end(oldest, .idle, at: idleEnd)
        }
        return datagramDeadline > now
    }

    // MARK: Datagrams that bypass the link

    /// Returns the session of a client that sends a datagram, a new one if it has none; `nil` if the conditions let no
    /// datagram pass.
    public mutating func openDatagramSession(
        of client: DatagramAddress, number: (() -> Int)? = nil, at time: Instant
    ) -> FlowID? {
        if time > now { advance(to: time) }
        guard tcp.conditions.datagrams.policy == .open, tcp.conditions.connectionPolicy == .open else { return nil }
        if let id = datagrams.table.session(of: client) {
            datagrams.table.use(id, at: now)
            if let interval = tcp.conditions.datagrams.rebind, now - datagrams.table[id].bound >= interval {
                datagrams.table[id].bound = now
                emit(.rebind, id, at: now)
            }
            return id
        }
        if datagrams.table.count >= datagrams.limits.sessionsMax { evictDatagramSession() }
        let number = number?() ?? datagrams.nextNumber
        datagrams.nextNumber = max(datagrams.nextNumber, number) + 1
        datagrams.counters.sessionsOpened += 1
        let id = datagrams.table.insert(client, number: number, flow: tcp.makeDatagramFlow(number: number), at: now)
        emit(.open(client, number: number), id, at: now)
        return id
    }

    /// Records datagrams of a session that have bypassed the link.
    public mutating func recordPassedDatagrams(_ count: Int, bytes: Int, of id: FlowID, _ direction: Direction) {
        guard datagrams.table.contains(id) else { return }
        datagrams.table.use(id, at: now)
        recordReceived(count, bytes: bytes, of: id, direction)
        datagrams.counters.sent[direction] += count
        bytesCarried[direction] += bytes
    }

    // MARK: Ends of sessions

    /// Ends the session whose last datagram is the oldest.
    public mutating func evictDatagramSession() {
        guard let oldest = datagrams.table.oldest else { return }
        datagrams.counters.sessionsEvicted += 1
        end(oldest, .evicted, at: now)
    }

    /// Ends a session; its datagrams in flight are lost. Returns `false` if it has ended already.
    @discardableResult
    public mutating func endDatagramSession(_ id: FlowID, at time: Instant) -> Bool {
        advance(to: time)
        guard datagrams.table.contains(id) else { return false }
        end(id, .closed, at: now)
        return true
    }

    /// Ends all sessions.
    public mutating func endDatagramSessions(at time: Instant) {
        advance(to: time)
        for id in datagrams.table.all { end(id, .closed, at: now) }
    }

    private mutating func end(_ id: FlowID, _ cause: DatagramSessionEnd, at time: Instant) {
        let bytesRead = datagrams.table[id].bytesRead
        datagrams.table.remove(id)
        emit(.close(cause, bytesRead: bytesRead), id, at: time)
    }

    // MARK: Actions

    /// Whether ``takeDatagramAction()`` returns an action.
    public var hasDatagramActions: Bool { !datagrams.actions.isEmpty }

    /// Takes the next action.
    public mutating func takeDatagramAction() -> TimedDatagramAction? { datagrams.actions.popFirst() }

    private mutating func emit(_ action: DatagramAction, _ id: FlowID, at time: Instant) {
        datagrams.actions.append(TimedDatagramAction(flow: id, action: action, time: time))
    }
}
