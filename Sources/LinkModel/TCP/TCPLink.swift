internal import DequeModule
internal import HeapModule

/// TCP over one shared link, in counts: two kernels a connection, two pipes for all of them.
///
///     open/send/finish/abort -> TCPEnd client -> pipe up   -> TCPEnd server -> FlowOccurrence
///                               TCPEnd client <- pipe down <- TCPEnd server
///
/// Bytes are late the way TCP makes them late: packets are lost or dropped and come again, windows grow and fall, and
/// what is delivered is always the next of the stream. Everything follows from the seed; each connection has its own
/// coins (`link/up/conn/7/loss`), so what one loses does not shift what another does.
public struct TCPLink: ~Copyable {
    /// An end is some kilobytes that every packet touches: it stays where it is. The link is the only one to hold it, and
    /// cannot be copied.
    private final class EndBox {
        var end: TCPEnd

        init(_ end: TCPEnd) { self.end = end }

        @inline(__always)
        func withEnd<Result>(_ body: (inout TCPEnd) -> Result) -> Result { body(&end) }
    }

    private struct Connection {
        var generation: UInt32 = 0
        var isInUse = false
        var ends: PerDirection<EndBox>
        /// Its share of each pipe: chance and order.
        var flows: PerDirection<PacketPipe.FlowState>
        /// What it alone loses, beside what the link does.
        var losses = PerDirection(up: [CorrelatedLoss](), down: [CorrelatedLoss]())
        /// When each end's entries in the heap are due.
        var queued = PerDirection(up: Queued(), down: Queued())
        /// How many connections there had been before it.
        var number = 0
        /// The byte after the last that each end has sent.
        var dataSentUpTo = PerDirection(up: Int64(0), down: Int64(0))
        /// The same with its SYN; kept for records only. -1 is before the SYN.
        var sentUpTo = PerDirection(up: Int64(-1), down: Int64(-1))
    }

    /// When an end's two entries in the heap are due; `.max` if it has none. Timers are moved later far more often than
    /// they fire, so an entry stays where it is and finds out when it is due that it is not.
    private struct Queued {
        var timer = Int64.max
        var ack = Int64.max
    }

    private struct Flight: Comparable, Sendable {
        let arrival: Int64
        let sequence: UInt64
        let flow: FlowID
        let segment: Segment

        static func < (left: Flight, right: Flight) -> Bool {
            left.arrival != right.arrival ? left.arrival < right.arrival : left.sequence < right.sequence
        }

        static func == (left: Flight, right: Flight) -> Bool { left.sequence == right.sequence }
    }

    /// The packets on their way in one direction.
    private struct Flights: Sendable {
        /// Those that arrive in the order in which they were sent.
        private var inOrder = Deque<Flight>()
        /// Those that overtake.
        private var strays = Heap<Flight>()

        var isEmpty: Bool { nextArrival == .max }

        /// Whether the next to arrive is a stray.
        private var isStrayNext: Bool {
            guard let stray = strays.min else { return false }
            return inOrder.first.map { stray < $0 } ?? true
        }

        /// When the next arrives, and its number; `.max` if there is none. Kept, since it is asked for far more often
        /// than it changes, and a flight is large.
        private(set) var nextArrival = Int64.max
        private(set) var nextSequence = UInt64.max

        private mutating func noteNext() {
            if !strays.isEmpty, isStrayNext, let flight = strays.min {
                (nextArrival, nextSequence) = (flight.arrival, flight.sequence)
            } else if !inOrder.isEmpty {
                (nextArrival, nextSequence) = (inOrder[0].arrival, inOrder[0].sequence)
            } else {
                (nextArrival, nextSequence) = (.max, .max)
            }
        }

        mutating func append(_ flight: Flight) {
            if !inOrder.isEmpty, flight.arrival < inOrder[inOrder.count - 1].arrival {
                strays.insert(flight)
                noteNext()
            } else {
                inOrder.append(flight)
                if nextArrival == .max { noteNext() }
            }
        }

        mutating func popFirst() -> Flight? {
            defer { noteNext() }
            if strays.isEmpty { return inOrder.popFirst() }
            return isStrayNext ? strays.removeMin() : inOrder.popFirst()
        }
    }

    private struct Alarm: Comparable, Sendable {
        let time: Int64
        let sequence: UInt64
        let flow: FlowID
        let side: Side
        /// For a delayed ACK; otherwise for the other timers.
        let isAck: Bool

