internal import Client
internal import Determinism
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import NIOPosix
internal import Proxy
internal import Scenario
internal import Synchronization
internal import Worlds

/// The director and the recorder of a run in real time. Drivers report facts from any thread; orders for an actor are
/// executed in order by the actor's driver.
final class LiveRunWorld: Sendable {
    /// An order for the driver of a device or writer.
    struct Order: Sendable {
        let action: ScenarioDirector.Action
        /// The time at which the director gave it.
        let time: Instant
    }

    private struct State {
        var director: ScenarioDirector
        var recorder = HistoryRecorder()
        var ledgers: [String: DeviceLedger]
        var pushes: PushNotices?
        /// The fault that the director has ordered for the exchange being reported.
        var fault: ExchangeFault?
        /// Devices whose clients end at their next commit, because a fault kills them.
        var kills: Set<String> = []
        var timer: Scheduled<Void>?
        var timerDeadline: Instant?
        /// The reason why the run has ended without a verdict.
        var failure: (any Error)?
        var hasEnded = false
    }

    let scenario: Scenario
    let seed: UInt64
    private let notes: RunServer?
    private let state: Mutex<State>
    private let origin = ContinuousClock.now
    private let timerLoop = MultiThreadedEventLoopGroup.singleton.next()
    private let lanes: [String: (stream: AsyncStream<Order>, continuation: AsyncStream<Order>.Continuation)]
    private let history = AsyncStream.makeStream(of: History.Entry.self)
    private let end = AsyncStream.makeStream(of: Void.self)

    /// - Parameters:
    ///   - notes: The notes of the built-in server; `nil` for another server, whose notes are not read.
    ///   - showsPushNotices: Whether devices show push notices of the built-in server.
    init(_ scenario: Scenario, seed: UInt64, _ notes: RunServer?, showsPushNotices: Bool) throws(SetupError) {
        self.scenario = scenario
        self.seed = seed
        self.notes = notes
        let director: ScenarioDirector
        do {
            director = try ScenarioDirector(scenario, seed: seed)
        } catch {
            throw SetupError(error.description)
        }
        var ledgers: [String: DeviceLedger] = [:]
        for device in scenario.devices { ledgers[device.name] = DeviceLedger(device.name) }
        var recorder = HistoryRecorder()
        for (row, uuid) in notes?.names ?? [] { _ = recorder.assign(row: row, to: Array(uuid.utf8)) }
        state = Mutex(
            State(
                director: director, recorder: recorder, ledgers: ledgers,
                pushes: showsPushNotices ? notes?.pushNotices : nil))
        var lanes: [String: (stream: AsyncStream<Order>, continuation: AsyncStream<Order>.Continuation)] = [:]
        for name in scenario.devices.map(\.name) + scenario.writers.map(\.name) {
            lanes[name] = AsyncStream.makeStream()
        }
        self.lanes = lanes
    }

    /// The time since the start.
    var now: Instant { Instant(Nanoseconds(ContinuousClock.now - origin)) }

    /// The orders for a device or writer.
    func orders(of name: String) -> AsyncStream<Order> { lanes[name]?.stream ?? AsyncStream { $0.finish() } }

    /// The events of the history.
    var entries: AsyncStream<History.Entry> { history.stream }

    // MARK: The run

    /// Runs the scenario to its end.
    func run() async throws {
        fact { state, now in state.director.begin(at: now) }
        for await _ in end.stream {}
        if let failure = state.withLock({ $0.failure }) { throw failure }
    }

    /// Ends the run without a verdict.
    func cancel() { fail(CancellationError()) }

    /// Ends the run without a verdict, for this reason.
    func fail(_ error: any Error) {
        state.withLock { state in
            if state.hasEnded { return }
            state.failure = error
            finish(&state)
        }
    }

    /// Ends the run with a verdict, because it cannot go on.
    func abort(_ reason: String) {
        fact { state, now in state.director.abort(reason, at: now) }
    }

    /// Performs an act of a user that the scenario does not have.
    func perform(_ act: LiveRun.UserAct) {
        fact { state, now in _ = state.director.userActs(act.device, act.action, at: now) }
    }

    /// The result, after the end.
    var result: RunResult {
        state.withLock { state in
            let history = state.recorder.history
            return RunResult(
                verdict: Verdict(scenario, history), history: history, eventCount: history.entries.count)
        }
    }

    private func finish(_ state: inout State) {
        state.hasEnded = true
        state.timer?.cancel()
        for lane in lanes.values { lane.continuation.finish() }
        history.continuation.finish()
        end.continuation.finish()
    }

