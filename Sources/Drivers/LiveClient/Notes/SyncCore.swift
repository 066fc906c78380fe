internal import Client
internal import Determinism
internal import Foundation
internal import HTTPSockets
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Wire

/// The driver of a `SyncMachine` on an event loop: executes its actions with sockets, the store and a timer.
final class SyncCore {
    private var configuration: SyncClientConfiguration
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let onEvent: @Sendable (SyncEvent, ContinuousClock.Instant) -> Void
    private let origin = NIODeadline.now()
    let store: SyncStore
    private var machine: SyncMachine
    private let channels: ClientChannels
    /// Inputs that have arrived while actions were executed.
    private var inputs: [(inout SyncMachine, Instant) -> Void] = []
    private var isRunning = false
    private var isStopped = false
    private var userChange: UserChange?
    private var state = SyncState()
    private var stateWritten: SyncState?
    private var isSettled = false
    /// Whether the engine was settled when it was last reported.
    private var settledReported: Bool?
    /// Whether the engine was busy when it was last reported.
    private var busyReported = false
    private var timer: Scheduled<Void>?
    private var storePoll: Scheduled<Void>?
    private var waiters: [Int: EventLoopPromise<SyncClient.Completion>] = [:]
    private var nextWaiter = 0

    /// The interval at which the store is checked for changes by other processes.
    private static let storePollInterval = TimeAmount.milliseconds(200)
    /// The limit on repetitions of a user's change while other processes change the store.
    private static let changeAttemptsMax = 10

    /// The user's change in progress.
    private struct UserChange {
        /// Whether the first commit that follows the change has a result.
        var isCommitted = false
        /// Whether the change was undone, because another process has changed the store first.
        var isUndone = false
        /// The reason why the change cannot be made durable.
        var error: SyncStoreError?
    }

    init(
        _ configuration: SyncClientConfiguration, on eventLoop: any EventLoop, logger: Logger,
        onEvent: @escaping @Sendable (SyncEvent, ContinuousClock.Instant) -> Void
    ) throws {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.logger = logger
        self.onEvent = onEvent
        store = try SyncStore(path: configuration.storePath, resource: configuration.resource.name)
        try store.acquireLease()
        var engine = SyncEngine.Configuration(
            resource: configuration.resource, restoring: try store.load(),
            account: SyncAccount(user: configuration.user, server: configuration.address),
            policy: configuration.policy, tokens: Self.tokens(configuration), seed: configuration.seed)
        configuration.adapt(&engine)
        machine = SyncMachine(
            engine: SyncEngine(engine),
            host: configuration.address, authorization: Self.authorization(configuration),
            timeouts: configuration.timeouts,
            attachments: AttachmentLane(restoring: try store.attachments(), seed: configuration.seed))
        let onActivity = configuration.onActivity
        channels = ClientChannels(
            to: .init(
                host: configuration.host, port: configuration.port, isHostResolvable: configuration.isHostResolvable),
            on: eventLoop
        ) { activity in
            switch activity {
            case .attempted(let id): onActivity?(.connectionAttempted(id))
            case .connected(let id, let port): onActivity?(.connected(id, localPort: port))
            case .read(let id, let bytes): onActivity?(.read(id, bytes: bytes))
            case .ended(let id): onActivity?(.connectionEnded(id))
            }
        }
        try? store.removeUnusedAttachmentFiles()
        channels.onInput = { [weak self] input in self?.input { machine, now in machine.process(input, at: now) } }
    }

    private static func authorization(_ configuration: SyncClientConfiguration) -> String? {
        switch configuration.credentials {
        case .password(let password):
            "Basic " + Data("\(configuration.user):\(password)".utf8).base64EncodedString()
        case .token(let token): "Bearer \(token)"
        case .tokens, .none: nil
        }
    }

    private static func tokens(_ configuration: SyncClientConfiguration) -> SyncTokens? {
        if case .tokens(let tokens) = configuration.credentials { tokens } else { nil }
    }

    private var now: Instant { Instant(Nanoseconds((NIODeadline.now() - origin).nanoseconds)) }

