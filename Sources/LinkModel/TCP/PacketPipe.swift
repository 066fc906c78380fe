internal import DequeModule

/// One direction of a link for modelled TCP: loss, then a bounded queue, then the rate, then the delay, as in ``Pipe``;
/// but a packet that finds no place is dropped, loss is a process, and the delay may vary.
struct PacketPipe: Sendable {
    private(set) var conditions: DirectionConditions
    private var busyUntil: Int64 = 0
    private var departures = Deque<Int64>()
    private var lastArrival: Int64 = 0
    /// The state of the bursts, one for all connections.
    private var bursts: BurstState
    private var jitterStream: RandomStream
    private(set) var counters = PipeCounters()

    init(_ conditions: DirectionConditions, seed: UInt64, name: String) {
        self.conditions = conditions
        bursts = BurstState(seed: seed, name: name)
        jitterStream = RandomStream(seed: seed, "\(name)/jitter")
    }

    mutating func setConditions(_ new: DirectionConditions) { conditions = new }

    /// Offers a packet; gives when it arrives, or `nil` if it is lost or dropped.
    ///
    /// - Parameter coins: The connection's own stream of chance, so that what others send does not shift its losses.
    mutating func offer(bytes: Int, coins: inout RandomStream, at now: Int64) -> Int64? {
        let isLost = conditions.loss == .all || (conditions.loss != .none && coins.chance(conditions.loss))
        let isLostInBurst = conditions.bursts.map { bursts.losesPacket($0, &coins, at: now) } ?? false
        if isLost || isLostInBurst {
            counters.packetsLost += 1
            return nil
        }
        while let first = departures.first, first <= now { departures.removeFirst() }
        if departures.count >= conditions.queue.packets {
            counters.packetsDropped += 1
            return nil
        }
        let sent = max(busyUntil, now) + (conditions.rate?.serialisation(ofBytes: bytes).count ?? 0)
        busyUntil = sent
        if sent > now {
            departures.append(sent)
            counters.queueDepthMax = max(counters.queueDepthMax, departures.count)
        }
        counters.packets += 1
        counters.bytes += bytes
        var delay = conditions.delay.count
        if let jitter = conditions.jitter { delay = max(0, delay + jitter.draw(&jitterStream)) }
        lastArrival = max(lastArrival, sent + delay)
        return lastArrival
    }
}
