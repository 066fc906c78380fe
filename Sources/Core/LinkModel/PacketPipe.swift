internal import Determinism

/// One direction of a link: loss, then a bounded queue, then the rate, then the delay.
///
///     packet -> loss -> [ queue | transmission ] -> delay -> arrival
///
/// The order of the steps is that of dummynet (`dummynet_io` in xnu's `ip_dummynet.c`), which Apple's Network Link
/// Conditioner configures; as there, the packet being transmitted counts as queued. A packet that finds the queue full
/// is dropped. The times of a packet are computed when it enters, and the packets of a connection keep their order
/// unless the conditions reorder them. A change of rate or trace empties the queue: the packets in it keep their
/// arrival times and do not delay later ones. During a ramp the queue is kept and drains at the new rate.
@usableFromInline
package struct PacketPipe: Sendable {
    package private(set) var conditions: DirectionConditions
    private var busyUntil: Int64 = 0
    private var queue = TransmitQueue()
    private var trace = TraceCursor()
    /// The state of the bursts, shared by all connections.
    private var bursts: BurstLossProcess
    private var jitterStream: RandomStream
    private var packetsOffered = 0
    package private(set) var counters = PipeCounters()

    package init(_ conditions: DirectionConditions, seed: UInt64, name: String) {
        self.conditions = conditions
        bursts = BurstLossProcess(seed: seed, name: name)
        jitterStream = RandomStream(seed: seed, "\(name)/jitter")
    }

    /// Returns the number of packets that are queued or being transmitted at `now`.
    package mutating func depth(at now: Int64) -> Int {
        queue.release(at: now)
        return queue.count
    }

    /// Returns the state of the queue at `now`.
    package mutating func queueState(at now: Int64) -> QueueState {
        queue.release(at: now)
        var state = QueueState()
        state.packets = queue.count
        state.bytes = queue.bytes
        if queue.count > 0 { state.delay = Nanoseconds(max(0, busyUntil - now)) }
        return state
    }

    /// Returns whether a packet of the flow would arrive at `now`, unimpaired and with no packet ahead of it.
    @usableFromInline
    package func passesAtOnce(_ flow: FlowState, at now: Int64) -> Bool {
        conditions.isClear && flow.lastArrival <= now && busyUntil <= now
    }

    /// Switches to another random seed.
    package mutating func reseed(_ seed: UInt64, name: String) {
        bursts = BurstLossProcess(seed: seed, name: name)
        jitterStream = RandomStream(seed: seed, "\(name)/jitter")
    }

    /// Records a packet that was lost before it was offered.
    @usableFromInline
    package mutating func recordLoss() { counters.packetsLost += 1 }

    /// Records a packet that carries bytes sent before.
    @usableFromInline
    package mutating func recordRetransmission() { counters.retransmissions += 1 }

    /// Changes the conditions for packets that enter from now on.
    ///
    /// - Parameter rampTime: The current time if the change is a step of a ramp; otherwise another rate empties the
    ///   queue.
    package mutating func setConditions(_ new: DirectionConditions, rampTime: Int64? = nil) {
        let emptiesQueue = new.rate != conditions.rate || new.trace != conditions.trace
        if new.trace != conditions.trace { trace = TraceCursor() }
        if new.bursts != conditions.bursts { bursts.restart() }
        conditions = new
        guard emptiesQueue else { return }
        let waiting = queue
        queue = TransmitQueue()
        busyUntil = 0
        if let rampTime { requeue(waiting, at: rampTime) }
    }

    /// Moves queued packets to the new queue. Departures become earlier if the new rate is higher; arrival times do not
    /// change.
    private mutating func requeue(_ waiting: TransmitQueue, at now: Int64) {
        var waiting = waiting
        waiting.release(at: now)
        while let packet = waiting.popFirst() {
            let departure = min(packet.departure, departure(ofBytes: packet.bytes, at: now))
            busyUntil = max(busyUntil, departure)
            if departure > now { queue.append(bytes: packet.bytes, departure: departure) }
        }
    }

    /// The state of one flow in one direction: its packet order, and random streams of its own, which make its losses
    /// independent of other flows' traffic.
    @usableFromInline
    package struct FlowState: Sendable {
        var loss: RandomStream
        var duplication: RandomStream
        var reordering: RandomStream
        /// The latest arrival time of its packets, except those that skip the delay.
        fileprivate(set) var lastArrival: Int64 = 0

        package init(seed: UInt64, name: String) {
            loss = RandomStream(seed: seed, "\(name)/loss")
            duplication = RandomStream(seed: seed, "\(name)/duplication")
            reordering = RandomStream(seed: seed, "\(name)/reordering")
        }
    }

    /// Offers a packet. Returns its arrival time, `nil` if the packet is lost or dropped, and the arrival time of its
    /// duplicate, if there is one.
    @usableFromInline
    package mutating func offer(bytes: Int, flow: inout FlowState, at now: Int64) -> (arrival: Int64?, copy: Int64?) {
        packetsOffered += 1
        let isLost =
            conditions.loss == .one || (conditions.loss != .zero && flow.loss.bool(probability: conditions.loss))
        let isLostInBurst = conditions.bursts.map { bursts.losesPacket($0, &flow.loss, at: now) } ?? false
        let isListed = conditions.lostPackets?.contains(packetsOffered) ?? false
        if isLost || isLostInBurst || isListed {
            counters.packetsLost += 1
            return (nil, nil)
        }
        let arrival = enqueue(bytes: bytes, &flow, at: now)
        guard conditions.duplication != .zero, flow.duplication.bool(probability: conditions.duplication) else {
            return (arrival, nil)
        }
        counters.packetsDuplicated += 1
        return (arrival, enqueue(bytes: bytes, &flow, at: now))
    }

    /// Returns the departure time of a packet at the end of the queue.
    private mutating func departure(ofBytes bytes: Int, at now: Int64) -> Int64 {
        let start = max(busyUntil, now)
        if let trace = conditions.trace {
            return max(start, self.trace.send(bytes, on: trace, busyUntil: busyUntil, at: now))
        }
        if let rate = conditions.rate { return start.addingSaturating(rate.serializationTime(ofBytes: bytes).count) }
        return start
    }

    private mutating func enqueue(bytes: Int, _ flow: inout FlowState, at now: Int64) -> Int64? {
        queue.release(at: now)
        if queue.isFull(conditions.queue) {
            counters.packetsDropped += 1
            return nil
        }
        let departure = departure(ofBytes: bytes, at: now)
        busyUntil = departure
        if departure > now {
            queue.append(bytes: bytes, departure: departure)
            counters.queueDepthMax = max(counters.queueDepthMax, queue.count)
        }
        counters.packets += 1
        counters.bytes += bytes
        if conditions.reordering != .zero, flow.reordering.bool(probability: conditions.reordering) { return departure }
        var delay = conditions.delay.count.clamped(to: 0...DirectionConditions.spanMax.count)
        if let jitter = conditions.jitter {
            delay = max(0, delay + jitter.draw(&jitterStream))
            if jitter.mayOvertake {
                flow.lastArrival = max(flow.lastArrival, departure)
                return departure.addingSaturating(delay)
            }
        }
        flow.lastArrival = max(flow.lastArrival, departure.addingSaturating(delay))
        return flow.lastArrival
    }
}
