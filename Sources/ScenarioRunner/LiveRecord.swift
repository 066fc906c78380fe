internal import HTTPWire
internal import Impairment
internal import LinkModel
internal import NotesContract
internal import ScenarioModel
internal import SyncClient
internal import SyncEngine
internal import Synchronization

/// What has happened so far in a live run, told by many threads; also what notes are called, and what is printed.
final class LiveRecord: Sendable {
    private struct State {
        var history = History()
        /// Notes' names by uuid, and the other way round.
        var rows: [String: String] = [:]
        var uuids: [String: String] = [:]
        var exchanges: [String: Int] = [:]
        var nextExchange = 0
        /// For the lines: what each exchange was, and when it began.
        var requests: [Int: (actor: String, what: String, time: Nanoseconds)] = [:]
        var links: [String: String] = [:]
        var outboxes: [String: Int] = [:]
        var start: ContinuousClock.Instant?
        var isOver = false
    }

    private let state = Mutex(State())
    private let onLine: @Sendable (String) -> Void

    init(onLine: @escaping @Sendable (String) -> Void) { self.onLine = onLine }

    // MARK: Time

    /// Now the scenario begins.
    func begin() { state.withLock { $0.start = .now } }

    /// From here on nothing is added.
    func end() { state.withLock { $0.isOver = true } }

    /// How much of the scenario has passed.
    var time: Nanoseconds { state.withLock { Self.time($0) } }

    private static func time(_ state: State) -> Nanoseconds {
        guard let start = state.start else { return .zero }
        return Nanoseconds(ContinuousClock.now - start)
    }

    /// What has happened.
    var history: History { state.withLock { $0.history } }

    // MARK: Names

    /// A note is called this from now on.
    func name(_ uuid: String, _ row: String) {
        state.withLock { state in
            state.rows[uuid] = row
            state.uuids[row] = uuid
        }
    }

    func uuid(of row: String) -> String? { state.withLock { $0.uuids[row] } }

    func row(of uuid: String) -> String? { state.withLock { $0.rows[uuid] } }

    /// What a request is about.
    func subject(_ head: HTTPRequestHead, _ body: [UInt8]) -> String? {
        let path = head.target.split(separator: "?").first ?? ""
        if path.hasPrefix(NotesHTTP.notesPath) {
            let uuid = path.dropFirst(NotesHTTP.notesPath.count).prefix { $0 != "/" }
            if !uuid.isEmpty { return row(of: String(uuid)) }
        }
        guard head.method == "POST", case .text(let uuid)? = NoteRequest(json: body)?.uuid else { return nil }
        return row(of: uuid)
    }

    // MARK: What happens

    func add(_ event: History.Event, line: String? = nil) {
        let text: String? = state.withLock { state in
            guard !state.isOver else { return nil }
            let time = Self.time(state)
            state.history.append(event, at: time)
            return line.map { Self.line(time, $0) }
        }
        if let text { onLine(text) }
    }

    private static func line(_ time: Nanoseconds, _ text: String) -> String {
        let moment = Moment.text(time)
        return String(repeating: " ", count: max(0, 7 - moment.count)) + moment + "  " + text
    }

    func network(_ device: String, link: String, isOnline: Bool) {
        state.withLock { $0.links[device] = link }
        add(
            .network(device: device, link: link, isOnline: isOnline),
            line: "\(device)  network: \(link)\(isOnline ? "" : ", and the device knows")")
    }

    /// The machine has stood still until now.
    func stall(_ span: Nanoseconds) { add(.stall(span), line: "this machine stood still for \(Moment.text(span))") }

