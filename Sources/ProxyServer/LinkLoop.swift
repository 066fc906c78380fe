internal import Impairment
internal import LinkModel
internal import NIOCore
internal import SystemSockets

/// Drives one ``Impairment/SharedLink`` on one event loop: real time in, actions out, woken when something is due.
///
/// Lives and is used on its event loop only.
final class LinkLoop {
    let eventLoop: any EventLoop
    private var link: SharedLink
    private let origin: NIODeadline
    /// By the flow's index; a place is used again, so the whole name is compared.
    private var sessions: [(flow: FlowID, session: Session)?] = []
    /// Sessions whose place has been taken before their last actions were carried out.
    private var displaced: [FlowID: Session] = [:]
    /// Whether work is left for the loop's next turn.
    private(set) var isBehind = false
    /// Sockets that wanted to be read while it was behind.
    private var unread: [SocketEnd] = []
    private var caughtUp: EventLoopPromise<Void>?
    private let clock: LoopClock
    private var place = 0
    /// When the clock wakes it; `nil` is not at all.
    private(set) var wakesAt: NIODeadline?
    private var isCarryingOut = false
    private var isShutDown = false
    /// Sessions with something written and not flushed.
    private var unflushed: [Session] = []

    /// Told when clients are to be treated otherwise.
    var onReachability: (Reachability) -> Void = { _ in }
    private var reachability: Reachability
    private let onExchange: (@Sendable (ExchangeEvent) -> Void)?
    private let onPacket: (@Sendable (CarriedPacket) -> Void)?
    private let unreachableUpstream: UnreachableUpstream
    /// The clients' ports by the flow's index, and the upstream's; kept for captures.
    private var clientPorts: [UInt16] = []
    private let serverPort: UInt16
    private let startUnixNanoseconds = CarriedPacket.now
    /// What the next connection's chance goes by.
    private let numbers: ConnectionNumbers
    private(set) var seed: UInt64
    private let onLateness: (@Sendable (Nanoseconds) -> Void)?
    /// Modelled times of what has been written and not flushed, if anybody asks.
    private var unflushedTimes: [Instant] = []

    init(
        _ configuration: ProxyConfiguration, numbers: ConnectionNumbers, on eventLoop: any EventLoop
    ) {
        self.eventLoop = eventLoop
        self.numbers = numbers
        seed = configuration.seed
        clock = LoopClock.of(eventLoop)
        onExchange = configuration.onExchange
        onPacket = configuration.onPacket
        onLateness = configuration.onLateness
        unreachableUpstream = configuration.unreachableUpstream
        serverPort = UInt16(truncatingIfNeeded: configuration.upstream.port)
        link = SharedLink(
            configuration.conditions, seed: configuration.seed, name: configuration.linkName,
            client: configuration.clientStack, server: configuration.serverStack,
            limits: configuration.buffers, orphanLimits: configuration.orphans, toxics: configuration.toxics,
            watch: configuration.watch,
            isRecording: configuration.onPacket != nil)
        link.eventsPerCallMax = TurnBudget.eventsMax
        origin = .now()
        if let timeline = configuration.timeline { link.follow(timeline, at: .start) }
        reachability = link.reachability
        place = clock.enter(self)
    }

    /// The modelled time of this moment.
    var now: Instant { Instant(Nanoseconds((NIODeadline.now() - origin).nanoseconds)) }

    /// What holds for packets that enter now.
    var conditions: Conditions { link.conditions }

    /// Enters a session whose client has connected; it calls ``begin()`` once it knows its name.
    func open(_ session: Session) -> FlowID {
        let id = link.open(
            at: now, chance: session.chance ?? ConnectionChance(number: numbers.next(), seed: seed),
            isEstablished: session.chance != nil,
            beginning: Instant(Nanoseconds((session.startedAt - origin).nanoseconds)))
        while sessions.count <= id.index { sessions.append(nil) }
        // The last actions of the connection whose place this takes may not have been carried out.
        if let (flow, session) = sessions[id.index] { displaced[flow] = session }
        sessions[id.index] = (id, session)
        if onPacket != nil {
            while clientPorts.count <= id.index { clientPorts.append(0) }
            clientPorts[id.index] = session.clientPort
        }
        return id
    }

