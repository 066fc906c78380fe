internal import DequeModule
internal import HeapModule
public import LinkModel
public import NIOCore
public import TCPModel

/// Every conduit of one device, and the link they share: the machine that a driver feeds and obeys.
///
/// A driver (the live proxy's link loop, or a simulated world) reports facts with ``receive(_:on:at:)``, calls
/// ``advance(to:)`` at ``nextDue``, and carries out what ``takeAction()`` hands it, in order. On every call
/// everything due runs first, each thing at its own modelled time, so that a late driver changes nothing but the
/// lateness.
public struct SharedLink: ~Copyable {
    /// An action with the connection it belongs to and the time it has in the model.
    public struct Order: Sendable {
        /// The connection.
        public let flow: FlowID
        /// What to do.
        public let action: Action
        /// When it was due. A driver may be late; this is what it is measured against.
        public let time: Instant
    }

    /// Something that became true of an exchange, with its connection and the time it has in the model.
    public struct ExchangeReport: Sendable {
        /// The connection.
        public let flow: FlowID
        /// What became true.
        public let event: ExchangeEvent
        /// When, in the model.
        public let time: Instant
    }

    /// A packet that was offered to the link, with its bytes as far as they are still held.
    public struct PacketReport: Sendable {
        /// The packet.
        public let record: PacketRecord
        /// Its payload; `nil` if it has none, or if what it repeats has been handed on.
        public let payload: ByteBuffer?
        /// Why it is there, if a fault made it.
        public let cause: String?
    }

    private var link: TCPLink
    private let isRecording: Bool
    private var packets = Deque<PacketReport>()
    private let limits: BufferLimits
    private let orphanLimits: OrphanLimits
    /// Connections of which one socket is gone and the other has not heard of it, the oldest first.
    private var orphans = Deque<(flow: FlowID, until: Instant)>()
    private let watch: ExchangeWatch?
    private var plan: FaultPlan
    private var nextExchange = 0
    private var reports = Deque<ExchangeReport>()
    /// By the flow's index.
    private var conduits: [Conduit?] = []
    private var orders = Deque<Order>()
    private var scratch: [Action] = []
    /// What captive portals say to what has just been handed to them.
    private var portalInputs = Deque<(flow: FlowID, input: Input)>()
    /// What the connections that are there were made under.
    private var access: ConnectionPolicy
    /// What is done to every connection's bytes before they enter, in the order in which it was added.
    public private(set) var toxics: [Toxic]
    /// How often toxics of a name have been added: each has its own chance.
    private var editions: [String: Int] = [:]
    /// The last `timeout` toxics that were removed, for connections that come later from where they were meanwhile.
    private var removedTimeouts = Deque<RemovedTimeout>()
    private static let removedTimeoutsMax = 64
    private var toxicAlarms = Heap<ToxicAlarm>()
    private var alarmCount: UInt64 = 0
    private var seed: UInt64
    private let name: String

    /// A `timeout` toxic that was removed, with what its chance went by.
    private struct RemovedTimeout {
        let toxic: Toxic
        let edition: Int
        let seed: UInt64
        let time: Instant
    }

    /// When a connection's toxics are to be asked again.
    private struct ToxicAlarm: Comparable {
        let time: Instant
        let sequence: UInt64
        let flow: FlowID
        let direction: Direction

        static func < (left: ToxicAlarm, right: ToxicAlarm) -> Bool {
            (left.time, left.sequence) < (right.time, right.sequence)
        }
    }
    /// How far the link has come; time never goes back.
    public private(set) var now = Instant.start
    /// The latest time the driver has reported; ahead of ``now`` only while ``isBehind``.
    private var target = Instant.start
    /// The most events that one call runs: packets, timers, pieces of toxics. A driver that shares its thread sets it, and calls
    /// ``advance(to:)`` again while ``isBehind``.
    public var eventsPerCallMax = Int.max
    /// Whether something that is due has not run, because a call has run ``eventsPerCallMax`` events.
    public private(set) var isBehind = false
    /// Connections that are to be aborted.
    private var aborts = Deque<FlowID>()
    /// What aborting a connection costs, in events.
    private static let abortCost = 8
    /// Pieces that toxics have passed on since it was last read: they count as events.
    private var toxicPieces = 0
    /// The most pieces that one connection's toxics pass on before other events have their turn.
    private static let toxicPiecesMax = 256

    /// Payload bytes that have been read from a socket, in each direction, since the link was made.
    public private(set) var bytesRead = PerDirection(up: 0, down: 0)
    /// How often a sender was told to wait, in each direction.
    public private(set) var stalls = PerDirection(up: 0, down: 0)
    /// Payload bytes that have reached a socket, in each direction, since the link was made.
    public private(set) var bytesCarried = PerDirection(up: 0, down: 0)
    /// Bytes held in the conduits.
    public private(set) var bytesHeld = 0
    /// Those of them that wait before toxics.
    private var toxicBytesHeld = 0

