internal import Determinism
internal import LinkModel

/// The position of the capturing host between client and server, from the handshakes of a capture.
struct CaptureVantage {
    /// The packets of one connection that the position follows from.
    private struct Handshake {
        var syn: Int64?
        var synAck: Int64?
        var ack: Int64?
        var isRepeated = false
        /// The first and the last timestamp of each direction.
        var clocks: PerDirection<Clock?> = PerDirection(up: nil, down: nil)
    }

    private struct Clock {
        let time: Int64
        let value: UInt32
        var lastTime: Int64
        var lastValue: UInt32
    }

    private var handshakes: [Int: Handshake] = [:]

    /// Records the packets of a capture.
    init(_ packets: [CapturedPacket]) {
        for packet in packets { record(packet) }
    }

    private mutating func record(_ packet: CapturedPacket) {
        var handshake = handshakes[packet.connection] ?? Handshake()
        defer { handshakes[packet.connection] = handshake }
        if let value = packet.timestamp?.value {
            var clock =
                handshake.clocks[packet.direction]
                ?? Clock(time: packet.time, value: value, lastTime: packet.time, lastValue: value)
            (clock.lastTime, clock.lastValue) = (packet.time, value)
            handshake.clocks[packet.direction] = clock
        }
        switch (packet.direction, packet.flags.contains(.syn)) {
        case (.up, true):
            if handshake.syn == nil { handshake.syn = packet.time } else { handshake.isRepeated = true }
        case (.down, true):
            if handshake.synAck == nil { handshake.synAck = packet.time } else { handshake.isRepeated = true }
        case (.up, false):
            if handshake.synAck != nil, handshake.ack == nil, packet.flags.contains(.ack) {
                handshake.ack = packet.time
            }
        case (.down, false): break
        }
    }

    /// The times between SYN and SYN-ACK, and between SYN-ACK and ACK, of handshakes without repetitions.
    private var spans: [(toServer: Int64, toClient: Int64)] {
        handshakes.values.compactMap { handshake in
            guard !handshake.isRepeated, let syn = handshake.syn, let synAck = handshake.synAck, let ack = handshake.ack
            else { return nil }
            return (synAck - syn, ack - synAck)
        }
    }

    /// The number of handshakes without repetitions.
    var handshakeCount: Int { spans.count }

    /// The end at which the packets were captured; `nil` without a complete handshake.
    var near: Side? {
        let spans = spans
        guard let server = Statistic.quantile(0.5, ofSorted: spans.map(\.toServer).sorted()),
            let client = Statistic.quantile(0.5, ofSorted: spans.map(\.toClient).sorted())
        else { return nil }
        return server >= client ? .client : .server
    }

    /// The round trips between the capturing host and both ends: the shortest ones.
    var roundTrips: PerDirection<Int64>? {
        guard let server = spans.map(\.toServer).min(), let client = spans.map(\.toClient).min() else { return nil }
        return PerDirection(up: server, down: client)
    }

    /// Returns the round trips between an end and the other one, in ascending order.
    func roundTrips(from near: Side) -> [Int64] {
        spans.map { near == .client ? $0.toServer : $0.toClient }.sorted()
    }

    /// Returns the round trip of a connection's handshake, or `nil` if it is not in the capture.
    func roundTrip(of connection: Int) -> Int64? {
        guard let handshake = handshakes[connection], !handshake.isRepeated, let syn = handshake.syn,
            let ack = handshake.ack
        else { return nil }
        return ack - syn
    }

    /// The units of timestamps in use, in nanoseconds: 1 kHz on current systems, others on older ones.
    private static let ticks: [Int64] = [1_000_000, 10_000_000, 4_000_000, 2_000_000, 1_000]

    /// Returns the nanoseconds per unit of an end's timestamps in a connection; `nil` without usable ones.
    func tick(of side: Side, connection: Int) -> Int64? {
        guard let clock = handshakes[connection]?.clocks[side.sendDirection] else { return nil }
        let time = clock.lastTime - clock.time
        let count = Int64(Int32(bitPattern: clock.lastValue &- clock.value))
        // Queueing distorts the ratio in short connections.
        if time < 2_000_000_000 || count == 0 { return Self.ticks[0] }
        let ratio = Double(time) / Double(count)
        return Self.ticks.first { ratio > 0.75 * Double($0) && ratio < 1.4 * Double($0) }
    }
}
