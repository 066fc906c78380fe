internal import DequeModule
internal import HeapModule

/// One device's radio: two pipes, every connection that shares them, and one heap of what is due.
///
///     open/send/finish/abort  ->  Flow  ->  Pipe up   ->  arrival  ->  FlowEvent
///     (facts, with their time)    Flow  <-  Pipe down <-             (what happened, with its modelled time)
///
/// Every call takes the time; what is due before it has been run by then through ``runNext(until:)``, in order of
/// (time, sequence), each with its own modelled time. A full queue makes the sender wait, and connections that wait
/// take turns packet by packet; at 100 % loss everybody waits until it ends. Nothing is ever dropped from a stream.
public struct Link: Sendable {
    /// What holds for packets that enter now.
    public private(set) var conditions: Conditions
    private var pipes: PerDirection<Pipe>
    private var flows: [Flow] = []
    private var freePlaces: [Int] = []
    private var heap = Heap<Due>()
    private var sequence: UInt64 = 0
    /// Flows that wait for a place in the queue or for the link to heal, first come first.
    private var waiting = PerDirection(up: Deque<FlowID>(), down: Deque<FlowID>())
    /// Entries of ``waiting`` whose flow is no more.
    private var leftWaiting = PerDirection(up: 0, down: 0)
    private var slotIsDue = PerDirection(up: false, down: false)
    private var occurrences = Deque<FlowOccurrence>()

    /// Creates a link on which nothing has happened yet.
    public init(_ conditions: Conditions = .clear) {
        self.conditions = conditions
        pipes = PerDirection(up: Pipe(conditions.up), down: Pipe(conditions.down))
    }

    // MARK: What can be asked

    /// When something is due next.
    public var nextDue: Instant? { heap.min?.time }

    /// How many connections there are.
    public var flowCount: Int { flows.count - freePlaces.count }

    /// What has passed in a direction.
    public func counters(_ direction: Direction) -> PipeCounters { pipes[direction].counters }

    /// Packets in the queue of a direction, the one being sent included.
    public mutating func queueDepth(_ direction: Direction, at now: Instant) -> Int {
        pipes[direction].depth(at: now)
    }

    /// Connections that wait for a place in a direction's queue, or for the link to heal.
    public func waitingCount(_ direction: Direction) -> Int { waiting[direction].count - leftWaiting[direction] }

    /// Whether a connection has not been removed.
    public func contains(_ id: FlowID) -> Bool {
        flows[id.index].isInUse && flows[id.index].generation == id.generation
    }

    /// Whether the server's kernel knows of a connection yet: its SYN has arrived.
    public func hasReachedServer(_ id: FlowID) -> Bool {
        contains(id) && flows[id.index].hasReachedServer
    }

    // MARK: What can happen

    /// Changes the conditions for packets that enter from now on.
    public mutating func setConditions(_ new: Conditions, at now: Instant) {
        conditions = new
        for direction in Direction.allCases {
            pipes[direction].setConditions(new[direction])
            serveWaiting(direction, at: now)
        }
    }

    /// A client opens a connection: its SYN is sent, after the name look-up if that costs time.
    public mutating func open(at now: Instant) -> FlowID {
        let index: Int
        if let place = freePlaces.popLast() {
            index = place
        } else {
            index = flows.count
            flows.append(Flow())
        }
        let generation = flows[index].generation
        flows[index] = Flow(generation: generation, isInUse: true)
        let id = FlowID(index: index, generation: generation)

        if conditions.dnsDelay > .zero {
            schedule(.lookedUp(id), at: now + conditions.dnsDelay)
        } else {
            beginHandshake(id, at: now)
        }
        return id
    }

    /// An end hands `bytes` to its modelled kernel. Returns `true` if they arrive at this very moment, on the
    /// straight path; no event follows then.
    public mutating func send(_ bytes: Int, on id: FlowID, _ direction: Direction, at now: Instant) -> Bool {
        guard contains(id) else { return false }
        precondition(bytes >= 0 && flows[id.index][direction].end == .open, "bytes after the end of a stream")
        if flows[id.index][direction].mayCarryData, flows[id.index][direction].unsent == 0,
            !flows[id.index][direction.opposite].senderIsGone, pipes[direction].isStraight(at: now)
        {
            return true
        }
        flows[id.index][direction].unsent += bytes
        pump(id, direction, at: now)
        return false
    }