    /// Creates a link without connections.
    ///
    /// - Parameters:
    ///   - seed: Where all chance comes from.
    ///   - name: What its streams of chance are called.
    ///   - client: How the clients' kernels behave.
    ///   - server: How the server's does.
    ///   - toxics: What is done to every connection's bytes before they enter.
    ///   - watch: How exchanges are followed; without it bytes are only bytes.
    ///   - isRecording: Whether ``takePacket()`` gives every packet of the link.
    public init(
        _ conditions: Conditions = .clear, seed: UInt64 = 1, name: String = "link", client: StackPreset = .linux,
        server: StackPreset = .linux, limits: BufferLimits = BufferLimits(),
        orphanLimits: OrphanLimits = OrphanLimits(), toxics: [Toxic] = [], watch: ExchangeWatch? = nil,
        isRecording: Bool = false
    ) {
        link = TCPLink(
            conditions, seed: seed, name: name, client: client, server: server, readsImmediately: false,
            recordsPackets: isRecording)
        self.isRecording = isRecording
        self.seed = seed
        self.name = name
        self.toxics = toxics
        self.limits = limits
        self.orphanLimits = orphanLimits
        self.watch = watch
        plan = FaultPlan(watch?.rules ?? [])
        access = conditions.connectionPolicy
    }

    // MARK: What can be asked

    /// What holds for packets that enter now.
    public var conditions: Conditions { link.conditions }

    /// When ``advance(to:)`` must be called next.
    public var nextDue: Instant? {
        let own = min(orphans.first?.until ?? .never, toxicAlarms.min?.time ?? .never)
        if own == .never { return link.nextDeadline }
        return link.nextDeadline.map { min($0, own) } ?? own
    }

    /// How many connections there are.
    public var connectionCount: Int { link.connectionCount }

    /// Connections of which one socket is gone and the other has not heard of it.
    public var orphanCount: Int { orphans.count { holds($0.flow) } }

    /// Whether nothing is on its way that could arrive: no byte, no FIN; what a dead direction holds does not count.
    public var isQuiet: Bool {
        for direction in Direction.allCases where !isDead(direction) {
            for conduit in conduits {
                guard let conduit, !conduit.isGone(direction.receiver) else { continue }
                let lane = conduit[direction]
                let awaitsEnd = lane.inputIsClosed && !lane.isFinished && !conduit.isMuted
                if lane.toxics?.holdsSomething == true { return false }
                if lane.bytes.count > 0 || (awaitsEnd && !conduit.isGone(direction.sender)) { return false }
            }
        }
        return true
    }

    /// What has passed the modelled link in a direction.
    public func counters(_ direction: Direction) -> PipeCounters { link.counters(direction) }

    /// Packets in a direction's queue.
    public mutating func queueDepth(_ direction: Direction) -> Int { link.queueDepth(direction, at: now) }

    /// What the conditions follow, if they change by themselves.
    public var timeline: TimelineRun? { link.timeline }

    /// Bytes a connection holds in a direction.
    public func bytesHeld(_ id: FlowID, _ direction: Direction) -> Int {
        guard holds(id), let conduit = conduits[id.index] else { return 0 }
        return conduit[direction].bytes.count + (conduit[direction].toxics?.count ?? 0)
    }

    /// How many connections there had been before this one since the start, or since the last reseeding.
    public func number(of id: FlowID) -> Int { link.number(of: id) }

    // MARK: What can happen

    /// Runs everything due up to `time`, each thing at its own time; ``eventsPerCallMax`` bounds how much of it.
    public mutating func advance(to time: Instant) {
        target = max(target, min(time, .end))
        var eventsLeft = eventsPerCallMax
        toxicPieces = 0
        let hasRun = advance(to: target, &eventsLeft)
        isBehind = !hasRun || !aborts.isEmpty
    }

    /// Gives whether everything due has run.
    private mutating func advance(to time: Instant, _ eventsLeft: inout Int) -> Bool {
        guard runAborts(&eventsLeft) else { return false }
        while true {
            let alarm = toxicAlarms.min
            let own = min(alarm?.time ?? .never, orphans.first?.until ?? .never)
            // What the link does before may call for something that is due earlier than what is known now.
            let mayWake = !toxics.isEmpty || alarm != nil
            let next = mayWake ? min(own, max(now, link.nextDeadline ?? .never)) : own
            guard next <= time else { return run(to: time, &eventsLeft) }
            guard run(to: next, &eventsLeft), eventsLeft > 0 else { return false }
            if own > next { continue }
            eventsLeft -= 1
            if let alarm = toxicAlarms.min, alarm.time <= next {
                toxicAlarms.removeMin()
                if holds(alarm.flow), conduits[alarm.flow.index]?[alarm.direction].toxics?.alarm == alarm.time {
                    conduits[alarm.flow.index]?[alarm.direction].toxics?.alarm = nil
                    runToxics(alarm.flow, alarm.direction)
                }
            } else if let orphan = orphans.first, orphan.until <= next {
                abandon(orphan.flow)
            }
            countToxicPieces(&eventsLeft)
        }
    }

    private mutating func countToxicPieces(_ eventsLeft: inout Int) {
        eventsLeft -= min(eventsLeft, toxicPieces)
        toxicPieces = 0
    }

