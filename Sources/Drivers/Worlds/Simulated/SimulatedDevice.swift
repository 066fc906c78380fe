internal import Client
internal import Determinism
internal import Impairment
internal import LinkModel
internal import NIOCore
internal import Scenario
internal import TCPModel
internal import Wire

/// A device: a client with its store, and the link of its traffic.
///
/// Every input of the client and the link is followed by ``settle()``, which executes all their actions.
final class SimulatedDevice {
    unowned let world: SimulatedWorld
    let name: String
    /// The user who is signed in.
    var user: String
    var link: SharedLink
    private var isNameResolved = true
    private(set) var interface = NetworkInterface(isUp: true)

    // The client.
    let client: any SimulatedClient
    /// Whether a process of the client runs.
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
    var wasSettled: Bool?

    /// Random identifiers of the user's notes.
    let ids: RandomIdentifiers
    /// Random seeds of the processes.
    let seeds: RandomIdentifiers

    /// The shift of the wall clock.
    var wallShift = Nanoseconds.zero
    /// The disk with the client's store.
    var disk = Scenario.Disk.normal
    /// The connections of requests past the client's queue, and what follows the end of each.
    var rawExchanges: [(connection: Connection, finish: () -> Void)] = []
    /// The time limits of such a request: to connect, and to get the response.
    static let rawTimeout = Nanoseconds.seconds(30)

    /// Acts of the user that wait for the restart of a killed client.
    var waitingActs: [() -> Void] = []
    /// Acts of the user whose changes a slow disk is writing.
    var storingActs: [() -> Void] = []
    /// Whether the changes of the current act were committed.
    var hasCommitted = false

    init(_ device: Scenario.Device, in world: SimulatedWorld) {
        self.world = world
        name = device.name
        user = device.user
        ids = RandomIdentifiers(seed: world.seed, "user/\(name)/ids")
        seeds = RandomIdentifiers(seed: world.seed, "engine/\(name)")
        link = Self.makeLink(name, world)
        ledger = ExchangeLedger(name)
        if let app = device.client.app {
            client = SimulatedApp(app, settings: device.appSettings)
        } else {
            client = SimulatedNotes(device, in: world)
        }
    }

    private static func makeLink(_ name: String, _ world: SimulatedWorld) -> SharedLink {
        SharedLink(
            seed: world.seed, name: "link/\(name)",
            exchangeTracking: ExchangeTracking(awaitsDecisions: world.scenario.decidesOnFaultsBeforeRequests))
    }

    // MARK: The process

    /// Starts the client with what is committed. Returns the reason if it cannot start.
    @discardableResult
    func start() -> History.Notice? {
        isRestarting = false
        guard !isRunning else { return nil }
        if let reason = client.start(on: self) { return reason }
        process += 1
        isRunning = true
        recordView()
        settle()
        return nil
    }

    /// Kills the client: its kernel closes its connections, and the store keeps what is committed.
    func kill() {
        isRestarting = false
        guard isRunning else { return }
        client.stop()
        isRunning = false
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
        endStoring()
    }

    /// Ends the setup: the device has a store with the server's notes, and a link without connections.
    func endSetup() {
        kill()
        for (_, connection) in flows.sorted(by: { $0.key.index < $1.key.index }) { connection.execute(.ended) }
        flows = [:]
        ledger = ExchangeLedger(name)
        actionCount = 0
        commitActions = []
        client.setupEnded()
        link = Self.makeLink(name, world)
        linkDeadline = nil
        killAction = world.kill?.device == name ? world.kill?.action : nil
    }

    /// Starts the client again after a kill between two of its actions.
    func restart() {
        guard isRestarting else { return }
        start()
        world.record(.started(device: name))
        performWaitingActs()
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
        client.receive(input, at: world.now)
        settle()
    }

    /// Processes the deadline of the client.
    func clientDeadlinePassed(ofProcess process: Int) {
        // The event of a deadline that has been replaced by an earlier one.
        guard process == self.process, isRunning, clientDeadline == world.now else { return }
        clientDeadline = nil
        guard let deadline = client.nextDeadline, deadline <= world.now else { return settle() }
        input(.deadline)
    }

    /// Ends a commit of a process that has waited for a slow disk.
    func commitEnded(ofProcess process: Int) {
        guard process == self.process, isRunning else { return }
        client.endCommit(on: self)
        settle()
        endStoring()
    }

    /// Ends the acts that have waited for a slow disk, unless it is still writing.
    private func endStoring() {
        if isRunning, client.isCommitting { return }
        let acts = storingActs
        storingActs = []
        for act in acts { act() }
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
        client.interfaceChanged(interface, at: world.now)
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
            world.schedule(.clientSocket(connection, .connectFailed(reason)), after: SimulatedWorld.localDelay)
        }
        if !interface.isUp {
            fail(.unreachable)
        } else if !isNameResolved {
            fail(.nameNotFound)
        } else {
            world.schedule(.syn(connection, tries: 0), after: SimulatedWorld.localDelay)
        }
    }

    /// Sends a SYN, which the proxy of the device accepts, refuses or drops.
    func sendSYN(_ connection: Connection, tries: Int) {
        guard connection.client == .connecting, connection.process == process else { return }
        switch link.synTreatment {
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
            } else if isRunning, let isCommit = client.isNextActionCommit() {
                if killAction == actionCount { return killBetweenActions() }
                if isCommit { commitActions.append(actionCount) }
                actionCount += 1
                client.executeNextAction(on: self)
            } else {
                break
            }
        }
        setDeadlines()
        reportSettled()
    }

    // The ends of the accesses to the link; see `SimulatedClient.isNextActionCommit()`.

    @inline(never)
    private func takeExchangeEvent() -> SharedLink.TimedExchangeEvent? { link.takeExchangeEvent() }

    @inline(never)
    private func takeLinkAction() -> SharedLink.TimedAction? { link.takeAction() }

    /// Records a commit of the client.
    func committed(digest: UInt64) {
        hasCommitted = true
        world.record(.commit(device: name, digest: digest))
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
        if isRunning, let deadline = client.nextDeadline, clientDeadline.map({ deadline < $0 }) ?? true {
            clientDeadline = max(deadline, world.now)
            world.schedule(.client(self, process: process), at: max(deadline, world.now))
        }
    }

    // MARK: Observation

    func recordView() {
        // A state recorded now would be dropped, and would later count as unchanged.
        if world.isSettingUp { return }
        if let event = client.viewEvent(of: self, &world.recorder) { world.record(event) }
    }

    func reportSettled() {
        guard isRunning else { return }
        let isSettled = client.isSettled
        guard isSettled != wasSettled else { return }
        wasSettled = isSettled
        world.settled(self, isSettled)
    }
}
