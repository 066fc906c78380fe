internal import Determinism
internal import HTTPWire
internal import Impairment
internal import NotesContract
internal import ScenarioModel
internal import SyncClient
internal import SyncEngine
internal import Synchronization

/// The recorder of a live run: collects events from many threads into a history, maps notes to their names in the
/// scenario, and prints a line per event.
final class HistoryRecorder: Sendable {
    private struct State {
        var history = History()
        /// Names of notes by uuid, and the reverse.
        var rows: [String: String] = [:]
        var uuids: [String: String] = [:]
        var exchanges: [String: Int] = [:]
        var nextExchange = 0
        /// Subject and start of each exchange, for the printed lines.
        var requests: [Int: (actor: String, subject: String, time: Nanoseconds)] = [:]
        var links: [String: String] = [:]
        var outboxes: [String: Int] = [:]
        /// The rows of each device's view.
        var views: [String: [RecordID: NotesView.Row]] = [:]
        var start: ContinuousClock.Instant?
        var isEnded = false
    }

    private let state = Mutex(State())
    private let onLine: @Sendable (String) -> Void

    init(onLine: @escaping @Sendable (String) -> Void) { self.onLine = onLine }

    // MARK: Time

    /// Starts the scenario's time.
    func begin() { state.withLock { $0.start = .now } }

    /// Ends the recording; later events are ignored.
    func end() { state.withLock { $0.isEnded = true } }

    /// The time since the scenario's start.
    var time: Nanoseconds { state.withLock { Self.time($0) } }

    private static func time(_ state: State) -> Nanoseconds {
        guard let start = state.start else { return .zero }
        return Nanoseconds(ContinuousClock.now - start)
    }

    /// The history so far.
    var history: History { state.withLock { $0.history } }

    // MARK: Names

    /// Assigns a note its name in the scenario.
    func assign(row: String, to uuid: String) {
        state.withLock { state in
            state.rows[uuid] = row
            state.uuids[row] = uuid
        }
    }

    func uuid(of row: String) -> String? { state.withLock { $0.uuids[row] } }

    func row(of uuid: String) -> String? { state.withLock { $0.rows[uuid] } }

    /// Returns the name of the note that a request concerns.
    func subject(_ head: HTTPRequestHead, _ body: [UInt8]) -> String? {
        let path = head.target.split(separator: "?").first ?? ""
        if path.hasPrefix(NotesHTTP.notesPath) {
            let uuid = path.dropFirst(NotesHTTP.notesPath.count).prefix { $0 != "/" }
            if !uuid.isEmpty { return row(of: String(uuid)) }
        }
        guard head.method == "POST", case .text(let uuid)? = NoteFields(json: body)?.uuid else { return nil }
        return row(of: uuid)
    }

    // MARK: Events

    /// Records an event at the current time, and prints a line.
    func record(_ event: History.Event, line: String? = nil) {
        let text: String? = state.withLock { state in
            guard !state.isEnded else { return nil }
            let time = Self.time(state)
            state.history.append(event, at: time)
            return line.map { Self.line(time, $0) }
        }
        if let text { onLine(text) }
    }

    private static func line(_ time: Nanoseconds, _ text: String) -> String {
        let seconds = TimeFormat.seconds(time)
        return String(repeating: " ", count: max(0, 8 - seconds.count)) + seconds + "  " + text
    }

    /// Records that new conditions of a device's link have taken effect.
    func recordNetwork(_ device: String, link: String, isOnline: Bool) {
        state.withLock { $0.links[device] = link }
        record(
            .network(device: device, link: link, isOnline: isOnline),
            line: "\(device)  network: \(link)\(isOnline ? "" : ", interface down")")
    }

    /// Records a host pause that has just ended.
    func recordHostPause(_ duration: Nanoseconds) {
        record(.hostPause(duration), line: "the host was paused for \(TimeFormat.seconds(duration))")
    }

    /// Begins the view of a client that starts: the first change contains all rows.
    func beginView(of name: String) { state.withLock { $0.views[name] = [:] } }

    /// Records a change of a device's view.
    func recordView(_ change: ViewChange, of name: String) {
        state.withLock { state in
            for row in change.rows { state.views[name, default: [:]][row.id] = NotesView.Row(row) }
            for id in change.removed { state.views[name]?[id] = nil }
        }
        recordView(of: name, outbox: change.outbox, connectivity: change.connectivity)
    }

    /// Records a device's view as it is.
    func recordView(of name: String) {
        recordView(of: name, outbox: state.withLock { $0.outboxes[name] } ?? 0, connectivity: .unknown)
    }

