internal import Client
internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NotesContract
internal import Scenario

/// The devices, writers and the server of a run, driven by a director in virtual time.
final class SimulatedWorld {
    /// The delay between a client's call to connect and the arrival of its SYN at the proxy, and the time in which a
    /// refusal arrives.
    static let localDelay = Nanoseconds(50_000)
    /// The maximum number of events of a run, and of events at one time. Only a client that repeats requests without a
    /// delay exceeds them.
    private static let eventsMax = 20_000_000
    private static let eventsPerInstantMax = 100_000
    /// The reason of the end of a run that is compared with another one.
    private static let stopped = History.Reason.stopped

    let scenario: Scenario
    let seed: UInt64
    /// The behaviour of the clients and the server.
    let behavior: RunBehavior
    let kill: SimulatedRun.Kill?
    private(set) var now = Instant.start
    private(set) var eventCount = 0
    private(set) var devices: [SimulatedDevice] = []
    private var writers: [Writer] = []
    let server: Server
    var recorder = HistoryRecorder()
    private var pushes: PushNotices?

    private var director: ScenarioDirector
    private var queue = EventQueue()
    /// Orders of the director that have not been executed.
    private var orders = Deque<ScenarioDirector.Action>()
    /// Devices whose setup is complete.
    private var prepared: [SimulatedDevice] = []
    private var setupFailure: String?
    private var hasEnded = false
    private let onEvent: ((History.Entry) -> Void)?
    private let onStep: ((SimulatedStep) -> Bool)?
    private var eventsAtNow = 0

    init(
        _ scenario: Scenario, seed: UInt64, behavior: RunBehavior, kill: SimulatedRun.Kill?, storage: ServerStorage,
        onEvent: ((History.Entry) -> Void)?, onStep: ((SimulatedStep) -> Bool)? = nil
    ) throws(SetupError) {
        self.scenario = scenario
        self.seed = seed
        self.behavior = behavior
        self.kill = kill
        self.onEvent = onEvent
        self.onStep = onStep
        do {
            director = try ScenarioDirector(scenario, seed: seed)
        } catch {
            throw SetupError(error.description)
        }
        server = try Server(scenario, seed: seed, storage: storage, behavior: behavior.server)
        if behavior.showsPushNotices { pushes = server.run.pushNotices }
        for (row, uuid) in server.run.names { _ = recorder.assign(row: row, to: Array(uuid.utf8)) }
        devices = scenario.devices.map { SimulatedDevice($0, in: self) }
        writers = scenario.writers.map { Writer($0, in: self) }
    }

    // MARK: Time

    /// Runs the scenario to its end.
    func run() throws(SetupError) {
        director.begin(at: now)
        collectOrders()
        executeOrders()
        var isIdle = false
        while !hasEnded {
            let next = queue.nextTime
            if next == nil, !isIdle {
                isIdle = true
                director.idle(at: now)
                collectOrders()
            } else if let deadline = directorDeadline(), next.map({ deadline <= $0 }) ?? true {
                isIdle = false
                advance(to: max(now, deadline))
                director.advance(to: now)
                collectOrders()
            } else if let (time, event) = queue.takeNext() {
                isIdle = false
                advance(to: time)
                if let onStep, !onStep(.world(time, event.stepText)) { abort(Self.stopped) }
                execute(event)
            } else {
                abort(.nothingScheduled)
            }
            executeOrders()
            if eventCount >= Self.eventsMax { abort(.tooManyEvents(Self.eventsMax, isAtOneTime: false)) }
            if eventsAtNow >= Self.eventsPerInstantMax {
                abort(.tooManyEvents(Self.eventsPerInstantMax, isAtOneTime: true))
            }
        }
        if let setupFailure { throw SetupError("\(scenario.name): \(setupFailure)") }
    }

    /// Returns the director's deadline, in place: a copy of the director is expensive.
    @inline(never)
    private func directorDeadline() -> Instant? {
        func value(_ director: inout ScenarioDirector) -> Instant? { director.nextDeadline }
        return value(&director)
    }

    /// Ends a run that would not end.
    private func abort(_ reason: History.Reason) {
        guard !hasEnded else { return }
        hasEnded = true
        if director.start == nil { setupFailure = reason.description }
        _ = recorder.record(.aborted(reason), at: now)
        _ = recorder.record(.phase(.ended), at: now)
    }

    private func advance(to time: Instant) {
        if time > now { eventsAtNow = 0 }
        now = max(now, time)
        eventCount += 1
        eventsAtNow += 1
    }

    /// Schedules an event.
    func schedule(_ event: WorldEvent, at time: Instant) { queue.schedule(event, at: max(time, now)) }

    /// Schedules an event after a delay.
    func schedule(_ event: WorldEvent, after delay: Nanoseconds) { queue.schedule(event, at: now + delay) }