    /// Runs the link's packets and timers up to `time`; gives whether all of them have run.
    private mutating func run(to time: Instant, _ eventsLeft: inout Int) -> Bool {
        repeat {
            notePackets()
            while eventsLeft > 0, link.advance(to: time) {
                eventsLeft -= 1
                // Before what has arrived leaves the conduit.
                notePackets()
                while let occurrence = link.takeEvent() {
                    now = max(now, occurrence.time)
                    react(to: occurrence)
                }
                if link.conditions.connectionPolicy != access { accessChanges() }
            }
            while let (id, input) = portalInputs.popFirst() { take(input, on: id) }
            countToxicPieces(&eventsLeft)
            if eventsLeft == 0, let due = link.nextDeadline, due <= time {
                now = max(now, due)
                return false
            }
        } while link.nextDeadline.map { $0 <= time } == true
        now = max(now, time)
        return true
    }

    /// What was made under other conditions does not go on.
    private mutating func accessChanges() {
        access = link.conditions.connectionPolicy
        abortAll()
    }

    /// Aborts every connection that is there now; ``eventsPerCallMax`` bounds how many at once.
    private mutating func abortAll() {
        for index in conduits.indices where conduits[index] != nil {
            if let id = link.connection(at: index) { aborts.append(id) }
        }
        var eventsLeft = eventsPerCallMax
        if !runAborts(&eventsLeft) { isBehind = true }
    }

    /// Aborts connections that are to be aborted; gives whether none is left.
    private mutating func runAborts(_ eventsLeft: inout Int) -> Bool {
        while eventsLeft > 0, let id = aborts.popFirst() {
            eventsLeft -= min(eventsLeft, Self.abortCost)
            if holds(id) { abandon(id) }
        }
        return aborts.isEmpty
    }

    /// Changes the conditions for packets that enter from `time` on.
    public mutating func setConditions(_ new: Conditions, at time: Instant) {
        advance(to: time)
        link.setConditions(new)
        if new.connectionPolicy != access { accessChanges() }
    }

    /// Cuts every connection with a RST to both sockets, at once.
    public mutating func reset(at time: Instant) {
        advance(to: time)
        abortAll()
    }

    /// Lets a timeline change the conditions from `time` on, as if `offset` of it had passed already.
    public mutating func follow(_ timeline: Timeline, from offset: Nanoseconds = .zero, at time: Instant) {
        advance(to: time)
        link.follow(timeline, from: offset, at: now)
        if link.conditions.connectionPolicy != access { accessChanges() }
    }

    /// Loses everything in a direction from `time` on, or no longer, whatever the conditions say meanwhile.
    public mutating func setCut(_ isCut: PerDirection<Bool>, at time: Instant) {
        advance(to: time)
        link.setOutage(isCut)
    }

    /// Whether nothing gets through in a direction.
    public func isDead(_ direction: Direction) -> Bool {
        link.hasOutage[direction] || link.conditions[direction].loss == .one
    }

    /// How a client that wants to connect is treated.
    public var reachability: Reachability {
        if link.conditions.connectionPolicy.refusesConnections { return .refused }
        return isDead(.up) || isDead(.down) ? .silent : .open
    }

    /// Whether a connection wants a socket to the upstream, and does not have something else in its place.
    public func wantsUpstream(_ id: FlowID) -> Bool { holds(id) && conduits[id.index]?.portal == nil }

    /// Whether nothing is in force, and nobody watches: a connection may go past the link without anybody noticing.
    public var isTransparent: Bool {
        link.conditions.isClear && access == .open && link.timeline == nil && !isDead(.up) && !isDead(.down)
            && toxics.isEmpty && watch == nil && !isRecording
    }

    /// A client has connected.
    ///
    /// - Parameters:
    ///   - chance: The number and the seed that its chance goes by, if they are not the next ones of this link.
    ///   - isEstablished: Whether it was there before, and has gone past the link; it is cut where nobody would be let in.
    ///   - beginning: When it began, if it was there before. A `timeout` toxic that has been removed since then closes it, as
    ///     if it had been on the link all the time.
    public mutating func open(
        at time: Instant, chance: ConnectionSeed? = nil, isEstablished: Bool = false, beginning: Instant? = nil
    ) -> FlowID {
        advance(to: time)
        let id = link.open(at: now, seed: chance, isEstablished: isEstablished)
        while conduits.count <= id.index { conduits.append(nil) }
        conduits[id.index] = Conduit()
        if watch != nil { conduits[id.index]?.tracker = ExchangeTracker() }
        for toxic in toxics { apply(toxic, to: id) }
        let held = isEstablished ? heldByRemovedTimeout(id, since: beginning ?? time) : nil
        conduits[id.index]?.closesWhenConnected = held
        // Some wait from now on, whatever comes.
        if !toxics.isEmpty { for direction in Direction.allCases { runToxics(id, direction) } }
        switch access {
        case .open: break
        case .portal where isEstablished: abandon(id)
        case .portal:
            conduits[id.index]?.portal = CaptivePortal()
            conduits[id.index]?.up.isConnected = true
        // It was let in where nobody could be refused, or the moment before.
        case .refuse, .dns: abandon(id)
        }
        advance(to: now)
        return id
    }

