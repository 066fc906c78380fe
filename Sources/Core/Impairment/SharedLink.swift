internal import DequeModule
public import Determinism
public import LinkModel
internal import NIOCore
public import TCPModel

/// All conduits of one device and the link that they share.
///
/// A state machine: the driver (the proxy's link driver, or a simulator) reports socket events with
/// ``receive(_:on:at:)``, calls ``advance(to:)`` at ``nextDeadline``, and executes the actions of ``takeAction()`` in
/// order. Every call first runs all events that are due, each at its own modelled time: a late driver delays actions
/// and changes nothing else.
///
/// Identifiers of connections that have ended are ignored by the public methods and trap in the internal ones. An event
/// may end its connection at many points; internal methods that continue after such a point check
/// ``ConduitTable/contains(_:)``.
public struct SharedLink: ~Copyable {
    /// An action with its connection and its modelled time.
    public struct TimedAction: Sendable {
        /// The connection.
        public let flow: FlowID
        /// The action.
        public let action: SocketAction
        /// The modelled time of the action. A late driver executes it later; the difference is the driver's lateness.
        public let time: Instant
    }

    var tcp: TCPLink
    var conduits = ConduitTable()
    var budget: ConnectionBudget
    var orphans: OrphanTable
    var toxicList: ToxicList
    var timers = LinkTimers()
    var datagrams: DatagramTraffic
    var recorder: LinkRecorder
    /// The policy under which the open connections were accepted.
    private var policy: ConnectionPolicy
    private var actions = Deque<TimedAction>()
    /// Events of captive portals, which respond instead of servers; they are processed after the current event.
    private var portalEvents = Deque<(flow: FlowID, event: SocketEvent)>()
    /// Connections to be aborted by later calls.
    private var pendingAborts = Deque<FlowID>()
    /// The time of the link; it never goes back.
    public private(set) var now = Instant.start
    /// The latest time reported by the driver; ahead of ``now`` only while ``isBehind``.
    private var target = Instant.start
    /// The number of events that one call runs at most: packets, timers, pieces of toxics. A driver that shares its
    /// thread sets it and calls ``advance(to:)`` again while ``isBehind``.
    public var eventsPerCallMax = Int.max
    /// Whether events are due that have not run, because a call has run ``eventsPerCallMax`` events.
    public private(set) var isBehind = false
    /// The cost of aborting a connection, in events.
    private static let abortCost = 8
    /// The actions of one delivery; kept so that its memory is reused.
    var deliveryActions: [SocketAction] = []
    /// Pieces passed on by toxics since the last count; they count as events.
    var toxicPieces = 0

    /// Payload bytes read from sockets in each direction since the link was created.
    public internal(set) var bytesRead = PerDirection(up: 0, down: 0)
    /// The number of times that reading from a sender was paused in each direction.
    public internal(set) var readPauses = PerDirection(up: 0, down: 0)
    /// Payload bytes written to sockets in each direction since the link was created.
    public internal(set) var bytesCarried = PerDirection(up: 0, down: 0)

    /// Creates a link without connections.
    ///
    /// - Parameters:
    ///   - seed: The random seed.
    ///   - name: The prefix of the names of the link's random streams.
    ///   - client: The TCP stack of the clients.
    ///   - server: The TCP stack of the server.
    ///   - datagramLimits: The limits on sessions of datagrams.
    ///   - toxics: The toxics of all connections.
    ///   - exchangeTracking: The configuration of exchange tracking; if it is given, exchanges are recorded from the
    ///     start.
    ///   - observation: The kinds of events that are recorded from the start; ``setObservation(_:at:)`` changes them.
    public init(
        _ conditions: Conditions = .clear, seed: UInt64 = 1, name: String = "link", client: StackPreset = .linux,
        server: StackPreset = .linux, limits: BufferLimits = BufferLimits(),
        orphanLimits: OrphanLimits = OrphanLimits(), datagramLimits: DatagramLimits = DatagramLimits(),
        toxics: [Toxic] = [], exchangeTracking: ExchangeTracking? = nil, observation: Observation = []
    ) {
        tcp = TCPLink(
            conditions, seed: seed, name: name, client: client, server: server, readsImmediately: false,
            recordsPackets: observation.contains(.packets))
        budget = ConnectionBudget(limits)
        orphans = OrphanTable(orphanLimits)
        datagrams = DatagramTraffic(datagramLimits)
        toxicList = ToxicList(toxics, seed: seed, name: name)
        recorder = LinkRecorder(exchangeTracking, observation, seed: seed, name: name)
        policy = conditions.connectionPolicy
    }

    // MARK: Time

    /// The time at which ``advance(to:)`` must be called next.
    public var nextDeadline: Instant? {
        let own = min(ownDeadline, datagramDeadline)
        if own == .never { return tcp.nextDeadline }
        return tcp.nextDeadline.map { min($0, own) } ?? own
    }

