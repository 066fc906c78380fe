internal import Client
internal import Determinism
internal import Scenario
internal import Wire

/// A process of a client.
final class ClientProcess<E: Engine> {
    var machine: ClientMachine<E>
    /// The next action, if it has been taken from the machine and not been executed.
    var nextAction: ClientMachine<E>.Action?
    /// The change whose commit waits for a slow disk.
    var slowCommit: E.Change?

    init(_ machine: ClientMachine<E>) { self.machine = machine }
}

/// The client of a device: what it has stored, its process while one runs, and its view.
protocol SimulatedClient: AnyObject {
    associatedtype E: Engine

    /// The process; `nil` while none runs.
    var process: ClientProcess<E>? { get set }

    /// Returns the machine of a new process, on what is committed. Throws the reason if the client cannot start.
    func makeMachine(on device: SimulatedDevice) throws(NotStarted) -> ClientMachine<E>
    /// Applies a change to the store as a whole. Returns its digest.
    func commit(_ change: E.Change) -> UInt64
    /// Tells the engine that the disk is full.
    func commitFailed(on device: SimulatedDevice)
    /// Processes an event of the engine.
    func report(_ event: E.Event, on device: SimulatedDevice)
    /// Returns the event of the view; `nil` if it has not changed, or if there is none.
    func viewEvent(of device: SimulatedDevice, _ recorder: inout HistoryRecorder) -> History.Event?
    /// Performs an act of the user and calls `finish` when it has taken effect, with the reason if it is an error.
    func perform(_ action: Scenario.Action, on device: SimulatedDevice, _ finish: @escaping (String?) -> Void)
    /// The setup of the run has ended, and the process with it.
    func setupEnded()
    /// The device's wall clock was set.
    func wallClockChanged(on device: SimulatedDevice)

    // What is the same for all clients. Requirements, so that the calls of a device reach code for the client's engine.

    func start(on device: SimulatedDevice) -> History.Notice?
    func stop()
    func receive(_ input: ClientInput, at now: Instant)
    func interfaceChanged(_ interface: NetworkInterface, at now: Instant)
    var nextDeadline: Instant? { get }
    var isSettled: Bool { get }
    var isCommitting: Bool { get }
    func isNextActionCommit() -> Bool?
    func executeNextAction(on device: SimulatedDevice)
    func endCommit(on device: SimulatedDevice)
}

/// The reason why a client cannot start.
struct NotStarted: Error {
    let notice: History.Notice
}

extension SimulatedClient {
    func setupEnded() {}

    func wallClockChanged(on device: SimulatedDevice) {}

    func commitFailed(on device: SimulatedDevice) {
        process?.machine.commitFailed(StoreDisk.fullReason, at: device.world.now)
    }

    /// Starts a process. Returns the reason if it cannot start.
    func start(on device: SimulatedDevice) -> History.Notice? {
        do throws(NotStarted) {
            process = ClientProcess(try makeMachine(on: device))
        } catch {
            return error.notice
        }
        let interface = device.interface
        process?.machine.input(at: device.world.now) { engine, now in engine.started(interface, at: now) }
        return nil
    }

    /// Ends the process. What is committed stays.
    func stop() { process = nil }

    func receive(_ input: ClientInput, at now: Instant) { process?.machine.process(input, at: now) }

    func interfaceChanged(_ interface: NetworkInterface, at now: Instant) {
        process?.machine.input(at: now) { engine, now in engine.interfaceChanged(interface, at: now) }
    }

    /// Returns a value of the machine; `nil` if no process runs. In place, because a copy of the machine is expensive.
    func value<Value>(_ body: (inout ClientMachine<E>) -> Value) -> Value? {
        guard let process else { return nil }
        return body(&process.machine)
    }

    /// The time of the next input ``ClientInput/deadline``.
    var nextDeadline: Instant? { value { $0.nextDeadline } ?? nil }

    /// Whether the client has nothing to send or fetch.
    var isSettled: Bool { value { $0.engine.isSettled } ?? false }

    // In release builds of Swift 6.3 the access to a machine that is taken from in the condition of a loop stays open in the
    // loop's body, and the next one aborts the process. These functions are the ends of the accesses.

    /// Returns whether the next action is a commit; `nil` if there is no action.
    @inline(never)
    func isNextActionCommit() -> Bool? {
        guard let process else { return nil }
        if process.nextAction == nil {
            // Mostly there is no action, and to take `nil` costs more than to ask.
            guard value({ $0.hasActions }) == true else { return nil }
            process.nextAction = process.machine.takeAction()
        }
        switch process.nextAction {
        case .commit?: return true
        case .connect?, .write?, .close?, .report?: return false
        case nil: return nil
        }
    }

    /// Executes the next action.
    @inline(never)
    func executeNextAction(on device: SimulatedDevice) {
        guard let action = process?.nextAction.take() else { return }
        switch action {
        case .commit(let change):
            switch device.disk {
            case .normal: finishCommit(change, on: device)
            case .full: commitFailed(on: device)
            case .slow(let delay):
                process?.slowCommit = change
                device.world.schedule(.commitEnd(device, process: device.process), after: delay)
            }
        case .connect(let id): device.connect(id)
        case .write(let id, let bytes): device.write(bytes, on: id)
        case .close(let id, let isAbortive): device.close(id, isAbortive: isAbortive)
        case .report(let event): report(event, on: device)
        }
    }

    /// Whether a commit waits for a slow disk.
    var isCommitting: Bool { process?.slowCommit != nil }

    /// Ends the commit that has waited for a slow disk. A kill meanwhile leaves nothing of it.
    func endCommit(on device: SimulatedDevice) {
        guard let change = process?.slowCommit.take() else { return }
        finishCommit(change, on: device)
    }

    private func finishCommit(_ change: E.Change, on device: SimulatedDevice) {
        device.committed(digest: commit(change))
        // A fault may have killed the client.
        process?.machine.committed(at: device.world.now)
    }
}

/// The disk of a device's store.
public enum StoreDisk {
    /// The reason why a commit fails on a full disk.
    public static let fullReason = "the disk is full"
    /// The reason why an act has no effect whose change was not stored when the client was killed.
    static let killedReason = "the client was killed before the change was stored"
}