    /// Carries out what an entered session's link asks for.
    func begin() {
        settle()
        flush()
    }

    /// Whether a connection wants a socket to the upstream.
    func wantsUpstream(_ id: FlowID) -> Bool { link.wantsUpstream(id) }

    /// How clients that want to connect are to be treated.
    var currentReachability: Reachability { link.reachability }

    /// Cuts every connection.
    func reset() {
        change { $0.reset(at: $1) }
    }

    /// Lets something of the link be other from now on; it is in force when this returns.
    private func change(_ body: (inout SharedLink, Instant) -> Void) {
        body(&link, now)
        settle()
        flush()
    }

    /// Takes a fact about a session; what is written because of it goes out with the next ``flush()``.
    func receive(_ input: Input, on id: FlowID) {
        if isShutDown { return }
        link.receive(input, on: id, at: now)
        settle()
    }

    /// A session's upstream cannot be reached: its client learns of that over the link.
    func upstreamFailed(_ id: FlowID) {
        switch unreachableUpstream {
        case .reset: receive(.gone(.server), on: id)
        case .close: _ = cut(id, byReset: false)
        }
    }

    /// Changes the conditions; they are in force when this returns.
    func setConditions(_ conditions: Conditions) {
        change { $0.setConditions(conditions, at: $1) }
    }

    /// Lets a timeline change the conditions, as if `offset` of it had passed.
    func follow(_ timeline: Timeline, from offset: Nanoseconds) {
        change { $0.follow(timeline, from: offset, at: $1) }
    }

    /// Loses everything in a direction, or no longer.
    func setCut(_ isCut: PerDirection<Bool>) {
        change { $0.setCut(isCut, at: $1) }
    }

    /// Adds, changes or removes a toxic; in force on every connection when this returns.
    func add(_ toxic: Toxic) {
        change { $0.add(toxic, at: $1) }
    }

    func update(_ toxic: Toxic) {
        change { $0.update(toxic, at: $1) }
    }

    func removeToxic(_ name: String) {
        change { $0.removeToxic(name, at: $1) }
    }

    var toxics: [Toxic] { link.toxics }

    /// Draws all chance from another seed; the connections are numbered anew by whoever numbers them.
    func reseed(_ seed: UInt64) {
        self.seed = seed
        link.reseed(seed, at: now)
    }

    /// Whether connections may go past the link.
    var isTransparent: Bool { link.isTransparent }

    /// The connections there are.
    func connections() -> [ConnectionStatus] {
        let time = NIODeadline.now()
        return link.connections.compactMap { id in
            guard id.index < sessions.count, let (flow, session) = sessions[id.index], flow == id else { return nil }
            return ConnectionStatus(
                id: ConnectionID(place: .link(id)), number: link.number(of: id), client: session.clientAddress,
                age: Nanoseconds((time - session.startedAt).nanoseconds), bytesRead: session.bytesRead,
                bytesHeld: PerDirection(up: link.bytesHeld(id, .up), down: link.bytesHeld(id, .down)))
        }
    }

    /// Cuts one connection; `false` if it is no more.
    func cut(_ id: FlowID, byReset: Bool) -> Bool {
        guard link.connections.contains(id) else { return false }
        change { $0.cut(id, byReset: byReset, at: $1) }
        return true
    }

    /// Where things stand, with everything done that is due now.
    func status() -> LinkStatus {
        link.advance(to: now)
        settle()
        flush()
        return LinkStatus(&link)
    }

    /// Bytes of a connection that have not reached a socket.
    func bytesHeld(_ id: FlowID) -> Int { link.bytesHeld(id, .up) + link.bytesHeld(id, .down) }

    /// Whether nothing more will arrive by itself: nothing is on its way, or only what a dead link holds back.
    var isQuiet: Bool { link.isQuiet && !isBehind }

    /// Has a socket read once the loop has caught up.
    func readLater(_ socket: SocketEnd) { unread.append(socket) }

