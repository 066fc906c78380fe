public import Determinism

/// One shared link in both directions: conditions, timeline, outages, queues and packets in flight.
///
/// The link counts bytes and does not read payloads, so that different protocols of one device share its queues. The
/// layer above owns the flows and passes the state of a flow with each packet. Times are nanoseconds since the start,
/// within modelled time.
@usableFromInline
package struct PacketLink<Payload: Sendable>: Sendable {
    /// The conditions for packets that enter now, unless a direction has an outage.
    @usableFromInline
    package internal(set) var conditions: Conditions
    /// The timeline that changes the conditions, if there is one.
    @usableFromInline
    package internal(set) var timeline: TimelineRun? {
        didSet {
            let change = timeline?.nextDeadline ?? .never
            timelineDeadline = change > .end ? .max : change.sinceStart.count
        }
    }
    /// The time of the timeline's next change; `.max` if there is none.
    @usableFromInline
    package internal(set) var timelineDeadline = Int64.max
    /// Whether a direction has an outage, in which no packet passes under any conditions.
    package private(set) var hasOutage = PerDirection(up: false, down: false)
    /// The random seed.
    package private(set) var seed: UInt64
    /// The prefix of the names of random streams.
    package let name: String
    @usableFromInline
    var pipes: PerDirection<PacketPipe>
    @usableFromInline
    var packets = PerDirection(up: PacketsInFlight<Payload>(), down: PacketsInFlight<Payload>())
    @usableFromInline
    var sequence: UInt64 = 0

    /// Creates a link without packets.
    ///
    /// - Parameters:
    ///   - seed: The random seed.
    ///   - name: The prefix of the names of random streams: `link/A`.
    package init(_ conditions: Conditions, seed: UInt64, name: String) {
        self.conditions = conditions
        self.seed = seed
        self.name = name
        pipes = PerDirection(
            up: PacketPipe(conditions.up, seed: seed, name: "\(name)/up"),
            down: PacketPipe(conditions.down, seed: seed, name: "\(name)/down"))
    }

    // MARK: State

    /// Whether no packet is in flight.
    @inlinable
    package var isIdle: Bool { packets.up.isEmpty && packets.down.isEmpty }

    /// Returns the counters of a direction.
    package func counters(_ direction: Direction) -> PipeCounters { pipes[direction].counters }

    /// Returns the number of packets in a direction's queue, the one being transmitted included.
    package mutating func queueDepth(_ direction: Direction, at now: Int64) -> Int { pipes[direction].depth(at: now) }

    /// Returns the state of a direction's queue.
    package mutating func queueState(_ direction: Direction, at now: Int64) -> QueueState {
        pipes[direction].queueState(at: now)
    }

    /// Returns whether every packet of a direction is lost.
    package func isBlocked(_ direction: Direction) -> Bool { pipes[direction].conditions.loss == .one }

    /// Returns whether a packet of the flow would arrive at once, unimpaired and with no packet ahead of it.
    @inlinable
    package func passesAtOnce(_ flow: PacketPipe.FlowState, _ direction: Direction, at now: Int64) -> Bool {
        conditions.isClearForConnections && timeline == nil && pipes[direction].passesAtOnce(flow, at: now)
    }

    // MARK: Conditions

    /// Changes the conditions for packets that enter from now on, and ends the timeline. A change of rate empties the
    /// queue.
    package mutating func setConditions(_ new: Conditions) {
        timeline = nil
        apply(new)
    }

    /// Starts a timeline that changes the conditions.
    ///
    /// - Parameter offset: The part of the timeline that has passed already; negative if it starts later.
    package mutating func startTimeline(_ timeline: Timeline, from offset: Nanoseconds, at now: Instant) {
        var run = TimelineRun(
            timeline, startingAt: Instant(now.sinceStart - offset), seed: seed, name: "\(name)/timeline")
        _ = run.advance(to: now)
        self.timeline = run
        apply(run.conditions)
    }

    /// Applies the timeline's changes that are due at ``timelineDeadline``.
    package mutating func advanceTimeline() {
        let now = timelineDeadline
        if timeline?.advance(to: Instant(Nanoseconds(now))) == true, let new = timeline?.conditions {
            apply(new, rampTime: timeline?.isRamping == true ? now : nil)
        }
    }

    /// Starts or ends outages. The conditions and the timeline stay as they are.
    package mutating func setOutage(_ hasOutage: PerDirection<Bool>) {
        self.hasOutage = hasOutage
        apply(conditions)
    }

    /// Switches to another random seed. Flows keep their random streams.
    package mutating func reseed(_ seed: UInt64) {
        self.seed = seed
        for direction in Direction.allCases { pipes[direction].reseed(seed, name: "\(name)/\(direction)") }
    }

    /// - Parameter rampTime: The current time if the change is a step of a ramp.
    private mutating func apply(_ new: Conditions, rampTime: Int64? = nil) {
        conditions = new
        for direction in Direction.allCases {
            var effective = new[direction]
            if hasOutage[direction] { effective.loss = .one }
            pipes[direction].setConditions(effective, rampTime: rampTime)
        }
    }

    // MARK: Packets

    /// Returns the states of a new flow in both directions.
    ///
    /// - Parameter name: The name of the flow in the names of its random streams: `conn/7`.
    package func makeFlow(seed: UInt64, name flowName: String) -> PerDirection<PacketPipe.FlowState> {
        PerDirection(
            up: PacketPipe.FlowState(seed: seed, name: "\(name)/up/\(flowName)"),
            down: PacketPipe.FlowState(seed: seed, name: "\(name)/down/\(flowName)"))
    }

    /// Returns the next sequence number. The numbers order events of the same time; packets and the timers of the layer
    /// above share them.
    @inlinable
    package mutating func takeSequence() -> UInt64 {
        defer { sequence += 1 }
        return sequence
    }

    /// Offers a packet to a direction. Returns its arrival time, or `nil` if the packet is lost or dropped.
    @inlinable
    package mutating func offer(
        _ payload: Payload, bytes: Int, of flow: FlowID, state: inout PacketPipe.FlowState, _ direction: Direction,
        at now: Int64
    ) -> Int64? {
        let (arrival, copy) = pipes[direction].offer(bytes: bytes, flow: &state, at: now)
        if let arrival { schedule(payload, of: flow, direction, arrival: arrival) }
        if let copy { schedule(payload, of: flow, direction, arrival: copy) }
        return arrival
    }

    @inlinable
    mutating func schedule(_ payload: Payload, of flow: FlowID, _ direction: Direction, arrival: Int64) {
        // A packet that would arrive after the end of modelled time is discarded.
        guard arrival <= Instant.endCount else { return }
        packets[direction].append(
            PacketInFlight(arrival: arrival, sequence: takeSequence(), flow: flow, payload: payload))
    }

    /// Offers a packet that the caller carries itself: it uses the queue and the rate, and may be lost. Returns its arrival
    /// time, `nil` if it is lost or dropped, and that of its duplicate, if there is one.
    package mutating func offer(
        bytes: Int, state: inout PacketPipe.FlowState, _ direction: Direction, at now: Int64
    ) -> (arrival: Int64?, copy: Int64?) {
        pipes[direction].offer(bytes: bytes, flow: &state, at: now)
    }

    /// Records a packet that was lost before it was offered.
    @inlinable
    package mutating func recordLoss(_ direction: Direction) { pipes[direction].recordLoss() }

    /// Records a packet that carries bytes sent before.
    @inlinable
    package mutating func recordRetransmission(_ direction: Direction) { pipes[direction].recordRetransmission() }

    /// The arrival time of the next packet, its sequence number and its direction; `.max` if there is none.
    @inlinable
    package var nextArrival: (time: Int64, sequence: UInt64, direction: Direction) {
        let up = (packets.up.nextArrival, packets.up.nextSequence)
        let down = (packets.down.nextArrival, packets.down.nextSequence)
        return down < up ? (down.0, down.1, .down) : (up.0, up.1, .up)
    }

    /// Takes the next packet that arrives in a direction.
    @inlinable
    package mutating func takeArrival(_ direction: Direction) -> PacketInFlight<Payload>? {
        packets[direction].popFirst()
    }
}
