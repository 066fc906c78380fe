internal import Determinism
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// The cause of a change of a link.
enum ChangeCause: String, Hashable, Sendable {
    case api, timeline, reset
    case resetAfter = "reset_after"
    case start
}

/// The events of all proxies: a state machine without clock, socket or task.
///
/// The changes of proxies and their observed events are its inputs, each with the time in nanoseconds since 1970.
/// Changes by calls become events of ``log`` at once; records of exchanges and connections, summaries, and changes by
/// timelines with the next ``advance(to:)``, which the driver calls once per ``flushInterval``.
struct EventFeedModel {
    /// The limits of a feed.
    struct Limits: Hashable {
        var log = EventLog.Limits()
        /// The maximum number of events of exchanges, connections and faults per proxy and flush.
        var eventsPerFlush = 400
        /// The maximum number of ended exchanges that are kept per proxy.
        var exchangesKept = 200
        /// The maximum number of ended exchanges that are kept of all proxies together.
        var exchangesKeptInAll = 4000
        /// The maximum number of connections of a proxy in a snapshot.
        var connectionsShown = 500
        /// The maximum number of connections that are remembered per proxy.
        var connectionsKept = 20_000
    }

    /// The time between two calls of ``advance(to:)``.
    static let flushInterval: Int64 = 100_000_000
    /// The version of the schema.
    static let schema = 1

    let limits: Limits
    private let version: String
    private let started: Int64
    private let dashboard: String
    private(set) var log: EventLog
    private var proxies: [ByteKey: ProxyFeed] = [:]
    /// The proxies with inputs since the last flush.
    private var changed: Set<ByteKey> = []
    private var exchangeCount: Int64 = 0
    private var recording: String?

    /// Creates a feed without proxies.
    ///
    /// - Parameters:
    ///   - version: The version of Slowlane.
    ///   - started: The time at which the process started.
    ///   - dashboard: The mode of the dashboard.
    init(version: String, started: Int64, dashboard: String, limits: Limits = Limits()) {
        self.version = version
        self.started = started
        self.dashboard = dashboard
        self.limits = limits
        // Microseconds since 1970 are below 2^53 and higher in each later process.
        log = EventLog(firstID: started / 1000, limits: limits.log)
    }

    // MARK: Snapshots

    /// The state of the proxies at a time, as a value from which the text can be written later.
    struct Snapshot: Sendable {
        /// The number of the last event that the snapshot contains.
        let id: Int64
        fileprivate let time: Int64
        fileprivate let filter: ByteKey?
        fileprivate let proxies: [ByteKey: ProxyFeed]
        fileprivate let exchangesMax: Int
        fileprivate let connectionsMax: Int
        fileprivate let members: [(key: String, value: String)]

        /// An estimate of the number of bytes of ``hello``.
        var bytes: Int { 500 * (filter == nil ? proxies.count : 1) }

        /// The data of the event `hello`.
        var hello: String {
            let names = proxies.keys.filter { filter == nil || $0 == filter }.sorted()
            let snapshots = names.compactMap { name in
                proxies[name]?.snapshot(exchangesMax: exchangesMax, connectionsMax: connectionsMax)
            }
            return JSONText.object(
                [("t", EventText.milliseconds(time))] + members + [("proxies", JSONText.array(snapshots))])
        }
    }

    /// Returns a snapshot.
    func snapshot(filter: ByteKey?, at time: Int64) -> Snapshot {
        Snapshot(
            id: log.lastID, time: time, filter: filter, proxies: proxies, exchangesMax: exchangesKept,
            connectionsMax: limits.connectionsShown,
            members: [
                ("schema", "\(Self.schema)"), ("version", JSONText.string(version)),
                ("started", EventText.milliseconds(started)), ("dashboard", JSONText.string(dashboard)),
                ("recording", recording ?? "null"),
            ])
    }

    /// Returns the data of the event `dropped`.
    static func dropped(_ count: Int64?, _ reason: String, proxy: String? = nil, at time: Int64) -> String {
        JSONText.object([
            ("t", EventText.milliseconds(time)), ("count", count.map { "\($0)" } ?? "null"),
            ("reason", JSONText.string(reason)), ("proxy", JSONText.string(proxy)),
        ])
    }

    private var exchangesKept: Int {
        min(limits.exchangesKept, max(4, limits.exchangesKeptInAll / max(1, proxies.count)))
    }

    // MARK: Changes of proxies

    /// Records the state of a proxy after a change.
    mutating func update(_ proxy: ManagedProxy, _ status: ProxyStatus?, by cause: ChangeCause, at time: Int64) {
        let name = ByteKey(proxy.name)
        if proxies[name] != nil { flush(name, at: time) }
        var feed = proxies[name] ?? ProxyFeed(proxy)
        for event in feed.update(proxy, status, by: cause, at: time) { log.append(event.type, name, event.json) }
        proxies[name] = feed
        changed.insert(name)
    }

    /// Records the removal of a proxy.
    mutating func remove(_ name: ByteKey, at time: Int64) {
        flush(name, at: time)
        guard let feed = proxies.removeValue(forKey: name) else { return }
        log.append(.proxy, name, feed.definition(change: "deleted", at: time))
    }

    /// Records the state of the recording.
    mutating func setRecording(_ json: String) {
        recording = json
        log.append(.recording, nil, json)
    }

    /// Forgets all proxies and all events.
    mutating func removeAll() {
        proxies = [:]
        recording = nil
        log.removeAll()
    }

    // MARK: Observed events

    /// Records the start of an observation of a proxy.
    ///
    /// - Parameter start: The time of the start of the proxy's model.
    mutating func observationStarted(of name: ByteKey, start: Int64, at time: Int64) {
        proxies[name]?.observationStarted(start: start, at: time)
        changed.insert(name)
    }

    /// Records an event of an observed proxy.
    mutating func receive(_ event: ProxyEvent, of name: ByteKey, at time: Int64) {
        guard proxies[name] != nil else { return }
        if case .exchange(.requestStarted, _, _) = event { exchangeCount += 1 }
        proxies[name]?.receive(event, exchange: exchangeCount, limits, at: time)
        changed.insert(name)
    }

    // MARK: Time

    /// Appends the events that wait for the next flush.
    mutating func advance(to time: Int64) {
        for name in changed.sorted() { flush(name, at: time) }
        changed.removeAll(keepingCapacity: true)
    }

    private mutating func flush(_ name: ByteKey, at time: Int64) {
        let kept = exchangesKept
        guard let events = proxies[name]?.takeEvents(limits.eventsPerFlush, keptMax: kept, at: time) else { return }
        for event in events { log.append(event.type, name, event.json) }
    }
}
