//  LiveClient/Driver: what live clients have in common, whatever their engines and stores are.
//
//  Owns: the thread of a client, its event loop, the timer, the execution of actions, the reports of its activity.
//
//  Does not own: decisions (engines), SQL (NotesStore, AppStore), sockets (HTTPSockets/Client).

internal import Client
internal import Determinism
internal import HTTPSockets
internal import NIOCore
internal import Wire

/// The driver of a client's machine on an event loop: executes its actions with sockets, a store and a timer.
final class MachineDriver<E: Engine> {
    private(set) var machine: ClientMachine<E>
    private let eventLoop: any EventLoop
    private let origin = NIODeadline.now()
    private let store: any LiveStore<E>
    private let channels: ClientChannels
    private let mustEnd: (() -> Bool)?
    private let beforeCommit: (() -> String?)?
    private let onActivity: ((ClientActivity<E.Change>) -> Void)?
    private let onEvent: (E.Event) -> Void
    /// Called when all actions that follow from inputs are executed.
    var onIdle: () -> Void = {}
    /// Called when the client has ended.
    var onStop: () -> Void = {}
    /// Inputs that have arrived while actions were executed.
    private var inputs: [(inout ClientMachine<E>, Instant) -> Void] = []
    private var isRunning = false
    private(set) var isStopped = false
    private var timer: Scheduled<Void>?
    /// Whether the engine was settled, and busy, when that was last reported.
    private var settledReported: Bool?
    private var busyReported = false

    /// Creates a driver.
    ///
    /// - Parameters:
    ///   - mustEnd: Called after each commit; if it returns `true`, the client ends at once.
    ///   - beforeCommit: Called before each commit, which fails for the reason that it returns.
    ///   - machine: Creates the machine, whose time is 0 at the call.
    init(
        store: any LiveStore<E>, target: ClientChannels.Target, on eventLoop: any EventLoop, mustEnd: (() -> Bool)?,
        beforeCommit: (() -> String?)? = nil,
        onActivity: ((ClientActivity<E.Change>) -> Void)?, onEvent: @escaping (E.Event) -> Void,
        machine: () throws -> ClientMachine<E>
    ) throws {
        self.store = store
        self.eventLoop = eventLoop
        self.mustEnd = mustEnd
        self.beforeCommit = beforeCommit
        self.onActivity = onActivity
        self.onEvent = onEvent
        self.machine = try machine()
        channels = ClientChannels(to: target, on: eventLoop) { onActivity?(.connection($0)) }
        channels.onInput = { [weak self] input in self?.process { machine, now in machine.process(input, at: now) } }
    }

    /// The time since the start of the client.
    var now: Instant { Instant(Nanoseconds((NIODeadline.now() - origin).nanoseconds)) }

    /// Ends as a killed process does: what is committed stays, nothing else is written.
    func kill() {
        if isStopped { return }
        isStopped = true
        timer?.cancel()
        channels.closeAll()
        onStop()
        store.close()
    }

    // MARK: Reports

    /// Reports whether the client has nothing to send or fetch, even if that has been reported.
    func reportActivity() {
        settledReported = nil
        report()
    }

    private func report() {
        guard let onActivity, !isStopped else { return }
        let (isSettled, isBusy) = (machine.engine.isSettled, machine.engine.isBusy)
        if isBusy != busyReported {
            busyReported = isBusy
            onActivity(.busy(isBusy))
        }
        if isSettled != settledReported {
            settledReported = isSettled
            onActivity(.settled(isSettled))
        }
    }

    // MARK: Inputs and actions

    /// Passes an input to the engine, and executes the actions that follow before it returns the result.
    func perform<Value>(_ body: (inout E, Instant) throws -> Value) throws -> Value {
        if isStopped { throw ClientStoppedError() }
        let value = try machine.input(at: now, body)
        run()
        return value
    }

    /// Passes an input to the engine.
    func input(_ body: @escaping (inout E, Instant) -> Void) {
        process { machine, now in machine.input(at: now, body) }
    }

    /// Passes an input to the machine.
    func process(_ body: @escaping (inout ClientMachine<E>, Instant) -> Void) {
        if isStopped { return }
        inputs.append(body)
        // A channel may report the result of an action while the action is executed.
        if !isRunning { run() }
    }

    private func run() {
        isRunning = true
        while true {
            while step() {}
            guard !inputs.isEmpty else { break }
            inputs.removeFirst()(&machine, now)
        }
        isRunning = false
        // The client may have been killed by an action.
        if isStopped { return inputs.removeAll() }
        setTimer()
        onIdle()
        report()
    }

    /// Executes the next action; returns `false` if there is none.
    ///
    /// In release builds of Swift 6.3 the access to a machine that is taken from in the condition of a loop stays open in
    /// the loop's body, and the next one aborts the process. This function is the end of the access.
    @inline(never)
    private func step() -> Bool {
        if isStopped { return false }
        let action = machine.takeAction()
        if let action {
            execute(action)
            return true
        }
        guard let input = store.executeNext(of: &machine.engine) else { return false }
        machine.input(at: now, input)
        return true
    }

    private func execute(_ action: ClientMachine<E>.Action) {
        switch action {
        case .commit(let change): commit(change)
        case .connect(let id): channels.connect(id)
        case .write(let id, let bytes): channels.write(bytes, on: id)
        case .close(let id, let isAbortive): channels.close(id, isAbortive: isAbortive)
        case .report(let event): onEvent(event)
        }
    }

    private func commit(_ change: E.Change) {
        switch beforeCommit?().map({ store.refuse($0) }) ?? store.execute(change) {
        case .committed:
            onActivity?(.committed(change))
            if mustEnd?() == true { return kill() }
            machine.committed(at: now)
        case .failed(let reason): machine.commitFailed(reason, at: now)
        case .rejected(let input): machine.input(at: now, input)
        }
    }

    private func setTimer() {
        timer?.cancel()
        timer = nil
        guard let deadline = machine.nextDeadline else { return }
        let time = origin + .nanoseconds(deadline.sinceStart.count)
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: time) { [weak self] in
            guard let self else { return }
            self.timer = nil
            self.process { machine, now in machine.process(.deadline, at: now) }
        }
    }
}
