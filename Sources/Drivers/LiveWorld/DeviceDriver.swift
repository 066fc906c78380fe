internal import Client
internal import Determinism
internal import LiveClient
internal import Scenario
internal import Synchronization
internal import Wire
internal import Worlds

/// A device with the sync client.
actor DeviceDriver: ClientDriver {
    nonisolated let name: String
    let world: LiveRunWorld
    let link: DeviceLink
    var isStopped = false
    private let user: String
    private let adapt: RunBehavior.ClientAdaptation
    private let storePath: String
    private nonisolated let disk = DiskState()
    private var client: SyncClient?
    private var interface = NetworkInterface(isUp: true)
    /// The tokens that the device keeps for the next start of its client; `nil` if it has none.
    private nonisolated let tokens = Mutex<SyncTokens?>(nil)
    /// The shift of the wall clock.
    private var wallShift = Nanoseconds.zero
    /// The request that is being sent past the client's queue.
    private var rawTask: Task<Void, Never>?
    /// The versions of the client, and of the client that has written the store.
    private var version: ClientVersion
    private var storeVersion: ClientVersion
    private let ids: RandomIdentifiers
    private let seeds: RandomIdentifiers

    /// The time of the first sync; longer than the director waits.
    private static let prepareMax = Duration.seconds(60)

    init(
        _ device: Scenario.Device, in world: LiveRunWorld, _ behavior: RunBehavior, _ folder: RunFolder,
        server: LiveServer.Address
    ) async throws {
        name = device.name
        user = device.user
        self.world = world
        adapt = behavior.adaptation(of: device)
        storePath = folder.path("\(device.name).db")
        version = ClientVersion(rawValue: world.scenario.initialVersion(of: device.name)) ?? .current
        storeVersion = version
        ids = RandomIdentifiers(seed: world.seed, "user/\(device.name)/ids")
        seeds = RandomIdentifiers(seed: world.seed, "engine/\(device.name)")
        link = try await DeviceLink(of: device, in: world, server: server)
    }

    func fetch() async throws -> String? {
        let client = try await SyncClient.start(try configuration())
        self.client = client
        // The run may have been cancelled meanwhile.
        let completion = isStopped ? .complete : try await client.waitUntilComplete(timeout: Self.prepareMax)
        await kill()
        // The life of the tokens begins with the scenario.
        tokens.withLock { $0 = nil }
        return completion == .complete ? nil : "\(completion)"
    }

    func kill() async {
        rawTask?.cancel()
        await client?.kill()
        client = nil
    }

    func setInterface(isUp: Bool, isMetered: Bool) async {
        interface = NetworkInterface(isUp: isUp, isMetered: isMetered)
        try? await client?.setInterface(interface)
    }

    func reportActivity() async throws {
        if StoreVersions.refusal(of: version, store: storeVersion) != nil { return world.refused(name) }
        try await client?.reportActivity()
    }

    // MARK: The client

    private func configuration() throws -> SyncClientConfiguration {
        let tokens = try tokens.withLock { tokens throws(SetupError) in
            if tokens == nil { tokens = try world.signIn(user) }
            return tokens
        }
        var configuration = SyncClientConfiguration(
            host: "127.0.0.1", port: link.port, user: user, password: RunServer.password, storePath: storePath)
        if let tokens { configuration.credentials = .tokens(tokens) }
        configuration.policy = SyncPolicy(world.scenario.policy)
        configuration.timeouts = HTTPTimeouts(world.scenario.policy)
        configuration.adapt = adapt
        configuration.policy.heldKinds = version.heldKinds
        configuration.seed = seeds.bits()
        configuration.mustEnd = { [world, name] in world.mustEnd(name) }
        configuration.beforeCommit = { [disk] in disk.beforeCommit() }
        configuration.isHostResolvable = { [link] in link.isNameResolved }
        return configuration
    }

    func start() async throws {
        if let refusal = StoreVersions.refusal(of: version, store: storeVersion) {
            throw ActionError(refusal.description)
        }
        var process = 0
        let version = version
        world.client(of: name) { ledger, _ in
            process = ledger.begin(version)
            return []
        }
        var configuration = try configuration()
        configuration.onActivity = { [world, name, process] in
            world.activity($0, digest: \.digest, of: name, process: process)
        }
        client = try await SyncClient.start(configuration, interface: interface) {
            [weak self, world, name, process] event, _ in
            if case .refreshed(let tokens) = event { self?.tokens.withLock { $0 = tokens } }
            guard case .view(let change) = event else { return }
            world.client(of: name) { ledger, recorder in
                ledger.viewChanged(change, process: process, &recorder)
            }
        }
        // A client without notes reports no change.
        world.client(of: name) { ledger, recorder in ledger.viewEvents(&recorder) }
    }

    // MARK: Acts of the user

    func perform(_ action: Scenario.Action, _ act: ScenarioDirector.ActID) async throws -> Bool {
        if case .send(let request) = action {
            try send(request, act)
            return false
        }
        try await perform(action)
        return true
    }

    private func perform(_ action: Scenario.Action) async throws {
        if case .upgrade(let version) = action { return try await upgrade(to: version) }
        guard let client else { throw ActionError("\(name) is not running") }
        if case .clock(let shift) = action {
            wallShift = wallShift + shift
            return
        }
        if case .disk(let disk) = action { return self.disk.set(disk) }
        if case .open(let row) = action { return try await open(row, client) }
        let wallShift = wallShift
        let known = await known(action.row, client)
        let change = try world.withRecorder { recorder throws(ActionError) in
            let change = try UserChange(
                action, recorder, ids: ids, date: SyncClient.date(shiftedBy: wallShift), isKnown: known.contains)
            guard let change, let record = change.newRecord else { return (change, []) }
            // A note has its name before it is visible.
            return (change, recorder.assign(row: change.row, to: Array(record.text.utf8)))
        }
        guard let change else { return try await client.sync() }
        try await client.change { [world, name] engine, now in
            let kept = try change.apply(to: &engine, at: now)
            guard kept != change.record else { return }
            // A note that is restored under another identifier has its name before it is visible.
            world.client(of: name) { ledger, recorder in
                ledger.renamed(change.record, to: kept)
                return recorder.assign(row: change.row, to: Array(kept.text.utf8))
            }
        }
        guard change.isAccepted else { return }
        world.client(of: name) { [name] _, _ in [.accepted(device: name, row: change.row)] }
    }

    /// Returns the records of the client among several with one name; empty if there is only one.
    private func known(_ row: String?, _ client: SyncClient) async -> Set<RecordID> {
        guard let row else { return [] }
        let records = world.withRecorder { ($0.records(of: row), []) }
        var known: Set<RecordID> = []
        for record in records.count > 1 ? records : [] {
            let id = RecordID(String(decoding: record, as: UTF8.self))
            if (try? await client.row(id)) != nil { known.insert(id) }
        }
        return known
    }

    /// Opens a note, or the list, from the store.
    private func open(_ row: String?, _ client: SyncClient) async throws {
        var record: RecordID?
        if let row {
            let known = await known(row, client)
            let found = try world.withRecorder { recorder throws(ActionError) in
                (try UserChange.record(row, recorder, known.contains), [])
            }
            guard try await client.row(found) != nil else { throw ActionError("\(name) does not show \(row)") }
            record = found
        } else {
            _ = try await client.rows()
        }
        world.client(of: name) { [record] ledger, recorder in ledger.open(record, &recorder) }
    }

    /// Replaces the client by another version, which opens the same store.
    private func upgrade(to number: Int) async throws {
        let next = try StoreVersions.version(number)
        let wasRunning = client != nil
        await kill()
        if wasRunning { world.record(.stopped(device: name)) }
        if let refusal = try refusal(of: next, number) { return world.record(.notice(actor: name, refusal)) }
        try await start()
        world.record(.started(device: name))
    }

    /// Prepares the store for another version of the client, and returns the reason why that version refuses it; `nil` if
    /// it opens it.
    private func refusal(of next: ClientVersion, _ number: Int) throws -> History.Notice? {
        version = next
        if next > storeVersion {
            // Version 1 is emulated: its store gets its layout now. This version migrates it when it opens it.
            try SyncStore.rewriteAsVersion1(path: storePath)
            storeVersion = next
        }
        guard let refusal = StoreVersions.refusal(of: next, store: storeVersion) else { return nil }
        guard isStoreNewer(than: next) else { throw ActionError("version \(number) opens a newer store") }
        return refusal
    }

    /// Returns whether the store's file refuses a version of the client.
    private func isStoreNewer(than version: ClientVersion) -> Bool {
        do {
            try SyncStore.check(path: storePath, canBeOpenedBy: version.rawValue)
            return false
        } catch {
            return error.kind == .newer
        }
    }

    /// Sends a request past the client's queue, on a connection of its own. Later orders do not wait for it; a kill closes
    /// its connection.
    private func send(_ request: Scenario.RawRequest, _ act: ScenarioDirector.ActID) throws(ActionError) {
        guard client != nil else { throw ActionError("\(name) is not running") }
        let content = try world.withRecorder { recorder throws(ActionError) in
            (try RawRequest.content(of: request, recorder, from: name), [])
        }
        let credentials = Base64.encode(Array("\(user):\(RunServer.password)".utf8))
        let call = HTTPCall(host: "127.0.0.1", port: link.port, authorization: "Basic \(credentials)")
        let isReachable = interface.isUp && link.isNameResolved
        rawTask = Task { [weak self, world] in
            // Every result is one, also the end of the connection.
            if isReachable { _ = try? await call.execute(content) }
            if Task.isCancelled { return }
            world.finished(act)
            try? await self?.reportActivity()
        }
    }
}