    var engine: SyncEngine { machine.engine }

    var status: SyncStatus { machine.status }

    var attachments: [LocalAttachment] { machine.attachments.attachments }

    func begin(_ interface: NetworkInterface) {
        state = configuration.storePath.flatMap { SyncState(storePath: $0) } ?? SyncState()
        state.process = Int(getpid())
        input { machine, now in machine.started(interface: interface, at: now) }
        pollStore()
    }

    func stop() {
        if isStopped { return }
        kill()
        state.process = nil
        publishState()
    }

    /// Ends as a killed process does: what is committed stays, nothing else is written.
    func kill() {
        if isStopped { return }
        isStopped = true
        timer?.cancel()
        storePoll?.cancel()
        channels.closeAll()
        for waiter in waiters.values { waiter.succeed(.stopped) }
        waiters = [:]
        store.close()
    }

    private func report(_ activity: SyncClientActivity) { configuration.onActivity?(activity) }

    /// Reports whether the client has nothing to send or fetch, even if that has been reported.
    func reportActivity() {
        settledReported = nil
        reportSettled()
    }

    private func reportSettled() {
        guard configuration.onActivity != nil, !isStopped else { return }
        let (isSettled, isBusy) = (machine.engine.isSettled, machine.engine.isBusy)
        if isBusy != busyReported {
            busyReported = isBusy
            report(.busy(isBusy))
        }
        if isSettled != settledReported {
            settledReported = isSettled
            report(.settled(isSettled))
        }
    }

    // MARK: Inputs and actions

    /// Passes an input to the machine and executes its actions.
    func input(_ body: @escaping (inout SyncMachine, Instant) -> Void) {
        if isStopped { return }
        inputs.append(body)
        // A channel may report the result of an action while the action is executed.
        if !isRunning { run() }
    }

    /// Makes a user's change; undoes it and throws if it cannot be made durable.
    func change<Value>(_ body: (inout SyncEngine, Instant) throws -> Value) throws -> Value {
        for _ in 0..<Self.changeAttemptsMax {
            if isStopped { throw SyncClient.StoppedError() }
            userChange = UserChange()
            defer { userChange = nil }
            let value = try machine.change(at: now, body)
            run()
            if let error = userChange?.error { throw error }
            if userChange?.isUndone != true { return value }
        }
        throw SyncClient.SupersededError()
    }

    func setCredentials(_ credentials: SyncClientConfiguration.Credentials) {
        configuration.credentials = credentials
        let (authorization, tokens) = (Self.authorization(configuration), Self.tokens(configuration))
        input { machine, now in machine.setAuthorization(authorization, tokens: tokens, at: now) }
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
        updateState()
        reportSettled()
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
        let attachmentAction = machine.takeAttachmentAction()
        if let attachmentAction { execute(attachmentAction) }
        return attachmentAction != nil
    }

    private func execute(_ action: SyncMachine.Action) {
        switch action {
        case .commit(let change): commit(change)
        case .connect(let id): channels.connect(id)
        case .write(let id, let bytes): channels.write(bytes, on: id)
        case .close(let id, let isAbortive): channels.close(id, isAbortive: isAbortive)
        case .report(let event): onEvent(event, .now)
        }
    }

    private func commit(_ change: StoreChange) {
        let isUserChange = userChange?.isCommitted == false
        do {
            switch try store.commit(change) {
            case .committed:
                userChange?.isCommitted = true
                report(.committed(change))
                if configuration.mustEnd?() == true { return kill() }
                machine.committed(at: now)
            case .stale(let foreign):
                if machine.commitWasStale(foreign, at: now) {
                    userChange?.isCommitted = true
                    userChange?.isUndone = true
                }
                loadAttachments()
            }
        } catch {
            logger.error("\(error)")
            if isUserChange {
                userChange?.isCommitted = true
                userChange?.error = error
                machine.undoUserChange(at: now)
            } else {
                machine.commitFailed("\(error)", at: now)
            }
        }
    }

    // MARK: Attachments