    /// A device looks different.
    func device(_ name: String, _ view: NotesView) {
        let (rows, outbox, before) = state.withLock { state in
            let rows = view.rows.map { row in
                History.DeviceState.Row(
                    name: state.rows[row.uuid] ?? String(row.uuid.prefix(8)), title: row.title, text: row.text,
                    icon: row.icon.rawValue, isDeleted: row.isDeleted, kept: row.kept)
            }
            let before = state.outboxes[name]
            state.outboxes[name] = view.outbox
            return (rows, view.outbox, before)
        }
        let icons = rows.filter { $0.icon != "none" }.map { "\($0.name) \($0.icon)" }.joined(separator: ", ")
        let isWorthALine = before != nil && (before != outbox || rows.contains { $0.icon == "conflict" })
        add(
            .device(name, History.DeviceState(rows: rows, outbox: outbox)),
            line: isWorthALine ? "\(name)  outbox \(outbox)\(icons.isEmpty ? "" : ": \(icons)")" : nil)
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

    private func note(_ id: Int, _ actor: String, _ what: String) {
        state.withLock { $0.requests[id] = (actor, what, Self.time($0)) }
    }

    private func line(_ id: Int, _ result: String) -> String? {
        state.withLock { state in
            guard let request = state.requests[id] else { return nil }
            let link = state.links[request.actor].map { " (\($0))" } ?? ""
            let span = Moment.span(Self.time(state) - request.time)
            return "\(request.actor)  \(request.what) -> \(result) after \(span)\(link)"
        }
    }

    /// Something has become true of an exchange on a device's link; `faults` are the places of its rules.
    func exchange(_ device: String, _ event: ExchangeEvent, faults: [Int]) {
        switch event {
        case .requested(let id, let head, let body, let subject):
            let number = exchange(device, id.number)
            let what = "\(head.method) \(subject ?? Self.short(head.target))"
            note(number, device, what)
            add(
                .request(
                    number, actor: device, method: head.method, row: subject,
                    key: head.value(of: NotesHTTP.idempotencyKeyName), bodyDigest: Self.digest(body)),
                line: "\(device)  \(what)")
        case .requestDelivered(let id): add(.arrived(exchange(device, id.number)))
        case .committed(let id, let status): add(.served(exchange(device, id.number), status: status))
        case .responseDelivered(let id, let status):
            let number = exchange(device, id.number)
            add(.answered(number, status: status), line: line(number, "\(status)"))
        case .interrupted(let id):
            let number = exchange(device, id.number)
            add(.lost(number), line: line(number, "no answer"))
        case .faultInjected(let id, let rule):
            let number = exchange(device, id.number)
            add(
                .fault(index: faults.indices.contains(rule) ? faults[rule] : -1, exchange: number),
                line: line(number, "the server has answered; the answer is lost"))
        case .notHTTP(let reason):
            add(.act(actor: device, "sends what is not HTTP"), line: "\(device)  not HTTP: \(reason)")
        }
    }

    /// A writer's client sends or gets something.
    func writer(_ name: String, _ event: SyncEvent) {
        switch event {
        case .sent(let number, let method, let target):
            let uuid =
                target.hasPrefix(NotesHTTP.notesPath)
                ? String(target.dropFirst(NotesHTTP.notesPath.count).prefix { $0 != "/" }) : ""
            let id = exchange(name, number)
            note(id, name, "\(method) \(row(of: uuid) ?? Self.short(target))")
            add(.request(id, actor: name, method: method, row: row(of: uuid), key: nil, bodyDigest: 0))
        case .answered(let number, let status):
            let id = exchange(name, number)
            add(.served(id, status: status))
            add(.answered(id, status: status), line: status >= 300 || isRead(id) ? nil : line(id, "\(status)"))
        case .failed(let number, _): add(.lost(exchange(name, number)))
        case .view, .cannotStore: break
        }
    }

    private func isRead(_ id: Int) -> Bool { state.withLock { $0.requests[id]?.what.hasPrefix("GET") ?? false } }

    private static func short(_ target: String) -> String {
        target == NotesHTTP.indexPath ? "index" : target == NotesHTTP.notesPath ? "notes" : String(target.prefix(40))
    }

    private static func digest(_ bytes: [UInt8]) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return hash
    }
}
