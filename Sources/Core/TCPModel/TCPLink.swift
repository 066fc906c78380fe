internal import DequeModule
public import Determinism
internal import HeapModule
public import LinkModel

/// TCP connections over one shared link, counting bytes: two endpoints per connection, one link for all of them.
///
///     open/send/finish/abort -> client TCPEndpoint -> link up   -> server TCPEndpoint -> TimedFlowEvent
///                               client TCPEndpoint <- link down <- server TCPEndpoint
///
/// Bytes are delayed as TCP delays them: packets are lost, dropped and retransmitted, windows grow and shrink, and the
/// delivered bytes are always the next of the stream. All randomness follows from the seed; each connection has its own
/// random streams (`link/up/conn/7/loss`), so that the losses of one do not shift those of another.
public struct TCPLink: ~Copyable {
    struct Connection {
        var generation: UInt32 = 0
        var isInUse = false
        /// The number of the connection, from 0.
        var number = 0
        /// The ends by the direction in which they send. They have a memory of their own, so that their kilobytes are
        /// accessed in place for each packet. It is released with the link; the next connection in this slot uses it
        /// again.
        let ends: PerDirection<UnsafeMutablePointer<End>>
    }

    /// One end of a connection, and the direction in which it sends.
    struct End {
        var endpoint: TCPEndpoint
        var flow: PacketPipe.FlowState
        /// Losses of this connection alone, in addition to the link's.
        var losses: [CorrelatedLoss] = []
        var scheduled = ScheduledTimers()
        /// The sequence number after the last byte sent.
        var dataSentUpTo: Int64
        /// The sequence number after the last byte sent in a recorded packet; -1 before its SYN is recorded.
        var recordedUpTo: Int64 = -1
    }

    /// The times of an endpoint's two entries in the timer heap; `.max` means none. Timers are moved to a later time
    /// far more often than they fire, so that an entry stays in the heap and is checked when it fires.
    struct ScheduledTimers {
        var main = Int64.max
        var ack = Int64.max
    }

    private struct Timer: Comparable, Sendable {
        let time: Int64
        let sequence: UInt64
        let flow: FlowID
        let side: Side
        /// Whether the entry is for a delayed ACK; otherwise for the other timers.
        let isAck: Bool

        static func < (left: Timer, right: Timer) -> Bool {
            left.time != right.time ? left.time < right.time : left.sequence < right.sequence
        }
    }

    /// A value with an existential is always in memory. The compiler checks noncopyable values that could be in registers
    /// field by field, also the fields of fields, which takes seconds per build.
    private let isInMemory: any Sendable = ()
    var link: PacketLink<Segment>
    private let readsImmediately: Bool
    private let stacks: PerDirection<StackPreset>
    private var timers = Heap<Timer>()
    var connections: [Connection] = []
    /// The sequence number of the first byte of new connections; other than 0 in tests of long streams only.
    var firstByte: Int64 = 0
    private var freeSlots: [Int] = []
    private var connectionsOpened = 0
    private var events = Deque<TimedFlowEvent>()
    var recordsPackets: Bool
    var records = Deque<PacketRecord>()
    /// The datagrams without a session, since the first one.
    var datagrams: DatagramFlow?

    /// The coarsest tick of the modelled timers: 512 jiffies of 4 ms.
    private static let clockPhaseMax = Nanoseconds.milliseconds(2048)

    /// Creates a link without connections.
    ///
    /// - Parameters:
    ///   - seed: The random seed.
    ///   - name: The prefix of the names of random streams: `link/A`.
    ///   - client: The TCP parameters of the clients' kernels.
    ///   - server: The TCP parameters of the servers' kernels.
    ///   - readsImmediately: Whether applications read data as soon as it arrives. Otherwise ``read(_:on:_:at:)`` must
    ///     be called, and the receive window closes if it is not.
    ///   - recordsPackets: Whether ``takeRecord()`` returns every packet; no bytes bypass the model then.
    public init(
        _ conditions: Conditions, seed: UInt64, name: String = "link", client: StackPreset = .linux,
        server: StackPreset = .linux, readsImmediately: Bool = true, recordsPackets: Bool = false
    ) {
        link = PacketLink(conditions, seed: seed, name: name)
        self.readsImmediately = readsImmediately
        self.recordsPackets = recordsPackets
        stacks = PerDirection(up: client.bounded, down: server.bounded)
    }

