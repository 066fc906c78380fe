public import Determinism
internal import LinkModel
internal import TCPModel

/// The address and the port of a client of datagrams.
public struct DatagramAddress: Hashable, Sendable {
    /// The first and the last eight bytes of an IPv6 address, in network byte order as numbers; an IPv4 address is mapped
    /// (`::ffff:192.0.2.1`).
    public let high: UInt64
    public let low: UInt64
    /// The zone of a link-local address; 0 for others.
    public let zone: UInt32
    /// The port.
    public let port: UInt16
    /// The number of the destination, if the client's datagrams have several: each has a session of its own.
    public let route: UInt32

    /// Creates an address.
    public init(high: UInt64, low: UInt64, zone: UInt32 = 0, port: UInt16, route: UInt32 = 0) {
        self.high = high
        self.low = low
        self.zone = zone
        self.port = port
        self.route = route
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(low)
        hasher.combine(high ^ UInt64(port) ^ UInt64(route) << 16 ^ UInt64(zone) << 32)
    }
}

/// The limits on the datagrams of a link.
public struct DatagramLimits: Hashable, Sendable {
    /// The maximum number of sessions; another one ends the session whose last datagram is the oldest.
    public var sessionsMax: Int
    /// The time without a datagram after which a session ends, unless the conditions set it: that of RFC 4787, REQ-5.
    public var idleMax: Nanoseconds
    /// The maximum number of bytes in flight, ``overheadBytes`` for each datagram included; further datagrams are
    /// discarded.
    public var bytesMax: Int

    /// Creates limits.
    public init(sessionsMax: Int = 10_000, idleMax: Nanoseconds = .seconds(120), bytesMax: Int = 16 << 20) {
        self.sessionsMax = max(1, sessionsMax)
        self.idleMax = max(.milliseconds(1), idleMax)
        self.bytesMax = bytesMax
    }

    /// The memory of a datagram in flight without its payload.
    static let overheadBytes = 256
}

/// The sessions of a link's datagrams by the address of their client, in the order of their last datagrams.
///
/// Identifiers of sessions that have ended are not in the table, also when their slot has been used again.
struct DatagramTable {
    struct Session {
        let client: DatagramAddress
        /// The number of the session, which selects its random streams.
        let number: Int
        let opened: Instant
        var flow: DatagramFlow
        /// The time of the last datagram.
        fileprivate(set) var lastUsed: Instant
        /// The time of the last change of its port at the server.
        var bound: Instant
        /// Payload bytes read from the sockets.
        var bytesRead = PerDirection(up: 0, down: 0)
        fileprivate var older = DatagramTable.none
        fileprivate var newer = DatagramTable.none
    }

    private static let none = -1

    private var slots: [Session?] = []
    private var generations: [UInt32] = []
    private var freeSlots: [Int] = []
    private var byClient: [DatagramAddress: Int] = [:]
    private var oldestSlot = none
    private var newestSlot = none

    var count: Int { byClient.count }

    /// The session whose last datagram is the oldest.
    var oldest: FlowID? { oldestSlot == Self.none ? nil : id(oldestSlot) }

    /// The sessions.
    var all: [FlowID] { slots.indices.compactMap { slots[$0] == nil ? nil : id($0) } }

    func contains(_ id: FlowID) -> Bool {
        id.index < slots.count && slots[id.index] != nil && generations[id.index] == id.generation
    }

    /// Returns the session of a client.
    func session(of client: DatagramAddress) -> FlowID? { byClient[client].map { id($0) } }

    /// A session in the table.
    subscript(id: FlowID) -> Session {
        get { slots[id.index]! }
        _modify {
            precondition(contains(id), "the session has ended")
            yield &slots[id.index]!
        }
    }

    private func id(_ slot: Int) -> FlowID { FlowID(index: slot, generation: generations[slot]) }

    /// Adds a session of a client without one.
    mutating func insert(_ client: DatagramAddress, number: Int, flow: DatagramFlow, at now: Instant) -> FlowID {
        precondition(byClient[client] == nil, "the client has a session")
        let session = Session(client: client, number: number, opened: now, flow: flow, lastUsed: now, bound: now)
        let slot: Int
        if let free = freeSlots.popLast() {
            slot = free
            slots[slot] = session
        } else {
            slot = slots.count
            slots.append(session)
            generations.append(0)
        }
        byClient[client] = slot
        link(slot)
        return id(slot)
    }

    /// Records a datagram of a session.
    mutating func use(_ id: FlowID, at now: Instant) {
        self[id].lastUsed = now
        guard newestSlot != id.index else { return }
        unlink(id.index)
        link(id.index)
    }

    mutating func remove(_ id: FlowID) {
        precondition(contains(id), "the session has ended")
        unlink(id.index)
        byClient[self[id].client] = nil
        slots[id.index] = nil
        generations[id.index] &+= 1
        freeSlots.append(id.index)
    }

    /// Makes a session the newest.
    private mutating func link(_ slot: Int) {
        slots[slot]?.older = newestSlot
        slots[slot]?.newer = Self.none
        if newestSlot != Self.none { slots[newestSlot]?.newer = slot } else { oldestSlot = slot }
        newestSlot = slot
    }

    private mutating func unlink(_ slot: Int) {
        let (older, newer) = (slots[slot]!.older, slots[slot]!.newer)
        if older != Self.none { slots[older]?.newer = newer } else { oldestSlot = newer }
        if newer != Self.none { slots[newer]?.older = older } else { newestSlot = older }
    }
}
