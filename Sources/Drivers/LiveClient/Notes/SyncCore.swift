internal import Client
internal import Determinism
internal import Foundation
internal import HTTPSockets
internal import Logging
internal import NIOCore
internal import Wire

/// The sync client on its event loop: the driver of its machine, changes of the user and of other processes, and the state of
/// the synchronisation.
final class SyncCore {
    private var configuration: SyncClientConfiguration
    private let eventLoop: any EventLoop
    private let logger: Logger
    private let storage: NotesStorage
    let driver: MachineDriver<NotesEngine>
    private var state = SyncState()
    private var stateWritten: SyncState?
    private var isComplete = false
    let observers = RecordObservers()
    private var storePoll: Scheduled<Void>?
    private var waiters: [Int: Waiter] = [:]
    private var nextWaiter = 0

    /// A call that waits for the result of the sync.
    private struct Waiter {
        /// Returns the result that a status has; `nil` while the sync is in progress.
        let result: (SyncStatus) -> SyncClient.Completion?
        let resume: (SyncClient.Completion) -> Void
        var timer: Scheduled<Void>?

        func end(_ completion: SyncClient.Completion) {
            timer?.cancel()
            resume(completion)
        }
    }

    /// The interval at which the store is checked for changes by other processes.
    private static let storePollInterval = TimeAmount.milliseconds(200)
    /// The limit on repetitions of a user's change while other processes change the store.
    private static let changeAttemptsMax = 10