    deinit {
        for connection in connections {
            for direction in Direction.allCases {
                connection.ends[direction].deinitialize(count: 1)
                connection.ends[direction].deallocate()
            }
        }
    }

    // MARK: State

    /// The conditions for packets that enter now, unless a direction has an outage.
    public var conditions: Conditions { link.conditions }

    /// The timeline that changes the conditions, if there is one.
    public var timeline: TimelineRun? { link.timeline }

    /// Whether a direction has an outage, in which no packet passes under any conditions.
    public var hasOutage: PerDirection<Bool> { link.hasOutage }

    /// The time of the next event; `nil` if no event is due.
    public var nextDeadline: Instant? {
        let time = min(min(timers.min?.time ?? .max, link.nextArrival.time), link.timelineDeadline)
        return time == .max ? nil : Instant(Nanoseconds(time))
    }

    /// Returns the packet counters of a direction.
    public func counters(_ direction: Direction) -> PipeCounters { link.counters(direction) }

    /// The number of connections.
    public var connectionCount: Int { connections.count - freeSlots.count }

    /// Whether no packet is in flight.
    public var isIdle: Bool { link.isIdle }

    /// Returns whether a connection exists.
    public func contains(_ id: FlowID) -> Bool {
        connections[id.index].isInUse && connections[id.index].generation == id.generation
    }

    /// Returns the connection in the slot `index`, if there is one.
    public func connection(at index: Int) -> FlowID? {
        guard connections.indices.contains(index), connections[index].isInUse else { return nil }
        return FlowID(index: index, generation: connections[index].generation)
    }

    /// Returns the number of packets in a direction's queue, the one being transmitted included.
    public mutating func queueDepth(_ direction: Direction, at now: Instant) -> Int {
        link.queueDepth(direction, at: now.bounded)
    }

    /// Returns the state of a direction's queue.
    public mutating func queueState(_ direction: Direction, at now: Instant) -> QueueState {
        link.queueState(direction, at: now.bounded)
    }

    /// Returns the smoothed round trip of an end's sender; `nil` before the first sample.
    public func smoothedRoundTrip(_ id: FlowID, _ side: Side) -> Nanoseconds? {
        guard contains(id) else { return nil }
        let srtt = end(id, side.sendDirection).pointee.endpoint.sender.estimator.srtt
        return srtt > 0 ? Nanoseconds(srtt) : nil
    }

    /// Returns whether the SYN has reached the server.
    public func hasReachedServer(_ id: FlowID) -> Bool {
        contains(id) && connections[id.index].ends.down.pointee.endpoint.state != .closed
    }

    /// Returns whether bytes may bypass the model, because the model would deliver them at once and no earlier bytes
    /// are outstanding.
    public func canBypassModel(_ id: FlowID, _ direction: Direction, at now: Instant) -> Bool {
        guard !recordsPackets, contains(id),
            link.passesAtOnce(end(id, direction).pointee.flow, direction, at: now.bounded)
        else { return false }
        let sender = end(id, direction)
        return sender.pointee.losses.isEmpty && sender.pointee.endpoint.state == .established
            && end(id, direction.opposite).pointee.endpoint.state == .established
            && sender.pointee.endpoint.sender.bytesHeld == 0
    }

    /// Returns the bytes that an end has written and never sent.
    public func bytesUnsent(_ id: FlowID, _ direction: Direction) -> Int {
        guard contains(id) else { return 0 }
        return Int(end(id, direction).pointee.endpoint.sender.bytesUnsent)
    }

    /// The state of an end's sender, as in the kernel's `TCP_INFO`.
    public struct Info: Hashable, Sendable {
        /// The congestion window in segments.
        public let congestionWindow: Int
        /// The slow-start threshold in segments; `nil` before the first loss.
        public let slowStartThreshold: Int?
        /// The smoothed round trip.
        public let roundTrip: Nanoseconds
        /// The retransmission timeout.
        public let retransmissionTimeout: Nanoseconds
        /// The segments sent and not acknowledged.
        public let segmentsOutstanding: Int
    }