    private func execute(_ event: WorldEvent) {
        switch event {
        case .link(let device): device.linkDeadlinePassed()
        case .client(let device, let process): device.clientDeadlinePassed(ofProcess: process)
        case .server(let connection):
            connection.advanceServer()
            connection.device.settle()
        case .syn(let connection, let tries): connection.device.sendSYN(connection, tries: tries)
        case .clientSocket(let connection, let event): connection.device.receive(event, on: connection)
        case .serverSocket(let connection, let event):
            connection.receive(event)
            connection.device.settle()
        case .rawDeadline(let connection, let state): connection.device.rawDeadlinePassed(connection, state)
        case .restart(let device): device.restart()
        case .commitEnd(let device, let process): device.commitEnded(ofProcess: process)
        }
    }

    /// Whether nothing is recorded yet.
    var isSettingUp: Bool { director.phase == .setup }

    // MARK: Facts

    /// Records an event and reports it to the director.
    func record(_ event: History.Event) {
        if recorder.record(event, at: now), onEvent != nil || onStep != nil, let entry = recorder.history.entries.last {
            onEvent?(entry)
            if let onStep, !onStep(.event(entry)) { abort(Self.stopped) }
        }
        director.recorded(event, at: now)
        collectOrders()
        if case .phase(.script) = event {
            for event in scenario.openingEvents(WorldFacts(isSimulated: true, comparesBytes: true)) { record(event) }
        }
        if !isSettingUp { for event in pushes?.apply(event, &recorder) ?? [] { record(event) } }
    }

    /// Assigns a note its name.
    func assign(row: String, to uuid: String) {
        for event in recorder.assign(row: row, to: Array(uuid.utf8)) { record(event) }
    }

    /// Returns the tokens with which a device of a user authenticates; `nil` if it sends the password.
    func signIn(_ user: String) -> SyncTokens? {
        server.setTime(now)
        do {
            return try server.run.signIn(user)
        } catch {
            abort(.other("\(error)"))
            return nil
        }
    }

    /// Reports whether a device has nothing to send or fetch.
    func settled(_ device: SimulatedDevice, _ isSettled: Bool) {
        if isSettingUp {
            if isSettled { prepared.append(device) }
        } else if isSettled {
            director.settled(device.name, at: now)
        } else {
            director.unsettled(device.name, at: now)
        }
        collectOrders()
    }

    /// Reports that the version of a device's client cannot open the store.
    func refused(_ device: SimulatedDevice) {
        director.clientRefused(device.name, at: now)
        collectOrders()
    }

    /// Reports that an exchange has not reached the point of its fault.
    func faultMissed(_ fault: Int) { director.faultMissed(fault) }

    private func finished(_ act: ScenarioDirector.ActID, _ error: String?) {
        if let error {
            director.actFailed(act, error, at: now)
        } else {
            director.actFinished(act, at: now)
        }
        collectOrders()
    }

    // MARK: Orders

    /// Takes the director's orders. What concerns faults is executed at once: before anything more happens on the link
    /// or in the client.
    private func collectOrders() {
        while let order = director.takeAction() {
            switch order {
            case .armFault(let index, let exchange, let name, let point):
                device(name)?.injectFault(index, exchange: exchange, at: point)
            case .record(.fault), .killClient(_, device: _, atOnce: true), .closeConnection: execute(order)
            default: orders.append(order)
            }
        }
    }

    private func executeOrders() {
        while !hasEnded {
            if !prepared.isEmpty {
                let device = prepared.removeFirst()
                guard device.isRunning else { continue }
                device.endSetup()
                director.prepared(device.name, at: now)
                collectOrders()
            } else if let order = orders.popFirst() {
                execute(order)
            } else {
                break
            }
        }
    }

    private func execute(_ order: ScenarioDirector.Action) {
        switch order {
        case .prepare(let name): device(name)?.start()
        case .record(let event): record(event)
        case .setConditions(let name, let conditions, link: _): device(name)?.setConditions(conditions)
        case .setInterface(let name, let isUp, let kind): device(name)?.setInterface(isUp: isUp, kind)
        case .startClient(let act, let name): finished(act, device(name)?.start()?.description)
        case .killClient(let act, let name, atOnce: _):
            device(name)?.kill()
            device(name)?.dropWaitingActs()
            finished(act, nil)
        case .closeConnection(let exchange, let name, let isAbort):
            device(name)?.closeConnection(of: exchange, isAbort: isAbort)
        case .perform(let act, let actor, let action):
            if let device = device(actor) {
                device.perform(action) { [unowned self] in finished(act, $0) }
            } else {
                finished(act, perform(action, by: actor))
            }
        case .armFault: break
        case .disarmFaults: for device in devices { device.withdrawFaults() }
        case .readServer: readServer()
        case .end(let failure):
            hasEnded = true
            setupFailure = failure
        }
    }

    /// Performs an action of a writer. Returns the reason if it is an error.
    private func perform(_ action: Scenario.Action, by actor: String) -> String? {
        guard let writer = writers.first(where: { $0.name == actor }) else { return nil }
        do throws(ActionError) {
            server.setTime(now)
            if try server.run.execute(action, of: writer.user, recorder) { return nil }
        } catch {
            return error.description
        }
        return writer.perform(action)
    }

    private func device(_ name: String) -> SimulatedDevice? { devices.first { $0.name == name } }

    private func readServer() {
        do {
            let rows = try server.run.rows(recorder)
            record(.server(rows))
        } catch {
            record(.aborted(.other("cannot read the server's notes: \(error)")))
        }
    }
}
