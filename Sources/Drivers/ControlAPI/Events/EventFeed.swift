internal import Determinism
internal import NIOCore
internal import Proxy
internal import Synchronization
internal import Wire

/// The driver of an ``EventFeedModel``: observes the proxies while there are readers, and passes the events on to them.
///
/// Without readers it has no task, and no proxy is observed. It continues for ``lingerTime`` after the last reader has
/// left, so that this one can resume.
final class EventFeed: Sendable {
    /// The limits of a feed.
    struct Limits: Hashable {
        var model = EventFeedModel.Limits()
        /// The maximum number of readers.
        var readersMax = 32
        /// The maximum number of bytes of one part of a response; a snapshot may be longer.
        var partBytesMax = 64 << 10
        /// The time after which a reader without events gets a comment, in nanoseconds.
        var keepAliveTime: Int64 = 15_000_000_000
        /// The time for which events are collected after the last reader has left, in nanoseconds.
        var lingerTime: Int64 = 30_000_000_000
    }

    private struct Reader {
        let filter: ByteKey?
        /// The last event that was read; `nil` before the first snapshot.
        var position: Int64?
        /// The time of the last part.
        var lastPart: Int64
        var waiter: CheckedContinuation<Void, Never>?
        var isCancelled = false
    }

    private struct State {
        var model: EventFeedModel
        var readers: [Int: Reader] = [:]
        var readerCount = 0
        var observed: [ByteKey: (proxy: Proxy, task: Task<Void, Never>)] = [:]
        var ticker: Task<Void, Never>?
        /// Whether the state of all proxies has been recorded.
        var isLoaded = false
        var isClosed = false
        /// The time at which the last reader left.
        var emptySince: Int64?
    }

    private let limits: Limits
    private let started: Int64
    private let state: Mutex<State>
    private let active = Atomic<Bool>(false)
    private let work: WorkPool
    private let now: @Sendable () -> Int64

    /// Creates a feed.
    ///
    /// - Parameters:
    ///   - work: The threads on which snapshots are written.
    ///   - now: Returns the time in nanoseconds since 1970.
    init(
        version: String, dashboard: String, limits: Limits = Limits(), work: WorkPool = WorkPool(),
        now: @escaping @Sendable () -> Int64 = { ProcessClock.now }
    ) {
        self.limits = limits
        self.work = work
        self.now = now
        started = now()
        state = Mutex(
            State(
                model: EventFeedModel(
                    version: version, started: started, dashboard: dashboard, limits: limits.model)))
    }

    /// Whether changes of proxies must be reported.
    var isActive: Bool { active.load(ordering: .acquiring) }

    /// The number of readers.
    var readerCount: Int { state.withLock { $0.readers.count } }

    // MARK: Changes

    /// Records the state of a proxy after a change; `nil` if it was removed.
    func update(_ name: ByteKey, _ proxy: ManagedProxy?, _ status: ProxyStatus?, by cause: ChangeCause) {
        let time = now()
        state.withLock { state in
            guard active.load(ordering: .relaxed) else { return }
            if let proxy { state.model.update(proxy, status, by: cause, at: time) }
            if proxy == nil { state.model.remove(name, at: time) }
            observe(name, proxy?.running, &state)
        }
        wake()
    }

    /// Records the state of the recording.
    ///
    /// - Parameter json: Returns the data of the event at a time.
    func updateRecording(_ json: (Int64) -> String) {
        let text = json(now())
        state.withLock { state in
            guard active.load(ordering: .relaxed) else { return }
            state.model.setRecording(text)
        }
        wake()
    }