    /// An end closes its sending side: FIN after the last byte.
    public mutating func finish(_ id: FlowID, _ direction: Direction, at now: Instant) {
        guard contains(id), flows[id.index][direction].end == .open else { return }
        flows[id.index][direction].end = .finIsDue
        pump(id, direction, at: now)
    }

    /// An end's socket is gone: what it had not sent is forgotten, and a RST goes out. At 100 % loss the RST is lost
    /// for good; whatever arrives for this end later is answered by another. Returns how many bytes were forgotten.
    public mutating func abort(_ id: FlowID, from side: Side, at now: Instant) -> Int {
        guard contains(id) else { return 0 }
        let direction = side.sends
        let forgotten = flows[id.index][direction].unsent
        flows[id.index][direction].discard()
        flows[id.index][direction].senderIsGone = true
        if side == .server && !flows[id.index].hasReachedServer {
            // The port is closed, as far as the client will ever know: the SYN's answer is the RST.
            flows[id.index].isRefused = true
        } else {
            sendReset(id, direction, at: now)
        }
        return forgotten
    }

    /// Forgets a connection; packets of it that are on the link still take their place there.
    public mutating func remove(_ id: FlowID) {
        guard contains(id) else { return }
        for direction in Direction.allCases where flows[id.index][direction].isWaiting {
            leftWaiting[direction] += 1
        }
        flows[id.index].isInUse = false
        flows[id.index].generation &+= 1
        freePlaces.append(id.index)
        // A stalled line is not served, so those who left are taken out here once they are the most of it.
        for direction in Direction.allCases
        where leftWaiting[direction] > Self.leftWaitingMax && leftWaiting[direction] > waiting[direction].count / 2 {
            let flows = flows
            waiting[direction].removeAll { !flows[$0.index].isInUse || flows[$0.index].generation != $0.generation }
            leftWaiting[direction] = 0
        }
    }

    /// So many who left may stand in a line.
    private static let leftWaitingMax = 64

    /// Runs the first thing due at or before `now`; `false` if there is none.
    public mutating func runNext(until now: Instant) -> Bool {
        guard let due = heap.min, due.time <= now else { return false }
        heap.removeMin()
        switch due.what {
        case .lookedUp(let id):
            if contains(id) { beginHandshake(id, at: due.time) }
        case .slot(let direction):
            slotIsDue[direction] = false
            serveWaiting(direction, at: due.time)
        case .arrival(let id, let direction, let packet):
            if contains(id) { arrive(packet, id, direction, at: due.time) }
        }
        return true
    }

    /// Takes the next thing that happened.
    public mutating func takeOccurrence() -> FlowOccurrence? { occurrences.popFirst() }

    // MARK: Inside

    private mutating func beginHandshake(_ id: FlowID, at now: Instant) {
        if pipes.up.isStraight(at: now) && pipes.down.isStraight(at: now) {
            flows[id.index].up.mayCarryData = true
            flows[id.index].down.mayCarryData = true
            flows[id.index].hasReachedServer = true
            if flows[id.index].isRefused { sendReset(id, .down, at: now) }
            pump(id, .up, at: now)
            pump(id, .down, at: now)
            return
        }
        flows[id.index].up.handshake = .syn
        pump(id, .up, at: now)
    }

    /// Sends a RST, which at 100 % loss is lost for good. Not so while the other end has its handshake still open: it
    /// would repeat its packet and be answered again, so the RST waits for the link to heal.
    private mutating func sendReset(_ id: FlowID, _ direction: Direction, at now: Instant) {
        if pipes[direction].isStalled && flows[id.index][direction.opposite].mayCarryData { return }
        flows[id.index][direction].resetIsDue = true
        pump(id, direction, at: now)
    }

