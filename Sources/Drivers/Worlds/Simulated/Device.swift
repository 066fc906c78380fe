internal import Client
internal import Determinism
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import Scenario
internal import TCPModel
internal import Wire

/// A device: a store, a client while its process runs, and the link of its traffic.
///
/// Every input of the client and the link is followed by ``settle()``, which executes all their actions.
final class Device {
    unowned let world: World
    let name: String
    let user: String
    private let mutants: Set<Mutant>
    var store: MemoryStore
    /// The tokens that the device keeps for the next start of its client; `nil` if it has none.
    private var tokens: SyncTokens?
    /// The version of the client.
    var version: ClientVersion
    var link: SharedLink
    private var isNameResolved = true
    private(set) var interface = NetworkInterface(isUp: true)

    // The client.
    var machine: SyncMachine?
    /// The app in place of the notes client; `nil` on other devices.
    var app: DeviceApp?
    /// Whether there is an app. To compare the optional with `nil` would copy the app, with each input and action.
    private(set) var isApp = false
    /// Whether there is a machine. To compare the optional with `nil` would copy the machine.
    private(set) var isRunning = false
    /// The number of processes that were started.
    private(set) var process = 0
    private var connections: [HTTPConnectionID: Connection] = [:]
    private var clientDeadline: Instant?
    private var linkDeadline: Instant?
    /// The number of actions of clients since 0 s.
    private(set) var actionCount = 0
    /// The numbers of the actions that were commits.
    private(set) var commitActions: [Int] = []
    /// The action before which the client is killed.
    private var killAction: Int?
    /// Whether the client starts again after a kill between two of its actions.
    private var isRestarting = false

    // Observation.
    var flows: [FlowID: Connection] = [:]
    /// The connections and exchanges.
    var ledger: ExchangeLedger
    var view = DeviceView()
    var wasSettled: Bool?

    /// Random identifiers of the user's notes.
    let ids: RandomIdentifiers
    /// Random seeds of the processes.
    let seeds: RandomIdentifiers
    /// Random identifiers of migrated changes.
    let upgradeIDs: RandomIdentifiers

    /// The shift of the wall clock.
    var wallShift = Nanoseconds.zero
    /// The connections of requests past the client's queue, and what follows the end of each.
    var rawExchanges: [(connection: Connection, finish: () -> Void)] = []
    /// The time limits of such a request: to connect, and to get the response.
    static let rawTimeout = Nanoseconds.seconds(30)

    /// Acts of the user that wait for the restart of a killed client.
    var waitingActs: [() -> Void] = []
    /// Whether the changes of the current act were committed.
    var hasCommitted = false

    init(_ device: Scenario.Device, in world: World) {
        self.world = world
        name = device.name
        user = device.user
        mutants = device.mutants(world.mutants)
        ids = RandomIdentifiers(seed: world.seed, "user/\(name)/ids")
        seeds = RandomIdentifiers(seed: world.seed, "engine/\(name)")
        upgradeIDs = RandomIdentifiers(seed: world.seed, "upgrade/\(name)")
        link = Self.makeLink(name, world)
        ledger = ExchangeLedger(name)
        version = ClientVersion(rawValue: world.scenario.initialVersion(of: name)) ?? .current
        store = MemoryStore(version: version)
        app = DeviceApp(device)
        isApp = app != nil
    }

    private static func makeLink(_ name: String, _ world: World) -> SharedLink {
        SharedLink(
            seed: world.seed, name: "link/\(name)",
            exchangeTracking: ExchangeTracking(awaitsDecisions: world.scenario.decidesOnFaultsBeforeRequests))
    }

    // MARK: The process

    /// Starts the client with what is committed. Returns the reason if the client's version cannot open the store.
    @discardableResult
    func start() -> History.Notice? {
        isRestarting = false
        guard !isRunning else { return nil }
        if isApp {
            process += 1
            isRunning = true
            return startApp()
        }
        if let refusal = StoreVersions.refusal(of: version, store: store.version) { return refusal }
        process += 1
        if tokens == nil { tokens = world.signIn(user) }
        let engine = SyncEngine(
            restoring: store.state, account: SyncAccount(user: user, server: Server.host),
            policy: SyncPolicy(world.scenario.policy), tokens: tokens, seed: seeds.bits(), mutants: mutants,
            version: version)
        var machine = SyncMachine(
            engine: NotesEngine(engine), host: Server.host, authorization: Server.authorization(of: user),
            timeouts: HTTPTimeouts(world.scenario.policy))
        machine.input(at: world.now) { engine, now in engine.started(interface, at: now) }
        self.machine = machine
        isRunning = true
        view.version = version
        view.restart(engine)
        recordView()
        settle()
        return nil
    }

    /// Kills the client: its kernel closes its connections, and the store keeps what is committed.
    func kill() {
        isRestarting = false
        guard isRunning else { return }
        machine = nil
        app?.stop()
        isRunning = false
        nextClientAction = nil
        process += 1
        clientDeadline = nil
        wasSettled = nil
        let open = connections.sorted { $0.key < $1.key }
        connections = [:]
        for (_, connection) in open { connection.closeByClient() }
        let raw = rawExchanges
        rawExchanges = []
        for (connection, _) in raw { connection.closeByClient() }
        settle()
    }