    // MARK: Facts

    /// Reports a fact at the current time, and gives the orders that follow from it to the drivers. After the end of the
    /// run nothing follows.
    private func fact<Value: Sendable, Failure: Error>(
        _ body: (inout State, Instant) throws(Failure) -> sending Value
    ) throws(Failure) -> Value {
        try state.withLock { state throws(Failure) in
            let now = self.now
            let value = try body(&state, now)
            takeOrders(&state, now)
            if !state.hasEnded { setTimer(&state, now) }
            return value
        }
    }

    private func record(_ event: History.Event, _ state: inout State, _ now: Instant) {
        if state.hasEnded { return }
        if state.recorder.record(event, at: now), let entry = state.recorder.history.entries.last {
            history.continuation.yield(entry)
        }
        state.director.recorded(event, at: now)
        if case .phase(.script) = event {
            let facts = WorldFacts(isSimulated: false, comparesBytes: true)
            for event in scenario.openingEvents(facts) { record(event, &state, now) }
        }
        guard state.recorder.start != nil else { return }
        for event in state.pushes?.apply(event, &state.recorder) ?? [] { record(event, &state, now) }
    }

    /// Records that the link of a device has changed a byte.
    func bytesChanged(of device: String, _ direction: Direction, offset: Int) {
        record(.bytesChanged(device: device, direction, offset: offset))
    }

    /// Records an event.
    func record(_ event: History.Event) {
        fact { state, now in record(event, &state, now) }
    }

    /// Records what follows from an event of a device's client or its user.
    func client(of device: String, _ body: (inout DeviceLedger, inout HistoryRecorder) -> [History.Event]) {
        fact { state, now in record(of: device, body, &state, now) }
    }

    private func record(
        of device: String, _ body: (inout DeviceLedger, inout HistoryRecorder) -> [History.Event],
        _ state: inout State, _ now: Instant
    ) {
        guard state.recorder.start != nil, var ledger = state.ledgers.removeValue(forKey: device) else { return }
        let events = body(&ledger, &state.recorder)
        state.ledgers[device] = ledger
        for event in events { record(event, &state, now) }
    }

    /// Records an event of an exchange on a device's link. Returns the fault to be injected.
    func exchange(of device: String, _ event: ExchangeEvent, port: Int) -> ExchangeFault? {
        exchange(event) { state, now in
            record(
                of: device, { ledger, recorder in ledger.exchange(event, port: port, &recorder) }, &state, now)
        }
    }

    /// Records an event of an exchange as the events that `body` returns. Returns the fault to be injected.
    func exchange(
        _ event: ExchangeEvent, _ body: (inout HistoryRecorder) -> [History.Event]
    ) -> ExchangeFault? {
        exchange(event) { state, now in for event in body(&state.recorder) { record(event, &state, now) } }
    }

    private func exchange(
        _ event: ExchangeEvent, recording: (inout State, Instant) -> Void
    ) -> ExchangeFault? {
        fact { state, now in
            state.fault = nil
            if case .faultMissed(_, let rule, _) = event { state.director.faultMissed(rule) }
            recording(&state, now)
            takeOrders(&state, now)
            return state.fault
        }
    }

    /// Returns the port of the client on the connection of an exchange.
    func port(of exchange: Int, _ device: String) -> Int? { state.withLock { $0.ledgers[device]?.port(of: exchange) } }

    /// Returns whether a fault has killed a device's client, which then does nothing more.
    func mustEnd(_ device: String) -> Bool { state.withLock { $0.kills.contains(device) } }

    /// Reads the names of notes or assigns new ones, and records the events that follow.
    func withRecorder<Value: Sendable, Failure: Error>(
        _ body: (inout HistoryRecorder) throws(Failure) -> (Value, [History.Event])
    ) throws(Failure) -> Value {
        try fact { state, now throws(Failure) in
            let (value, events) = try body(&state.recorder)
            for event in events { record(event, &state, now) }
            return value
        }
    }

    /// Returns the tokens with which a device of a user authenticates; `nil` if it sends the password.
    func signIn(_ user: String) throws(SetupError) -> SyncTokens? { try notes?.signIn(user) ?? nil }

    /// Executes an action of a writer that concerns the server itself, or a record of an app's service. Returns whether it
    /// is one.
    func execute(_ action: Scenario.Action, of user: String) throws(ActionError) -> Bool {
        let recorder = state.withLock { $0.recorder }
        return try notes?.execute(action, of: user, recorder) ?? false
    }

