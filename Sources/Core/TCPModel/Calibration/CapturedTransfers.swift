internal import LinkModel

/// The exchanges of a connection in a capture: what its applications sent, and when.
struct CapturedTransfer: Sendable {
    /// A request and its response; one of both may be empty.
    struct Exchange: Sendable {
        /// The time from the end of the previous exchange, or from the handshake, to the request.
        var pause: Int64 = 0
        var bytesUp = 0
        var bytesDown = 0
        /// The time from the last byte of the request to the first one of the response at the server.
        var thinkTime: Int64 = 0
        /// The time from the first byte of the request to the last one of the response, at the captured end.
        var duration: Int64 = 0
        /// Whether one of the ends paused longer than the link explains.
        var hasPauses = false
    }

    /// The number of the connection.
    let connection: Int
    /// The time of the SYN, or of the first packet.
    var start: Int64
    /// Whether the capture contains the handshake.
    var hasHandshake = false
    var exchanges: [Exchange] = []

    /// The maximum numbers of connections and exchanges that are replayed.
    static let connectionsMax = 500
    static let exchangesMax = 5000

    /// Returns the transfers of a capture.
    ///
    /// - Parameters:
    ///   - roundTrip: The round trip without queueing.
    ///   - rates: The rates in bit/s, for the times of transmission.
    ///   - loadedRoundTrip: The longest round trip.
    static func all(
        in packets: [CapturedPacket], near: Side, roundTrip: Int64, rates: PerDirection<Double?>,
        loadedRoundTrip: Int64
    ) -> [CapturedTransfer] {
        var readers: [Int: TransferReader] = [:]
        var order: [Int] = []
        for packet in packets {
            if readers[packet.connection] == nil {
                guard order.count < connectionsMax else { continue }
                order.append(packet.connection)
                readers[packet.connection] = TransferReader(
                    near: near, roundTrip: roundTrip, rates: rates, pauseMin: max(500_000_000, 3 * loadedRoundTrip),
                    first: packet)
            }
            readers[packet.connection]?.record(packet)
        }
        var count = 0
        return order.compactMap { number in
            guard count < exchangesMax, let transfer = readers[number]?.finished else { return nil }
            count += transfer.exchanges.count
            return transfer.exchanges.isEmpty ? nil : transfer
        }
    }
}

/// A reader of one connection's exchanges.
private struct TransferReader {
    private struct Stream {
        /// The position after the last byte.
        var end: Int64?
        private var reference: Int64?

        mutating func position(_ number: UInt32) -> Int64 {
            let from = reference ?? Int64(number)
            let position = from + Int64(Int32(bitPattern: number &- UInt32(truncatingIfNeeded: from)))
            reference = max(from, position)
            return position
        }

        /// Adds bytes; returns the number of new ones beyond all earlier ones.
        mutating func add(_ range: Range<Int64>) -> Int {
            let before = end ?? range.lowerBound
            end = max(before, range.upperBound)
            return Int(max(0, range.upperBound - max(before, range.lowerBound)))
        }
    }

    private let near: Side
    private let roundTrip: Int64
    private let rates: PerDirection<Double?>
    private let pauseMin: Int64
    private var transfer: CapturedTransfer
    private var streams = PerDirection(up: Stream(), down: Stream())
    private var current: CapturedTransfer.Exchange?
    private var begin: Int64 = 0
    private var lastUp: Int64 = 0
    /// The bytes of the last packet of the request.
    private var lastUpBytes = 0
    private var firstDown: Int64?
    private var lastProgress: Int64 = 0
    private var lastEnd: Int64

    init(near: Side, roundTrip: Int64, rates: PerDirection<Double?>, pauseMin: Int64, first: CapturedPacket) {
        self.rates = rates
        self.near = near
        self.roundTrip = roundTrip
        self.pauseMin = pauseMin
        transfer = CapturedTransfer(connection: first.connection, start: first.time)
        lastEnd = first.time
    }

    mutating func record(_ packet: CapturedPacket) {
        let direction = packet.direction
        let position = streams[direction].position(packet.sequenceNumber)
        if packet.flags.contains(.syn) {
            if direction == .up { transfer.hasHandshake = true } else { lastEnd = packet.time }
            streams[direction].end = position + 1
            return
        }
        if packet.payloadBytes > 0 { recordData(packet, direction, position) }
        // At the server, a response ends with its last acknowledgment.
        if near == .server, direction == .up, packet.flags.contains(.ack), current != nil, let end = streams.down.end {
            if streams.down.position(packet.acknowledgmentNumber) <= end + 1, firstDown != nil {
                current?.duration = packet.time - begin
            }
        }
    }

    private mutating func recordData(_ packet: CapturedPacket, _ direction: Direction, _ position: Int64) {
        let new = streams[direction].add(position..<position + Int64(packet.payloadBytes))
        if direction == .up, new > 0, current == nil || firstDown != nil {
            close()
            current = CapturedTransfer.Exchange(pause: max(0, packet.time - lastEnd))
            begin = packet.time
            lastProgress = packet.time
        } else if current == nil {
            guard new > 0 else { return }
            // The server speaks first.
            current = CapturedTransfer.Exchange()
            begin = lastEnd
            lastUp = lastEnd
            lastProgress = packet.time
        }
        if packet.time - lastProgress > pauseMin { current?.hasPauses = true }
        lastProgress = packet.time
        if direction == .up {
            current?.bytesUp += new
            if new > 0 { (lastUp, lastUpBytes) = (packet.time, packet.packetBytes) }
        } else {
            current?.bytesDown += new
            if firstDown == nil {
                firstDown = packet.time
                let transmission =
                    DirectionSeries.time(lastUpBytes, at: rates.up)
                    + DirectionSeries.time(packet.packetBytes, at: rates.down)
                let wait =
                    packet.time - lastUp - (near == .client ? roundTrip + Calibration.whole(transmission) : 0)
                // The time of a long request in the queue is not known.
                let isLong = current.map { $0.bytesUp > 10 * PacketSize.segmentMax } ?? false
                current?.thinkTime = isLong ? 0 : max(0, wait)
            }
            if near == .client { current?.duration = packet.time - begin }
        }
    }

    private mutating func close() {
        if let exchange = current, exchange.duration > 0, exchange.bytesUp + exchange.bytesDown > 0 {
            transfer.exchanges.append(exchange)
            lastEnd = begin + exchange.duration
        }
        current = nil
        firstDown = nil
    }

    /// The transfer with its last exchange. The server takes the shortest time of its exchanges: longer ones are losses.
    var finished: CapturedTransfer {
        var reader = self
        reader.close()
        var transfer = reader.transfer
        if near == .client, let shortest = transfer.exchanges.map(\.thinkTime).min() {
            for index in transfer.exchanges.indices { transfer.exchanges[index].thinkTime = shortest }
        }
        return transfer
    }
}