    /// Takes a fact about a connection. Facts about one that is over are ignored.
    public mutating func receive(_ input: Input, on id: FlowID, at time: Instant) {
        advance(to: time)
        take(input, on: id)
        advance(to: now)
    }

    private mutating func take(_ input: Input, on id: FlowID) {
        guard holds(id) else { return }
        switch input {
        case .connected:
            // Too late: the other side has been told that there is nobody.
            if conduits[id.index]?.isGone(.server) == true { return order(.reset(.server), id) }
            conduits[id.index]?.up.isConnected = true
            if let direction = conduits[id.index]?.closesWhenConnected { return closeBoth(id, direction) }
            deliver(id, .up)
        case .drained(let side):
            let direction = side.opposite.sendDirection
            conduits[id.index]?[direction].handedOver = 0
            conduits[id.index]?[direction].awaitsDrain = false
            deliver(id, direction)
        case .bytes(let buffer, from: let side):
            bytesRead[side.sendDirection] += buffer.readableBytes
            if conduits[id.index]?.isClosing == true { return }
            if conduits[id.index]?[side.sendDirection].toxics == nil { return enter(buffer, id, side.sendDirection) }
            conduits[id.index]?[side.sendDirection].toxics?.take(buffer.compact, at: now)
            runToxics(id, side.sendDirection)
        case .inputClosed(let side):
            guard conduits[id.index]?[side.sendDirection].inputIsClosed == false else { return }
            if conduits[id.index]?[side.sendDirection].toxics == nil { return closeInput(side, id) }
            conduits[id.index]?[side.sendDirection].toxics?.finish(.finished)
            runToxics(id, side.sendDirection)
        case .gone(.server) where conduits[id.index]?.isMuted == true:
            conduits[id.index]?.markGone(.server)
            endIfOver(id)
        case .gone(let side) where conduits[id.index]?.isClosedByUs(side) == true:
            // Nobody else needs to hear of it: the other side's own end is on its way.
            conduits[id.index]?.noteGone(side)
            endIfOver(id)
        case .gone(let side):
            guard conduits[id.index]?[side.sendDirection].toxics?.holdsSomething == true else { return lose(side, id) }
            // What it had sent before comes first.
            if conduits[id.index]?.isGone(side) == true { return }
            conduits[id.index]?.noteGone(side)
            conduits[id.index]?[side.sendDirection].toxics?.finish(.gone)
            adopt(id)
            if holds(id) { runToxics(id, side.sendDirection) }
            if holds(id) { deliver(id, side.opposite.sendDirection) }
        }
    }

    /// Bytes come to the link.
    private mutating func enter(_ buffer: ByteBuffer, _ id: FlowID, _ direction: Direction) {
        if let passing = tap(buffer, id, direction) { take(passing, id, direction) }
    }

    /// Whether ``takeAction()`` has something.
    public var hasActions: Bool { !orders.isEmpty }

    /// Takes the next thing to be done.
    public mutating func takeAction() -> Order? { orders.popFirst() }

    /// Takes the next packet that was offered to the link, if they are recorded.
    public mutating func takePacket() -> PacketReport? { packets.popFirst() }

    /// Takes the next thing that became true of an exchange.
    public mutating func takeReport() -> ExchangeReport? { reports.popFirst() }

    // MARK: Toxics

    /// Adds a toxic, nearest the link, to the connections there are and those to come. Its name must be new.
    public mutating func add(_ toxic: Toxic, at time: Instant) {
        advance(to: time)
        toxics.append(toxic)
        editions[toxic.name, default: 0] += 1
        forEachConnection { link, id in
            link.apply(toxic, to: id)
            link.runToxics(id, toxic.stream)
        }
        advance(to: now)
    }

    /// Gives the toxic of that name other settings; its stream stays as it is.
    public mutating func update(_ toxic: Toxic, at time: Instant) {
        guard let place = toxics.firstIndex(where: { $0.name == toxic.name }) else { return }
        advance(to: time)
        toxics[place] = toxic
        let now = now
        forEachConnection { link, id in
            link.conduits[id.index]?[toxic.stream].toxics?.update(toxic, at: now)
            link.setLosses(id, toxic.stream)
            link.runToxics(id, toxic.stream)
        }
        advance(to: now)
    }

    /// Takes a toxic away: what waits before it goes on at once, and connections from which a `timeout` swallowed bytes are
    /// closed.
    public mutating func removeToxic(_ name: String, at time: Instant) {
        guard let place = toxics.firstIndex(where: { $0.name == name }) else { return }
        advance(to: time)
        let toxic = toxics.remove(at: place)
        let stream = toxic.stream
        let now = now
        if case .timeout = toxic.effect {
            if removedTimeouts.count == Self.removedTimeoutsMax { removedTimeouts.removeFirst() }
            removedTimeouts.append(
                RemovedTimeout(toxic: toxic, edition: editions[name] ?? 0, seed: seed, time: now))
        }
        forEachConnection { link, id in
            let mustClose = link.conduits[id.index]?[stream].toxics?.remove(name, at: now) == true
            link.setLosses(id, stream)
            link.runToxics(id, stream)
            if link.conduits[id.index]?[stream].toxics?.isEmpty == true {
                link.conduits[id.index]?[stream].toxics = nil
                if let isFull = link.conduits[id.index]?[stream].isFull { link.setPaused(isFull, id, stream) }
            }
            if mustClose && link.holds(id) { link.closeBoth(id, stream) }
        }
        advance(to: now)
    }