    /// Starts or ends the observation of a proxy.
    private func observe(_ name: ByteKey, _ running: Proxy?, _ state: inout State) {
        if let observed = state.observed[name] {
            if observed.proxy === running { return }
            observed.task.cancel()
            state.observed[name] = nil
        }
        guard let running else { return }
        // Ends when the proxy stops, or when it is cancelled.
        let task = Task { [weak self] in
            let observation = await running.observe(
                [.exchanges, .connections, .status], bufferedEventsMax: 2 * ProxyObservation.bufferedEventsMaxDefault,
                statusInterval: Self.statusInterval)
            self?.observationStarted(observation, name, running)
            for await event in observation.events { self?.receive(event, name, running) }
        }
        state.observed[name] = (running, task)
    }

    private static let statusInterval = Nanoseconds(EventFeedModel.flushInterval)

    private func observationStarted(_ observation: ProxyObservation, _ name: ByteKey, _ proxy: Proxy) {
        let time = now()
        state.withLock { state in
            guard state.observed[name]?.proxy === proxy else { return }
            state.model.observationStarted(of: name, start: observation.startUnixNanoseconds, at: time)
        }
    }

    private func receive(_ event: ProxyEvent, _ name: ByteKey, _ proxy: Proxy) {
        let time = now()
        state.withLock { state in
            guard state.observed[name]?.proxy === proxy else { return }
            state.model.receive(event, of: name, at: time)
        }
    }

    // MARK: Readers

    /// A connected reader, until it is released.
    final class Connection: Sendable {
        private let feed: EventFeed
        private let number: Int

        fileprivate init(_ feed: EventFeed, _ number: Int) {
            self.feed = feed
            self.number = number
        }

        deinit { feed.disconnect(number) }

        /// Returns the next part of the stream, when there is one; `nil` at its end.
        func next() async -> String? { await feed.next(number) }
    }

    /// Connects a reader.
    ///
    /// - Parameters:
    ///   - filter: The proxy whose events are wanted; `nil` for all.
    ///   - position: The last event that the reader has got; `nil` for a new reader.
    ///   - load: Reports every proxy with ``update(_:_:_:by:)``; called if the feed was not active.
    /// - Returns: `nil` if there are too many readers.
    func connect(
        filter: ByteKey?, after position: Int64?, load: @escaping @Sendable () async -> Void
    ) -> Connection? {
        let time = now()
        let (number, activates) = state.withLock { state -> (Int?, Bool) in
            guard state.readers.count < limits.readersMax, !state.isClosed else { return (nil, false) }
            state.readerCount += 1
            state.readers[state.readerCount] = Reader(filter: filter, position: position, lastPart: time)
            state.emptySince = nil
            let activates = !active.exchange(true, ordering: .acquiringAndReleasing)
            if activates { state.isLoaded = false }
            return (state.readerCount, activates)
        }
        guard let number else { return nil }
        if activates {
            Task {
                await load()
                loaded()
            }
        }
        return Connection(self, number)
    }

    private func loaded() {
        state.withLock { state in
            state.isLoaded = true
            if state.ticker != nil || state.isClosed { return }
            // Ends when the feed is no longer active.
            state.ticker = Task { [weak self] in
                while self?.tick() == true {
                    try? await Task.sleep(for: .nanoseconds(EventFeedModel.flushInterval))
                }
            }
        }
        wake()
    }

    private func disconnect(_ number: Int) {
        let time = now()
        state.withLock { state in
            state.readers[number] = nil
            if state.readers.isEmpty { state.emptySince = time }
        }
    }

    private func next(_ number: Int) async -> String? {
        while true {
            let time = now()
            switch state.withLock({ state in takePart(number, &state, at: time) }) {
            case .events(let text): return text
            case .snapshot(let snapshot, let dropped):
                // The lock is free meanwhile: a snapshot of many proxies takes long.
                let text = try? await work.run(bytes: snapshot.bytes) {
                    EventLog.text(snapshot.id, .hello, snapshot.hello)
                }
                return text.map { dropped + $0 }
            case .end: return nil
            case nil: if Task.isCancelled { return nil }
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { wait(number, $0) }
            } onCancel: {
                cancel(number)
            }
        }
    }