    /// Passes on the attachments of the store to the machine.
    func loadAttachments() {
        do {
            let attachments = try store.attachments()
            input { machine, now in
                machine.changeAttachments(at: now) { lane, _ in lane.attachmentsChanged(attachments) }
            }
        } catch {
            // The store cannot be read now; the next change of it is another occasion.
            logger.warning("\(error)")
        }
    }

    private func execute(_ action: AttachmentLane.StoreAction) {
        switch action {
        case .commit(let attachments):
            let result = Result { () throws(SyncStoreError) in try store.commit(attachments) }
            if case .failure(let error) = result { logger.error("\(error)") }
            machine.changeAttachments(at: now) { lane, now in
                if case .success = result { lane.committed(at: now) } else { lane.commitFailed(at: now) }
            }
        case .read(let attachment, let range):
            let result = Result { () throws(SyncStoreError) in try store.bytes(of: attachment, in: range) }
            machine.changeAttachments(at: now) { lane, now in
                switch result {
                case .success(let bytes): lane.bytesRead(bytes, of: attachment.id, range: range, at: now)
                case .failure(let error):
                    lane.readFailed(error.description, of: attachment.id, range: range, at: now)
                }
            }
        case .hashPart(let attachment):
            let hasher = (try? store.hash(of: attachment)) ?? nil
            machine.changeAttachments(at: now) { lane, now in lane.partHashed(hasher, of: attachment.id, at: now) }
        case .write(let bytes, let offset, let attachment):
            do { try store.write(bytes, at: offset, to: attachment) } catch {
                machine.changeAttachments(at: now) { lane, now in
                    lane.writeFailed(error.description, of: attachment.id, at: now)
                }
            }
        case .discard(let attachment): try? store.discardBytes(of: attachment)
        }
    }

    // MARK: Other processes

    /// Passes on what other processes have committed to the store, now and after each interval.
    private func pollStore() {
        if isStopped { return }
        do {
            if try store.hasForeignChanges {
                let changes = try store.takeForeignChanges()
                input { machine, now in
                    machine.change(at: now) { engine, now in engine.storeChanged(changes, at: now) }
                }
                loadAttachments()
            }
        } catch {
            // The store cannot be read now; the next check may succeed.
            logger.warning("\(error)")
        }
        publishState()
        storePoll = eventLoop.assumeIsolated().scheduleTask(in: Self.storePollInterval) { [weak self] in
            self?.pollStore()
        }
    }

    /// Records the state of the synchronisation for ``publishState()``.
    private func updateState() {
        let status = machine.status
        state.update(status)
        let isComplete = SyncClient.Completion(status) == .complete && status.lastContact != nil
        if isComplete && !isSettled { state.lastSync = SyncClient.date() }
        isSettled = isComplete
        if let completion = SyncClient.Completion(status), !waiters.isEmpty {
            let resumed = waiters
            waiters = [:]
            for waiter in resumed.values { waiter.succeed(completion) }
        }
    }

    /// Writes the state to its file if it has changed.
    private func publishState() {
        guard let path = configuration.storePath, state != stateWritten else { return }
        stateWritten = state
        state.write(storePath: path)
    }

    // MARK: Time

    private func setTimer() {
        timer?.cancel()
        timer = nil
        guard !isStopped, let deadline = machine.nextDeadline else { return }
        let time = origin + .nanoseconds(deadline.sinceStart.count)
        timer = eventLoop.assumeIsolated().scheduleTask(deadline: time) { [weak self] in
            guard let self else { return }
            self.timer = nil
            self.input { machine, now in machine.advance(to: now) }
        }
    }

    // MARK: Completion

    /// Returns the result of the sync as soon as it has one, or after a duration.
    func completion(within timeout: Duration) -> EventLoopFuture<SyncClient.Completion> {
        let promise = eventLoop.makePromise(of: SyncClient.Completion.self)
        if isStopped {
            promise.succeed(.stopped)
        } else {
            let number = nextWaiter
            nextWaiter += 1
            waiters[number] = promise
            eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(timeout)) { [weak self] in
                self?.waiters.removeValue(forKey: number)?.succeed(.timedOut)
            }
            updateState()
        }
        return promise.futureResult
    }
}
