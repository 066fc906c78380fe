internal import Client
internal import Determinism
internal import HTTPSockets
internal import NIOCore
internal import Wire

/// The driver of an app on an event loop: executes its actions with sockets, the store and a timer.
final class AppClientCore {
    private let eventLoop: any EventLoop
    private var origin = NIODeadline.now()
    private let store: AppStore
    private let channels: ClientChannels
    private let mustEnd: @Sendable () -> Bool
    private let onActivity: @Sendable (AppClient.Activity) -> Void
    private var machine: any RunningApp
    /// Inputs that have arrived while actions were executed.
    private var inputs: [(inout any RunningApp, Instant) -> Void] = []
    private var isRunning = false
    private var isStopped = false
    private var timer: Scheduled<Void>?
    /// Whether the machine was settled, and busy, when that was last reported.
    private var settledReported: Bool?
    private var busyReported = false

    init(
        _ configuration: AppClient.Configuration, on eventLoop: any EventLoop,
        onActivity: @escaping @Sendable (AppClient.Activity) -> Void
    ) throws {
        self.eventLoop = eventLoop
        self.onActivity = onActivity
        mustEnd = configuration.mustEnd
        store = try AppStore(path: configuration.storePath)
        let state = try store.load()
        origin = .now()
        machine = try configuration.makeApp(state)
        channels = ClientChannels(to: configuration.target, on: eventLoop) { onActivity(.connection($0)) }
        channels.onInput = { [weak self] input in self?.input { machine, now in machine.process(input, at: now) } }
    }

    private var now: Instant { Instant(Nanoseconds((NIODeadline.now() - origin).nanoseconds)) }

    func begin(_ interface: AppInterface) { input { machine, now in machine.started(interface, at: now) } }

    /// Ends as a killed process does: what is committed stays, nothing else is written.
    func kill() {
        if isStopped { return }
        isStopped = true
        timer?.cancel()
        channels.closeAll()
        store.close()
    }

    /// Reports whether the client has nothing to send or fetch, even if that has been reported.
    func reportActivity() {
        settledReported = nil
        report()
    }

    private func report() {
        if isStopped { return }
        let (isSettled, isBusy) = (machine.isSettled, machine.isBusy)
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

    func perform(_ act: AppAct) throws {
        if isStopped { throw AppClient.StoppedError() }
        try machine.perform(act, at: now)
        run()
    }

    /// Passes an input to the machine and executes its actions.
    func input(_ body: @escaping (inout any RunningApp, Instant) -> Void) {
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
        report()
    }

    /// Executes the next action; returns `false` if there is none. A function of its own ends the access to the machine; see
    /// `SyncCore.step()`.
    @inline(never)
    private func step() -> Bool {
        if isStopped { return false }
        guard let action = machine.takeAction() else { return false }
        execute(action)
        return true
    }

    private func execute(_ action: ClientAction<AppChange, AppView>) {
        switch action {
        case .commit(let change):
            do {
                try store.commit(change)
            } catch {
                return machine.commitFailed(at: now)
            }
            onActivity(.committed(change))
            if mustEnd() { return kill() }
            machine.committed(at: now)
        case .connect(let id): channels.connect(id)
        case .write(let id, let bytes): channels.write(bytes, on: id)
        case .close(let id, let isAbortive): channels.close(id, isAbortive: isAbortive)
        case .report(let view): onActivity(.view(view))
        }
    }

    private func setTimer() {
        timer?.cancel()
        timer = nil
        guard !isStopped, let deadline = machine.nextDeadline else { return }
        let time = origin + .nanoseconds(deadline.sinceStart.count)
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: time) { [weak self] in
            guard let self else { return }
            self.timer = nil
            self.input { machine, now in machine.process(.deadline, at: now) }
        }
    }
}