        static func < (left: Alarm, right: Alarm) -> Bool {
            left.time != right.time ? left.time < right.time : left.sequence < right.sequence
        }
    }

    /// What holds for packets that enter now, unless a direction is cut.
    public private(set) var conditions: Conditions
    /// What the conditions follow, if they change by themselves.
    public private(set) var timeline: TimelineRun? {
        didSet {
            let change = timeline?.nextChange ?? .never
            nextChange = change > .end ? .max : change.sinceStart.count
        }
    }
    private var nextChange = Int64.max
    /// Directions in which everything is lost, whatever the conditions say.
    public private(set) var isCut = PerDirection(up: false, down: false)
    private var seed: UInt64
    private let name: String
    private let readsAtOnce: Bool
    private let stacks: PerDirection<StackPreset>
    private var pipes: PerDirection<PacketPipe>
    private var flights = PerDirection(up: Flights(), down: Flights())
    private var alarms = Heap<Alarm>()
    private var connections: [Connection] = []
    /// Where the streams of connections begin that are opened from now on; 0 but for tests of long ones.
    var firstByte: Int64 = 0
    private var freePlaces: [Int] = []
    private var opened = 0
    private var sequence: UInt64 = 0
    private var occurrences = Deque<FlowOccurrence>()
    /// Whether every packet is written down; then none goes past the model.
    private var isRecording: Bool
    private var records = Deque<PacketRecord>()

    /// The coarsest tick of the timers that are modelled: 512 jiffies of 4 ms.
    private static let clockPhaseMax = Nanoseconds.milliseconds(2048)

    /// Creates a link on which nothing has happened yet.
    ///
    /// - Parameters:
    ///   - seed: Where all chance comes from.
    ///   - name: What its streams of chance are called: `link/A`.
    ///   - client: How the clients' kernels behave.
    ///   - server: How the servers' do.
    ///   - readsAtOnce: Whether applications read what comes the moment it comes. Otherwise ``read(_:on:_:at:)`` has
    ///     to be called, and the window closes before those that do not read.
    ///   - isRecording: Whether ``takeRecord()`` gives every packet; then none goes past the model.
    public init(
        _ conditions: Conditions, seed: UInt64, name: String = "link", client: StackPreset = .linux,
        server: StackPreset = .linux, readsAtOnce: Bool = true, isRecording: Bool = false
    ) {
        self.conditions = conditions
        self.seed = seed
        self.name = name
        self.readsAtOnce = readsAtOnce
        self.isRecording = isRecording
        stacks = PerDirection(up: client.bounded, down: server.bounded)
        pipes = PerDirection(
            up: PacketPipe(conditions.up, seed: seed, name: "\(name)/up"),
            down: PacketPipe(conditions.down, seed: seed, name: "\(name)/down"))
    }

    // MARK: What can be asked

    /// When something is due next.
    public var nextDue: Instant? {
        let packets = min(flights.up.nextArrival, flights.down.nextArrival)
        let time = min(min(alarms.min?.time ?? .max, packets), nextChange)
        return time == .max ? nil : Instant(Nanoseconds(time))
    }

    /// What has passed in a direction.
    public func counters(_ direction: Direction) -> PipeCounters { pipes[direction].counters }

    /// How many connections there are.
    public var connectionCount: Int { connections.count - freePlaces.count }

    /// Whether no packet is on its way.
    public var isQuiet: Bool { flights.up.isEmpty && flights.down.isEmpty }

    /// Whether a connection has not been removed.
    public func contains(_ id: FlowID) -> Bool {
        connections[id.index].isInUse && connections[id.index].generation == id.generation
    }

    /// The connection whose place is `index`, if there is one.
    public func connection(at index: Int) -> FlowID? {
        guard connections.indices.contains(index), connections[index].isInUse else { return nil }
        return FlowID(index: index, generation: connections[index].generation)
    }

    /// Packets in a direction's queue, the one being sent included.
    public mutating func queueDepth(_ direction: Direction, at now: Instant) -> Int {
        pipes[direction].depth(at: now.bounded)
    }

    /// Whether the server's kernel knows of a connection yet: its SYN has arrived.
    public func hasReachedServer(_ id: FlowID) -> Bool {
        contains(id) && connections[id.index].ends.down.end.phase != .closed
    }