    private func recordView(of name: String, outbox: Int, connectivity: Connectivity) {
        let (rows, before) = state.withLock { state in
            let view = NotesView(
                rows: Array((state.views[name] ?? [:]).values), outbox: outbox, connectivity: connectivity)
            let rows = view.rows.map { row in
                History.DeviceState.Row(
                    name: state.rows[row.uuid] ?? String(row.uuid.prefix(8)), title: row.title, text: row.text,
                    icon: row.icon.rawValue, isDeleted: row.isDeleted, kept: row.kept)
            }
            let before = state.outboxes[name]
            state.outboxes[name] = outbox
            return (rows, before)
        }
        let icons = rows.filter { $0.icon != "none" }.map { "\($0.name) \($0.icon)" }.joined(separator: ", ")
        let isPrinted = before != nil && (before != outbox || rows.contains { $0.icon == "conflict" })
        record(
            .device(name, History.DeviceState(rows: rows, outbox: outbox)),
            line: isPrinted ? "\(name)  outbox \(outbox)\(icons.isEmpty ? "" : ": \(icons)")" : nil)
    }

    private func exchange(_ actor: String, _ number: Int) -> Int {
        state.withLock { state in
            let key = "\(actor)/\(number)"
            if let known = state.exchanges[key] { return known }
            let id = state.nextExchange
            state.nextExchange += 1
            state.exchanges[key] = id
            return id
        }
    }

    private func recordRequest(_ id: Int, _ actor: String, _ subject: String) {
        state.withLock { $0.requests[id] = (actor, subject, Self.time($0)) }
    }

    private func line(_ id: Int, _ result: String) -> String? {
        state.withLock { state in
            guard let request = state.requests[id] else { return nil }
            let link = state.links[request.actor].map { " (\($0))" } ?? ""
            let duration = TimeFormat.duration(Self.time(state) - request.time)
            return "\(request.actor)  \(request.subject) -> \(result) after \(duration)\(link)"
        }
    }

    /// Records an event of an exchange on a device's link.
    ///
    /// - Parameter faults: For each rule of the device's proxy, the index of its fault in the scenario.
    func recordExchange(_ device: String, _ event: ExchangeEvent, faults: [Int]) {
        switch event {
        case .requested(let id, let head, let body, let row):
            let number = exchange(device, id.number)
            let subject = "\(head.method) \(row ?? Self.short(head.target))"
            recordRequest(number, device, subject)
            record(
                .request(
                    number, actor: device, method: head.method, row: row,
                    key: head.value(of: NotesHTTP.idempotencyKeyName), bodyDigest: FNV1a.digest(body)),
                line: "\(device)  \(subject)")
        case .requestDelivered(let id): record(.arrived(exchange(device, id.number)))
        case .committed(let id, let status, _):
            record(.serverResponded(exchange(device, id.number), status: status))
        case .responseDelivered(let id, let status):
            let number = exchange(device, id.number)
            record(.responseReceived(number, status: status), line: line(number, "\(status)"))
        case .interrupted(let id):
            let number = exchange(device, id.number)
            // Of a request that was interrupted itself, nothing has been recorded.
            guard state.withLock({ $0.requests[number] != nil }) else { return }
            record(.failed(number), line: line(number, "no response"))
        case .faultInjected(let id, let rule, _, _):
            let number = exchange(device, id.number)
            record(
                .fault(index: faults.indices.contains(rule) ? faults[rule] : -1, exchange: number),
                line: line(number, "response lost by a fault"))
        case .requestStarted, .requestRead, .responseStarted, .faultMissed, .protocolSwitched: break
        case .notHTTP(let reason):
            record(
                .action(actor: device, "sends bytes that are not HTTP"), line: "\(device)  not HTTP: \(reason)")
        }
    }

    /// Records an event of a writer's client.
    func recordWriter(_ name: String, _ event: SyncEvent) {
        switch event {
        case .sent(let number, let method, let target):
            let uuid =
                target.hasPrefix(NotesHTTP.notesPath)
                ? String(target.dropFirst(NotesHTTP.notesPath.count).prefix { $0 != "/" }) : ""
            let id = exchange(name, number)
            recordRequest(id, name, "\(method) \(row(of: uuid) ?? Self.short(target))")
            record(.request(id, actor: name, method: method, row: row(of: uuid), key: nil, bodyDigest: 0))
        case .responded(let number, let status):
            let id = exchange(name, number)
            record(.serverResponded(id, status: status))
            record(
                .responseReceived(id, status: status),
                line: status >= 300 || isRead(id) ? nil : line(id, "\(status)"))
        case .failed(let number, _): record(.failed(exchange(name, number)))
        case .cancelled(let number): record(.failed(exchange(name, number)))
        case .view, .commitFailed, .commitRecovered, .paused, .mismatch, .quarantined, .parked, .attachment:
            break
        }
    }

    private func isRead(_ id: Int) -> Bool {
        state.withLock { $0.requests[id]?.subject.hasPrefix("GET") ?? false }
    }

    private static func short(_ target: String) -> String {
        switch target.prefix(while: { $0 != "?" }) {
        case NotesHTTP.indexPath[...]: "index"
        case NotesHTTP.notesPath[...]: "notes"
        default: String(target.prefix(40))
        }
    }
}