    init(
        _ configuration: SyncClientConfiguration, on eventLoop: any EventLoop, logger: Logger,
        onEvent: @escaping @Sendable (SyncEvent, ContinuousClock.Instant) -> Void
    ) throws {
        self.configuration = configuration
        self.eventLoop = eventLoop
        self.logger = logger
        let store = try SyncStore(path: configuration.storePath, resource: configuration.resource.name)
        try store.acquireLease()
        storage = NotesStorage(store, logger: logger)
        driver = try MachineDriver(
            store: storage,
            target: .init(
                host: configuration.host, port: configuration.port, tls: configuration.tls,
                isHostResolvable: configuration.isHostResolvable),
            on: eventLoop, mustEnd: configuration.mustEnd, beforeCommit: configuration.beforeCommit,
            onActivity: configuration.onActivity,
            onEvent: { [observers] in
                switch $0 {
                case .view, .problem: observers.notify()
                default: break
                }
                onEvent($0, .now)
            }
        ) {
            var sync = SyncEngine.Configuration(
                resource: configuration.resource, restoring: try store.load(),
                account: SyncAccount(user: configuration.user, server: configuration.address),
                policy: configuration.policy, tokens: Self.tokens(configuration), seed: configuration.seed)
            sync.behavior.resolveConflicts(by: configuration.conflicts, of: configuration.resource)
            configuration.adapt(&sync)
            let attachments = AttachmentLane(restoring: try store.attachments(), seed: configuration.seed)
            return SyncMachine(
                engine: NotesEngine(SyncEngine(sync), attachments: attachments), host: configuration.hostField,
                authorization: Self.authorization(configuration), timeouts: configuration.timeouts)
        }
        try? store.removeUnusedAttachmentFiles()
        driver.onIdle = { [unowned self] in updateState() }
        driver.onStop = { [unowned self] in ended() }
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

    var store: SyncStore { storage.store }

    var engine: SyncEngine { driver.machine.engine.sync }

    var status: SyncStatus { driver.machine.engine.status }

    var attachments: [LocalAttachment] { driver.machine.engine.attachments.attachments }

    func begin(_ interface: NetworkInterface) {
        state = configuration.storePath.flatMap { SyncState(storePath: $0) } ?? SyncState()
        state.process = Int(getpid())
        driver.input { engine, now in engine.started(interface, at: now) }
        pollStore()
    }

    func stop() {
        if driver.isStopped { return }
        driver.kill()
        state.process = nil
        publishState()
    }

    /// The client has ended, with or without a notice.
    private func ended() {
        storePoll?.cancel()
        for waiter in waiters.values { waiter.end(.stopped) }
        waiters = [:]
        observers.finish()
    }

    // MARK: Inputs

    /// Makes a user's change; undoes it and throws if it cannot be made durable.
    func change<Value>(_ body: (inout SyncEngine, Instant) throws -> Value) throws -> Value {
        for _ in 0..<Self.changeAttemptsMax {
            storage.userChange = NotesStorage.UserChange()
            defer { storage.userChange = nil }
            let value = try driver.perform { engine, now in try body(&engine.sync, now) }
            if let error = storage.userChange?.error { throw error }
            if storage.userChange?.isUndone != true { return value }
        }
        throw SyncClient.SupersededError()
    }

    func setCredentials(_ credentials: SyncClientConfiguration.Credentials) {
        configuration.credentials = credentials
        let (authorization, tokens) = (Self.authorization(configuration), Self.tokens(configuration))
        driver.process { machine, now in machine.setAuthorization(authorization, tokens: tokens, at: now) }
    }

    /// Passes on the attachments of the store to the machine.
    func loadAttachments() {
        guard let attachments = storage.loadAttachments() else { return }
        driver.input { engine, _ in engine.attachments.attachmentsChanged(attachments) }
    }

    // MARK: Other processes

    /// Passes on what other processes have committed to the store, now and after each interval.
    private func pollStore() {
        if driver.isStopped { return }
        do {
            if try store.hasForeignChanges {
                let changes = try store.takeForeignChanges()
                driver.input { engine, now in engine.sync.storeChanged(changes, at: now) }
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
        let status = status
        state.update(status)
        if let clock = status.serverClock { state.clockOffset = clock.offset(at: driver.now) }
        let isComplete = SyncClient.Completion(status) == .complete && status.lastContact != nil
        if isComplete && !self.isComplete { state.lastSync = SyncClient.date() }
        self.isComplete = isComplete
        for (number, waiter) in waiters {
            guard let completion = waiter.result(status) else { continue }
            waiters[number] = nil
            waiter.end(completion)
        }
    }

    /// Writes the state to its file if it has changed.
    private func publishState() {
        guard let path = configuration.storePath, state != stateWritten else { return }
        stateWritten = state
        state.write(storePath: path)
    }

    // MARK: Completion

    /// Returns the result of the sync as soon as it has one, or after a duration.
    func completion(within timeout: Duration) -> EventLoopFuture<SyncClient.Completion> {
        let promise = eventLoop.makePromise(of: SyncClient.Completion.self)
        wait(Waiter(result: { SyncClient.Completion($0) }, resume: { promise.succeed($0) }), timeout)
        return promise.futureResult
    }

    /// Requests a sync; returns its problem when it has ended or cannot continue, or after a duration.
    func sync(within timeout: Duration) -> EventLoopFuture<SyncProblem?> {
        let promise = eventLoop.makePromise(of: SyncProblem?.self)
        driver.input { engine, now in engine.sync.syncRequested(at: now) }
        let connectivity = status.connectivity
        let waiter = Waiter(
            result: { SyncClient.Completion($0, since: connectivity) },
            resume: { [unowned self] completion in
                switch completion {
                case .complete: promise.succeed(SyncProblem(unreadable: status))
                case .stopped: promise.fail(SyncClient.StoppedError())
                default: promise.succeed(SyncProblem(status, after: timeout))
                }
            })
        wait(waiter, timeout)
        return promise.futureResult
    }

    private func wait(_ waiter: Waiter, _ timeout: Duration) {
        if driver.isStopped { return waiter.resume(.stopped) }
        let number = nextWaiter
        nextWaiter += 1
        waiters[number] = waiter
        waiters[number]?.timer = eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(timeout)) { [weak self] in
            self?.waiters.removeValue(forKey: number)?.resume(.timedOut)
        }
        updateState()
    }
}
