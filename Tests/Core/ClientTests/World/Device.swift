import Client
import Determinism
import NIOCore
import NotesContract
import Wire

/// A process of the client: a machine over a store and a link. A killed process loses everything but its store.
final class Device {
    /// The outcome of commits.
    enum Disk { case works, full, slow }

    /// The time of a commit on a slow disk.
    static let slowCommit = Nanoseconds.seconds(3)

    /// The end of the process at a step, which is counted from the start of the plan: before or after an action.
    struct KillPlan {
        var step: Int
        var isAfterAction: Bool
    }

    struct DiskFull: Error {}
    struct NotRunning: Error {}

    let name: String
    private unowned let world: World
    let store: MemoryStore
    let link: Link
    let policy: SyncPolicy
    var account: SyncAccount?
    var authorization: String
    var adapt: (inout SyncEngine.Configuration) -> Void = { _ in }
    /// The tokens that the device keeps for its next process; `nil` if it sends its password.
    var tokens: SyncTokens?

    private(set) var machine: SyncMachine?
    /// The number of the process.
    private(set) var generation = 0
    private var connections: [HTTPConnectionID: Connection] = [:]
    private var alarm: Instant?
    private var interface = NetworkInterface(isUp: true)
    /// The version of the store that the process knows.
    private var knownVersion = 0
    /// The advances since the time last changed, to detect a machine that spins.
    private var advances = (at: Instant.start, count: 0)

    var disk = Disk.works
    /// Whether a commit on the slow disk is under way.
    private var isCommitting = false
    var killPlan: KillPlan?
    /// Called after the process was killed by the plan.
    var onKill: (() -> Void)?
    /// The actions taken since the plan was set.
    var steps = 0
    /// The steps that were commits.
    var commitSteps: [Int] = []
    private(set) var commits: [(at: Instant, change: StoreChange)] = []
    private(set) var failedCommits: [Instant] = []
    private(set) var events: [(at: Instant, event: SyncEvent)] = []
    /// Writes on connections: the time, and the method and target of the request.
    private(set) var sent: [(at: Instant, request: String)] = []
    /// The bytes written.
    private(set) var bytesSent = 0
    /// The actions taken in all.
    private(set) var actionCount = 0
    /// Whether the next commit contains a change by the user.
    private var isUserChange = false
    private var isUserChangeCommitted = false
    private var hasUserCommitFailed = false
    /// Whether the user's change was based on a store that another process had changed.
    private var isUserChangeStale = false
    /// Called with each committed change.
    var onCommit: ((StoreChange) -> Void)?
    /// The rows as the reported changes build them up.
    private(set) var shown: [RecordID: RecordRow] = [:]
    private(set) var outboxShown = 0
    /// Called with each reported change of the view.
    var onShow: ((ViewChange) -> Void)?

    init(
        _ name: String, in world: World, store: MemoryStore, policy: SyncPolicy, account: SyncAccount?,
        authorization: String
    ) {
        self.name = name
        self.world = world
        self.store = store
        self.policy = policy
        self.account = account
        self.authorization = authorization
        link = Link(time: world.time)
    }

    // MARK: The process

    /// Starts the process with what it has committed.
    func start() {
        generation += 1
        steps = 0
        knownVersion = store.version
        shown = [:]
        world.processCount += 1
        var configuration = SyncEngine.Configuration(
            restoring: store.state, account: account, policy: policy, tokens: tokens,
            seed: world.seed &* 1_000_003 &+ world.processCount)
        adapt(&configuration)
        machine = SyncMachine(
            engine: NotesEngine(SyncEngine(configuration)), host: World.host, authorization: authorization)
        input { machine, now in machine.input(at: now) { engine, now in engine.started(interface, at: now) } }
    }

    /// Ends the process without any notice; its kernel closes the connections.
    func kill() {
        guard machine != nil else { return }
        machine = nil
        generation += 1
        alarm = nil
        isCommitting = false
        let open = connections.values.sorted { $0.id < $1.id }
        connections = [:]
        for connection in open { connection.closeByClient() }
    }