    private mutating func arrive(_ packet: Packet, _ id: FlowID, _ direction: Direction, at now: Instant) {
        let reply = direction.opposite
        switch packet {
        case .syn:
            flows[id.index].hasReachedServer = true
            if flows[id.index].isRefused {
                sendReset(id, reply, at: now)
            } else {
                flows[id.index][reply].handshake = .synAck
                pump(id, reply, at: now)
            }
        case .synAck:
            if flows[id.index][reply].senderIsGone {
                sendReset(id, reply, at: now)
                return
            }
            flows[id.index][reply].handshake = .ack
            flows[id.index][reply].mayCarryData = true
            pump(id, reply, at: now)
        case .ack:
            flows[id.index][reply].mayCarryData = true
            pump(id, reply, at: now)
        case .data(let bytes):
            occurrences.append(FlowOccurrence(flow: id, event: .delivered(bytes: bytes, direction), time: now))
            answerIfGone(id, direction, at: now)
        case .fin:
            occurrences.append(FlowOccurrence(flow: id, event: .finished(direction), time: now))
            answerIfGone(id, direction, at: now)
        case .reset:
            occurrences.append(FlowOccurrence(flow: id, event: .reset(direction), time: now))
        }
    }

    /// A segment for a socket that is gone is answered by a RST (RFC 9293, 3.10.7.1).
    private mutating func answerIfGone(_ id: FlowID, _ direction: Direction, at now: Instant) {
        let reply = direction.opposite
        if flows[id.index][reply].senderIsGone && !flows[id.index][reply].resetIsDue {
            sendReset(id, reply, at: now)
        }
    }

    /// Offers what an end has to send until it has nothing more, or has to wait.
    private mutating func pump(_ id: FlowID, _ direction: Direction, at now: Instant) {
        guard !flows[id.index][direction].isWaiting else { return }
        // Those who came first go first.
        let mustQueue = !waiting[direction].isEmpty
        while let packet = flows[id.index][direction].takeNext() {
            if mustQueue || !offer(packet, id, direction, at: now) {
                if mustQueue { flows[id.index][direction].putBack(packet) }
                flows[id.index][direction].isWaiting = true
                waiting[direction].append(id)
                return
            }
        }
    }

    /// Offers a packet to the pipe; puts it back and returns `false` if the sender must wait.
    private mutating func offer(_ packet: Packet, _ id: FlowID, _ direction: Direction, at now: Instant) -> Bool {
        if pipes[direction].isStalled {
            flows[id.index][direction].putBack(packet)
            return false
        }
        switch pipes[direction].offer(bytes: packet.bytes, at: now) {
        case .arrives(let time):
            schedule(.arrival(id, direction, packet), at: time)
            return true
        case .full(let until):
            flows[id.index][direction].putBack(packet)
            if !slotIsDue[direction] {
                slotIsDue[direction] = true
                schedule(.slot(direction), at: until)
            }
            return false
        case .lost:
            return true
        }
    }

    /// Lets those who wait send a packet each, in turn, while the pipe takes them.
    private mutating func serveWaiting(_ direction: Direction, at now: Instant) {
        guard !pipes[direction].isStalled else { return }
        while let id = waiting[direction].popFirst() {
            guard contains(id) else {
                leftWaiting[direction] -= 1
                continue
            }
            flows[id.index][direction].isWaiting = false
            guard let packet = flows[id.index][direction].takeNext() else { continue }
            let isSent = offer(packet, id, direction, at: now)
            flows[id.index][direction].isWaiting = true
            if isSent {
                waiting[direction].append(id)
            } else {
                waiting[direction].prepend(id)
                return
            }
        }
    }

    private mutating func schedule(_ what: Due.What, at time: Instant) {
        heap.insert(Due(time: time, sequence: sequence, what: what))
        sequence += 1
    }
}

/// An entry of the link's heap: ordered by time, then by when it was scheduled.
private struct Due: Comparable, Sendable {
    let time: Instant
    let sequence: UInt64
    let what: What

    enum What: Hashable, Sendable {
        case lookedUp(FlowID)
        case slot(Direction)
        case arrival(FlowID, Direction, Packet)
    }

    static func < (left: Due, right: Due) -> Bool {
        (left.time, left.sequence) < (right.time, right.sequence)
    }
}
