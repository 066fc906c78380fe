internal import Impairment
internal import NIOCore
internal import Proxy
internal import Wire

/// The record of one exchange, as the event `exchange` describes it. Times are nanoseconds since 1970.
struct ExchangeRecord: Hashable {
    /// The end of an exchange.
    enum End: String {
        case completed
        case lostInRequest = "lost-in-request"
        case lostBeforeCommit = "lost-before-commit"
        case lostAfterCommit = "lost-after-commit"
        case switched
    }

    /// A fault that has fired.
    struct Fault: Hashable {
        let name: String
        let point: FaultPoint
    }

    let id: Int64
    let connection: Int
    var stream: UInt32?
    let method: String
    let target: String
    let attempt: Int
    let link: String
    let opened: Int64?
    let started: Int64
    var changed: Int64
    var requestRead: Int64?
    var requestDelivered: Int64?
    var responseStarted: Int64?
    var responseRead: Int64?
    var responseDelivered: Int64?
    var ended: Int64?
    var status: Int?
    var requestBytes: Int64?
    var responseBytes: Int64?
    var fault: Fault?
    var end: End?

    /// Whether a further exchange with the same request is a retry of this one.
    var invitesRetry: Bool {
        switch end {
        case nil, .switched: false
        case .completed: status.map { $0 == 408 || $0 == 425 || $0 == 429 || $0 >= 500 } ?? false
        case .lostInRequest, .lostBeforeCommit, .lostAfterCommit: true
        }
    }

    /// Ends the exchange because its connection has ended.
    mutating func interrupt(at time: Int64) {
        if end != nil { return }
        ended = time
        if responseRead != nil {
            end = .lostAfterCommit
        } else {
            end = requestDelivered != nil || responseStarted != nil ? .lostBeforeCommit : .lostInRequest
        }
    }

    /// Returns the data of the event.
    func json(proxy: String) -> String {
        let time = EventText.milliseconds
        let times = JSONText.object([
            ("opened", time(opened)), ("started", time(started)), ("request_read", time(requestRead)),
            ("request_delivered", time(requestDelivered)), ("response_started", time(responseStarted)),
            ("response_read", time(responseRead)), ("response_delivered", time(responseDelivered)),
            ("ended", time(ended)),
        ])
        let faultText = fault.map {
            JSONText.object([
                ("name", JSONText.string($0.name)), ("point", JSONText.string($0.point.rawValue)),
            ])
        }
        return JSONText.object([
            ("t", time(changed)), ("proxy", JSONText.string(proxy)), ("id", "\(id)"),
            ("connection", "\(connection)"), ("stream", stream.map { "\($0)" } ?? "null"),
            ("method", EventText.string(method, bytesMax: EventText.methodBytesMax)),
            ("target", EventText.string(target, bytesMax: EventText.targetBytesMax)), ("attempt", "\(attempt)"),
            ("status", status.map { "\($0)" } ?? "null"), ("request_bytes", requestBytes.map { "\($0)" } ?? "null"),
            ("response_bytes", responseBytes.map { "\($0)" } ?? "null"), ("times", times),
            ("link", JSONText.string(link)), ("fault", faultText ?? "null"), ("end", JSONText.string(end?.rawValue)),
        ])
    }
}

/// The exchanges of one proxy: those that are open or have changed since the last flush, and the last ones that have
/// ended.
struct ExchangeTable {
    /// The limits of a table.
    struct Limits: Hashable {
        /// The maximum number of open exchanges; at the limit, the older half is forgotten.
        var openMax = 4096
        /// The maximum number of requests that are remembered to count attempts.
        var requestsMax = 1024
    }

    private struct Entry {
        var record: ExchangeRecord
        var isDirty = false
        let key: ByteKey
    }

    /// The last exchange of a request.
    private struct Attempt {
        var number: Int
        var invitesRetry: Bool
        /// Whether it is open and has an `Idempotency-Key`.
        var isOpenWithKey: Bool
    }

    let limits: Limits
    /// By the number of the exchange on its link.
    private var entries: [Int: Entry] = [:]
    private var dirty: [Int] = []
    private var recent = CircularBuffer<(number: Int, record: ExchangeRecord)>()
    private var attempts: [ByteKey: Attempt] = [:]

    init(limits: Limits = Limits()) { self.limits = limits }

    /// The number of exchanges without an end.
    private(set) var openCount = 0

    /// Returns the exchanges that a snapshot contains, oldest first: the last that have ended, and open ones.
    func snapshot(max count: Int) -> [ExchangeRecord] {
        let all = recent.map(\.record) + entries.values.map(\.record).sorted { $0.id < $1.id }
        return all.suffix(count)
    }