    /// Ends the setup: the device has a store with the server's notes, and a link without connections.
    func endSetup() {
        kill()
        for (_, connection) in flows.sorted(by: { $0.key.index < $1.key.index }) { connection.execute(.ended) }
        flows = [:]
        ledger = ExchangeLedger(name)
        actionCount = 0
        commitActions = []
        // The life of the tokens begins with the scenario.
        tokens = nil
        link = Self.makeLink(name, world)
        linkDeadline = nil
        killAction = world.kill?.device == name ? world.kill?.action : nil
    }

    /// Starts the client again after a kill between two of its actions.
    func restart() {
        guard isRestarting else { return }
        start()
        world.record(.started(device: name))
        let acts = waitingActs
        waitingActs = []
        for act in acts { act() }
    }

    private func killBetweenActions() {
        killAction = nil
        kill()
        isRestarting = true
        world.settled(self, false)
        world.record(.stopped(device: name))
        world.schedule(.restart(self), after: world.kill?.restartsAfter ?? .zero)
    }

    // MARK: Inputs

    private func input(_ input: ClientInput) {
        guard isRunning else { return }
        if isApp {
            app?.machine?.process(input, at: world.now)
        } else {
            machine!.process(input, at: world.now)
        }
        settle()
    }

    /// Returns a value of the notes client; `nil` if it does not run. In place, because a copy of the machine is expensive.
    func value<Value>(_ body: (inout SyncMachine) -> Value?) -> Value? {
        isRunning && !isApp ? body(&machine!) : nil
    }

    /// The time of the next input ``ClientInput/deadline``.
    private var machineDeadline: Instant? {
        isApp ? app?.machine?.nextDeadline : value { $0.nextDeadline }
    }

    /// Processes the deadline of the client.
    func clientDeadlinePassed(ofProcess process: Int) {
        // The event of a deadline that has been replaced by an earlier one.
        guard process == self.process, isRunning, clientDeadline == world.now else { return }
        clientDeadline = nil
        guard let deadline = machineDeadline, deadline <= world.now else { return settle() }
        input(.deadline)
    }

    /// Processes the deadline of the link.
    func linkDeadlinePassed() {
        guard linkDeadline == world.now else { return }
        linkDeadline = nil
        link.advance(to: world.now)
        settle()
    }

    /// Processes an event of a client's socket.
    func receive(_ event: ClientSocketEvent, on connection: Connection) {
        switch event {
        case .drained:
            report(.drained(.client), on: connection.flow)
            return settle()
        case .reset:
            report(.gone(.client), on: connection.flow)
            return settle()
        default: break
        }
        guard connection.client != .closed, connection.process == process, isRunning else {
            if case .received = event { report(.gone(.client), on: connection.flow) }
            return settle()
        }
        switch event {
        // A response may end with the connection.
        case .received, .closed: record(ledger.readAll(on: connection.number))
        default: break
        }
        guard let id = connection.id else { return receiveRaw(event, on: connection) }
        switch event {
        case .connected:
            connection.client = .open
            input(.connected(id))
        case .connectFailed(let reason):
            connection.client = .closed
            connections[id] = nil
            input(.connectFailed(id, reason))
        case .received(let bytes): input(.received(bytes, id))
        case .written(let count): input(.written(count, id))
        case .closed(let how):
            connections[id] = nil
            if how == .fin { connection.closeByClient() }
            connection.client = .closed
            input(.closed(id, how))
        case .drained, .reset: break
        }
    }

    /// Passes an event of a socket to the link.
    func report(_ event: SocketEvent, on flow: FlowID?) {
        if let flow { link.receive(event, on: flow, at: world.now) }
    }

    // MARK: The network

    /// Applies conditions to the link.
    func setConditions(_ conditions: Conditions) {
        isNameResolved = conditions.connectionPolicy != .dns
        if conditions.connectionPolicy == .portal { for (_, connection) in flows { connection.stopComparing() } }
        link.setConditions(conditions, at: world.now)
        settle()
    }

    /// Changes the state of the interface.
    func setInterface(isUp: Bool, _ kind: Scenario.NetworkEntry.Interface) {
        interface = NetworkInterface(isUp: isUp, isMetered: kind == .cellular)
        guard isRunning else { return }
        let interface = interface
        if isApp {
            appInterfaceChanged()
        } else {
            machine!.input(at: world.now) { engine, now in engine.interfaceChanged(interface, at: now) }
        }
        settle()
    }

    /// Withdraws faults that have not applied.
    func withdrawFaults() { link.withdrawFaults(at: world.now) }

    // MARK: Connecting

    func connect(_ id: HTTPConnectionID) {
        let (number, event) = ledger.attempt(&world.recorder)
        let connection = Connection(self, process: process, id, number)
        world.record(event)
        connections[id] = connection
        connect(connection)
    }

