internal import Determinism
internal import ForwardProxy
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import TCPModel
internal import Wire

/// The driver of one ``Impairment/SharedLink`` on an event loop: passes real time and socket events to the link,
/// executes its actions, and arms a timer for its next deadline.
///
/// Used on its event loop only.
final class LinkDriver {
    let eventLoop: any EventLoop
    var link: SharedLink
    /// The number among the links of one proxy; 0 for the device's.
    let number: Int
    /// The links of a forward proxy's rules.
    var ruleLinks: [HostRules.Treatment: LinkDriver] = [:]
    var ruleLinkCount = 0
    /// The link of the bytes inside the TLS that the proxy ends; `nil` before the first such connection.
    var insideLink: LinkDriver?
    /// Whether the link carries the bytes inside TLS of connections that another link reports and counts.
    let isInsideTLS: Bool
    /// The traffic of links of rules that were removed.
    var removedTraffic = RelayedTraffic()
    let origin: NIODeadline
    private(set) var sessions = LinkSessions()
    /// Whether work is left for a later turn of the event loop.
    private(set) var hasBacklog = false
    /// Sockets whose reads wait until the backlog is processed.
    private var deferredReads: [any SessionSocket] = []
    private var backlogPromise: EventLoopPromise<Void>?
    private let timerQueue: TimerQueue
    private var timerIndex = 0
    /// The deadline of the armed timer; `nil` if none is armed.
    private(set) var timerDeadline: NIODeadline?
    private(set) var isExecutingActions = false
    private var isShutDown = false
    /// Sessions with unflushed writes.
    private var unflushedSessions: [Session] = []

    /// The events that the configuration's callbacks need, without those of observers.
    let configuredObservation: SharedLink.Observation
    var observers: [ProxyObserver] = []
    var lastConditions: Conditions
    /// Connections whose end has not been reported to observers.
    var closings: [(flow: FlowID?, event: ConnectionEvent)] = []
    /// Observed connections into whose exchanges a fault has been injected.
    var faultedFlows: Set<FlowID> = []
    /// Present while the link has fault rules.
    var faultReporter: FaultReporter?
    /// Called for each fault of the link's rules.
    var onFault: (FaultReport) -> Void = { _ in }
    /// Called for each connection that begins with TLS while exchanges are observed.
    var onTLS: (ClientHello, Session?) -> Void = { _, _ in }
    /// Called when a timeline has changed the conditions; not for each step of a ramp, and not when it starts.
    var onTimelineChange: (TimelineRun.Position) -> Void = { _ in }
    private var lastTimelineChange: Int?

    /// Called when ``synTreatment`` changes.
    var onSYNTreatmentChange: (SYNTreatment) -> Void = { _ in }
    /// The sockets of datagrams, if the proxy forwards them.
    var datagramPort: DatagramPort?
    /// The same for the destinations of a forward proxy.
    var forwardDatagrams: ForwardDatagrams?
    private var lastSYNTreatment: SYNTreatment
    private let onExchange: (@Sendable (ExchangeEvent) -> Void)?
    private let exchangeController: (@Sendable (ExchangeEvent, Int) -> ExchangeFault?)?
    private let onPacket: (@Sendable (PacketEvent) -> Void)?
    private var comparisons: ByteComparisons?
    private let unreachableUpstream: UnreachableUpstream
    private let serverPort: UInt16
    private let packetsStartUnixNanoseconds = PacketEvent.unixNanosecondsNow
    /// Supplies the number of each new connection, which selects its random streams.
    let numbers: ConnectionNumbers
    private(set) var seed: UInt64
    private let onLateness: (@Sendable (Nanoseconds) -> Void)?
    /// Modelled times of unflushed writes, recorded for `onLateness` only.
    private var unflushedTimes: [Instant] = []

