public import Determinism
public import LinkModel
internal import TCPModel

extension SharedLink {
    /// The conditions for packets that enter the link now.
    public var conditions: Conditions { tcp.conditions }

    /// The running timeline, if there is one.
    public var timeline: TimelineRun? { tcp.timeline }

    /// Returns the packet counters of a direction.
    public func counters(_ direction: Direction) -> PipeCounters { tcp.counters(direction) }

    /// Returns the number of packets in a direction's queue.
    public mutating func queueDepth(_ direction: Direction) -> Int { tcp.queueDepth(direction, at: now) }

    /// Returns the state of a direction's queue.
    public mutating func queueState(_ direction: Direction) -> QueueState { tcp.queueState(direction, at: now) }

    /// Returns the mean of the smoothed round trips of open connections, of the first `connectionsMax` at most; `nil`
    /// before the first sample.
    public func smoothedRoundTrip(connectionsMax: Int) -> Nanoseconds? {
        var (sum, count) = (Int64(0), Int64(0))
        for index in 0..<min(conduits.slotCount, connectionsMax) {
            guard let id = conduits.id(at: index) else { continue }
            for side in [Side.client, .server] {
                guard let roundTrip = tcp.smoothedRoundTrip(id, side) else { continue }
                sum = sum.addingSaturating(roundTrip.count)
                count += 1
            }
        }
        return count == 0 ? nil : Nanoseconds(sum / count)
    }

    /// The directions in which there is an outage (``setOutage(_:at:)``).
    public var outage: PerDirection<Bool> { tcp.hasOutage }

    /// Returns whether no packet passes in a direction: during an outage, or at 100 % loss.
    public func hasOutage(_ direction: Direction) -> Bool {
        tcp.hasOutage[direction] || tcp.conditions[direction].loss == .one
    }

    /// The treatment of new clients.
    public var synTreatment: SYNTreatment {
        if tcp.conditions.connectionPolicy.refusesConnections { return .refused }
        return hasOutage(.up) || hasOutage(.down) ? .blackholed : .open
    }

    /// Whether the link changes nothing and records nothing, so that a connection may bypass it.
    public var isPassThrough: Bool {
        tcp.conditions.isClear && tcp.conditions.connectionPolicy == .open && tcp.timeline == nil && !hasOutage(.up)
            && !hasOutage(.down) && toxicList.isEmpty && observation.isEmpty && !recorder.needsExchanges
    }

    /// The position of the timeline that changes the conditions; `nil` if there is none.
    public var timelinePosition: TimelineRun.Position? { tcp.timeline?.position(at: now) }

    /// The number of changes that the timeline has made; `nil` if there is none.
    public var timelineChangeCount: Int? { tcp.timeline?.changeCount }

    /// The toxics of all connections, in the order in which they were added.
    public var toxics: [Toxic] { toxicList.toxics }

    // MARK: Connections

    /// The number of connections.
    public var connectionCount: Int { tcp.connectionCount }

    /// The open connections.
    public var connections: [FlowID] { conduits.openConnections }

    /// Returns the number of a connection, from 0, since the start or the last ``reseed(_:at:)``.
    public func number(of id: FlowID) -> Int { tcp.number(of: id) }

    /// Returns whether a connection needs a socket to the upstream. A connection with a captive portal does not;
    /// neither does one that has ended.
    public func needsUpstream(_ id: FlowID) -> Bool { conduits.contains(id) && conduits[id].portal == nil }

    /// The number of orphaned connections: one socket is gone, and its RST has not reached the other one.
    public var orphanCount: Int { orphans.count(in: conduits) }

    /// Bytes in all conduits.
    public var bytesHeld: Int { budget.bytesHeld }

    /// Returns the bytes that a connection holds in a direction; 0 for a connection that has ended.
    public func bytesHeld(_ id: FlowID, _ direction: Direction) -> Int {
        guard conduits.contains(id) else { return 0 }
        return conduits[id, direction].bytes.count + (conduits[id, direction].toxics?.count ?? 0)
            + conduits[id, direction].faultBytes
    }

    /// Whether the bytes counted for all connections are the sum of the connections' bytes.
    var heldBytesBalance: Bool {
        var (bytes, toxicBytes) = (0, 0)
        for index in 0..<conduits.slotCount {
            guard let id = conduits.id(at: index) else { continue }
            bytes += conduits[id].bytesHeld
            toxicBytes += conduits[id].up.toxicBytes + conduits[id].down.toxicBytes
        }
        return bytes == budget.bytesHeld && toxicBytes == budget.toxicBytesHeld
    }

    /// The number of timers of toxics and faults, including stale ones.
    var timerCount: Int { timers.count }
}
