internal import HTTPWire
internal import PatternEngine
internal import ScenarioModel
internal import ScenarioWorld
internal import SyncEngine

/// An action of the client of a device.
enum AppAction {
    case notes(SyncMachine.Action)
    case expense(ClientAction<PatternChange, PatternView>)

    /// Whether the action is a commit.
    var isCommit: Bool {
        switch self {
        case .notes(.commit), .expense(.commit): true
        case .notes, .expense: false
        }
    }
}

/// The expense app of a device: its store, its state machine while its process runs, and its view.
struct ExpenseApp {
    /// What is committed.
    var state = PatternState()
    /// The state machine; `nil` while no process runs.
    var machine: PatternMachine?
    var view = ExpenseView()

    /// Ends the process. What is committed stays.
    mutating func stop() { machine = nil }
}

/// The expense app as the client of a device.
extension Device {
    /// Starts the app with what is committed.
    func startExpenseApp() {
        var machine = PatternMachine(
            engine: PatternEngine(
                restoring: expense?.state ?? PatternState(), seed: seeds.bits(), mutants: world.patternMutants),
            host: Server.host, authorization: Server.authorization(of: user),
            timeouts: HTTPTimeouts(world.scenario.policy))
        machine.started(isInterfaceUp: interface.isUp, at: world.now)
        expense?.view.removeAll()
        expense?.machine = machine
        settle()
    }

    /// Executes an action of the app.
    @inline(never)
    func execute(_ action: ClientAction<PatternChange, PatternView>) {
        switch action {
        case .commit(let change):
            expense!.state = expense!.state.applying(change)
            hasCommitted = true
            world.record(.commit(device: name, digest: change.digest))
            expense?.machine?.committed(at: world.now)
        case .connect(let id): connect(id)
        case .write(let id, let bytes): write(bytes, on: id)
        case .close(let id, let isAbortive): close(id, isAbortive: isAbortive)
        case .report(let view):
            if let belief = expense?.view.apply(view, of: name) { world.record(belief) }
            recordView()
        }
    }

    /// Performs an act of the app's user; after the restart of a killed app, if it must.
    func performExpenseAct(_ action: Scenario.Action, _ finish: @escaping (String?) -> Void) {
        guard isRunning else {
            waitingActs.append { [self] in performExpenseAct(action, finish) }
            return
        }
        do {
            let act = try ExpenseAct(action, world.recorder, ids: ids)
            // A record has its name before it is visible.
            if let new = act.newRecord { world.assign(row: new.row, to: new.key.text) }
            hasCommitted = false
            try expense?.machine?.perform(act.act, at: world.now)
            settle()
            // Killed before the commit: the user repeats the action.
            if !isRunning, !hasCommitted {
                waitingActs.append { [self] in performExpenseAct(action, finish) }
                return
            }
            finishAct(finish)
        } catch {
            finish("\(error)")
        }
    }
}
