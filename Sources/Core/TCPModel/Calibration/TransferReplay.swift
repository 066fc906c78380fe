public import Determinism
public import LinkModel

/// The transfers of a capture, replayed on the model with the conditions that were estimated from it.
public struct TransferReplay: Sendable {
    /// A transfer, as captured and as modelled.
    public struct Comparison: Hashable, Sendable {
        /// The number of the connection in the capture, from 0.
        public let connection: Int
        /// The time of the request since the first packet.
        public let start: Nanoseconds
        /// The bytes of the request and of the response.
        public let bytes: PerDirection<Int>
        /// The time in the capture.
        public let captured: Nanoseconds
        /// The median of the times on the model.
        public let modelled: Nanoseconds

        /// The difference as a share of the captured time.
        public var difference: Double { Double(modelled.count) / Double(max(1, captured.count)) - 1 }
    }

    /// The transfers, in order of connections.
    public private(set) var comparisons: [Comparison] = []
    /// The transfers that are not compared, because an application paused in them.
    public private(set) var pausedCount = 0

    /// The median of the differences, without their signs; `nil` without transfers.
    public var medianDifference: Double? {
        Statistic.quantile(0.5, ofSorted: comparisons.map { abs($0.difference) }.sorted())
    }

    /// The random seeds of the replays; the median of their times is compared.
    public static let runs = 5
    /// The time after which a replay ends.
    private static let timeMax = Nanoseconds.seconds(7200)

    /// Replays the transfers of the packets from which `calibration` was computed.
    public init(_ packets: [CapturedPacket], _ calibration: Calibration) {
        let roundTrip = Calibration.whole(calibration.roundTrip.estimate?.value ?? 0)
        let loaded = Direction.allCases.reduce(roundTrip) {
            $0 + Calibration.whole(calibration.directions[$1].queueDelayMax)
        }
        let rates = PerDirection(
            up: calibration.directions.up.rate.estimate?.value, down: calibration.directions.down.rate.estimate?.value)
        let transfers = CapturedTransfer.all(
            in: packets, near: calibration.near, roundTrip: roundTrip, rates: rates, loadedRoundTrip: loaded)
        var conditions = calibration.conditions
        for direction in Direction.allCases {
            guard let trace = calibration.trace(direction) else { continue }
            if direction == .up { conditions.up.trace = trace } else { conditions.down.trace = trace }
            if direction == .up { conditions.up.rate = nil } else { conditions.down.rate = nil }
        }
        var times = transfers.map { $0.exchanges.map { _ in [Int64]() } }
        for run in 0..<Self.runs {
            var replay = ReplayRun(
                transfers, conditions, near: calibration.near, outages: calibration.outageSpans, seed: UInt64(run + 1))
            replay.run(until: Instant(Self.timeMax))
            // Both are measured in the same way.
            let modelled = CapturedTransfer.all(
                in: replay.packetsInOrder, near: calibration.near, roundTrip: roundTrip, rates: rates,
                loadedRoundTrip: loaded)
            for transfer in modelled {
                for (index, exchange) in transfer.exchanges.prefix(times[transfer.connection].count).enumerated() {
                    times[transfer.connection][index].append(exchange.duration)
                }
            }
        }
        for (connection, transfer) in transfers.enumerated() {
            var start = transfer.start
            for (index, exchange) in transfer.exchanges.enumerated() {
                start += exchange.pause
                defer { start += exchange.duration }
                if exchange.hasPauses {
                    pausedCount += 1
                    continue
                }
                guard let modelled = Statistic.quantile(0.5, ofSorted: times[connection][index].sorted()) else {
                    continue
                }
                comparisons.append(
                    Comparison(
                        connection: transfer.connection, start: Nanoseconds(start),
                        bytes: PerDirection(up: exchange.bytesUp, down: exchange.bytesDown),
                        captured: Nanoseconds(exchange.duration), modelled: Nanoseconds(modelled)))
            }
        }
    }
}

/// One replay: the applications of all connections, on one link.
private struct ReplayRun: ~Copyable {
    private enum Action { case open(Int), request(Int), respond(Int), outage(Bool) }

    /// The maximum number of packets that are compared.
    private static let packetsMax = 2_000_000

    private struct Connection {
        var flow: FlowID?
        var exchange = 0
        var received = PerDirection(up: 0, down: 0)
    }

    private let transfers: [CapturedTransfer]
    private let near: Side
    private var link: TCPLink
    private var connections: [Connection]
    private var byFlow: [FlowID: Int] = [:]
    private var schedule: [(time: Instant, action: Action)] = []
    /// The packets as captured at the same end.
    private(set) var packets: [CapturedPacket] = []

