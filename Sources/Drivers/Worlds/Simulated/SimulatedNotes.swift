internal import Client
internal import Scenario
internal import Wire

/// What has become of the commit of a user's change.
enum UserCommit {
    case pending, undone
}

/// The notes client of a device.
final class SimulatedNotes: SimulatedClient {
    private let adapt: RunBehavior.ClientAdaptation
    var store: MemoryStore
    /// The tokens that the device keeps for the next start of its client; `nil` if it has none.
    private var tokens: SyncTokens?
    /// The version of the client.
    var version: ClientVersion
    var process: ClientProcess<NotesEngine>?
    var view = DeviceView()
    /// The commit of a change by the user that is being made: `nil` while none is.
    var userCommit: UserCommit?
    /// Random identifiers of migrated changes.
    let upgradeIDs: RandomIdentifiers

    init(_ device: Scenario.Device, in world: SimulatedWorld) {
        adapt = world.behavior.adaptation(of: device)
        version = ClientVersion(rawValue: world.scenario.initialVersion(of: device.name)) ?? .current
        store = MemoryStore(version: version)
        upgradeIDs = RandomIdentifiers(seed: world.seed, "upgrade/\(device.name)")
    }

    /// Throws if the client's version cannot open the store.
    func makeMachine(on device: SimulatedDevice) throws(NotStarted) -> SyncMachine {
        if let refusal = StoreVersions.refusal(of: version, store: store.version) { throw NotStarted(notice: refusal) }
        let policy = device.world.scenario.policy
        if tokens == nil { tokens = device.world.signIn(device.user) }
        var configuration = SyncEngine.Configuration(
            restoring: store.state, account: SyncAccount(user: device.user, server: Server.host),
            policy: SyncPolicy(policy), tokens: tokens, seed: device.seeds.bits())
        configuration.policy.heldKinds = version.heldKinds
        adapt(&configuration)
        let engine = SyncEngine(configuration)
        view.version = version
        view.restart(engine)
        return SyncMachine(
            engine: NotesEngine(engine), host: Server.host, authorization: Server.authorization(of: device.user),
            timeouts: HTTPTimeouts(policy))
    }

    /// The life of the tokens begins with the scenario.
    func setupEnded() { tokens = nil }

    func commit(_ change: StoreChange) -> UInt64 {
        store.commit(change)
        return change.digest
    }

    /// A change by the user that cannot be stored is undone, and the user is told.
    func commitFailed(on device: SimulatedDevice) {
        let now = device.world.now
        guard userCommit == .pending else {
            process?.machine.commitFailed(StoreDisk.fullReason, at: now)
            return
        }
        userCommit = .undone
        process?.machine.change(at: now) { sync, now in sync.undoUserChange(at: now) }
    }

    func report(_ event: SyncEvent, on device: SimulatedDevice) {
        switch event {
        case .view(let change):
            let belief = view.apply(change, of: device.name)
            device.recordView()
            if let belief { device.world.record(belief) }
        case .refreshed(let tokens): self.tokens = tokens
        default: break
        }
    }

    func viewEvent(of device: SimulatedDevice, _ recorder: inout HistoryRecorder) -> History.Event? {
        view.event(of: device.name, &recorder)
    }
}