    /// Whether bytes may go past the model: it would give them out in the moment in which they come in, and has nothing
    /// before them.
    public func isStraight(_ id: FlowID, _ direction: Direction, at now: Instant) -> Bool {
        guard conditions.isClear, timeline == nil, !isRecording, contains(id),
            pipes[direction].isStraight(connections[id.index].flows[direction], at: now.bounded)
        else { return false }
        let ends = connections[id.index].ends
        let sender = ends[direction].end
        return connections[id.index].losses[direction].isEmpty && sender.phase == .established
            && ends[direction.opposite].end.phase == .established
            && sender.sender.bytesHeld == 0
    }

    /// Bytes that an end has taken and never put on the link.
    public func bytesUnsent(_ id: FlowID, _ direction: Direction) -> Int {
        guard contains(id) else { return 0 }
        return Int(connections[id.index].ends[direction].end.sender.bytesUnsent)
    }

    /// What a kernel would say of an end's sending side (`TCP_INFO`).
    public struct Info: Hashable, Sendable {
        /// The congestion window in segments.
        public let window: Int
        /// The slow-start threshold in segments; `nil` before the first.
        public let threshold: Int?
        /// The smoothed round trip.
        public let roundTrip: Nanoseconds
        /// The retransmission time-out.
        public let timeout: Nanoseconds
        /// Segments sent and not acknowledged.
        public let outstanding: Int
    }

    /// Where an end's sending side stands.
    public func info(_ id: FlowID, _ side: Side) -> Info? {
        guard contains(id) else { return nil }
        let sender = connections[id.index].ends[side.sends].end.sender
        return Info(
            window: Int(sender.cubic.window),
            threshold: sender.cubic.threshold == Cubic.noThreshold ? nil : Int(sender.cubic.threshold),
            roundTrip: Nanoseconds(sender.estimator.smoothed), timeout: Nanoseconds(sender.estimator.timeout),
            outstanding: sender.outstanding.count)
    }

    // MARK: What can happen

    /// Changes the conditions for packets that enter from now on; a timeline is followed no longer. Another rate comes with an
    /// empty queue: connections do not wait for what others sent before.
    public mutating func setConditions(_ new: Conditions) {
        timeline = nil
        put(new)
    }

    /// Lets a timeline change the conditions from now on.
    ///
    /// - Parameter offset: How much of the timeline has passed already.
    public mutating func follow(_ timeline: Timeline, from offset: Nanoseconds = .zero, at now: Instant) {
        let now = Instant(Nanoseconds(now.bounded))
        var run = TimelineRun(
            timeline, startingAt: Instant(now.sinceStart - offset), seed: seed, name: "\(name)/timeline")
        _ = run.advance(to: now)
        self.timeline = run
        put(run.current)
    }

    /// Loses everything in a direction from now on, or no longer; the conditions and their timeline stay as they are.
    public mutating func setCut(_ isCut: PerDirection<Bool>) {
        self.isCut = isCut
        put(conditions)
    }

    /// Draws from another seed from now on, as if nothing had been drawn yet: the next connection is number 0 again. Connections
    /// that are open keep their chance.
    public mutating func reseed(_ seed: UInt64) {
        self.seed = seed
        opened = 0
        for direction in Direction.allCases {
            pipes[direction].reseed(seed, name: "\(name)/\(direction)")
        }
    }

    /// Loses packets with bytes of one connection's direction, beside those that the link loses anyway.
    public mutating func setLosses(_ losses: [CorrelatedLoss], on id: FlowID, _ direction: Direction) {
        guard contains(id) else { return }
        connections[id.index].losses[direction] = losses
    }

    /// How many connections there had been before this one, since the start or since the last ``reseed(_:)``.
    public func number(of id: FlowID) -> Int { contains(id) ? connections[id.index].number : 0 }

    /// - Parameter rampTime: When, if they come out of the old ones by a ramp.
    private mutating func put(_ new: Conditions, rampTime: Int64? = nil) {
        conditions = new
        for direction in Direction.allCases {
            var inForce = new[direction]
            if isCut[direction] { inForce.loss = .all }
            pipes[direction].setConditions(inForce, rampTime: rampTime)
        }
    }

