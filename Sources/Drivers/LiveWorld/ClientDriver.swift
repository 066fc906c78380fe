internal import LiveClient
internal import Scenario

/// A device in real time whose client runs in this process: its link, its store's file, and its client while that runs.
protocol ClientDriver: LiveDevice, Actor {
    var world: LiveRunWorld { get }
    var link: DeviceLink { get }
    /// Whether the run has ended.
    var isStopped: Bool { get set }

    /// Fetches the server's notes into the store with a client that then ends. Returns the reason if it could not. Nothing
    /// of it is recorded.
    func fetch() async throws -> String?

    /// Starts the client.
    func start() async throws

    /// Ends the client as the end of its process would.
    func kill() async

    /// Sets the state of the network interface.
    func setInterface(isUp: Bool, isMetered: Bool) async

    /// Executes an act of the user. Returns whether the act has ended; the driver reports a later end.
    func perform(_ action: Scenario.Action, _ act: ScenarioDirector.ActID) async throws -> Bool

    /// Reports whether the client has work, even if nothing has changed.
    func reportActivity() async throws
}

extension LiveRunWorld {
    /// Records an activity of a process of a device's client.
    func activity<Change>(
        _ activity: ClientActivity<Change>, digest: (Change) -> UInt64, of device: String, process: Int
    ) {
        switch activity {
        case .connection(let activity):
            client(of: device) { ledger, recorder in ledger.connection(activity, process: process, &recorder) }
        case .committed(let change):
            client(of: device) { ledger, _ in ledger.committed(digest: digest(change), process: process) }
        case .settled(let isSettled): settled(device, isSettled)
        case .busy(let isBusy): busy(device, isBusy)
        }
    }
}

extension ClientDriver {
    func execute(_ order: LiveRunWorld.Order) async {
        if await link.execute(order) { return }
        switch order.action {
        case .prepare: await prepare()
        case .setInterface(_, let isUp, let kind):
            await setInterface(isUp: isUp, isMetered: kind == .cellular)
            world.executed(order)
        case .startClient(let act, _):
            do {
                try await start()
                world.executed(order)
                world.finished(act)
                try await reportActivity()
            } catch {
                world.finished(act, error)
            }
        case .killClient(let act, _, atOnce: _):
            await kill()
            world.executed(order)
            world.finished(act)
        case .perform(let act, actor: _, let action):
            // The time that the client takes is its own.
            world.executed(order)
            do {
                guard try await perform(action, act) else { return }
                world.finished(act)
                // After each act the director expects a report, even if the state is the one reported before.
                try await reportActivity()
            } catch {
                world.finished(act, error)
            }
        case .setConditions, .record, .closeConnection, .disarmFaults, .armFault, .readServer, .end: break
        }
    }

    private func prepare() async {
        do {
            let failure = try await fetch()
            if isStopped { return }
            await link.reset()
            world.prepared(name, failure: failure)
        } catch {
            world.prepared(name, failure: "\(error)")
        }
    }

    func stop() async {
        isStopped = true
        await kill()
        await link.stop()
    }
}