    /// Returns the state of an end's sender.
    public func info(_ id: FlowID, _ side: Side) -> Info? {
        guard contains(id) else { return nil }
        let sender = end(id, side.sendDirection).pointee.endpoint.sender
        return Info(
            congestionWindow: Int(sender.cubic.cwnd),
            slowStartThreshold: sender.cubic.ssthresh == Cubic.infiniteSsthresh ? nil : Int(sender.cubic.ssthresh),
            roundTrip: Nanoseconds(sender.estimator.srtt), retransmissionTimeout: Nanoseconds(sender.estimator.rto),
            segmentsOutstanding: sender.outstanding.count)
    }

    /// Returns the number of a connection, from 0, since the start or the last ``reseed(_:)``.
    public func number(of id: FlowID) -> Int { contains(id) ? connections[id.index].number : 0 }

    /// Returns the free bytes of an end's send buffer; ``FlowEvent/writable(_:)`` reports space after a full buffer.
    public func sendBufferSpace(_ id: FlowID, _ direction: Direction) -> Int {
        guard contains(id) else { return 0 }
        return Int(max(0, end(id, direction).pointee.endpoint.sendBufferSpace))
    }

    // MARK: Conditions

    /// Changes the conditions for packets that enter from now on, and ends the timeline. A change of rate empties the
    /// queue: connections do not wait for packets sent before.
    public mutating func setConditions(_ new: Conditions) { link.setConditions(new) }

    /// Starts a timeline that changes the conditions.
    ///
    /// - Parameter offset: The part of the timeline that has passed already; negative if it starts later.
    public mutating func startTimeline(_ timeline: Timeline, from offset: Nanoseconds = .zero, at now: Instant) {
        link.startTimeline(timeline, from: offset, at: Instant(Nanoseconds(now.bounded)))
    }

    /// Starts or ends an outage of each direction. The conditions and the timeline stay as they are.
    public mutating func setOutage(_ hasOutage: PerDirection<Bool>) { link.setOutage(hasOutage) }

    /// Switches to another random seed and numbers connections from 0 again. Open connections keep their random
    /// streams.
    public mutating func reseed(_ seed: UInt64) {
        link.reseed(seed)
        connectionsOpened = 0
        datagrams = nil
    }

    /// Sets the losses of a connection's data segments in one direction, in addition to the link's.
    public mutating func setLosses(_ losses: [CorrelatedLoss], on id: FlowID, _ direction: Direction) {
        guard contains(id) else { return }
        end(id, direction).pointee.losses = losses
    }

    // MARK: Connections

    /// Opens a connection.
    ///
    /// - Parameters:
    ///   - seed: The number and the seed of the connection's random streams; by default the next ones of this link.
    ///   - isEstablished: Whether the connection is established at once, without a handshake over the link.
    ///   - looksUpName: Whether a lookup of the server's name, with the delay of the conditions, precedes the handshake.
    public mutating func open(
        at now: Instant, seed connectionSeed: ConnectionSeed? = nil, isEstablished: Bool = false,
        looksUpName: Bool = true
    ) -> FlowID {
        let number = connectionSeed?.number ?? connectionsOpened
        let seed = connectionSeed?.seed ?? link.seed
        if connectionSeed == nil { connectionsOpened += 1 }
        // The phase of the kernels' clocks when a connection opens is arbitrary.
        var clock = RandomStream(seed: seed, "\(link.name)/conn/\(number)/clock")
        let clockPhase = Nanoseconds(clock.integer(below: Self.clockPhaseMax.count))
        let flows = link.makeFlow(seed: seed, name: "conn/\(number)")
        func end(_ side: Side) -> End {
            End(
                endpoint: TCPEndpoint(
                    side, stacks[side.sendDirection], clockPhase: clockPhase, readsImmediately: readsImmediately,
                    first: firstByte),
                flow: flows[side.sendDirection], dataSentUpTo: firstByte)
        }
        let index: Int
        if let slot = freeSlots.popLast() {
            index = slot
            for side in Side.allCases { connections[slot].ends[side.sendDirection].pointee = end(side) }
        } else {
            index = connections.count
            connections.append(
                Connection(ends: PerDirection(up: .allocate(capacity: 1), down: .allocate(capacity: 1))))
            for side in Side.allCases { connections[index].ends[side.sendDirection].initialize(to: end(side)) }
        }
        connections[index].isInUse = true
        connections[index].number = number
        let id = FlowID(index: index, generation: connections[index].generation)
        if isEstablished {
            establishAtOnce(id, at: now.bounded)
        } else {
            let lookup = looksUpName ? min(link.conditions.dnsDelay, DirectionConditions.spanMax).count : 0
            perform(id, .client, at: now) { $0.open(after: lookup, at: $1) }
        }
        return id
    }