    /// Creates a driver. All links of a proxy share `origin`, the start of the model's time.
    init(
        _ configuration: ProxyConfiguration, number: Int = 0, numbers: ConnectionNumbers,
        origin: NIODeadline = .now(), isInsideTLS: Bool = false, on eventLoop: any EventLoop
    ) {
        self.number = number
        self.isInsideTLS = isInsideTLS
        self.origin = origin
        self.eventLoop = eventLoop
        self.numbers = numbers
        seed = configuration.seed
        timerQueue = TimerQueue.current(on: eventLoop)
        onExchange = configuration.onExchange
        exchangeController = configuration.exchangeController
        onPacket = configuration.onPacket
        comparisons = configuration.onBytesChanged.map { ByteComparisons($0) }
        onLateness = configuration.onLateness
        // A client of a forward proxy gets a response with the reason.
        unreachableUpstream = configuration.forward == nil ? configuration.unreachableUpstream : .reset
        serverPort = UInt16(truncatingIfNeeded: configuration.upstream.port)
        link = SharedLink(
            configuration.conditions, seed: configuration.seed, name: configuration.linkName,
            client: configuration.clientStack, server: configuration.serverStack,
            limits: configuration.buffers, orphanLimits: configuration.orphans,
            datagramLimits: configuration.datagrams, toxics: configuration.toxics,
            exchangeTracking: configuration.exchangeTracking,
            observation: configuration.onPacket != nil ? .packets : [])
        configuredObservation = link.observation
        for rule in configuration.faultRules { _ = try? link.addFaultRule(rule, at: .start) }
        if link.hasFaultRules {
            faultReporter = FaultReporter()
            link.setObservation(configuredObservation.union(.exchanges), at: .start)
        }
        link.eventsPerCallMax = TurnBudget.eventsMax
        if let timeline = configuration.timeline {
            link.startTimeline(timeline, from: configuration.timelineStart?.offsetNow ?? .zero, at: .start)
        }
        lastSYNTreatment = link.synTreatment
        lastConditions = link.conditions
        lastTimelineChange = link.timelineChangeCount
        timerIndex = timerQueue.register(self)
        // A timeline changes the conditions, and with them the treatment of new connections, before anything has
        // connected.
        armTimer()
    }

    // MARK: State

    /// The current time of the model.
    var now: Instant { Instant(Nanoseconds((NIODeadline.now() - origin).nanoseconds)) }

    /// The conditions for packets that enter the link now.
    var conditions: Conditions { link.conditions }

    /// The treatment of new connections.
    var synTreatment: SYNTreatment { link.synTreatment }

    /// Whether connections may bypass the link.
    var isPassThrough: Bool { link.isPassThrough }

    var toxics: [Toxic] { link.toxics }

    /// Returns the traffic that a connection may still carry.
    func remainingTraffic(of id: FlowID) -> RemainingTraffic {
        hasBacklog ? .pending : link.remainingTraffic(of: id)
    }

    /// Returns the link's status, with the traffic of the links of rules, after everything that is due has been
    /// processed.
    func status() -> LinkStatus {
        link.advance(to: now)
        process()
        flush()
        var status = LinkStatus(&link)
        status.add(removedTraffic)
        for driver in ruleLinks.values { status.add(driver.status().traffic) }
        if let insideLink {
            // Their bytes are counted as those of TLS.
            var traffic = RelayedTraffic()
            traffic.bytesHeld = insideLink.status().bytesHeld
            status.add(traffic)
        }
        return status
    }

    // MARK: Sessions

    /// Opens a flow for a session whose client has connected. The session calls ``start()`` after it has stored the
    /// flow ID.
    func open(_ session: Session) -> FlowID {
        let id = link.open(
            at: now,
            seed: session.seed
                ?? ConnectionSeed(number: session.outside?.number ?? numbers.next(), seed: seed),
            isEstablished: session.seed != nil,
            openedAt: Instant(Nanoseconds((session.startedAt - origin).nanoseconds)),
            isMidStream: session.startsMidStream, reportsEstablishment: session.target != nil,
            looksUpName: session.target == nil && !isInsideTLS)
        let number = link.number(of: id)
        sessions.add(session, id, number: number)
        session.opened(id, number: number)
        if observesConnections, !isInsideTLS {
            send(.connection(opening(of: session, isEarlier: session.startsMidStream)), .connections)
        }
        if link.needsUpstream(id) { comparisons?.opened(id) }
        return id
    }

    /// Executes the actions that opening a flow has produced.
    func start() {
        process()
        flush()
    }

    /// Returns whether a connection needs a socket to the upstream.
    func needsUpstream(_ id: FlowID) -> Bool { link.needsUpstream(id) }

    /// Passes a socket event to the link. Resulting writes are sent by the next ``flush()``.
    func receive(_ event: SocketEvent, on id: FlowID) {
        if isShutDown { return }
        comparisons?.received(event, on: id)
        link.receive(event, on: id, at: now)
        process()
    }

    /// Closes a connection whose upstream cannot be reached; the RST or FIN travels over the link.
    func upstreamFailed(_ id: FlowID) {
        switch unreachableUpstream {
        case .reset: receive(.gone(.server), on: id)
        case .close: _ = closeConnection(id, abortively: false)
        }
    }

    /// Closes one connection. Returns `false` if it is closed already.
    func closeConnection(_ id: FlowID, abortively: Bool) -> Bool {
        guard link.connections.contains(id) else { return false }
        change { $0.closeConnection(id, abortively: abortively, at: $1) }
        return true
    }