    func connect(_ connection: Connection) {
        func fail(_ reason: HTTPConnectError) {
            world.schedule(.clientSocket(connection, .connectFailed(reason)), after: World.localDelay)
        }
        if !interface.isUp {
            fail(.unreachable)
        } else if !isNameResolved {
            fail(.nameNotFound)
        } else {
            world.schedule(.syn(connection, tries: 0), after: World.localDelay)
        }
    }

    /// Sends a SYN, which the proxy of the device accepts, refuses or drops.
    func sendSYN(_ connection: Connection, tries: Int) {
        guard connection.client == .connecting, connection.process == process else { return }
        switch link.reachability {
        case .refused:
            world.schedule(.clientSocket(connection, .connectFailed(.refused)), after: .zero)
        case .blackholed:
            world.schedule(.syn(connection, tries: tries + 1), after: StackPreset.linux.synTimeout(after: tries))
        case .open:
            let flow = link.open(at: world.now)
            connection.flow = flow
            flows[flow] = connection
            world.schedule(.clientSocket(connection, .connected), after: .zero)
            if link.needsUpstream(flow) {
                world.schedule(.serverSocket(connection, .accepted), after: .zero)
            } else {
                connection.stopComparing()
            }
        }
        settle()
    }

    // MARK: Actions

    /// Executes all actions of the client and the link.
    func settle() {
        while true {
            // Mostly there is neither an event nor an action, and to take `nil` costs more than to ask.
            if link.hasExchangeEvents, let event = takeExchangeEvent() {
                record(event)
            } else if link.hasActions, let action = takeLinkAction() {
                guard let connection = flows[action.flow] else { continue }
                if case .ended = action.action { flows[action.flow] = nil }
                connection.execute(action.action)
            } else if isRunning, hasAction {
                if killAction == actionCount { return killBetweenActions() }
                guard let action = takeClientAction() else { continue }
                if action.isCommit { commitActions.append(actionCount) }
                actionCount += 1
                switch action {
                case .notes(let action): execute(action)
                case .app(let action): execute(action)
                }
            } else {
                break
            }
        }
        setDeadlines()
        reportSettled()
    }

    // In release builds of Swift 6.3 the access to a machine that is taken from in the condition of a loop stays open in the
    // loop's body, and the next one aborts the process. These functions are the ends of the accesses.

    @inline(never)
    private func takeExchangeEvent() -> SharedLink.TimedExchangeEvent? { link.takeExchangeEvent() }

    @inline(never)
    private func takeLinkAction() -> SharedLink.TimedAction? { link.takeAction() }

    /// The next action of the client, if it has been taken from the machine and not been executed.
    private var nextClientAction: DeviceAction?

    private var hasAction: Bool {
        if nextClientAction == nil { nextClientAction = takeMachineAction() }
        return nextClientAction != nil
    }

    @inline(never)
    private func takeMachineAction() -> DeviceAction? {
        if isApp { return app?.machine?.takeAction().map { .app($0) } }
        return machine?.takeAction().map { .notes($0) }
    }

    private func takeClientAction() -> DeviceAction? { nextClientAction.take() }

    @inline(never)
    private func execute(_ action: SyncMachine.Action) {
        switch action {
        case .commit(let change):
            store.commit(change)
            hasCommitted = true
            world.record(.commit(device: name, digest: change.digest))
            machine?.committed(at: world.now)
        case .connect(let id): connect(id)
        case .write(let id, let bytes): write(bytes, on: id)
        case .close(let id, let isAbortive): close(id, isAbortive: isAbortive)
        case .report(.view(let change)):
            let belief = view.apply(change, of: name)
            recordView()
            if let belief { world.record(belief) }
        case .report(.refreshed(let tokens)): self.tokens = tokens
        case .report: break
        }
    }

    func write(_ bytes: ByteBuffer, on id: HTTPConnectionID) { connections[id]?.write(bytes) }

    func close(_ id: HTTPConnectionID, isAbortive: Bool) {
        connections.removeValue(forKey: id)?.closeByClient(isAbortive: isAbortive)
    }

    private func setDeadlines() {
        if let deadline = link.nextDeadline, linkDeadline.map({ deadline < $0 }) ?? true {
            linkDeadline = max(deadline, world.now)
            world.schedule(.link(self), at: max(deadline, world.now))
        }
        if let deadline = machineDeadline, clientDeadline.map({ deadline < $0 }) ?? true {
            clientDeadline = max(deadline, world.now)
            world.schedule(.client(self, process: process), at: max(deadline, world.now))
        }
    }

    // MARK: Observation

    func recordView() {
        // A state recorded now would be dropped, and would later count as unchanged.
        if world.isSettingUp { return }
        let event =
            isApp ? app?.history.event(of: name, &world.recorder) : view.event(of: name, &world.recorder)
        if let event { world.record(event) }
    }

    /// Whether the client has nothing to send or fetch.
    var isSettled: Bool {
        if isApp { return app?.machine?.engine.isSettled ?? false }
        return value { $0.engine.isSettled } ?? false
    }

    func reportSettled() {
        guard isRunning else { return }
        let isSettled = isSettled
        guard isSettled != wasSettled else { return }
        wasSettled = isSettled
        world.settled(self, isSettled)
    }
}