    /// Passes SYN, SYN-ACK and ACK from end to end without the link.
    private mutating func establishAtOnce(_ id: FlowID, at now: Int64) {
        end(id, .up).pointee.endpoint.open(after: 0, at: now)
        for direction in [Direction.up, .down, .up] {
            for segment in end(id, direction).pointee.endpoint.outbox {
                _ = end(id, direction.opposite).pointee.endpoint.receive(segment, at: now)
            }
            end(id, direction).pointee.endpoint.outbox.removeEach()
        }
    }

    /// Records that the receiving application of `direction` has read `bytes`.
    public mutating func read(_ bytes: Int, on id: FlowID, _ direction: Direction, at now: Instant) {
        guard contains(id), bytes > 0, !readsImmediately else { return }
        perform(id, direction.receiver, at: now) { $0.read(Int64(bytes), at: $1) }
    }

    /// Writes `bytes` to the send buffer, which also accepts bytes beyond ``sendBufferSpace(_:_:)``. Bytes after
    /// ``finish(_:_:at:)`` are ignored.
    public mutating func send(_ bytes: Int, on id: FlowID, _ direction: Direction, at now: Instant) {
        guard contains(id), bytes > 0 else { return }
        perform(id, direction.sender, at: now) { $0.write(Int64(bytes), at: $1) }
    }

    /// Closes an end's sending side: a FIN follows the last byte.
    public mutating func finish(_ id: FlowID, _ direction: Direction, at now: Instant) {
        guard contains(id) else { return }
        perform(id, direction.sender, at: now) { $0.finish(at: $1) }
    }

    /// Aborts a connection at one end: a RST is sent, now and in response to segments that arrive later.
    ///
    /// - Parameter afterSending: Whether all written data is sent first, within the windows. The RST does not wait for
    ///   acknowledgments, so losses are not repaired.
    public mutating func abort(_ id: FlowID, from side: Side, afterSending: Bool = false, at now: Instant) {
        guard contains(id) else { return }
        perform(id, side, at: now) { $0.abort(afterSending: afterSending, at: $1) }
    }

    /// Removes a connection. Its packets on the link still occupy the queue.
    public mutating func remove(_ id: FlowID) {
        guard contains(id) else { return }
        connections[id.index].isInUse = false
        connections[id.index].generation &+= 1
        freeSlots.append(id.index)
    }

    // MARK: Time

    /// Runs the first event due at or before `now`. Returns `false` if there is none; call it until then, and take the
    /// flow events after each call.
    public mutating func advance(to now: Instant) -> Bool {
        let limit = now.bounded
        let timer = timers.min
        let timerTime = timer?.time ?? .max
        let arrival = link.nextArrival
        if link.timelineDeadline <= limit, link.timelineDeadline <= timerTime, link.timelineDeadline <= arrival.time {
            link.advanceTimeline()
            return true
        }
        if let timer, timerTime <= limit, (timerTime, timer.sequence) < (arrival.time, arrival.sequence) {
            timers.removeMin()
            if contains(timer.flow) { fire(timer) }
            return true
        }
        guard arrival.time <= limit, let packet = link.takeArrival(arrival.direction) else { return false }
        if contains(packet.flow) { receive(packet, arrival.direction) }
        return true
    }

    /// Takes the next flow event.
    public mutating func takeEvent() -> TimedFlowEvent? { events.popFirst() }

    // MARK: Private

    @inline(__always)
    func end(_ id: FlowID, _ direction: Direction) -> UnsafeMutablePointer<End> {
        connections[id.index].ends[direction]
    }