    /// Draws all chance from another seed from now on; the next connection is the first of its numbers.
    public mutating func reseed(_ seed: UInt64, at time: Instant) {
        advance(to: time)
        self.seed = seed
        editions = [:]
        link.reseed(seed)
    }

    /// The connections there are.
    public var connections: [FlowID] {
        conduits.indices.compactMap { conduits[$0] == nil ? nil : link.connection(at: $0) }
    }

    /// Ends one connection: both sockets are closed with a RST, or after what has arrived with a FIN.
    public mutating func cut(_ id: FlowID, byReset: Bool, at time: Instant) {
        advance(to: time)
        guard holds(id) else { return }
        if byReset {
            abandon(id)
        } else {
            dropToxics(id, .up)
            dropToxics(id, .down)
            closeBoth(id, .up)
        }
        advance(to: now)
    }

    private mutating func forEachConnection(_ body: (inout SharedLink, FlowID) -> Void) {
        for index in conduits.indices where conduits[index] != nil {
            if let id = link.connection(at: index) { body(&self, id) }
        }
    }

    private mutating func apply(_ toxic: Toxic, to id: FlowID) {
        let coins = coins(of: toxic, edition: editions[toxic.name] ?? 0, seed: seed, for: id)
        if conduits[id.index]?[toxic.stream].toxics == nil { conduits[id.index]?[toxic.stream].toxics = ToxicChain() }
        conduits[id.index]?[toxic.stream].toxics?.add(toxic, coins: coins, at: now)
        setLosses(id, toxic.stream)
    }

    /// The chance of a toxic for one connection.
    private func coins(of toxic: Toxic, edition: Int, seed: UInt64, for id: FlowID) -> RandomStream {
        RandomStream(
            seed: seed, "\(name)/toxic/\(toxic.name)/\(edition)/\(toxic.stream)/conn/\(link.number(of: id))")
    }

    /// The direction in which a `timeout` toxic would have held a connection that began at `beginning`, if one has been removed
    /// since.
    private func heldByRemovedTimeout(_ id: FlowID, since beginning: Instant) -> Direction? {
        removedTimeouts.first { removed in
            var coins = coins(of: removed.toxic, edition: removed.edition, seed: removed.seed, for: id)
            return removed.time >= beginning && coins.bool(probability: removed.toxic.toxicity)
        }?.toxic.stream
    }

    private mutating func setLosses(_ id: FlowID, _ direction: Direction) {
        link.setLosses(conduits[id.index]?[direction].toxics?.losses ?? [], on: id, direction)
    }

    private mutating func dropToxics(_ id: FlowID, _ direction: Direction) {
        guard conduits[id.index]?[direction].toxics != nil else { return }
        conduits[id.index]?[direction].toxics = nil
        countToxicBytes(id, direction)
    }

    private mutating func countToxicBytes(_ id: FlowID, _ direction: Direction) {
        let more = conduits[id.index]?[direction].countToxicBytes() ?? 0
        bytesHeld += more
        toxicBytesHeld += more
    }

    /// Lets a direction's toxics pass on what they will now, and has them asked again when they want to be.
    private mutating func runToxics(_ id: FlowID, _ direction: Direction) {
        var piecesLeft = Self.toxicPiecesMax
        while holds(id), piecesLeft > 0 || conduits[id.index]?[direction].toxics?.hasReleased == true,
            let hasRoom = conduits[id.index].map({ !$0[direction].isFull }),
            let output = conduits[id.index]?[direction].toxics?.next(at: now, hasRoom: hasRoom)
        {
            piecesLeft = max(0, piecesLeft - 1)
            switch output {
            case .bytes(let bytes, let isAlone):
                enter(bytes, id, direction)
                if isAlone && holds(id) { order(.flush(direction.receiver), id) }
            // The socket may have gone since its FIN.
            case .end(.finished) where conduits[id.index]?.isGone(direction.sender) == true: lose(direction.sender, id)
            case .end(.finished): closeInput(direction.sender, id)
            case .end(.gone): lose(direction.sender, id)
            case .end(.closed): closeBoth(id, direction)
            case .reset:
                order(.reset(direction.sender), id)
                lose(direction.sender, id, dropsUnsent: true)
            }
        }
        toxicPieces += Self.toxicPiecesMax - piecesLeft
        guard holds(id) else { return }
        countToxicBytes(id, direction)
        guard let state = conduits[id.index]?[direction].toxicState else { return }
        let share = toxicShare
        setPaused(state.isFull || state.held >= share, id, direction)
        // The rest comes after what else is due now.
        let nextDue = piecesLeft == 0 ? now : state.due
        guard let due = nextDue, state.alarm.map({ due < $0 }) ?? true else { return }
        conduits[id.index]?[direction].toxics?.alarm = due
        alarmCount += 1
        if toxicAlarms.count > 64 + 4 * link.connectionCount { forgetOldAlarms() }
        toxicAlarms.insert(ToxicAlarm(time: due, sequence: alarmCount, flow: id, direction: direction))
    }

