internal import Client
internal import Scenario
internal import Wire

/// An app as the client of a device.
final class SimulatedApp: SimulatedClient {
    /// Which app it is.
    private let kind: Scenario.App
    private let settings: RecordFields
    /// What is committed for each account.
    private var states: [String: AppState] = [:]
    /// The account of the process.
    private var account = ""
    var process: ClientProcess<RunningApp>?
    private var history = AppHistory()

    init(_ kind: Scenario.App, settings: RecordFields) {
        self.kind = kind
        self.settings = settings
    }

    func makeMachine(on device: SimulatedDevice) throws(NotStarted) -> ClientMachine<RunningApp> {
        history.removeAll()
        account = device.world.behavior.storeName(of: device.user)
        let configuration = AppConfiguration(
            seed: device.seeds.bits(), clock: device.wallClock, settings: settings)
        do {
            return try kind.start(
                configuration, restoring: states[account] ?? AppState(), host: Server.host,
                authorization: Server.authorization(of: device.user),
                timeouts: HTTPTimeouts(device.world.scenario.policy), behavior: device.world.behavior)
        } catch {
            throw NotStarted(notice: .notStarted("\(error)"))
        }
    }

    func commit(_ change: AppChange) -> UInt64 {
        states[account, default: AppState()].apply(change)
        return change.digest
    }

    func report(_ view: AppView, on device: SimulatedDevice) {
        if let belief = history.apply(view, of: device.name) { device.world.record(belief) }
        device.recordView()
    }

    func viewEvent(of device: SimulatedDevice, _ recorder: inout HistoryRecorder) -> History.Event? {
        history.event(of: device.name, &recorder)
    }

    func wallClockChanged(on device: SimulatedDevice) {
        let clock = device.wallClock
        process?.machine.input(at: device.world.now) { app, now in app.wallClockChanged(clock, at: now) }
        device.settle()
    }

    func perform(_ action: Scenario.Action, on device: SimulatedDevice, _ finish: @escaping (String?) -> Void) {
        device.whenRunning { [self] in
            do {
                let act = try AppUserAct(action, device.world.recorder, ids: device.ids)
                // A record has its name before it is visible.
                if let new = act.newRecord { device.world.assign(row: new.row, to: new.key.text) }
                device.hasCommitted = false
                try process?.machine.input(at: device.world.now) { app, now in try app.perform(act.act, at: now) }
                device.settle()
            } catch {
                return finish("\(error)")
            }
            // Killed before the commit: the user repeats the action.
            if !device.isRunning, !device.hasCommitted { return perform(action, on: device, finish) }
            device.whenStored(finish) { device.finishAct(finish) }
        }
    }
}
