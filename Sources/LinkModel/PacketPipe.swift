/// One direction of a link: loss, then a bounded queue, then the rate, then the delay.
///
///     packet -> loss -> [ queue | sending ] -> delay -> arrival
///
/// The order, and that the packet being sent still takes a place in the queue, are dummynet's (`dummynet_io` in xnu's
/// `ip_dummynet.c`), because that is what Apple's Network Link Conditioner drives. A packet that finds no place is dropped.
/// A packet's times are settled when it enters; each connection's packets keep their order unless conditions ask for the
/// contrary. Another rate or trace is another link, with an empty queue of its own: what the old one holds leaves it in
/// its settled time and holds nobody else up. During a ramp it is the same link, whose queue moves on at the new rate.
struct PacketPipe: Sendable {
    private(set) var conditions: DirectionConditions
    private var busyUntil: Int64 = 0
    private var departures = Departures()
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

    /// Whether what a connection sent now would arrive now, with nothing before it.
    func isStraight(_ flow: FlowState, at now: Int64) -> Bool {
        conditions.isClear && flow.lastArrival <= now && busyUntil <= now
    }

    /// Draws from another seed from now on.
    mutating func reseed(_ seed: UInt64, name: String) {
        bursts = BurstState(seed: seed, name: name)
        jitterStream = RandomStream(seed: seed, "\(name)/jitter")
    }

    /// A packet was lost before it was offered.
    mutating func noteLoss() { counters.packetsLost += 1 }

    /// A packet is offered that repeats bytes.
    mutating func noteRetransmission() { counters.retransmissions += 1 }

    /// Lets other conditions hold for packets that enter from now on.
    ///
    /// - Parameter rampTime: When, if they come out of the old ones by a ramp; otherwise another rate is another link.
    mutating func setConditions(_ new: DirectionConditions, rampTime: Int64? = nil) {
        let isOtherLink = new.rate != conditions.rate || new.trace != conditions.trace
        if new.trace != conditions.trace { trace = TraceCursor() }
        if new.bursts != conditions.bursts { bursts.restart() }
        conditions = new
        guard isOtherLink else { return }
        let waiting = departures
        departures = Departures()
        busyUntil = 0
        if let rampTime { requeue(waiting, at: rampTime) }
    }

    /// What waits is sent at the new rate, if that is sooner than was settled. The packets themselves keep their times.
    private mutating func requeue(_ waiting: Departures, at now: Int64) {
        var waiting = waiting
        waiting.release(at: now)
        while let packet = waiting.popFirst() {
            let sent = min(packet.sent, departure(ofBytes: packet.bytes, at: now))
            busyUntil = max(busyUntil, sent)
            if sent > now { departures.append(bytes: packet.bytes, sent: sent) }
        }
    }

    /// What a pipe keeps of one connection in its direction: its own chance, so that what others send does not shift what
    /// happens to it, and its order.
    struct FlowState: Sendable {
        var loss: RandomStream
        var duplication: RandomStream
        var reordering: RandomStream
        /// When the last of its packets arrives, of those that keep their order.
        fileprivate(set) var lastArrival: Int64 = 0

        init(seed: UInt64, name: String) {
            loss = RandomStream(seed: seed, "\(name)/loss")
            duplication = RandomStream(seed: seed, "\(name)/duplication")
            reordering = RandomStream(seed: seed, "\(name)/reordering")
        }
    }

    /// Offers a packet; gives when it arrives, or `nil` if it is lost or dropped. `copy` is when its second copy
    /// arrives, if it has one.
    mutating func offer(bytes: Int, flow: inout FlowState, at now: Int64) -> (arrival: Int64?, copy: Int64?) {
        offered += 1
        let isLost = conditions.loss == .all || (conditions.loss != .none && flow.loss.chance(conditions.loss))
        let isLostInBurst = conditions.bursts.map { bursts.losesPacket($0, &flow.loss, at: now) } ?? false
        let isListed = conditions.lostPackets?.contains(offered) ?? false
        if isLost || isLostInBurst || isListed {
            counters.packetsLost += 1
            return (nil, nil)
        }
        let arrival = enqueue(bytes: bytes, &flow, at: now)
        guard conditions.duplication != .none, flow.duplication.chance(conditions.duplication) else {
            return (arrival, nil)
        }
        counters.packetsDuplicated += 1
        return (arrival, enqueue(bytes: bytes, &flow, at: now))
    }

    /// When a packet has been sent that is the next to be.
    private mutating func departure(ofBytes bytes: Int, at now: Int64) -> Int64 {
        let idle = max(busyUntil, now)
        if let trace = conditions.trace {
            return max(idle, self.trace.send(bytes, on: trace, busyUntil: busyUntil, at: now))
        }
        if let rate = conditions.rate { return idle.addingSaturating(rate.serialisation(ofBytes: bytes).count) }
        return idle
    }

    private mutating func enqueue(bytes: Int, _ flow: inout FlowState, at now: Int64) -> Int64? {
        departures.release(at: now)
        if departures.isFull(conditions.queue) {
            counters.packetsDropped += 1
            return nil
        }
        let sent = departure(ofBytes: bytes, at: now)
        busyUntil = sent
        if sent > now {
            departures.append(bytes: bytes, sent: sent)
            counters.queueDepthMax = max(counters.queueDepthMax, departures.count)
        }
        counters.packets += 1
        counters.bytes += bytes
        if conditions.reordering != .none, flow.reordering.chance(conditions.reordering) { return sent }
        var delay = conditions.delay.count.clamped(to: 0...DirectionConditions.spanMax.count)
        if let jitter = conditions.jitter {
            delay = max(0, delay + jitter.draw(&jitterStream))
            if jitter.mayOvertake {
                flow.lastArrival = max(flow.lastArrival, sent)
                return sent.addingSaturating(delay)
            }
        }
        flow.lastArrival = max(flow.lastArrival, sent.addingSaturating(delay))
        return flow.lastArrival
    }
}