    /// Starts a record.
    ///
    /// - Parameters:
    ///   - id: The identifier in events.
    ///   - opened: The time at which the connection was opened, if this is its first exchange.
    mutating func start(
        _ number: Int, id: Int64, _ head: HTTPRequestHead, connection: Int, stream: UInt32? = nil, opened: Int64?,
        link: String, at time: Int64
    ) {
        if entries.count >= limits.openMax { forgetOldest() }
        let idempotencyKey = head.value(of: "Idempotency-Key") ?? ""
        let key = ByteKey("\(head.method) \(head.target.utf8.count) \(head.target) \(idempotencyKey)")
        let last = attempts[key]
        let isRetry = last.map { $0.invitesRetry || ($0.isOpenWithKey && !idempotencyKey.isEmpty) } ?? false
        let attempt = isRetry ? (last?.number ?? 0) + 1 : 1
        if attempts.count >= limits.requestsMax, last == nil { attempts = [:] }
        attempts[key] = Attempt(number: attempt, invitesRetry: false, isOpenWithKey: !idempotencyKey.isEmpty)
        let record = ExchangeRecord(
            id: id, connection: connection, stream: stream, method: head.method, target: head.target, attempt: attempt,
            link: link,
            opened: opened, started: time, changed: time)
        entries[number] = Entry(record: record, key: key)
        openCount += 1
        markDirty(number)
    }

    /// Changes a record. Unknown exchanges are ignored.
    mutating func change(_ number: Int, at time: Int64, _ body: (inout ExchangeRecord) -> Void) {
        guard entries[number] != nil else { return changeRecent(number, body) }
        let wasOpen = entries[number]?.record.end == nil
        entries[number]?.record.changed = time
        if let record = entries[number]?.record {
            var changed = record
            body(&changed)
            entries[number]?.record = changed
        }
        if let entry = entries[number], wasOpen, entry.record.end != nil {
            openCount -= 1
            if attempts[entry.key]?.number == entry.record.attempt {
                attempts[entry.key]?.invitesRetry = entry.record.invitesRetry
                attempts[entry.key]?.isOpenWithKey = false
            }
        }
        markDirty(number)
    }

    /// Changes an exchange that has ended; a fault may be reported after the last byte.
    private mutating func changeRecent(_ number: Int, _ body: (inout ExchangeRecord) -> Void) {
        guard let index = recent.lastIndex(where: { $0.number == number }) else { return }
        body(&recent[index].record)
    }

    /// Ends the open exchanges of a connection.
    mutating func connectionEnded(_ connection: Int, at time: Int64) {
        if openCount == 0 { return }
        let open = entries.filter { $0.value.record.connection == connection && $0.value.record.end == nil }
        for number in open.keys.sorted() { change(number, at: time) { $0.interrupt(at: time) } }
    }

    /// Returns the identifier of an exchange.
    func id(of number: Int) -> Int64? {
        entries[number]?.record.id ?? recent.last { $0.number == number }?.record.id
    }

    /// Ends all open exchanges and forgets their numbers, because another link follows.
    mutating func linkEnded(at time: Int64) {
        for number in entries.keys.sorted() where entries[number]?.record.end == nil {
            change(number, at: time) { $0.interrupt(at: time) }
        }
    }

    /// Takes the records that have changed since the last call, at most `countMax`.
    ///
    /// - Parameter keptMax: The number of ended exchanges that are kept for snapshots.
    /// - Returns: The records, and the number of further ones that have changed.
    mutating func takeChanged(_ countMax: Int, keptMax: Int) -> (records: [ExchangeRecord], dropped: Int) {
        var records: [ExchangeRecord] = []
        var dropped = 0
        for number in dirty {
            guard let record = entries[number]?.record else { continue }
            entries[number]?.isDirty = false
            if records.count < countMax { records.append(record) } else { dropped += 1 }
            if record.end != nil {
                entries[number] = nil
                recent.append((number, record))
            }
        }
        while recent.count > max(0, keptMax) { recent.removeFirst() }
        dirty.removeAll(keepingCapacity: true)
        return (records, dropped)
    }

    /// Whether a record has changed since the last ``takeChanged(_:keptMax:)``.
    var hasChanges: Bool { !dirty.isEmpty }

    private mutating func markDirty(_ number: Int) {
        if entries[number]?.isDirty != false { return }
        entries[number]?.isDirty = true
        dirty.append(number)
    }

    private mutating func forgetOldest() {
        for number in entries.keys.sorted().prefix(entries.count / 2) {
            if entries[number]?.record.end == nil { openCount -= 1 }
            entries[number] = nil
        }
        dirty.removeAll { entries[$0] == nil }
    }
}