    /// Aborts all connections, also those on the links of rules, and ends the sessions of datagrams.
    func abortConnections() {
        for driver in links {
            driver.change { $0.endDatagramSessions(at: $1) }
            driver.change { $0.abortConnections(at: $1) }
        }
    }

    // MARK: Changes, in effect when the call returns

    func change(_ body: (inout SharedLink, Instant) -> Void) {
        body(&link, now)
        process()
        flush()
    }

    /// Sets the conditions.
    func setConditions(_ conditions: Conditions) {
        change { $0.setConditions(conditions, at: $1) }
        lastTimelineChange = nil
    }

    /// Starts a timeline at `offset`, or at the position that an absolute start gives.
    func startTimeline(_ timeline: Timeline, from offset: Nanoseconds, startingAt start: TimelineStart?) {
        change { $0.startTimeline(timeline, from: start?.offsetNow ?? offset, at: $1) }
        lastTimelineChange = link.timelineChangeCount
    }

    /// Starts or ends an outage in each direction, also on the links of rules except `direct`.
    func setOutage(_ outage: PerDirection<Bool>) {
        change { $0.setOutage(outage, at: $1) }
        for (treatment, driver) in ruleLinks where treatment != .direct { driver.setOutage(outage) }
    }

    /// Adds a toxic to all connections.
    func add(_ toxic: Toxic) {
        change { $0.add(toxic, at: $1) }
    }

    /// Replaces the settings of the toxic with the same name.
    func update(_ toxic: Toxic) {
        change { $0.update(toxic, at: $1) }
    }

    /// Removes a toxic.
    func removeToxic(_ name: String) {
        change { $0.removeToxic(name, at: $1) }
    }

    /// Withdraws the faults that the exchange controller has injected and that have not begun to apply.
    func withdrawFaults() {
        change { $0.withdrawFaults(at: $1) }
        insideLink?.withdrawFaults()
    }

    /// Sets the random seed. The caller restarts the connection numbers.
    func reseed(_ seed: UInt64) {
        self.seed = seed
        link.reseed(seed, at: now)
        for driver in otherLinks { driver.reseed(seed) }
    }

    // MARK: Backlog

    /// Defers a socket's read until the backlog is processed.
    func deferRead(of handler: any SessionSocket) { deferredReads.append(handler) }

    /// Returns a future that succeeds when all actions so far have been executed, also those of the links of rules.
    func whenCaughtUp() -> EventLoopFuture<Void> {
        if otherLinks.isEmpty { return whenOwnActionsAreExecuted() }
        return .andAllSucceed(links.map { $0.whenOwnActionsAreExecuted() }, on: eventLoop)
    }

    private func whenOwnActionsAreExecuted() -> EventLoopFuture<Void> {
        if !hasBacklog || isShutDown { return eventLoop.makeSucceededVoidFuture() }
        let promise = backlogPromise ?? eventLoop.makePromise(of: Void.self)
        backlogPromise = promise
        return promise.futureResult
    }

    /// Runs `work` in a later turn, after the event loop's sockets and the other proxies.
    func runLater(_ work: @escaping (LinkDriver) -> Void) { timerQueue.runLater { work(self) } }

    private func continueBacklog() {
        if isShutDown { return }
        hasBacklog = false
        link.advance(to: now)
        process()
        flush()
        if !hasBacklog { backlogIsProcessed() }
    }

    private func backlogIsProcessed() {
        hasBacklog = false
        let handlers = deferredReads
        deferredReads.removeAll(keepingCapacity: true)
        for handler in handlers { handler.readIfPending() }
        backlogPromise?.succeed()
        backlogPromise = nil
    }

    /// Releases all sessions and stops driving the link and the others of the proxy.
    func shutDown() {
        for driver in otherLinks { driver.shutDown() }
        if !isShutDown { timerQueue.unregister(timerIndex) }
        isShutDown = true
        timerDeadline = nil
        sessions.removeAll()
        unflushedSessions = []
        for observer in observers { observer.finish() }
        observers = []
        backlogIsProcessed()
    }

    // MARK: Execution

    /// Flushes pending writes. Called at the end of a read cycle and of a timer run, so that many small writes share
    /// one system call.
    func flush() {
        let sessions = unflushedSessions
        unflushedSessions.removeAll(keepingCapacity: true)
        for session in sessions { session.flush() }
        if let onLateness, !unflushedTimes.isEmpty {
            let now = now
            for time in unflushedTimes { onLateness(now - time) }
            unflushedTimes.removeAll(keepingCapacity: true)
        }
    }