    /// What may wait before the toxics of a direction: its share, and no more than the others leave of the whole.
    private var toxicShare: Int {
        let left = limits.toxicBytesMaxTotal - toxicBytesHeld
        return min(
            limits.toxicBytesMax(connections: link.connectionCount), max(limits.bytesMinPerDirection, left))
    }

    /// Alarms of toxics that are kept, those of connections that are over among them.
    var alarmsKept: Int { toxicAlarms.count }

    /// Keeps those alarms only that will say something: others are of connections that are over, or were replaced.
    private mutating func forgetOldAlarms() {
        toxicAlarms = Heap(
            toxicAlarms.unordered.filter {
                holds($0.flow) && conduits[$0.flow.index]?[$0.direction].toxics?.alarm == $0.time
            })
    }

    /// A toxic of `direction` closes both sockets: what has entered the link arrives, then a FIN; nothing is read any more. What
    /// waits before the other direction's toxics still goes its way.
    private mutating func closeBoth(_ id: FlowID, _ direction: Direction) {
        guard conduits[id.index]?.isClosing == false else { return }
        conduits[id.index]?.isClosing = true
        dropToxics(id, direction)
        if conduits[id.index]?[direction].inputIsClosed == false { closeInput(direction.sender, id) }
        guard holds(id) else { return }
        if conduits[id.index]?[direction.opposite].toxics == nil {
            if conduits[id.index]?[direction.opposite].inputIsClosed == false { closeInput(direction.receiver, id) }
        } else {
            conduits[id.index]?[direction.opposite].toxics?.finish(.finished)
            runToxics(id, direction.opposite)
        }
        if holds(id), conduits[id.index]?.up.isConnected == false {
            // Nobody is there to be told.
            conduits[id.index]?.markGone(.server)
            endIfOver(id)
        }
    }

    // MARK: Inside

    private mutating func notePackets() {
        guard isRecording else { return }
        while let record = link.takeRecord() {
            var payload: ByteBuffer?
            if record.payloadBytes > 0, holds(record.flow), let conduit = conduits[record.flow.index] {
                let lane = conduit[record.direction]
                payload = lane.bytes.copy(
                    at: Int(record.range.lowerBound - lane.taken), count: record.payloadBytes)
            }
            let cause = record.kind == .reset && holds(record.flow) ? conduits[record.flow.index]?.faultDone : nil
            packets.append(PacketReport(record: record, payload: payload, cause: cause))
        }
    }

    private func holds(_ id: FlowID) -> Bool {
        id.index < conduits.count && conduits[id.index] != nil && link.contains(id)
    }

    /// Asks for something to be done.
    private mutating func order(_ action: Action, _ id: FlowID) {
        if action.side == .server && conduits[id.index]?.portal != nil { return tellPortal(action, id) }
        orders.append(Order(flow: id, action: action, time: now))
    }

    private mutating func tellPortal(_ action: Action, _ id: FlowID) {
        switch action {
        case .write(let bytes, to: _):
            // Who asks and does not read is not answered for ever.
            guard let answer = conduits[id.index]?.portal?.take(bytes),
                bytesHeld(id, .down) < limits.bytesMax(connections: link.connectionCount)
            else { return portalInputs.append((id, .gone(.server))) }
            switch answer {
            case .hangsUp: portalInputs.append((id, .gone(.server)))
            case .bytes(let answers, let isLast):
                if answers.readableBytes > 0 { portalInputs.append((id, .bytes(answers, from: .server))) }
                if isLast { portalInputs.append((id, .inputClosed(.server))) }
            }
        case .awaitDrain: portalInputs.append((id, .drained(.server)))
        case .closeOutput: portalInputs.append((id, .inputClosed(.server)))
        case .close: portalInputs.append((id, .gone(.server)))
        case .reset, .resetAfterWrites, .flush, .pauseReading, .resumeReading, .ended: break
        }
    }

    /// Shows what enters to the tracker; gives what of it may travel.
    private mutating func tap(_ buffer: ByteBuffer, _ id: FlowID, _ direction: Direction) -> ByteBuffer? {
        guard let watch, conduits[id.index]?.tracker != nil else { return buffer }
        if direction == .up {
            report(
                conduits[id.index]?.tracker?.takeRequestBytes(buffer, watch, &plan, nextID: &nextExchange) ?? [], id)
            return buffer
        }
        guard
            let answered = conduits[id.index]?.tracker?.takeAnswerBytes(buffer, watch, &plan, nextID: &nextExchange)
        else { return buffer }
        report(answered.events, id)
        if answered.isCut {
            if answered.passes.readableBytes > 0 { take(answered.passes, id, .down) }
            cut(id)
            return nil
        }
        return answered.passes
    }

    /// As if the server had fallen over: its RST crosses the link.
    private mutating func cut(_ id: FlowID) {
        order(.reset(.server), id)
        conduits[id.index]?.faultDone = "fault: the answer is cut"
        lose(.server, id)
    }