    /// The earliest deadline of toxics, faults and orphans.
    private var ownDeadline: Instant {
        min(orphans.nextDeadline, timers.nextDeadline)
    }

    /// Runs all events due up to `time`, each at its own time; ``eventsPerCallMax`` limits their number.
    public mutating func advance(to time: Instant) {
        target = max(target, min(time, .end))
        var eventsLeft = eventsPerCallMax
        toxicPieces = 0
        let isDone = advance(to: target, &eventsLeft)
        let hasDelivered = advanceDatagrams()
        isBehind = !isDone || !pendingAborts.isEmpty || !hasDelivered
        // Many connections would make debug builds slow.
        assert(tcp.connectionCount > 64 || heldBytesBalance, "the bytes held are not the sum of the streams")
    }

    /// Returns whether all events that are due have run.
    private mutating func advance(to time: Instant, _ eventsLeft: inout Int) -> Bool {
        guard runPendingAborts(&eventsLeft) else { return false }
        while true {
            let own = ownDeadline
            // With toxics and faults, an event of TCP may set a deadline earlier than those known now.
            let stepsWithTCP =
                !toxicList.isEmpty || !timers.isEmpty || recorder.exchanges.mayFire
            let next = stepsWithTCP ? min(own, max(now, tcp.nextDeadline ?? .never)) : own
            guard next <= time else { return runTCP(to: time, &eventsLeft) }
            guard runTCP(to: next, &eventsLeft), eventsLeft > 0 else { return false }
            if own > next { continue }
            eventsLeft -= 1
            if let timer = timers.popDue(at: next) {
                fire(timer)
            } else if let orphan = orphans.due(at: next) {
                resetBothSockets(orphan)
            }
            countToxicPieces(&eventsLeft)
        }
    }

    private mutating func countToxicPieces(_ eventsLeft: inout Int) {
        eventsLeft -= min(eventsLeft, toxicPieces)
        toxicPieces = 0
    }

    /// Runs TCP's packets and timers up to `time`. Returns whether all of them have run.
    private mutating func runTCP(to time: Instant, _ eventsLeft: inout Int) -> Bool {
        repeat {
            recordPackets()
            while eventsLeft > 0, tcp.advance(to: time) {
                eventsLeft -= 1
                // The payloads must be copied before bytes that have arrived leave the conduit.
                recordPackets()
                while let event = tcp.takeEvent() {
                    now = max(now, event.time)
                    process(event)
                }
                if tcp.conditions.connectionPolicy != policy { applyPolicy() }
            }
            while let (id, event) = portalEvents.popFirst() { process(event, on: id) }
            countToxicPieces(&eventsLeft)
            if eventsLeft == 0, let deadline = tcp.nextDeadline, deadline <= time {
                now = max(now, deadline)
                return false
            }
        } while tcp.nextDeadline.map { $0 <= time } == true
        now = max(now, time)
        return true
    }

    // MARK: Conditions

    /// Changes the conditions for packets that enter the link from `time` on.
    public mutating func setConditions(_ new: Conditions, at time: Instant) {
        advance(to: time)
        tcp.setConditions(new)
        if new.connectionPolicy != policy { applyPolicy() }
    }

    /// Starts a timeline, which changes the conditions from `time` on, at `offset` from its beginning.
    public mutating func startTimeline(_ timeline: Timeline, from offset: Nanoseconds = .zero, at time: Instant) {
        advance(to: time)
        tcp.startTimeline(timeline, from: offset, at: now)
        if tcp.conditions.connectionPolicy != policy { applyPolicy() }
    }

    /// Starts or ends an outage in each direction, independently of the conditions.
    public mutating func setOutage(_ isOut: PerDirection<Bool>, at time: Instant) {
        advance(to: time)
        tcp.setOutage(isOut)
    }

    /// Changes the random seed from now on; the next connection is number 0.
    public mutating func reseed(_ seed: UInt64, at time: Instant) {
        advance(to: time)
        toxicList.reseed(seed)
        recorder.exchanges.reseed(seed)
        tcp.reseed(seed)
    }

    /// Aborts connections that were accepted under another policy.
    private mutating func applyPolicy() {
        policy = tcp.conditions.connectionPolicy
        abortAllConnections()
    }

    /// Offers a datagram of another protocol to the link, which it shares with the connections. The caller carries its
    /// contents. Returns the time of its arrival, or `nil` if it is lost.
    ///
    /// - Parameter bytes: The length with the headers of IP and UDP.
    public mutating func offerDatagram(bytes: Int, _ direction: Direction, at time: Instant) -> Instant? {
        advance(to: time)
        return tcp.offerDatagram(bytes: bytes, direction, at: now)
    }

    // MARK: Connections