    /// Executes the link's actions within the turn's budget, publishes its events, and arms the timer.
    private func process() {
        // An action can make a socket report an event synchronously; the loop in executeActions() executes the
        // resulting actions.
        if isExecutingActions { return }
        if !hasBacklog { executeActions() }
        publishEvents()
        // A fault that was injected into an exchange may apply at once.
        if !isShutDown, !hasBacklog, link.hasActions || link.hasDatagramActions {
            hasBacklog = true
            runLater { $0.continueBacklog() }
        }
        armTimer()
    }

    private func executeActions() {
        isExecutingActions = true
        var budget = TurnBudget()
        while !budget.isSpent, let timedAction = link.takeAction() {
            if isShutDown { continue }
            guard let session = sessions.take(for: timedAction) else { continue }
            budget.spend(timedAction.action)
            if !timedAction.action.waitsForFlush { publishExchanges() }
            if comparisons != nil {
                if link.hasReordered(timedAction.flow) { comparisons?.stop(timedAction.flow) }
                comparisons?.executed(timedAction.action, on: timedAction.flow)
            }
            if session.execute(timedAction.action) {
                unflushedSessions.append(session)
                budget.spendFlush()
            }
            if onLateness != nil, case .write = timedAction.action { unflushedTimes.append(timedAction.time) }
        }
        executeDatagramActions(&budget)
        isExecutingActions = false
        if !isShutDown, link.hasActions || link.hasDatagramActions || link.isBehind {
            hasBacklog = true
            runLater { $0.continueBacklog() }
        }
    }

    /// Passes the recorded events of exchanges to callbacks and observers.
    ///
    /// Called before the sockets send what has been written: an observer learns that a response has been delivered
    /// before the client can do anything because of it.
    private func publishExchanges() {
        while let exchange = takeExchangeEvent() {
            onExchange?(exchange.event)
            if let report = faultReporter?.record(exchange.event, { link.faultRules }) { onFault(report) }
            if case .tls(let hello) = exchange.event { onTLS(hello, sessions[exchange.flow]) }
            let fault = exchangeController?(exchange.event, Int(sessions.clientPort(of: exchange.flow)))
            if case .requested(let id, _, _, _) = exchange.event {
                if let fault {
                    comparisons?.stop(exchange.flow)
                    link.injectFault(fault, into: id, of: exchange.flow, at: now)
                }
                link.admitRequest(id, of: exchange.flow, at: now)
            }
            if observers.isEmpty { continue }
            if case .faultInjected = exchange.event, observesConnections { recordFault(on: exchange.flow) }
            let number = sessions.number(of: exchange.flow)
            send(.exchange(exchange.event, connection: number, at: exchange.time), .exchanges)
        }
    }

    /// Passes the recorded events to callbacks and observers.
    func publishEvents() {
        publishExchanges()
        publishClosings()
        while let packet = link.takePacket() {
            let clientPort = packet.datagramPort ?? sessions.clientPort(of: packet.record.flow)
            let event = PacketEvent(
                record: packet.record, payload: packet.payload, cause: packet.cause,
                ports: PerDirection(up: clientPort, down: serverPort),
                startUnixNanoseconds: packetsStartUnixNanoseconds)
            onPacket?(event)
            send(.packet(event), .packets)
        }
        if !observers.isEmpty, link.conditions != lastConditions || link.synTreatment != lastSYNTreatment {
            lastConditions = link.conditions
            send(.conditions(lastConditions, link.synTreatment), .conditions)
        }
        if link.synTreatment != lastSYNTreatment {
            lastSYNTreatment = link.synTreatment
            onSYNTreatmentChange(lastSYNTreatment)
        }
        datagramPort?.updateRefusal()
        forwardDatagrams?.updateRefusal()
    }

    /// The end of the access to the link: in release builds of Swift 6.3 it stays open in the body of a loop whose
    /// condition contains it.
    @inline(never)
    private func takeExchangeEvent() -> SharedLink.TimedExchangeEvent? { link.takeExchangeEvent() }

    private func armTimer() {
        guard !hasBacklog, let next = link.nextDeadline, !isShutDown else { return }
        let deadline = origin + .nanoseconds(next.sinceStart.count)
        if let timerDeadline, timerDeadline <= deadline { return }
        timerDeadline = deadline
        timerQueue.schedule(timerIndex, at: deadline)
    }

    /// Processes what is due. Called by the timer queue.
    func timerFired() {
        timerDeadline = nil
        link.advance(to: now)
        process()
        flush()
        // A timer fires at, or soon after, each change of a timeline.
        if let last = lastTimelineChange, let count = link.timelineChangeCount, count != last {
            lastTimelineChange = count
            if let position = link.timelinePosition { onTimelineChange(position) }
        }
    }
}