    var isRunning: Bool { machine != nil }
    var isSettled: Bool { machine?.engine.isSettled ?? true }
    var engine: SyncEngine { machine!.engine.sync }
    var status: SyncStatus { engine.status }

    // MARK: Inputs

    func input(of generation: Int, _ body: (inout SyncMachine, Instant) -> Void) {
        if generation == self.generation { input(body) }
    }

    /// Passes an input to the machine and executes its actions.
    func input(_ body: (inout SyncMachine, Instant) -> Void) {
        guard machine != nil else { return }
        body(&machine!, world.now)
        executeActions()
    }

    /// Passes a change by the user; throws if it could not be committed, in which case it has not happened.
    @discardableResult
    func change<Value>(_ body: (inout SyncEngine, Instant) throws -> Value) throws -> Value {
        guard machine != nil else { throw NotRunning() }
        let generation = generation
        isUserChange = true
        isUserChangeStale = false
        isUserChangeCommitted = false
        hasUserCommitFailed = false
        defer { isUserChange = false }
        var value = try machine!.change(at: world.now, body)
        executeActions()
        while isUserChangeStale, machine != nil {
            isUserChangeStale = false
            isUserChange = true
            value = try machine!.change(at: world.now, body)
            executeActions()
        }
        if hasUserCommitFailed { throw DiskFull() }
        if generation != self.generation, !isUserChangeCommitted { throw NotRunning() }
        return value
    }

    private func executeActions() {
        while machine != nil, !isCommitting {
            guard let action = machine!.takeAction() else { break }
            if let plan = killPlan, !plan.isAfterAction, plan.step == steps { return killByPlan() }
            steps += 1
            actionCount += 1
            execute(action)
            if let plan = killPlan, plan.isAfterAction, plan.step == steps { return killByPlan() }
        }
        setAlarm()
    }

    private func killByPlan() {
        killPlan = nil
        kill()
        onKill?()
    }

    private func execute(_ action: SyncMachine.Action) {
        switch action {
        case .commit(let change):
            commitSteps.append(steps)
            commit(change)
        case .connect(let id): connect(id)
        case .write(let id, let bytes):
            recordWrite(bytes)
            connections[id]?.write(bytes)
        case .close(let id, isAbortive: _): connections.removeValue(forKey: id)?.closeByClient()
        case .report(let event):
            if case .view(let change) = event { show(change) }
            if case .refreshed(let tokens) = event { self.tokens = tokens }
            events.append((world.now, event))
        }
    }

    private func show(_ change: ViewChange) {
        for row in change.rows { shown[row.id] = row }
        for id in change.removed { shown[id] = nil }
        outboxShown = change.outbox
        onShow?(change)
    }

    private func setAlarm() {
        guard let deadline = machine?.nextDeadline else { return }
        if let alarm, alarm <= deadline, alarm > world.now { return }
        let time = max(deadline, world.now)
        alarm = time
        let generation = generation
        world.time.schedule(at: time) { [weak self] in
            guard let self, generation == self.generation else { return }
            if self.alarm == time { self.alarm = nil }
            guard let deadline = self.machine?.nextDeadline else { return }
            guard deadline <= self.world.now else { return self.setAlarm() }
            if self.advances.at != self.world.now { self.advances = (self.world.now, 0) }
            self.advances.count += 1
            if self.advances.count > 1000 {
                self.world.problems.append("\(self.name) advances at \(self.world.now.sinceStart.inSeconds) s for ever")
                return self.kill()
            }
            self.input { machine, now in machine.process(.deadline, at: now) }
        }
    }

    // MARK: Commits

