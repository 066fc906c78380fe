/// One direction of a link: loss, then a bounded queue, then the rate, then the delay.
///
///     packet -> loss -> [ queue | sending ] -> delay -> arrival
///
/// The order, and that the packet being sent still takes a place in the queue, are dummynet's (`dummynet_io` in xnu's
/// `ip_dummynet.c`), because that is what Apple's Network Link Conditioner drives. A packet that finds no place is dropped.
/// A packet's times are settled when it enters; order is kept unless conditions ask for the contrary.
struct PacketPipe: Sendable {
    private(set) var conditions: DirectionConditions
    private var busyUntil: Int64 = 0
    private var departures = Departures()
    private var lastArrival: Int64 = 0
    private var trace = TraceCursor()
    /// The state of the bursts, one for all connections.
    private var bursts: BurstState
    private var jitterStream: RandomStream
    /// Packets that have been offered.
    private var offered = 0
    private(set) var counters = PipeCounters()

    init(_ conditions: DirectionConditions, seed: UInt64, name: String) {
        self.conditions = conditions
        bursts = BurstState(seed: seed, name: name)
        jitterStream = RandomStream(seed: seed, "\(name)/jitter")
    }

    /// Packets waiting or being sent at `now`.
    mutating func depth(at now: Int64) -> Int {
        departures.release(at: now)
        return departures.count
    }

    /// Whether what entered now would arrive now, with nothing before it.
    func isStraight(at now: Int64) -> Bool { conditions.isClear && lastArrival <= now && busyUntil <= now }

    /// Draws from another seed from now on.
    mutating func reseed(_ seed: UInt64, name: String) {
        bursts = BurstState(seed: seed, name: name)
        jitterStream = RandomStream(seed: seed, "\(name)/jitter")
    }

    /// A packet was lost before it was offered.
    mutating func noteLoss() { counters.packetsLost += 1 }

    /// A packet is offered that repeats bytes.
    mutating func noteRetransmission() { counters.retransmissions += 1 }

    mutating func setConditions(_ new: DirectionConditions) {
        if new.trace != conditions.trace { trace = TraceCursor() }
        conditions = new
    }

    /// A connection's own chance in one direction, so that what others send does not shift what happens to it.
    struct Coins: Sendable {
        var loss: RandomStream
        var duplication: RandomStream
        var reordering: RandomStream

        init(seed: UInt64, name: String) {
            loss = RandomStream(seed: seed, "\(name)/loss")
            duplication = RandomStream(seed: seed, "\(name)/duplication")
            reordering = RandomStream(seed: seed, "\(name)/reordering")
        }
    }

    /// Offers a packet; gives when it arrives, or `nil` if it is lost or dropped. `copy` is when its second copy
    /// arrives, if it has one.
    mutating func offer(bytes: Int, coins: inout Coins, at now: Int64) -> (arrival: Int64?, copy: Int64?) {
        offered += 1
        let isLost = conditions.loss == .all || (conditions.loss != .none && coins.loss.chance(conditions.loss))
        let isLostInBurst = conditions.bursts.map { bursts.losesPacket($0, &coins.loss, at: now) } ?? false
        let isListed = conditions.lostPackets?.contains(offered) ?? false
        if isLost || isLostInBurst || isListed {
            counters.packetsLost += 1
            return (nil, nil)
        }
        let arrival = enqueue(bytes: bytes, &coins, at: now)
        guard conditions.duplication != .none, coins.duplication.chance(conditions.duplication) else {
            return (arrival, nil)
        }
        counters.packetsDuplicated += 1
        return (arrival, enqueue(bytes: bytes, &coins, at: now))
    }

    private mutating func enqueue(bytes: Int, _ coins: inout Coins, at now: Int64) -> Int64? {
        departures.release(at: now)
        if departures.isFull(conditions.queue) {
            counters.packetsDropped += 1
            return nil
        }
        var sent = max(busyUntil, now)
        if let trace = conditions.trace {
            sent = max(sent, self.trace.send(bytes, on: trace, busyUntil: busyUntil, at: now))
        } else if let rate = conditions.rate {
            sent = sent.addingSaturating(rate.serialisation(ofBytes: bytes).count)
        }
        busyUntil = sent
        if sent > now {
            departures.append(bytes: bytes, sent: sent)
            counters.queueDepthMax = max(counters.queueDepthMax, departures.count)
        }
        counters.packets += 1
        counters.bytes += bytes
        if conditions.reordering != .none, coins.reordering.chance(conditions.reordering) { return sent }
        var delay = conditions.delay.count.clamped(to: 0...DirectionConditions.spanMax.count)
        if let jitter = conditions.jitter {
            delay = max(0, delay + jitter.draw(&jitterStream))
            if jitter.mayOvertake {
                lastArrival = max(lastArrival, sent)
                return sent.addingSaturating(delay)
            }
        }
        lastArrival = max(lastArrival, sent.addingSaturating(delay))
        return lastArrival
    }
}