    /// Says when everything asked of the sockets so far has been carried out.
    func whenCaughtUp() -> EventLoopFuture<Void> {
        if !isBehind || isShutDown { return eventLoop.makeSucceededVoidFuture() }
        let promise = caughtUp ?? eventLoop.makePromise(of: Void.self)
        caughtUp = promise
        return promise.futureResult
    }

    /// Forgets every session; nothing is driven any more.
    func shutDown() {
        if !isShutDown { clock.leave(place) }
        isShutDown = true
        wakesAt = nil
        sessions = []
        displaced = [:]
        unflushed = []
        hasCaughtUp()
    }

    private func hasCaughtUp() {
        isBehind = false
        let sockets = unread
        unread.removeAll(keepingCapacity: true)
        for socket in sockets { socket.readIfOwed() }
        caughtUp?.succeed()
        caughtUp = nil
    }

    /// Sends what has been written. Called at the end of a read cycle and of a timer's run, so that many small
    /// writes leave in one system call.
    func flush() {
        let sessions = unflushed
        unflushed.removeAll(keepingCapacity: true)
        for session in sessions { session.flush() }
        if let onLateness, !unflushedTimes.isEmpty {
            let now = now
            for time in unflushedTimes { onLateness(now - time) }
            unflushedTimes.removeAll(keepingCapacity: true)
        }
    }

    /// Carries out what the link asks for, as far as the turn's budget goes, then has itself woken for what is due next.
    private func settle() {
        // An action can make a socket report a fact at once; what follows from it is taken by the loop below.
        if isCarryingOut { return }
        if !isBehind { carryOut() }
        tellWhatHappened()
        setTimer()
    }

    private func carryOut() {
        isCarryingOut = true
        var budget = TurnBudget()
        while !budget.isSpent, let order = link.takeAction() {
            if isShutDown { continue }
            guard let session = session(order) else { continue }
            budget.spend(order.action)
            if session.carryOut(order.action) {
                unflushed.append(session)
                budget.spendFlush()
            }
            if onLateness != nil, case .write = order.action { unflushedTimes.append(order.time) }
        }
        isCarryingOut = false
        if !isShutDown, link.hasActions || link.isBehind {
            isBehind = true
            runLater { $0.continueTurn() }
        }
    }

    /// The session of an order; with its last order it is forgotten.
    private func session(_ order: SharedLink.Order) -> Session? {
        let isLast = if case .ended = order.action { true } else { false }
        if let (flow, session) = sessions[order.flow.index], flow == order.flow {
            if isLast { sessions[order.flow.index] = nil }
            return session
        }
        return isLast ? displaced.removeValue(forKey: order.flow) : displaced[order.flow]
    }

    /// Runs work after the loop's sockets and other proxies have had their turn.
    func runLater(_ work: @escaping (LinkLoop) -> Void) { clock.runLater { work(self) } }

    /// Goes on with what an earlier turn has left.
    func continueTurn() {
        if isShutDown { return }
        isBehind = false
        link.advance(to: now)
        settle()
        flush()
        if !isBehind { hasCaughtUp() }
    }

    /// Tells of exchanges, packets and a changed reachability.
    private func tellWhatHappened() {
        while let report = link.takeReport() { onExchange?(report.event) }
        if let onPacket {
            while let packet = link.takePacket() {
                onPacket(
                    CarriedPacket(
                        record: packet.record, payload: packet.payload, cause: packet.cause,
                        ports: PerDirection(up: clientPorts[packet.record.flow.index], down: serverPort),
                        startUnixNanoseconds: startUnixNanoseconds))
            }
        }
        if link.reachability != reachability {
            reachability = link.reachability
            onReachability(reachability)
        }
    }

    private func setTimer() {
        guard !isBehind, let due = link.nextDue, !isShutDown else { return }
        let deadline = origin + .nanoseconds(due.sinceStart.count)
        if let wakesAt, wakesAt <= deadline { return }
        wakesAt = deadline
        clock.wake(place, at: deadline)
    }

    /// Something is due.
    func wake() {
        wakesAt = nil
        link.advance(to: now)
        settle()
        flush()
    }
}