    /// A client opens a connection.
    ///
    /// - Parameters:
    ///   - chance: The number and the seed that its chance goes by, if they are not the next ones of this link.
    ///   - isEstablished: Whether its handshake has been done elsewhere, in no time.
    public mutating func open(
        at now: Instant, chance: ConnectionChance? = nil, isEstablished: Bool = false
    ) -> FlowID {
        let number = chance?.number ?? opened
        let seed = chance?.seed ?? seed
        if chance == nil { opened += 1 }
        // Where in its ticks the kernel's clock is when a connection begins is nobody's doing.
        var clock = RandomStream(seed: seed, "\(name)/conn/\(number)/clock")
        let clockPhase = Nanoseconds(clock.below(Self.clockPhaseMax.count))
        var connection = Connection(
            isInUse: true,
            ends: PerDirection(
                up: EndBox(
                    TCPEnd(.client, stacks.up, clockPhase: clockPhase, readsAtOnce: readsAtOnce, first: firstByte)),
                down: EndBox(
                    TCPEnd(.server, stacks.down, clockPhase: clockPhase, readsAtOnce: readsAtOnce, first: firstByte))),
            flows: PerDirection(
                up: PacketPipe.FlowState(seed: seed, name: "\(name)/up/conn/\(number)"),
                down: PacketPipe.FlowState(seed: seed, name: "\(name)/down/conn/\(number)")),
            number: number, dataSentUpTo: PerDirection(up: firstByte, down: firstByte))
        let index: Int
        if let place = freePlaces.popLast() {
            index = place
            connection.generation = connections[place].generation
            connections[place] = connection
        } else {
            index = connections.count
            connections.append(connection)
        }
        let id = FlowID(index: index, generation: connection.generation)
        if isEstablished {
            shakeHands(id, at: now.bounded)
        } else {
            let lookUp = min(conditions.dnsDelay, DirectionConditions.spanMax).count
            act(id, .client, at: now) { $0.open(after: lookUp, at: $1) }
        }
        return id
    }

    /// SYN, SYN-ACK and ACK go from end to end, past the pipes.
    private mutating func shakeHands(_ id: FlowID, at now: Int64) {
        let ends = connections[id.index].ends
        ends.up.withEnd { $0.open(after: 0, at: now) }
        for direction in [Direction.up, .down, .up] {
            var segments: [Segment] = []
            ends[direction].withEnd { swap(&segments, &$0.outbox) }
            for segment in segments { _ = ends[direction.opposite].withEnd { $0.receive(segment, at: now) } }
        }
    }

    /// How many more bytes an end's kernel takes; ``FlowEvent/room(_:)`` tells when there is room again.
    public func sendRoom(_ id: FlowID, _ direction: Direction) -> Int {
        guard contains(id) else { return 0 }
        return Int(max(0, connections[id.index].ends[direction].end.sendRoom))
    }

    /// The application at the far end of `direction` takes `bytes` of what was delivered to it.
    public mutating func read(_ bytes: Int, on id: FlowID, _ direction: Direction, at now: Instant) {
        guard contains(id), bytes > 0, !readsAtOnce else { return }
        act(id, direction.receiver, at: now) { $0.read(Int64(bytes), at: $1) }
    }

    /// An end hands `bytes` to its kernel, which keeps those that ``sendRoom(_:_:)`` has no room for too.
    public mutating func send(_ bytes: Int, on id: FlowID, _ direction: Direction, at now: Instant) {
        guard contains(id), bytes > 0 else { return }
        act(id, direction.sender, at: now) { $0.write(Int64(bytes), at: $1) }
    }

    /// An end closes its sending side: FIN after the last byte.
    public mutating func finish(_ id: FlowID, _ direction: Direction, at now: Instant) {
        guard contains(id) else { return }
        act(id, direction.sender, at: now) { $0.finish(at: $1) }
    }

    /// An end's socket is gone: a RST goes out, and answers whatever arrives later.
    ///
    /// - Parameter afterSending: Whether everything handed over is sent first, as far as the windows allow. What is lost
    ///   then is lost: the RST does not wait for acknowledgements.
    public mutating func abort(_ id: FlowID, from side: Side, afterSending: Bool = false, at now: Instant) {
        guard contains(id) else { return }
        act(id, side, at: now) { $0.abort(afterSending: afterSending, at: $1) }
    }

    /// Forgets a connection; packets of it that are on the link still take their place there.
    public mutating func remove(_ id: FlowID) {
        guard contains(id) else { return }
        connections[id.index].isInUse = false
        connections[id.index].generation &+= 1
        freePlaces.append(id.index)
    }

