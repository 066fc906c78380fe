internal import AppClient
internal import ClientApp
internal import ClientSockets
internal import Determinism
internal import Foundation
internal import HTTPWire
internal import LinkModel
internal import NIOCore
internal import ProxyServer
internal import ScenarioModel
internal import ScenarioWorld
internal import SyncClient
internal import SyncEngine
internal import Synchronization

/// A device with an app in real time: the proxy that is its link, its store's file, and its client while that
/// runs.
///
/// Orders are executed one after the other.
actor AppDriver: LiveDevice {
    nonisolated let name: String
    private let world: World
    private let user: String
    private let app: Scenario.App
    private let settings: RecordFields
    private let mutants: [RunMutant]
    private let storePath: String
    private let proxy: Proxy
    private nonisolated let isNameResolved = Mutex(true)
    private var client: AppClient?
    private var isStopped = false
    private var interface = AppInterface(isUp: true)
    /// The shift of the wall clock.
    private var wallShift = Nanoseconds.zero
    private let ids: RandomIdentifiers
    private let seeds: RandomIdentifiers

    /// The time of the first sync; longer than the director waits.
    private static let prepareMax = Duration.seconds(60)

    init(
        _ app: Scenario.App, _ device: Scenario.Device, in world: World, mutants: [RunMutant], _ folder: RunFolder,
        server: LiveServer.Address
    ) async throws {
        self.app = app
        settings = device.appSettings
        name = device.name
        user = device.user
        self.world = world
        self.mutants = mutants
        storePath = folder.path("\(device.name).db")
        ids = RandomIdentifiers(seed: world.seed, "user/\(device.name)/ids")
        seeds = RandomIdentifiers(seed: world.seed, "engine/\(device.name)")
        proxy = try await DeviceProxy.start(of: device, in: world, server: server)
    }

    /// Ends the client and the proxy.
    func stop() async {
        isStopped = true
        await client?.kill()
        client = nil
        await proxy.stop(grace: .zero)
    }

    // MARK: Orders

    /// Executes an order.
    func execute(_ order: World.Order) async {
        switch order.action {
        case .prepare: await prepare()
        case .setConditions(_, let conditions, link: _):
            isNameResolved.withLock { $0 = conditions.connectionPolicy != .dns }
            await proxy.setConditions(conditions)
            world.executed(order)
        case .record(let event): world.record(event)
        case .setInterface(_, let isUp, let kind):
            interface = AppInterface(isUp: isUp, isMetered: kind == .cell)
            try? await client?.setInterface(interface)
            world.executed(order)
        case .startClient(let act, _):
            do {
                try await start()
                world.executed(order)
                world.finished(act)
                try await client?.reportActivity()
            } catch {
                world.finished(act, error)
            }
        case .killClient(let act, _, atOnce: _):
            await client?.kill()
            client = nil
            world.executed(order)
            world.finished(act)
        case .perform(let act, actor: _, let action):
            // The time that the client takes is its own.
            world.executed(order)
            do {
                try await perform(action)
                world.finished(act)
                // After each act the director expects a report, even if the state is the one reported before.
                try await client?.reportActivity()
            } catch {
                world.finished(act, error)
            }
        case .closeConnection(let exchange, _, let isAbort):
            await DeviceProxy.closeConnection(of: exchange, name, on: proxy, in: world, isAbort: isAbort)
            world.executed(order)
        case .disarmFaults: await proxy.withdrawFaults()
        case .armFault, .readServer, .end: break
        }
    }

    /// Fetches the server's records into the store, and ends the client. Nothing of it is recorded.
    private func prepare() async {
        do {
            let settled = AsyncStream.makeStream(of: Void.self)
            let client = try await AppClient.start(configuration()) { activity in
                if case .settled(true) = activity { settled.continuation.finish() }
            }
            self.client = client
            // The run may have been cancelled meanwhile.
            if isStopped { return await client.kill() }
            let timeout = Task {
                try? await Task.sleep(for: Self.prepareMax)
                settled.continuation.finish()
            }
            for await _ in settled.stream {}
            timeout.cancel()
            await client.kill()
            self.client = nil
            await proxy.abortConnections()
            // The next connection has number 0.
            await proxy.reseed(world.seed)
            world.prepared(name)
        } catch {
            world.prepared(name, failure: "\(error)")
        }
    }

    // MARK: The client

    private func configuration() -> AppClient.Configuration {
        let credentials = Base64.encode(Array("\(user):\(RunServer.password)".utf8))
        let host = "127.0.0.1:\(proxy.address.port)"
        let (app, settings, seed, mutants) = (app, settings, seeds.bits(), mutants)
        let (timeouts, wallShift) = (HTTPTimeouts(world.scenario.policy), wallShift)
        let target = ClientChannels.Target(host: "127.0.0.1", port: proxy.address.port) { [weak self] in
            self?.isNameResolved.withLock { $0 } ?? false
        }
        var configuration = AppClient.Configuration(target: target, storePath: storePath) { state in
            try app.start(
                AppConfiguration(
                    seed: seed, clock: WallClock(startMilliseconds: Self.milliseconds(shiftedBy: wallShift)),
                    settings: settings), restoring: state, host: host, authorization: "Basic \(credentials)",
                timeouts: timeouts, mutants: mutants)
        }
        configuration.interface = interface
        configuration.mustEnd = { [world, name] in world.mustEnd(name) }
        return configuration
    }

    private func start() async throws {
        var process = 0
        world.client(of: name) { ledger, _ in
            process = ledger.begin(.current)
            return []
        }
        client = try await AppClient.start(configuration()) { [world, name, process] activity in
            switch activity {
            case .connection(let activity):
                world.client(of: name) { ledger, recorder in
                    ledger.activity(.init(activity), process: process, &recorder)
                }
            case .committed(let change):
                world.client(of: name) { ledger, _ in
                    process == ledger.process ? [.commit(device: name, digest: change.digest)] : []
                }
            case .view(let view):
                world.client(of: name) { ledger, recorder in
                    ledger.viewChanged(view, process: process, &recorder)
                }
            case .settled(let isSettled): world.settled(name, isSettled)
            case .busy(let isBusy): world.busy(name, isBusy)
            }
        }
    }

    /// Returns the milliseconds since 1970 that the device's clock shows.
    private static func milliseconds(shiftedBy shift: Nanoseconds) -> Int {
        Int(Date().timeIntervalSince1970 * 1000) + Int(shift.count / 1_000_000)
    }

    private func perform(_ action: Scenario.Action) async throws {
        if case .clock(let shift) = action {
            wallShift = wallShift + shift
            try await client?.setClock(milliseconds: Self.milliseconds(shiftedBy: wallShift))
            return
        }
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

extension SyncClientActivity {
    /// The state of a connection as an activity of a client.
    fileprivate init(_ activity: ClientChannels.Activity) {
        switch activity {
        case .attempted(let id): self = .connectionAttempted(id)
        case .connected(let id, let port): self = .connected(id, localPort: port)
        case .ended(let id): self = .connectionEnded(id)
        }
    }
}
