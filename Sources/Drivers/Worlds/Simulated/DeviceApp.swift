internal import Client
internal import Determinism
internal import Scenario
internal import Wire

/// An action of the client of a device.
enum DeviceAction {
    case notes(SyncMachine.Action)
    case app(ClientAction<AppChange, AppView>)

    /// Whether the action is a commit.
    var isCommit: Bool {
        switch self {
        case .notes(.commit), .app(.commit): true
        case .notes, .app: false
        }
    }
}

/// The app of a device: its store, its state machine while its process runs, and its view.
struct DeviceApp {
    /// Which app it is.
    let kind: Scenario.App
    /// The settings.
    let settings: RecordFields
    /// What is committed.
    var state = AppState()
    /// The state machine; `nil` while no process runs.
    var machine: ClientMachine<RunningApp>?
    var history = AppHistory()

    /// Creates the app of a device; `nil` if it has another client.
    init?(_ device: Scenario.Device) {
        guard let kind = device.client.app else { return nil }
        self.kind = kind
        settings = device.appSettings
    }

    /// Ends the process. What is committed stays.
    mutating func stop() { machine = nil }
}

/// The app as the client of a device.
extension Device {
    /// Starts the app with what is committed. Returns the reason if it cannot start.
    func startApp() -> History.Notice? {
        guard let app else { return nil }
        let configuration = AppConfiguration(seed: seeds.bits(), clock: appClock, settings: app.settings)
        do {
            var machine = try app.kind.start(
                configuration, restoring: app.state, host: Server.host,
                authorization: Server.authorization(of: user), timeouts: HTTPTimeouts(world.scenario.policy),
                mutants: world.allMutants)
            machine.input(at: world.now) { app, now in app.started(interface, at: now) }
            self.app?.history.removeAll()
            self.app?.machine = machine
        } catch {
            return .notStarted("\(error)")
        }
        settle()
        return nil
    }

    /// The wall clock that an app sees.
    private var appClock: WallClock {
        WallClock(startMilliseconds: Server.startMilliseconds + Int(wallShift.count / 1_000_000))
    }

    /// Passes the state of the interface on.
    func appInterfaceChanged() {
        app?.machine?.input(at: world.now) { [interface] app, now in app.interfaceChanged(interface, at: now) }
    }

    /// Passes the wall clock on.
    private func appClockChanged() {
        let clock = appClock
        app?.machine?.input(at: world.now) { app, now in app.wallClockChanged(clock, at: now) }
        settle()
    }

    /// Executes an action of the app.
    @inline(never)
    func execute(_ action: ClientAction<AppChange, AppView>) {
        switch action {
        case .commit(let change):
            app?.state.apply(change)
            hasCommitted = true
            world.record(.commit(device: name, digest: change.digest))
            app?.machine?.committed(at: world.now)
        case .connect(let id): connect(id)
        case .write(let id, let bytes): write(bytes, on: id)
        case .close(let id, let isAbortive): close(id, isAbortive: isAbortive)
        case .report(let view):
            if let belief = app?.history.apply(view, of: name) { world.record(belief) }
            recordView()
        }
    }

    /// Performs an act of the app's user; after the restart of a killed app, if it must.
    func performAppAct(_ action: Scenario.Action, _ finish: @escaping (String?) -> Void) {
        if case .clock(let shift) = action {
            wallShift = wallShift + shift
            appClockChanged()
            return finishAct(finish)
        }
        guard isRunning else {
            waitingActs.append { [self] in performAppAct(action, finish) }
            return
        }
        do {
            let act = try AppUserAct(action, world.recorder, ids: ids)
            // A record has its name before it is visible.
            if let new = act.newRecord { world.assign(row: new.row, to: new.key.text) }
            hasCommitted = false
            try app?.machine?.input(at: world.now) { app, now in try app.perform(act.act, at: now) }
            settle()
            // Killed before the commit: the user repeats the action.
            if !isRunning, !hasCommitted {
                waitingActs.append { [self] in performAppAct(action, finish) }
                return
            }
            finishAct(finish)
        } catch {
            finish("\(error)")
        }
    }
}