    /// Reports that the setup of a device is complete, or why it failed.
    func prepared(_ device: String, failure: String? = nil) {
        fact { state, now in
            if let failure {
                state.director.setupFailed("\(device) did not complete its first sync: \(failure)", at: now)
            } else {
                state.director.prepared(device, at: now)
            }
        }
    }

    /// Records that an order was executed later than it was given, if the delay is considerable.
    func executed(_ order: Order) {
        fact { state, now in
            if case .killClient(_, let device, atOnce: _) = order.action { state.kills.remove(device) }
            let span = now - order.time
            if span >= ScenarioDirector.lateMin { record(.late(span), &state, now) }
        }
    }

    /// Reports the end of an act, with the reason if it is an error.
    func finished(_ act: ScenarioDirector.ActID, _ error: (any Error)? = nil) {
        fact { state, now in
            if let error {
                state.director.actFailed(act, "\(error)", at: now)
            } else {
                state.director.actFinished(act, at: now)
            }
        }
    }

    /// Reports that the version of a device's client cannot open the store.
    func refused(_ device: String) {
        fact { state, now in state.director.clientRefused(device, at: now) }
    }

    /// Reports whether a device has nothing to send or fetch.
    func settled(_ device: String, _ isSettled: Bool) {
        fact { state, now in
            if isSettled { state.director.settled(device, at: now) } else { state.director.unsettled(device, at: now) }
        }
    }

    /// Reports whether a device has an exchange in flight or a change to commit.
    func busy(_ device: String, _ isBusy: Bool) {
        fact { state, now in state.director.busy(device, isBusy, at: now) }
    }

    // MARK: Orders

    private func takeOrders(_ state: inout State, _ now: Instant) {
        while !state.hasEnded, let order = state.director.takeAction() {
            switch order {
            case .prepare(let device): lanes[device]?.continuation.yield(Order(action: order, time: now))
            case .record(.network(let device, _, _)), .record(.interface(let device, _, _)):
                // Recorded when the conditions have taken effect.
                lanes[device]?.continuation.yield(Order(action: order, time: now))
            case .record(let event): record(event, &state, now)
            case .setConditions(let name, _, link: _), .setInterface(let name, isUp: _, _), .startClient(_, let name),
                .killClient(_, let name, atOnce: false), .perform(_, actor: let name, _),
                .closeConnection(exchange: _, let name, isAbort: _):
                lanes[name]?.continuation.yield(Order(action: order, time: now))
            case .killClient(_, let name, atOnce: true):
                state.kills.insert(name)
                lanes[name]?.continuation.yield(Order(action: order, time: now))
            case .armFault(let index, exchange: _, let device, let point):
                // Only the exchange that is being reported can get a fault.
                state.fault = injection(index, at: point, of: device)
            case .disarmFaults:
                for device in scenario.devices {
                    lanes[device.name]?.continuation.yield(Order(action: order, time: now))
                }
            case .readServer: readServer(state.recorder)
            case .end(let failure):
                if let failure { state.failure = SetupError("\(scenario.name): \(failure)") }
                finish(&state)
            }
        }
    }

    /// The number of the link's fault that holds a connection until the result has been stored.
    private static let storing = -1
    /// The longest time for which a connection is held after a response whose result is to be stored.
    private static let storingMax = Nanoseconds.seconds(1)

    /// Returns the fault of the link for a fault of the scenario.
    private func injection(
        _ index: Int, at point: Scenario.Fault.Point, of device: String
    ) -> ExchangeFault? {
        if let found = scenario.faults[index].onLink(index, at: point, of: device) { return found }
        // Nothing may pass the connection before the client has stored the result.
        return point == .stored
            ? ExchangeFault(rule: Self.storing, point: .afterResponse, action: .delay(Self.storingMax)) : nil
    }

    private func readServer(_ recorder: HistoryRecorder) {
        Task {
            do {
                record(.server(try notes?.rows(recorder) ?? []))
            } catch {
                record(.aborted(.other("cannot read the server's notes: \(error)")))
            }
        }
    }

    // MARK: Time

    /// Sets the timer for the director's deadline, unless it fires earlier.
    private func setTimer(_ state: inout State, _ now: Instant) {
        guard let deadline = state.director.nextDeadline else { return }
        if let armed = state.timerDeadline, armed <= deadline { return }
        state.timer?.cancel()
        state.timerDeadline = deadline
        let delay = max(.zero, deadline - now)
        state.timer = timerLoop.scheduleTask(in: .nanoseconds(delay.count)) { [weak self] in self?.timerFired() }
    }

    private func timerFired() {
        fact { state, now in
            state.timerDeadline = nil
            state.director.advance(to: now)
        }
    }
}
