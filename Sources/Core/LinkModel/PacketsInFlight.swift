public import DequeModule
public import HeapModule

/// A packet in flight. Packets are ordered by arrival time, then by the order in which they were offered.
@usableFromInline
package struct PacketInFlight<Payload: Sendable>: Comparable, Sendable {
    @usableFromInline package let arrival: Int64
    @usableFromInline package let sequence: UInt64
    @usableFromInline package let flow: FlowID
    @usableFromInline package let payload: Payload

    @inlinable
    package init(arrival: Int64, sequence: UInt64, flow: FlowID, payload: Payload) {
        self.arrival = arrival
        self.sequence = sequence
        self.flow = flow
        self.payload = payload
    }

    @inlinable
    package static func < (left: Self, right: Self) -> Bool {
        left.arrival != right.arrival ? left.arrival < right.arrival : left.sequence < right.sequence
    }

    @inlinable
    package static func == (left: Self, right: Self) -> Bool { left.sequence == right.sequence }
}

/// The packets in flight in one direction.
@usableFromInline
package struct PacketsInFlight<Payload: Sendable>: Sendable {
    /// The packets that arrive in the order in which they were offered.
    @usableFromInline
    var inOrder = Deque<PacketInFlight<Payload>>()
    /// The packets that overtake others.
    @usableFromInline
    var overtaking = Heap<PacketInFlight<Payload>>()

    /// The arrival time of the next packet and its sequence number; `.max` if there is none. Stored properties, since
    /// they are read far more often than they change and packets are large.
    @usableFromInline
    package internal(set) var nextArrival = Int64.max
    @usableFromInline
    package internal(set) var nextSequence = UInt64.max

    @inlinable
    package init() {}

    @inlinable
    package var isEmpty: Bool { nextArrival == .max }

    @inlinable
    var isNextOvertaking: Bool {
        guard let packet = overtaking.min else { return false }
        return inOrder.first.map { packet < $0 } ?? true
    }

    @inlinable
    mutating func updateNext() {
        if !overtaking.isEmpty, isNextOvertaking, let packet = overtaking.min {
            (nextArrival, nextSequence) = (packet.arrival, packet.sequence)
        } else if !inOrder.isEmpty {
            (nextArrival, nextSequence) = (inOrder[0].arrival, inOrder[0].sequence)
        } else {
            (nextArrival, nextSequence) = (.max, .max)
        }
    }

    @inlinable
    package mutating func append(_ packet: PacketInFlight<Payload>) {
        if !inOrder.isEmpty, packet.arrival < inOrder[inOrder.count - 1].arrival {
            overtaking.insert(packet)
            updateNext()
        } else {
            inOrder.append(packet)
            if nextArrival == .max { updateNext() }
        }
    }

    @inlinable
    package mutating func popFirst() -> PacketInFlight<Payload>? {
        defer { updateNext() }
        if overtaking.isEmpty { return inOrder.popFirst() }
        return isNextOvertaking ? overtaking.removeMin() : inOrder.popFirst()
    }
}