    private func commit(_ change: StoreChange) {
        let isUserChange = isUserChange
        self.isUserChange = false
        if disk == .full {
            failedCommits.append(world.now)
            if isUserChange {
                hasUserCommitFailed = true
                machine!.change(at: world.now) { sync, now in sync.undoUserChange(at: now) }
            } else {
                machine!.commitFailed("disk full", at: world.now)
            }
        } else if store.version != knownVersion {
            let changes = store.changes(after: knownVersion)
            knownVersion = store.version
            // A change by the user is repeated on what the other process has committed.
            isUserChangeStale = machine!.change(at: world.now) { sync, now in sync.commitWasStale(changes, at: now) }
        } else if disk == .slow {
            isCommitting = true
            let generation = generation
            world.time.schedule(at: world.now + Self.slowCommit) { [weak self] in
                guard let self, generation == self.generation else { return }
                self.isCommitting = false
                self.finishCommit(change, isUserChange: isUserChange)
                self.executeActions()
            }
        } else {
            finishCommit(change, isUserChange: isUserChange)
        }
    }

    private func finishCommit(_ change: StoreChange, isUserChange: Bool) {
        store.commit(change)
        knownVersion = store.version
        if isUserChange { isUserChangeCommitted = true }
        commits.append((world.now, change))
        onCommit?(change)
        machine!.committed(at: world.now)
    }

    /// Whether another process has committed what this one has not read.
    var hasUnreadChanges: Bool { store.version != knownVersion }

    /// Takes up what another process has committed.
    func readStore() {
        guard store.version != knownVersion else { return }
        let changes = store.changes(after: knownVersion)
        knownVersion = store.version
        input { machine, now in machine.change(at: now) { sync, now in sync.storeChanged(changes, at: now) } }
    }

    // MARK: The network

    private func connect(_ id: HTTPConnectionID) {
        let connection = Connection(id, of: self, in: world)
        let generation = generation
        func fail(_ reason: HTTPConnectError, after delay: Nanoseconds) {
            world.time.schedule(at: world.now + delay) { [weak self] in
                self?.input(of: generation) { machine, now in machine.process(.connectFailed(id, reason), at: now) }
            }
        }
        if !interface.isUp { return fail(.unreachable, after: .zero) }
        switch link.mode {
        case .refusing: fail(.refused, after: link.latency + link.latency)
        case .stalled: connections[id] = connection
        case .up:
            connections[id] = connection
            link.add(connection)
            world.time.schedule(at: world.now + link.latency + link.latency) { [weak self] in
                self?.input(of: generation) { machine, now in machine.process(.connected(id), at: now) }
            }
        }
    }

    func connectionClosed(_ connection: Connection) { connections[connection.id] = nil }

    /// Checks that a change is committed before any byte of it is sent.
    private func recordWrite(_ bytes: ByteBuffer) {
        bytesSent += bytes.readableBytes
        let view = bytes.readableBytesView
        guard let first = view.first, (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first) else { return }
        let text = String(decoding: view.prefix(2048), as: UTF8.self)
        let line = text.prefix { $0 != "\r\n" }.split(separator: " ")
        guard line.count == 3, line[2] == "HTTP/1.1" else { return }
        sent.append((world.now, "\(line[0]) \(line[1])"))
        guard let range = text.range(ofKey: NotesHTTP.idempotencyKeyName) else { return }
        let operation = text[range]
        guard let entry = store.entries.values.first(where: { $0.operation.utf8.elementsEqual(operation.utf8) }) else {
            world.problems.append("\(name) sends an operation that is not committed: \(line[0]) \(line[1])")
            return
        }
        if entry.attempts == 0 {
            world.problems.append("\(name) sends an attempt that is not committed: \(line[0]) \(line[1])")
        }
    }

    /// Changes the network interface and tells the machine.
    func setInterface(isUp: Bool, isMetered: Bool = false) {
        interface = NetworkInterface(isUp: isUp, isMetered: isMetered)
        let interface = interface
        input { machine, now in machine.change(at: now) { engine, now in engine.interfaceChanged(interface, at: now) } }
    }

    // MARK: The user

    /// The password has changed.
    func credentials() {
        input { machine, now in machine.change(at: now) { engine, now in engine.credentialsChanged(at: now) } }
    }

    func sync() { input { machine, now in machine.change(at: now) { engine, now in engine.syncRequested(at: now) } } }

