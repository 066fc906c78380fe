internal import LinkModel

/// The passages of all connections of a capture, with the clocks of the other ends aligned.
struct PassageExtraction {
    private var connections: [ConnectionPassages] = []
    private let near: Side
    /// The resolution of the times of each direction, in nanoseconds.
    private(set) var noise = PerDirection<Int64>(up: 0, down: 0)
    /// The bytes of the fastest packet of each direction.
    private(set) var fastestBytes = PerDirection(up: PacketSize.handshake, down: PacketSize.handshake)
    /// The shortest round trip of the peer with the most bytes; `nil` if none is known.
    private(set) var roundTripFloor: Int64?
    /// The number of round trips.
    private(set) var roundTripCount = 0
    /// The shortest round trips of all peers, if they differ.
    private(set) var otherRoundTrips: ClosedRange<Int64>?
    /// The aligned passages.
    private var aligned = PerDirection<[Passage]>(up: [], down: [])

    /// The flight span of connections if no handshake is known.
    private static let flightSpanDefault: Int64 = 10_000_000
    /// The longest flight span: Linux's shortest retransmission timeout, after which a lost packet is no hole.
    private static let flightSpanMax: Int64 = 200_000_000

    init(_ packets: [CapturedPacket], _ vantage: CaptureVantage, near: Side) {
        self.near = near
        var numbers: [Int: Int] = [:]
        var used = 0
        var counts: [Int] = []
        let usualSpan = vantage.roundTrips(from: near).first ?? Self.flightSpanDefault
        for packet in packets {
            let index = numbers[packet.connection] ?? connections.count
            if index == connections.count {
                numbers[packet.connection] = index
                let span = vantage.roundTrip(of: packet.connection) ?? usualSpan
                let tick = vantage.tick(of: near.opposite, connection: packet.connection)
                connections.append(
                    ConnectionPassages(
                        number: index, near: near, tick: tick, flightSpan: min(span, Self.flightSpanMax)))
                counts.append(0)
            }
            connections[index].record(packet, room: Calibration.passagesMax - used)
            let count = connections[index].passages.up.count + connections[index].passages.down.count
            used += count - counts[index]
            counts[index] = count
        }
        let inbound = near.opposite.sendDirection
        noise[inbound] = connections.compactMap(\.tick).max() ?? 0
    }

    /// The number of connections.
    var connectionCount: Int { connections.count }
    /// Packets that arrived but are not in the capture.
    var missingPackets: Int { connections.reduce(0) { $0 + $1.missingPackets } }
    /// Whether passages were omitted.
    var isIncomplete: Bool { connections.contains(where: \.isIncomplete) }
    /// Whether the other ends send timestamps.
    var hasTimestamps: Bool { connections.contains { $0.tick != nil } }

    /// Returns the passages of a direction.
    func series(_ direction: Direction) -> DirectionSeries {
        DirectionSeries(aligned[direction], noise: noise[direction], fastestBytes: fastestBytes[direction])
    }

    /// The shortest round trip with the longest queueing delay of both directions.
    var loadedRoundTrip: Int64 {
        let longest = Direction.allCases.reduce(Int64(0)) { sum, direction in
            sum + (aligned[direction].lazy.filter { !$0.isLost && $0.timing != .bounded }.map(\.excess).max() ?? 0)
        }
        return (roundTripFloor ?? 0) + longest
    }

    /// The connections with one peer, whose clock they share.
    private struct Peer {
        var offset: Int64
        var offsetBytes: Int
        var members: [Int]
        var bytes = 0
        var floor: Int64?
        var floorBytes = PacketSize.handshake
    }

    /// Timestamps of two connections within this time are of one clock: their offsets are random over 50 days.
    private static let sameClockSpan: Int64 = 10_000_000_000

    /// Aligns the clocks, and computes the excess of all passages.
    mutating func align() {
        let (outbound, inbound) = (near.sendDirection, near.opposite.sendDirection)
        var peers: [Peer] = []
        for (index, connection) in connections.enumerated() {
            var best: (offset: Int64, bytes: Int)?
            for (passage, far) in zip(connection.passages[inbound], connection.farTimes[inbound])
            where far != .min && !passage.isLost && passage.timing == .exact {
                let offset = passage.exit - far
                if offset < best?.offset ?? .max { best = (offset, Int(passage.bytes)) }
            }
            let known = best.flatMap { best in
                peers.firstIndex { $0.offset != .min && abs($0.offset - best.offset) < Self.sameClockSpan }
            }
            if let known, let best {
                peers[known].members.append(index)
                if best.offset < peers[known].offset { (peers[known].offset, peers[known].offsetBytes) = best }
            } else {
                peers.append(Peer(offset: best?.offset ?? .min, offsetBytes: best?.bytes ?? 0, members: [index]))
            }
        }
        for index in peers.indices { measure(&peers[index], outbound) }
        for peer in peers { align(peer, outbound, inbound) }
        if let busiest = peers.filter({ $0.floor != nil }).max(by: { $0.bytes < $1.bytes }), let floor = busiest.floor {
            roundTripFloor = floor
            fastestBytes[outbound] = busiest.floorBytes
            if busiest.offset != .min { fastestBytes[inbound] = busiest.offsetBytes }
            let floors = peers.compactMap(\.floor)
            if let least = floors.min(), let most = floors.max(),
                most > floor + floor / 4 + 5_000_000
                    || least < floor - floor / 4 - 5_000_000
            {
                otherRoundTrips = least...most
            }
        }
        for index in connections.indices {
            connections[index].passages = PerDirection(up: [], down: [])
            connections[index].farTimes = PerDirection(up: [], down: [])
        }
    }

    /// Returns the time at which a packet of this end arrived, as if the fastest packet of the other end took no time.
    private func arrival(_ passage: Passage, far: Int64, _ peer: Peer, tick: Int64?) -> Int64 {
        guard let tick, far != .min, peer.offset != .min else { return passage.exit }
        // The acknowledgment left within one unit of the clock, and no later than it arrived.
        return min(passage.exit, far + peer.offset + tick)
    }

    private mutating func measure(_ peer: inout Peer, _ outbound: Direction) {
        for index in peer.members {
            let connection = connections[index]
            for (passage, far) in zip(connection.passages[outbound], connection.farTimes[outbound]) {
                peer.bytes += Int(passage.bytes)
                guard passage.timing != .bounded, !passage.isLost else { continue }
                roundTripCount += 1
                let span = arrival(passage, far: far, peer, tick: connection.tick) - passage.sent
                if span >= 0, span < peer.floor ?? .max {
                    peer.floor = span
                    peer.floorBytes = Int(passage.bytes)
                }
            }
            for passage in connection.passages[outbound.opposite] { peer.bytes += Int(passage.bytes) }
        }
    }

    private mutating func align(_ peer: Peer, _ outbound: Direction, _ inbound: Direction) {
        for index in peer.members {
            let connection = connections[index]
            for (passage, far) in zip(connection.passages[outbound], connection.farTimes[outbound]) {
                var passage = passage
                if let floor = peer.floor, passage.exit > passage.sent {
                    let span = arrival(passage, far: far, peer, tick: connection.tick) - passage.sent
                    passage.exit = passage.sent + max(0, span - floor)
                }
                aligned[outbound].append(passage)
            }
            for (passage, far) in zip(connection.passages[inbound], connection.farTimes[inbound]) {
                var passage = passage
                if far != .min, peer.offset != .min { passage.sent = min(passage.exit, far + peer.offset) }
                aligned[inbound].append(passage)
            }
        }
    }
}