    private mutating func receive(_ packet: PacketInFlight<Segment>, _ direction: Direction) {
        let id = packet.flow
        let now = packet.arrival
        let side = direction.receiver
        let receiver = end(id, side.sendDirection)
        let result = receiver.pointee.endpoint.receive(packet.payload, at: now)
        precondition(
            receiver.pointee.endpoint.receiver.rcvNxt <= end(id, direction).pointee.dataSentUpTo,
            "bytes were delivered that were never sent")
        transmit(id, side, at: now)
        let time = Instant(Nanoseconds(now))
        if result.isEstablished {
            events.append(TimedFlowEvent(flow: id, event: .established(side), time: time))
        }
        if result.bytes > 0 {
            events.append(
                TimedFlowEvent(flow: id, event: .delivered(bytes: Int(result.bytes), direction), time: time))
        }
        if result.isWritable {
            events.append(TimedFlowEvent(flow: id, event: .writable(side.sendDirection), time: time))
        }
        if result.isFinal { events.append(TimedFlowEvent(flow: id, event: .finished(direction), time: time)) }
        if result.isReset { events.append(TimedFlowEvent(flow: id, event: .reset(direction), time: time)) }
    }

    private mutating func fire(_ timer: Timer) {
        let id = timer.flow
        let direction = timer.side.sendDirection
        let end = end(id, direction)
        // An entry that an earlier one has replaced is ignored.
        if timer.isAck {
            guard end.pointee.scheduled.ack == timer.time else { return }
            end.pointee.scheduled.ack = .max
        } else {
            guard end.pointee.scheduled.main == timer.time else { return }
            end.pointee.scheduled.main = .max
        }
        if end.pointee.endpoint.nextDeadline <= timer.time { end.pointee.endpoint.fireTimers(at: timer.time) }
        transmit(id, timer.side, at: timer.time)
    }

    private mutating func perform(
        _ id: FlowID, _ side: Side, at now: Instant, _ action: (inout TCPEndpoint, Int64) -> Void
    ) {
        let now = now.bounded
        action(&end(id, side.sendDirection).pointee.endpoint, now)
        transmit(id, side, at: now)
    }

    /// Offers an endpoint's segments to the link and schedules its timers.
    private mutating func transmit(_ id: FlowID, _ side: Side, at now: Int64) {
        let direction = side.sendDirection
        let end = end(id, direction)
        let mainDeadline = min(end.pointee.endpoint.senderDeadline, end.pointee.endpoint.handshakeDeadline)
        let ackDeadline = end.pointee.endpoint.ackDeadline
        for position in 0..<end.pointee.endpoint.outbox.count {
            offer(end.pointee.endpoint.outbox[position], of: id, end, direction, at: now)
        }
        end.pointee.endpoint.outbox.removeEach()
        // A timer after the end of modelled time never fires.
        if mainDeadline <= Instant.endCount && mainDeadline < end.pointee.scheduled.main {
            end.pointee.scheduled.main = mainDeadline
            timers.insert(
                Timer(time: mainDeadline, sequence: link.takeSequence(), flow: id, side: side, isAck: false))
        }
        if ackDeadline <= Instant.endCount && ackDeadline < end.pointee.scheduled.ack {
            end.pointee.scheduled.ack = ackDeadline
            timers.insert(Timer(time: ackDeadline, sequence: link.takeSequence(), flow: id, side: side, isAck: true))
        }
    }

    @inline(__always)
    private mutating func offer(
        _ segment: Segment, of id: FlowID, _ end: UnsafeMutablePointer<End>, _ direction: Direction, at now: Int64
    ) {
        if segment.kind == .data {
            if !segment.isWindowProbe {
                if segment.start < end.pointee.dataSentUpTo {
                    link.recordRetransmission(direction)
                } else {
                    end.pointee.dataSentUpTo = segment.end
                }
            }
            if !end.pointee.losses.isEmpty, Self.loseNext(&end.pointee.losses) {
                link.recordLoss(direction)
                if recordsPackets { record(segment, id, direction, arrival: nil, isLost: true, at: now) }
                return
            }
        }
        let lostBefore = recordsPackets ? link.counters(direction).packetsLost : 0
        let arrival = link.offer(
            segment, bytes: segment.packetBytes, of: id, state: &end.pointee.flow, direction, at: now)
        if recordsPackets {
            let isLost = link.counters(direction).packetsLost > lostBefore
            record(segment, id, direction, arrival: arrival, isLost: isLost, at: now)
        }
    }

    /// Returns whether one of the loss processes loses the next segment. Each process advances with every segment.
    private static func loseNext(_ losses: inout [CorrelatedLoss]) -> Bool {
        var isLost = false
        for position in losses.indices where losses[position].losesNext() { isLost = true }
        return isLost
    }
}