    /// Creates a note.
    func tryCreate(_ title: String?, _ text: String?, id: RecordID? = nil) throws -> RecordID {
        let content = content(title, text)
        return try change { engine, now in try engine.create(content, id: id, at: now) }
    }

    /// Edits a note.
    func tryEdit(_ id: RecordID, _ text: String?, title: String? = nil) throws {
        let content = content(title, text)
        try change { engine, now in try engine.edit(id, content, at: now) }
    }

    func tryDelete(_ id: RecordID) throws { try change { engine, now in try engine.delete(id, at: now) } }

    @discardableResult
    func tryResolve(_ id: RecordID, _ resolution: SyncEngine.Resolution) throws -> RecordID {
        try change { engine, now in try engine.resolve(id, resolution, at: now) }
    }

    func tryRetry(_ id: RecordID) throws { try change { engine, now in try engine.retry(id, at: now) } }

    func tryDismiss(_ id: RecordID) throws { try change { engine, now in try engine.dismiss(id, at: now) } }

    /// The content of a note written now.
    func content(_ title: String?, _ text: String?) -> RecordContent {
        let milliseconds = 1_772_352_000_000 + Int(world.now.sinceStart.count / 1_000_000)
        return NoteContent(title: title, text: text, date: NoteDate.text(millisecondsSince1970: milliseconds)).encoded
    }

    func create(_ title: String? = nil, _ text: String? = nil, id: RecordID? = nil) -> RecordID {
        perform { try tryCreate(title, text, id: id) } ?? ""
    }

    func edit(_ id: RecordID, _ text: String?, title: String? = nil) {
        _ = perform { try tryEdit(id, text, title: title) }
    }

    func delete(_ id: RecordID) { _ = perform { try tryDelete(id) } }

    @discardableResult
    func resolve(_ id: RecordID, _ resolution: SyncEngine.Resolution) -> RecordID {
        perform { try tryResolve(id, resolution) } ?? id
    }

    func retry(_ id: RecordID) { _ = perform { try tryRetry(id) } }

    func dismiss(_ id: RecordID) { _ = perform { try tryDismiss(id) } }

    /// Adopts the store for the account of the device.
    func adopt() { _ = perform { try change { engine, now in engine.adopt(at: now) } } }

    private func perform<Value>(_ body: () throws -> Value) -> Value? {
        do { return try body() } catch {
            world.problems.append("\(name): a change by the user failed: \(error)")
            return nil
        }
    }

    // MARK: The view

    func row(_ id: RecordID) -> RecordRow? { machine?.engine.sync.row(id) }
    func icon(_ id: RecordID) -> RecordRow.Icon? { row(id)?.icon }
    func text(_ id: RecordID) -> String? { row(id).flatMap { NoteContent($0.content).text } }
    /// The rows in the order of their identifiers.
    var rows: [RecordRow] { machine.map { $0.engine.sync.rows.sorted { $0.id < $1.id } } ?? [] }
    /// The texts of notes that are not deleted.
    var texts: [RecordID: String] {
        var texts: [RecordID: String] = [:]
        for row in rows where !row.isDeleted { texts[row.id] = NoteContent(row.content).text }
        return texts
    }
    /// The changes by the method and target of their requests.
    var sentWrites: [String] { sent.map(\.request).filter { !$0.hasPrefix("GET") } }
}

extension String {
    /// Returns the range of the value of a header field.
    fileprivate func range(ofKey name: String) -> Range<Index>? {
        let bytes = Array(utf8)
        let key = Array("\r\n\(name): ".utf8)
        guard bytes.count > key.count else { return nil }
        for start in 0..<(bytes.count - key.count)
        where bytes[start] == 13 && bytes[start..<start + key.count] == key[...] {
            let from = start + key.count
            let end = bytes[from...].firstIndex(of: 13) ?? bytes.endIndex
            return utf8.index(startIndex, offsetBy: from)..<utf8.index(startIndex, offsetBy: end)
        }
        return nil
    }
}