    /// Runs the first thing due at or before `now`; `false` if there is none.
    public mutating func runNext(until now: Instant) -> Bool {
        let limit = now.bounded
        var time = limit
        var order = UInt64.max
        var direction: Direction?
        var isAlarm = false
        if nextChange <= limit, let due = nextDue, due.sinceStart.count == nextChange {
            if timeline?.advance(to: due) == true, let current = timeline?.current {
                put(current, rampTime: timeline?.isRamping == true ? due.sinceStart.count : nil)
            }
            return true
        }
        if flights.up.nextArrival <= time {
            (time, order, direction) = (flights.up.nextArrival, flights.up.nextSequence, .up)
        }
        let down = (arrival: flights.down.nextArrival, sequence: flights.down.nextSequence)
        if (down.arrival, down.sequence) < (time, order) || (direction == nil && down.arrival <= time) {
            (time, order, direction) = (down.arrival, down.sequence, .down)
        }
        if let first = alarms.min,
            first.time < time || (first.time == time && (first.sequence < order || direction == nil))
        {
            isAlarm = true
        }
        if isAlarm {
            let alarm = alarms.removeMin()
            if contains(alarm.flow) { ring(alarm) }
            return true
        }
        guard let direction, let flight = flights[direction].popFirst() else { return false }
        if contains(flight.flow) { arrive(flight, direction) }
        return true
    }

    /// Starts or stops recording packets; ``takeRecord()`` still returns packets recorded before.
    public mutating func setRecording(_ isRecording: Bool) {
        self.isRecording = isRecording
        if !isRecording { return }
        for index in connections.indices where connections[index].isInUse {
            for direction in Direction.allCases {
                // Before the handshake the first recorded packet counts as the first one.
                switch connections[index].ends[direction].end.phase {
                case .closed, .synSent: break
                case .synReceived, .established, .reset:
                    connections[index].sentUpTo[direction] = connections[index].dataSentUpTo[direction]
                }
            }
        }
    }

    /// Takes the record of the next packet that was offered.
    public mutating func takeRecord() -> PacketRecord? { records.popFirst() }

    /// Takes the next thing that happened.
    public mutating func takeOccurrence() -> FlowOccurrence? { occurrences.popFirst() }

    // MARK: Inside

    private mutating func arrive(_ flight: Flight, _ direction: Direction) {
        let id = flight.flow
        let now = flight.arrival
        let side = direction.receiver
        let box = connections[id.index].ends[side.sends]
        let delivery = box.withEnd { $0.receive(flight.segment, at: now) }
        settle(id, side, at: now)
        let time = Instant(Nanoseconds(now))
        if delivery.isEstablished {
            occurrences.append(FlowOccurrence(flow: id, event: .established(side), time: time))
        }
        if delivery.bytes > 0 {
            occurrences.append(
                FlowOccurrence(flow: id, event: .delivered(bytes: Int(delivery.bytes), direction), time: time))
        }
        if delivery.hasRoom { occurrences.append(FlowOccurrence(flow: id, event: .room(side.sends), time: time)) }
        if delivery.isFinal { occurrences.append(FlowOccurrence(flow: id, event: .finished(direction), time: time)) }
        if delivery.isReset { occurrences.append(FlowOccurrence(flow: id, event: .reset(direction), time: time)) }
    }

    private mutating func ring(_ alarm: Alarm) {
        let id = alarm.flow
        let sends = alarm.side.sends
        // One that a nearer one has replaced says nothing.
        if alarm.isAck {
            guard connections[id.index].queued[sends].ack == alarm.time else { return }
            connections[id.index].queued[sends].ack = .max
        } else {
            guard connections[id.index].queued[sends].timer == alarm.time else { return }
            connections[id.index].queued[sends].timer = .max
        }
        let box = connections[id.index].ends[sends]
        if box.end.nextDeadline <= alarm.time { box.end.runTimers(at: alarm.time) }
        settle(id, alarm.side, at: alarm.time)
    }

    private mutating func act(_ id: FlowID, _ side: Side, at now: Instant, _ body: (inout TCPEnd, Int64) -> Void) {
        let now = now.bounded
        body(&connections[id.index].ends[side.sends].end, now)
        settle(id, side, at: now)
    }