    /// Opens a connection after a client has connected.
    ///
    /// - Parameters:
    ///   - seed: The connection's number and random seed; by default the link's next number and its seed.
    ///   - isEstablished: Whether the connection comes from the fast path; it is aborted if the policy would not accept
    ///     it.
    ///   - openedAt: The time at which the connection was opened, if it comes from the fast path. The connection is
    ///     closed if a `timeout` toxic that would have applied to it was removed after this time, because on the link
    ///     that removal would have closed it.
    ///   - isMidStream: Whether bytes have been forwarded that the link has not seen. The start of the next message is
    ///     unknown then, so the exchanges of the connection are not tracked.
    ///   - reportsEstablishment: Whether ``SocketAction/established`` is emitted, and nothing is written to the client
    ///     before.
    ///   - looksUpName: Whether the handshake follows a lookup of the server's name.
    public mutating func open(
        at time: Instant, seed: ConnectionSeed? = nil, isEstablished: Bool = false, openedAt: Instant? = nil,
        isMidStream: Bool = false, reportsEstablishment: Bool = false, looksUpName: Bool = true
    ) -> FlowID {
        advance(to: time)
        let id = tcp.open(at: now, seed: seed, isEstablished: isEstablished, looksUpName: looksUpName)
        conduits.insert(Conduit(), id)
        if reportsEstablishment {
            conduits[id].establishment = Conduit.Establishment()
            conduits[id].down.isConnected = false
        }
        if isMidStream {
            recorder.record(.notHTTP("the link has not seen the beginning of the connection"), id, at: now)
        } else {
            conduits[id].tracker = ExchangeTracker()
        }
        for toxic in toxicList.toxics { apply(toxic, to: id) }
        if isEstablished {
            conduits[id].streamClosedOnConnect = toxicList.streamOfRemovedTimeout(
                since: openedAt ?? time, connection: tcp.number(of: id))
        }
        // Some toxics have a deadline before the first byte.
        if !toxicList.isEmpty {
            for direction in Direction.allCases where conduits.contains(id) { runToxics(id, direction) }
        }
        if conduits.contains(id) {
            switch policy {
            case .open: break
            case .portal where !isEstablished:
                conduits[id].portal = CaptivePortal()
                conduits[id].up.isConnected = true
            // A client may have connected just before the policy changed, or while the listener cannot refuse
            // connections.
            case .portal, .offline, .dns: resetBothSockets(id)
            }
        }
        advance(to: now)
        return id
    }

    /// Processes an event of one of a connection's sockets. Events of connections that have ended are ignored.
    public mutating func receive(_ event: SocketEvent, on id: FlowID, at time: Instant) {
        advance(to: time)
        process(event, on: id)
        advance(to: now)
    }

    /// Closes one connection: aborts it with a RST to both sockets, or sends the bytes on the link and then a FIN.
    public mutating func closeConnection(_ id: FlowID, abortively: Bool, at time: Instant) {
        advance(to: time)
        guard conduits.contains(id) else { return }
        if abortively {
            resetBothSockets(id)
        } else {
            dropToxics(id, .up)
            dropToxics(id, .down)
            closeBothSockets(id, .up)
        }
        advance(to: now)
    }

    /// Aborts every connection at once: a RST to both sockets.
    public mutating func abortConnections(at time: Instant) {
        advance(to: time)
        abortAllConnections()
    }

    /// Aborts every open connection; ``eventsPerCallMax`` limits the number per call.
    private mutating func abortAllConnections() {
        for id in conduits.openConnections { pendingAborts.append(id) }
        var eventsLeft = eventsPerCallMax
        if !runPendingAborts(&eventsLeft) { isBehind = true }
    }

    /// Aborts connections that are still to be aborted. Returns whether none is left.
    private mutating func runPendingAborts(_ eventsLeft: inout Int) -> Bool {
        while eventsLeft > 0, let id = pendingAborts.popFirst() {
            eventsLeft -= min(eventsLeft, Self.abortCost)
            if conduits.contains(id) { resetBothSockets(id) }
        }
        return pendingAborts.isEmpty
    }

    // MARK: Actions

    /// Whether ``takeAction()`` returns an action.
    public var hasActions: Bool { !actions.isEmpty }

    /// Takes the next action.
    public mutating func takeAction() -> TimedAction? { actions.popFirst() }

    /// Emits an action. With a captive portal, actions for the server's socket go to the portal.
    mutating func emit(_ action: SocketAction, _ id: FlowID) {
        if action.side == .server && conduits[id].portal != nil { return passToPortal(action, id) }
        actions.append(TimedAction(flow: id, action: action, time: now))
    }

    /// Emits the last action of a connection, which has been removed.
    mutating func emitEnded(_ id: FlowID) {
        actions.append(TimedAction(flow: id, action: .ended, time: now))
    }

    /// Passes an action for the server's socket to the captive portal.
    private mutating func passToPortal(_ action: SocketAction, _ id: FlowID) {
        let mayRespond = bytesHeld(id, .down) < budget.limits.bytesMax(connections: tcp.connectionCount)
        for event in conduits[id].portal?.process(action, mayRespond: mayRespond) ?? [] {
            portalEvents.append((id, event))
        }
    }
}