    /// A part of a stream.
    private enum Part {
        case events(String)
        /// A snapshot, and the event before it.
        case snapshot(EventFeedModel.Snapshot, dropped: String)
        case end
    }

    /// Takes the next part of a reader; `nil` if there is none yet.
    private func takePart(_ number: Int, _ state: inout State, at time: Int64) -> Part? {
        guard let reader = state.readers[number], !state.isClosed, !reader.isCancelled else { return .end }
        guard state.isLoaded else { return nil }
        guard let position = reader.position else {
            return .snapshot(snapshot(number, &state, at: time), dropped: "")
        }
        let part: String
        switch state.model.log.read(after: position, filter: reader.filter, bytesMax: limits.partBytesMax) {
        case .events(let text, let last):
            state.readers[number]?.position = last
            part = text
        case .gap(let missed):
            let isOther = position < state.model.log.firstID || position > state.model.log.lastID
            let dropped = EventFeedModel.dropped(missed, isOther ? "restart" : "reader", at: time)
            return .snapshot(
                snapshot(number, &state, at: time),
                dropped: EventLog.text(state.model.log.lastID, .dropped, dropped))
        }
        if !part.isEmpty {
            state.readers[number]?.lastPart = time
            return .events(part)
        }
        guard time - reader.lastPart >= limits.keepAliveTime else { return nil }
        state.readers[number]?.lastPart = time
        return .events(": keep-alive\n\n")
    }

    private func snapshot(_ number: Int, _ state: inout State, at time: Int64) -> EventFeedModel.Snapshot {
        let snapshot = state.model.snapshot(filter: state.readers[number]?.filter, at: time)
        state.readers[number]?.position = snapshot.id
        state.readers[number]?.lastPart = time
        return snapshot
    }

    private func wait(_ number: Int, _ continuation: CheckedContinuation<Void, Never>) {
        let time = now()
        let mustWait = state.withLock { state in
            guard let reader = state.readers[number], !state.isClosed, !reader.isCancelled else { return false }
            if isReady(reader, state, at: time) { return false }
            state.readers[number]?.waiter = continuation
            return true
        }
        if !mustWait { continuation.resume() }
    }

    /// Returns whether a reader need not wait.
    private func isReady(_ reader: Reader, _ state: borrowing State, at time: Int64) -> Bool {
        guard state.isLoaded else { return false }
        return reader.position != state.model.log.lastID || time - reader.lastPart >= limits.keepAliveTime
    }

    private func cancel(_ number: Int) {
        let waiter = state.withLock { state in
            state.readers[number]?.isCancelled = true
            defer { state.readers[number]?.waiter = nil }
            return state.readers[number]?.waiter
        }
        waiter?.resume()
    }

    /// Resumes the readers that need not wait any longer.
    private func wake() {
        let time = now()
        let waiters = state.withLock { state in
            var waiters: [CheckedContinuation<Void, Never>] = []
            for (number, reader) in state.readers {
                guard let waiter = reader.waiter, state.isClosed || isReady(reader, state, at: time) else { continue }
                state.readers[number]?.waiter = nil
                waiters.append(waiter)
            }
            return waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Time

    /// Flushes the events that wait. Returns whether the feed is still active.
    private func tick() -> Bool {
        let time = now()
        let isActive = state.withLock { state in
            if state.isClosed { return false }
            state.model.advance(to: time)
            guard state.readers.isEmpty, let since = state.emptySince, time - since >= limits.lingerTime else {
                return true
            }
            deactivate(&state)
            return false
        }
        wake()
        return isActive
    }

    private func deactivate(_ state: inout State) {
        active.store(false, ordering: .releasing)
        state.isLoaded = false
        for (_, task) in state.observed.values { task.cancel() }
        state.observed = [:]
        state.model.removeAll()
        state.ticker = nil
    }

    /// Ends all streams.
    func close() {
        state.withLock { state in
            state.isClosed = true
            deactivate(&state)
        }
        wake()
    }
}