    private mutating func closeInput(_ side: Side, _ id: FlowID) {
        if side == .server, let watch,
            let ended = conduits[id.index]?.tracker?.takeAnswerStreamEnd(watch, &plan, nextID: &nextExchange)
        {
            report(ended.events, id)
            if ended.isCut { return cut(id) }
            // Its bytes may all be out already.
            noteExit(0, id, .down)
        }
        conduits[id.index]?[side.sendDirection].inputIsClosed = true
        if side == .server && conduits[id.index]?.isMuted == true { return endIfOver(id) }
        link.finish(id, side.sendDirection, at: now)
    }

    private mutating func report(_ events: [ExchangeEvent], _ id: FlowID) {
        for event in events { reports.append(ExchangeReport(flow: id, event: event, time: now)) }
    }

    /// Tells the tracker what has been handed to a socket.
    private mutating func noteExit(_ bytes: Int, _ id: FlowID, _ direction: Direction) {
        guard watch != nil else { return }
        let events =
            direction == .up
            ? conduits[id.index]?.tracker?.noteUpExit(bytes) : conduits[id.index]?.tracker?.noteDownExit(bytes)
        report(events ?? [], id)
    }

    private mutating func take(_ buffer: ByteBuffer, _ id: FlowID, _ direction: Direction) {
        guard let state = conduits[id.index]?[direction].entry, !state.isClosed, buffer.readableBytes > 0 else {
            return
        }
        let arrivesNow = link.canBypassModel(id, direction, at: now)
        if !arrivesNow { link.send(buffer.readableBytes, on: id, direction, at: now) }
        if arrivesNow && state.isFree && conduits[id.index]?.isGone(direction.receiver) == false {
            let receiver = direction.receiver
            bytesCarried[direction] += buffer.readableBytes
            order(.write(buffer.compact, to: receiver), id)
            noteExit(buffer.readableBytes, id, direction)
            let limit = exitLimit
            let mustDrain = conduits[id.index]?[direction].handOver(buffer.readableBytes, limit: limit)
            if mustDrain == true { order(.awaitDrain(receiver), id) }
            return
        }
        bytesHeld += buffer.readableBytes
        conduits[id.index]?[direction].bytes.append(buffer)
        if arrivesNow {
            conduits[id.index]?[direction].arrived += buffer.readableBytes
            conduits[id.index]?[direction].arrivedStraight += buffer.readableBytes
            deliver(id, direction)
        }
        regulate(id, direction)
    }

    /// How much a receiving socket may be given until it has sent it.
    private var exitLimit: Int { min(limits.socketBytesMax, limits.bytesMax(connections: link.connectionCount)) }

    /// The socket at `side` is gone. What had been read of it had left its kernel, and travels; then its peer hears of it, by a
    /// RST that crosses the link.
    ///
    /// - Parameter dropsUnsent: Whether the RST goes at once, and what has not been sent is forgotten.
    private mutating func lose(_ side: Side, _ id: FlowID, dropsUnsent: Bool = false) {
        guard conduits[id.index]?.lostEnds[side.sendDirection] == false else { return }
        conduits[id.index]?.lostEnds[side.sendDirection] = true
        conduits[id.index]?.markGone(side)
        dropToxics(id, side.sendDirection)
        let isWaiting = !dropsUnsent && (conduits[id.index]?[side.sendDirection].bytes.count ?? 0) > 0
        if side == .client && !link.hasReachedServer(id) && (!isWaiting || isDead(.up) || isDead(.down)) {
            // The server never heard of this connection, and has nothing to hear: there is nobody to tell over the link.
            order(.reset(.server), id)
            end(id)
            return
        }
        if dropsUnsent {
            let forgotten = link.bytesUnsent(id, side.sendDirection)
            conduits[id.index]?[side.sendDirection].bytes.dropLast(forgotten)
            bytesHeld -= forgotten
        }
        conduits[id.index]?[side.sendDirection].passesAllBeforeReset = !dropsUnsent
        link.abort(id, from: side, afterSending: !dropsUnsent, at: now)
        deliver(id, side.opposite.sendDirection)
        endIfOver(id)
        if holds(id) { adopt(id) }
    }

    /// The RST may be lost: the other socket is not kept for ever.
    private mutating func adopt(_ id: FlowID) {
        orphans.append((id, now + orphanLimits.timeMax))
        if orphans.count <= orphanLimits.countMax { return }
        // Those that are over keep their places until then.
        var living = Deque<(flow: FlowID, until: Instant)>()
        for orphan in orphans where holds(orphan.flow) { living.append(orphan) }
        orphans = living
        if orphans.count > orphanLimits.countMax, let oldest = orphans.first { abandon(oldest.flow) }
    }

    /// Ends a connection without telling anybody over the link.
    private mutating func abandon(_ id: FlowID) {
        for side in [Side.client, .server] where conduits[id.index]?.isGone(side) == false {
            conduits[id.index]?.markGone(side)
            order(.reset(side), id)
        }
        end(id)
    }