    init(
        _ transfers: [CapturedTransfer], _ conditions: Conditions, near: Side, outages: [(start: Int64, end: Int64)],
        seed: UInt64
    ) {
        self.transfers = transfers
        self.near = near
        link = TCPLink(conditions, seed: seed, recordsPackets: true)
        connections = transfers.map { _ in Connection() }
        for index in transfers.indices { plan(.open(index), at: Instant(Nanoseconds(transfers[index].start))) }
        for outage in outages {
            plan(.outage(true), at: Instant(Nanoseconds(outage.start)))
            plan(.outage(false), at: Instant(Nanoseconds(outage.end)))
        }
    }

    /// The packets in order of time.
    var packetsInOrder: [CapturedPacket] {
        packets.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }.map(\.element)
    }

    private mutating func plan(_ action: Action, at time: Instant) {
        // In descending order of time, so that the next action is the last one; a later one of the same time comes later.
        var (low, high) = (0, schedule.count)
        while low < high {
            let middle = (low + high) / 2
            if schedule[middle].time > time { low = middle + 1 } else { high = middle }
        }
        schedule.insert((time, action), at: low)
    }

    mutating func run(until end: Instant) {
        while true {
            let planned = schedule.last?.time ?? .never
            let next = min(planned, link.nextDeadline ?? .never)
            guard next <= end, packets.count < Self.packetsMax else { return }
            if planned <= next, let (time, action) = schedule.popLast() {
                perform(action, at: time)
            } else {
                _ = link.advance(to: next)
            }
            while let event = link.takeEvent() { receive(event, at: next) }
            while let record = link.takeRecord() {
                guard packets.count < Self.packetsMax, let index = byFlow[record.flow],
                    let packet = CapturedPacket(record, at: near, connection: index)
                else { continue }
                packets.append(packet)
            }
        }
    }

    private mutating func perform(_ action: Action, at now: Instant) {
        switch action {
        case .outage(let begins): link.setOutage(PerDirection(up: begins, down: begins))
        case .open(let index):
            let flow = link.open(at: now, isEstablished: !transfers[index].hasHandshake)
            connections[index].flow = flow
            byFlow[flow] = index
            if !transfers[index].hasHandshake { prepare(index, at: now) }
        case .request(let index):
            guard let flow = connections[index].flow else { return }
            let exchange = transfers[index].exchanges[connections[index].exchange]
            if exchange.bytesUp > 0 {
                link.send(exchange.bytesUp, on: flow, .up, at: now)
            } else {
                plan(.respond(index), at: now + Nanoseconds(exchange.thinkTime))
            }
        case .respond(let index):
            guard let flow = connections[index].flow else { return }
            let bytes = transfers[index].exchanges[connections[index].exchange].bytesDown
            if bytes > 0 { link.send(bytes, on: flow, .down, at: now) } else { complete(index, at: now) }
        }
    }

    /// Plans the next request of a connection, or ends it.
    private mutating func prepare(_ index: Int, at now: Instant) {
        connections[index].received = PerDirection(up: 0, down: 0)
        guard connections[index].exchange < transfers[index].exchanges.count else {
            if let flow = connections[index].flow { link.finish(flow, .up, at: now) }
            return
        }
        plan(.request(index), at: now + Nanoseconds(transfers[index].exchanges[connections[index].exchange].pause))
    }

    private mutating func complete(_ index: Int, at now: Instant) {
        connections[index].exchange += 1
        prepare(index, at: now)
    }

    private mutating func receive(_ event: TimedFlowEvent, at now: Instant) {
        guard let index = byFlow[event.flow], connections[index].exchange < transfers[index].exchanges.count else {
            return
        }
        let exchange = transfers[index].exchanges[connections[index].exchange]
        switch event.event {
        case .established(.client): prepare(index, at: now)
        case .delivered(let bytes, .up):
            let before = connections[index].received.up
            connections[index].received.up += bytes
            if before < exchange.bytesUp, connections[index].received.up >= exchange.bytesUp {
                plan(.respond(index), at: now + Nanoseconds(exchange.thinkTime))
            }
        case .delivered(let bytes, .down):
            let before = connections[index].received.down
            connections[index].received.down += bytes
            guard before < exchange.bytesDown, connections[index].received.down >= exchange.bytesDown else { return }
            complete(index, at: now)
        default: break
        }
    }
}