    /// Puts on the link what an end wants to send, and sets its alarm.
    private mutating func settle(_ id: FlowID, _ side: Side, at now: Int64) {
        let direction = side.sends
        let index = id.index
        let box = connections[index].ends[direction]
        var outbox: [Segment] = []
        let (timer, ack) = box.withEnd { end in
            // Taken out and given back, so that the array is neither copied nor made anew.
            swap(&outbox, &end.outbox)
            return (min(end.senderDeadline, end.handshakeDeadline), end.ackDeadline)
        }
        if !outbox.isEmpty {
            for segment in outbox {
                if segment.kind == .data && !segment.isProbe {
                    if segment.start < connections[index].dataSentUpTo[direction] {
                        pipes[direction].noteRetransmission()
                    } else {
                        connections[index].dataSentUpTo[direction] = segment.end
                    }
                }
                if segment.kind == .data, losesAlone(id, direction) {
                    pipes[direction].noteLoss()
                    if isRecording { record(segment, id, direction, arrival: nil, isLost: true, at: now) }
                    continue
                }
                let lostBefore = isRecording ? pipes[direction].counters.packetsLost : 0
                let (arrival, copy) = pipes[direction].offer(
                    bytes: segment.packetBytes, flow: &connections[index].flows[direction], at: now)
                if isRecording {
                    let isLost = pipes[direction].counters.packetsLost > lostBefore
                    record(segment, id, direction, arrival: arrival, isLost: isLost, at: now)
                }
                if let arrival { fly(segment, of: id, direction, arrival: arrival) }
                if let copy { fly(segment, of: id, direction, arrival: copy) }
            }
            outbox.removeAll(keepingCapacity: true)
        }
        box.withEnd { swap(&outbox, &$0.outbox) }
        // What is due after the end of time is due never.
        let end = Instant.end.sinceStart.count
        if timer <= end && timer < connections[index].queued[direction].timer {
            connections[index].queued[direction].timer = timer
            alarms.insert(Alarm(time: timer, sequence: sequence, flow: id, side: side, isAck: false))
            sequence += 1
        }
        if ack <= end && ack < connections[index].queued[direction].ack {
            connections[index].queued[direction].ack = ack
            alarms.insert(Alarm(time: ack, sequence: sequence, flow: id, side: side, isAck: true))
            sequence += 1
        }
    }

    /// Whether one of the connection's own losses takes the next packet; each of them sees every packet.
    private mutating func losesAlone(_ id: FlowID, _ direction: Direction) -> Bool {
        guard !connections[id.index].losses[direction].isEmpty else { return false }
        var isLost = false
        for place in connections[id.index].losses[direction].indices {
            if connections[id.index].losses[direction][place].losesNext() { isLost = true }
        }
        return isLost
    }

    private mutating func record(
        _ segment: Segment, _ id: FlowID, _ direction: Direction, arrival: Int64?, isLost: Bool, at now: Int64
    ) {
        let sentUpTo = connections[id.index].sentUpTo[direction]
        let next = max(0, sentUpTo)
        let isHandshake = segment.kind == .syn || segment.kind == .synAck
        let range =
            switch segment.kind {
            case .data where !segment.isProbe: segment.start..<segment.end
            case .data, .ack, .reset: next..<next
            case .syn, .synAck: Int64(0)..<0
            }
        connections[id.index].sentUpTo[direction] = max(next, range.upperBound)
        let fate: PacketRecord.Fate =
            if arrival != nil {
                .arrives
            } else if isLost {
                pipes[direction].conditions.loss == .all ? .cut : .lost
            } else {
                .dropped
            }
        let kind: PacketRecord.Kind =
            switch segment.kind {
            case .syn: .syn
            case .synAck: .synAck
            case .data: .data
            case .ack: .ack
            case .reset: .reset
            }
        records.append(
            PacketRecord(
                flow: id, number: connections[id.index].number, direction: direction,
                time: Instant(Nanoseconds(now)),
                arrival: arrival.map { Instant(Nanoseconds($0)) } ?? Instant(Nanoseconds(now))
                    + conditions[direction].delay,
                kind: kind,
                fate: fate, range: range, isFinal: segment.isFinal,
                isPushed: segment.isPushed, isProbe: segment.isProbe, isFirst: sentUpTo < 0,
                isRetransmission: isHandshake ? sentUpTo >= 0 : range.lowerBound < next,
                acknowledges: kind == .reset
                    ? connections[id.index].ends[direction].end.reassembly.next : segment.acknowledges,
                received: (0..<segment.sacks.count).map { segment.sacks.range($0, from: segment.acknowledges) },
                saysDuplicate: segment.saysDuplicate, window: segment.window,
                timestamp: Instant(Nanoseconds(segment.timestamp)), echo: Instant(Nanoseconds(segment.echo)),
                bytes: segment.packetBytes))
    }

    private mutating func fly(_ segment: Segment, of id: FlowID, _ direction: Direction, arrival: Int64) {
        // After the end of time nothing arrives.
        guard arrival <= Instant.end.sinceStart.count else { return }
        flights[direction].append(Flight(arrival: arrival, sequence: sequence, flow: id, segment: segment))
        sequence += 1
    }
}