    private mutating func react(to occurrence: TimedFlowEvent) {
        let id = occurrence.flow
        guard holds(id) else { return }
        switch occurrence.event {
        case .established: break
        case .writable(let direction): regulate(id, direction)
        case .delivered(let bytes, let direction):
            conduits[id.index]?[direction].arrived += bytes
            deliver(id, direction)
        case .finished(let direction):
            conduits[id.index]?[direction].finHasArrived = true
            deliver(id, direction)
            endIfOver(id)
        case .reset(let direction):
            conduits[id.index]?[direction].resetHasArrived = true
            passReset(id, direction)
        }
    }

    /// Passes a RST on that has crossed the link, after what arrived before it has been sent.
    private mutating func passReset(_ id: FlowID, _ direction: Direction) {
        let receiver = direction.receiver
        if conduits[id.index]?.isGone(receiver) == false {
            if let lane = conduits[id.index]?[direction], lane.passesAllBeforeReset {
                // The socket is not there yet, or must send other bytes first.
                if lane.arrived > 0 || lane.awaitsDrain { return }
                if lane.handedOver > 0 {
                    conduits[id.index]?[direction].awaitsDrain = true
                    return order(.awaitDrain(receiver), id)
                }
            }
            let passesAll = conduits[id.index]?[direction].passesAllBeforeReset == true
            conduits[id.index]?.markGone(receiver)
            order(passesAll ? .resetAfterWrites(receiver) : .reset(receiver), id)
        }
        // A RST ends both ends: nothing of this connection is of use to anybody now.
        end(id)
    }

    private mutating func deliver(_ id: FlowID, _ direction: Direction) {
        let before = conduits[id.index]?[direction].bytes.count ?? 0
        let limit = exitLimit
        let read = conduits[id.index]?.deliver(direction, limit: limit, into: &scratch) ?? 0
        for action in scratch {
            if case .write(let piece, to: _) = action {
                bytesCarried[direction] += piece.readableBytes
                noteExit(piece.readableBytes, id, direction)
            }
            order(action, id)
        }
        scratch.removeAll(keepingCapacity: true)
        bytesHeld -= before - (conduits[id.index]?[direction].bytes.count ?? 0)
        // What a socket has taken has been read: the window opens again.
        if read > 0 { link.read(read, on: id, direction, at: now) }
        if conduits[id.index]?[direction].resetHasArrived == true { return passReset(id, direction) }
        regulate(id, direction)
        endIfOver(id)
    }

    /// What a lane may hold: its share, and no more than the others leave of the whole, as when shares were larger before more
    /// connections came. So all of them together hold no more than `bytesMaxTotal`, and for each that reads its smallest
    /// share and one read.
    private var laneShare: Int {
        let left = limits.bytesMaxTotal - (bytesHeld - toxicBytesHeld)
        return min(limits.bytesMax(connections: link.connectionCount), max(limits.bytesMinPerDirection, left))
    }

    /// Stops and resumes reading, so that a lane holds its share at most (and one read more).
    private mutating func regulate(_ id: FlowID, _ direction: Direction) {
        guard let (isClosed, wasFull, held, arrivedStraight) = conduits[id.index]?[direction].inflow, !isClosed
        else { return }
        let share = laneShare
        let hasRoom = link.sendBufferSpace(id, direction) > 0
        let isFull = held >= share || arrivedStraight >= limits.straightBytesMax || !hasRoom
        if !wasFull && isFull {
            conduits[id.index]?[direction].isFull = true
        } else if wasFull && held <= share / 2 && arrivedStraight < limits.straightBytesMax && hasRoom {
            conduits[id.index]?[direction].isFull = false
        } else {
            return
        }
        if conduits[id.index]?[direction].toxics == nil {
            setPaused(isFull, id, direction)
        } else if !isFull {
            runToxics(id, direction)
        }
    }

    /// Reads the sender's socket no more, or again.
    private mutating func setPaused(_ isPaused: Bool, _ id: FlowID, _ direction: Direction) {
        guard let wasPaused = conduits[id.index]?[direction].isPaused, wasPaused != isPaused else { return }
        conduits[id.index]?[direction].isPaused = isPaused
        if isPaused { stalls[direction] += 1 }
        order(isPaused ? .pauseReading(direction.sender) : .resumeReading(direction.sender), id)
    }

    private mutating func endIfOver(_ id: FlowID) {
        if conduits[id.index]?.isOver == true {
            if conduits[id.index]?.isClosing == true {
                // One that had sent its FIN before has not closed its receiving side.
                for side in [Side.client, .server] where conduits[id.index]?.isGone(side) == false {
                    order(.close(side), id)
                }
            }
            end(id)
        } else if conduits[id.index]?.isMutedForGood == true {
            order(.reset(.client), id)
            end(id)
        }
    }

    private mutating func end(_ id: FlowID) {
        guard holds(id) else { return }
        notePackets()
        dropToxics(id, .up)
        dropToxics(id, .down)
        for direction in Direction.allCases { bytesHeld -= conduits[id.index]?[direction].bytes.count ?? 0 }
        report(conduits[id.index]?.tracker?.finish() ?? [], id)
        conduits[id.index] = nil
        link.remove(id)
        order(.ended, id)
        while let orphan = orphans.first, !holds(orphan.flow) { orphans.removeFirst() }
    }
}
