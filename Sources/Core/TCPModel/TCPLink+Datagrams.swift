public import Determinism
public import LinkModel

/// One flow of datagrams on a link: its random streams, and the order of its packets.
public struct DatagramFlow: Sendable {
    var states: PerDirection<PacketPipe.FlowState>
}

/// The arrivals of a datagram.
public struct DatagramArrivals: Hashable, Sendable {
    /// The time of arrival; `nil` if the datagram is lost or dropped.
    public var first: Instant?
    /// The time of arrival of the duplicate, if there is one.
    public var copy: Instant?
}

/// Datagrams of other protocols, which share the link with the connections. The caller carries their contents.
extension TCPLink {
    /// Returns a flow. Its losses depend on the seed and the number alone, and not on other traffic.
    public func makeDatagramFlow(number: Int, seed: UInt64? = nil) -> DatagramFlow {
        DatagramFlow(states: link.makeFlow(seed: seed ?? link.seed, name: "session/\(number)"))
    }

    /// Offers a datagram without a session, such as a query of a name. Returns the time of its arrival, or `nil` if it is
    /// lost. Such datagrams are not recorded.
    ///
    /// - Parameter bytes: The length with the headers of IP and UDP.
    public mutating func offerDatagram(bytes: Int, _ direction: Direction, at now: Instant) -> Instant? {
        var flow = datagrams ?? DatagramFlow(states: link.makeFlow(seed: link.seed, name: "datagrams"))
        defer { datagrams = flow }
        return link.offer(bytes: bytes, state: &flow.states[direction], direction, at: now.bounded).arrival
            .map { Instant(Nanoseconds($0)) }
    }

    /// Offers a datagram of a flow. If its packet is longer than ``PacketSize/packetMax``, it travels in fragments, and is
    /// lost if one of them is lost.
    ///
    /// - Parameters:
    ///   - bytes: The length of the payload.
    ///   - id: The identifier of the flow in the record of packets.
    ///   - number: The number of the flow in the record of packets.
    public mutating func offerDatagram(
        bytes: Int, on flow: inout DatagramFlow, of id: FlowID, number: Int, _ direction: Direction, at now: Instant
    ) -> DatagramArrivals {
        let time = now.bounded
        let lostBefore = link.counters(direction).packetsLost
        var arrivals: (arrival: Int64?, copy: Int64?)
        if bytes + PacketSize.datagramHeader <= PacketSize.packetMax {
            arrivals = link.offer(
                bytes: bytes + PacketSize.datagramHeader, state: &flow.states[direction], direction, at: time)
        } else {
            arrivals = (0, nil)
            var left = bytes + PacketSize.datagramHeader - PacketSize.internetHeader
            while left > 0 {
                let piece = min(left, PacketSize.fragmentMax)
                left -= piece
                // A duplicate of a fragment does not duplicate the datagram.
                let arrival = link.offer(
                    bytes: piece + PacketSize.internetHeader, state: &flow.states[direction], direction, at: time
                ).arrival
                arrivals.arrival = arrivals.arrival.flatMap { last in arrival.map { max(last, $0) } }
            }
        }
        if recordsPackets {
            let fate: PacketRecord.Fate =
                if arrivals.arrival != nil {
                    .arrives
                } else if link.counters(direction).packetsLost == lostBefore {
                    .dropped
                } else {
                    link.isBlocked(direction) ? .outage : .lost
                }
            records.append(
                PacketRecord(
                    datagram: bytes, of: id, number: number, direction, at: Instant(Nanoseconds(time)),
                    arrival: Instant(
                        Nanoseconds(arrivals.arrival ?? time.addingSaturating(link.conditions[direction].delay.count))),
                    fate))
        }
        return DatagramArrivals(
            first: arrivals.arrival.map { Instant(Nanoseconds($0)) },
            copy: arrivals.copy.map { Instant(Nanoseconds($0)) })
    }

    /// Records a datagram that is lost before it enters the link.
    public mutating func loseDatagram(_ direction: Direction) { link.recordLoss(direction) }
}
