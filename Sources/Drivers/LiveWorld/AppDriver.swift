internal import Client
internal import Determinism
internal import Foundation
internal import HTTPSockets
internal import LiveClient
internal import Scenario
internal import Wire
internal import Worlds

/// A device with an app.
actor AppDriver: ClientDriver {
    nonisolated let name: String
    let world: LiveRunWorld
    let link: DeviceLink
    var isStopped = false
    private var user: String
    private let app: Scenario.App
    private let settings: RecordFields
    private let behavior: RunBehavior
    private let folder: RunFolder
    /// The files of the stores by their names, one for each account.
    private var storePaths: [String: String] = [:]
    private nonisolated let disk = DiskState()
    private var client: AppClient?
    private var interface = NetworkInterface(isUp: true)
    /// The shift of the wall clock.
    private var wallShift = Nanoseconds.zero
    private let ids: RandomIdentifiers
    private let seeds: RandomIdentifiers

    /// The time of the first sync; longer than the director waits.
    private static let prepareMax = Duration.seconds(60)

    init(
        _ app: Scenario.App, _ device: Scenario.Device, in world: LiveRunWorld, _ behavior: RunBehavior,
        _ folder: RunFolder, server: LiveServer.Address
    ) async throws {
        self.app = app
        settings = device.appSettings
        name = device.name
        user = device.user
        self.world = world
        self.behavior = behavior
        self.folder = folder
        ids = RandomIdentifiers(seed: world.seed, "user/\(device.name)/ids")
        seeds = RandomIdentifiers(seed: world.seed, "engine/\(device.name)")
        link = try await DeviceLink(of: device, in: world, server: server)
    }

    func fetch() async throws -> String? {
        let settled = AsyncStream.makeStream(of: Void.self)
        client = try await AppClient.start(configuration()) { activity in
            if case .settled(true) = activity { settled.continuation.finish() }
        }
        // The run may have been cancelled meanwhile.
        if isStopped { settled.continuation.finish() }
        let timeout = Task {
            try? await Task.sleep(for: Self.prepareMax)
            settled.continuation.finish()
        }
        for await _ in settled.stream {}
        timeout.cancel()
        await kill()
        return nil
    }

    func kill() async {
        await client?.kill()
        client = nil
    }

    func setInterface(isUp: Bool, isMetered: Bool) async {
        interface = NetworkInterface(isUp: isUp, isMetered: isMetered)
        try? await client?.setInterface(interface)
    }

    func reportActivity() async throws { try await client?.reportActivity() }

    // MARK: The client

    private func configuration() -> AppClient.Configuration {
        let credentials = Base64.encode(Array("\(user):\(RunServer.password)".utf8))
        let host = "127.0.0.1:\(link.port)"
        let (app, settings, seed, behavior) = (app, settings, seeds.bits(), behavior)
        let (timeouts, clock) = (HTTPTimeouts(world.scenario.policy), clockMilliseconds)
        let storePath = storePath(of: user)
        let target = ClientChannels.Target(host: "127.0.0.1", port: link.port) { [link] in link.isNameResolved }
        var configuration = AppClient.Configuration(target: target, storePath: storePath) { state in
            try app.start(
                AppConfiguration(seed: seed, clock: WallClock(startMilliseconds: clock), settings: settings),
                restoring: state, host: host, authorization: "Basic \(credentials)", timeouts: timeouts,
                behavior: behavior)
        }
        configuration.interface = interface
        configuration.mustEnd = { [world, name] in world.mustEnd(name) }
        configuration.beforeCommit = { [disk] in disk.beforeCommit() }
        return configuration
    }

    /// Returns the file of the store of an account.
    private func storePath(of user: String) -> String {
        let store = behavior.storeName(of: user)
        if let path = storePaths[store] { return path }
        let path = folder.path(storePaths.isEmpty ? "\(name).db" : "\(name)-\(storePaths.count + 1).db")
        storePaths[store] = path
        return path
    }

    /// Starts the client with the credentials and the store of a user.
    private func signIn(_ user: String) async throws {
        let wasRunning = client != nil
        await kill()
        if wasRunning { world.record(.stopped(device: name)) }
        self.user = user
        try await start()
        world.record(.started(device: name))
    }

    func start() async throws {
        var process = 0
        world.client(of: name) { ledger, _ in
            process = ledger.begin(.current)
            return []
        }
        client = try await AppClient.start(
            configuration(),
            onView: { [world, name, process] view in
                world.client(of: name) { ledger, recorder in
                    ledger.viewChanged(view, process: process, &recorder)
                }
            },
            onActivity: { [world, name, process] in world.activity($0, digest: \.digest, of: name, process: process) })
    }

    /// The milliseconds since 1970 that the device's clock shows.
    private var clockMilliseconds: Int {
        let start =
            world.scenario.hasOwnDate
            ? RunServer.startMilliseconds + Int(world.now.sinceStart.count / 1_000_000)
            : Int(Date().timeIntervalSince1970 * 1000)
        return start + Int(wallShift.count / 1_000_000)
    }

    func perform(_ action: Scenario.Action, _ act: ScenarioDirector.ActID) async throws -> Bool {
        try await perform(action)
        return true
    }

    private func perform(_ action: Scenario.Action) async throws {
        if case .clock(let shift) = action {
            wallShift = wallShift + shift
            try await client?.setClock(milliseconds: clockMilliseconds)
            return
        }
        if case .disk(let disk) = action { return self.disk.set(disk) }
        if case .signIn(let user) = action { return try await signIn(user) }
        guard let client else { throw ActionError("\(name) is not running") }
        let act = try world.withRecorder { recorder throws(ActionError) in
            let act = try AppUserAct(action, recorder, ids: ids)
            guard let new = act.newRecord else { return (act, []) }
            // A record has its name before it is visible.
            return (act, recorder.assign(row: new.row, to: Array(new.key.text.utf8)))
        }
        try await client.perform(act.act)
    }
}
