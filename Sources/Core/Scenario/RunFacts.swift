internal import Determinism
internal import Impairment
internal import LinkModel

/// The facts of a run on which invariants are decided, collected in one pass over its history.
struct RunFacts {
    typealias Row = History.DeviceState.Row

    /// The digests of the texts of notes of the history, each computed once.
    private final class TextDigests {
        var known: [ObjectIdentifier: UInt64] = [:]
    }

    private let textDigests = TextDigests()

    /// Returns ``RequestContents/digest(_:)`` of the text of a note of the history; `nil` without a text.
    func textDigest(_ row: Row?) -> UInt64? {
        guard let row, let text = row.text else { return nil }
        if let known = textDigests.known[row.identity] { return known }
        let digest = RequestContents.digest(text)
        textDigests.known[row.identity] = digest
        return digest
    }

    /// A change of one note in the view of a device.
    struct RowChange {
        let index: Int
        let time: Nanoseconds
        let name: String
        /// The note before and after; `nil` if it was or is absent.
        let before: Row?
        let after: Row?
        /// Whether the view is the first of a process of the client.
        let isFirst: Bool
        /// The number of pending changes of the whole view.
        let outbox: Int
    }

    /// A moment of the run.
    struct Moment {
        let index: Int
        let time: Nanoseconds
    }

    /// An action of a user.
    struct UserAction {
        let moment: Moment
        let action: Scenario.Action

        var kind: Scenario.Action.Kind { action.kind }
        /// Whether it changes the note with this name.
        func changes(_ row: String) -> Bool { action.row == row }
        /// Whether it changes the note with this name, or may: what a call does is not known.
        func mayChange(_ row: String) -> Bool { kind == .call || changes(row) }
    }

    /// A state of a device's network: its link, its interface, and whether its client runs.
    struct NetworkState {
        let moment: Moment
        var isRunning: Bool
        var isUp: Bool
        var isMetered: Bool
        /// Whether the link lets exchanges with the server be completed.
        var isOpen: Bool
        var isFlap: Bool

        /// Whether the client can reach the server, as far as the network is concerned.
        var isUsable: Bool { isRunning && isUp && isOpen }
    }

    /// The facts of a device.
    struct Device {
        let device: Scenario.Device
        var policy = ClientPolicy()
        /// Whether the client has published its policy.
        var hasPolicy = false
        /// The changes of its view, in order, and those of each note.
        var changes: [RowChange] = []
        var rows: [String: [RowChange]] = [:]
        /// The last view; `nil` if there is none.
        var state: History.DeviceState?
        /// Attempts to connect.
        var dials: [Moment] = []
        var actions: [UserAction] = []
        /// The starts and stops of its client after the first start.
        var starts: [Moment] = []
        var stops: [Moment] = []
        var commits: [Int] = []
        /// The indices of the changes of its belief about connectivity.
        var beliefs: [Int] = []
        var network: [NetworkState] = []
        /// Its exchanges, as indices of ``RunFacts/exchanges``.
        var exchanges: [Int] = []

        var name: String { device.name }
        var isProgram: Bool { device.client.isProgram }
        /// Whether its client is the reference client of the notes server.
        var isReference: Bool { device.client == .reference }

        /// Returns the note as it is shown at an entry.
        func row(_ name: String, at index: Int) -> Row? { change(of: name, at: index)?.after }

        /// Returns the last change of a note up to an entry.
        func change(of name: String, at index: Int) -> RowChange? {
            guard let changes = rows[name] else { return nil }
            return changes.last { $0.index <= index }
        }
    }

    let scenario: Scenario
    let history: History
    let exchanges: [History.Exchange]
    /// The effects of the writes.
    let effects: WriteEffects
    /// The changes that devices have accepted from their users.
    let changes: [ExpectationEvaluator.Change]
    let lateness: Lateness
    let wasAborted: Bool
    /// What the world records; `nil` if that is not known.
    private(set) var world: WorldFacts?
    private(set) var devices: [Device]
    /// The notes on the server at the end; `nil` if they were not read.
    private(set) var serverRows: [History.ServerRow]?
    /// The index of the entry with which the notes were read; that of the end without one.
    private(set) var endIndex: Int
    private(set) var firstBytesChanged: (index: Int, device: String, text: String)?
    /// The users of devices and writers.
    let accounts: DeviceAccounts
    /// Actors that send requests past their clients' queues.
    private let senders: Set<String>
    /// Devices among these, and writers whose requests name no note.
    private let nameless: Set<String>
    /// The exchanges that concern each note of each user, as indices of ``exchanges``.
    private(set) var exchangesByNote: [Note: [Int]] = [:]
    /// The numbers of the exchanges that were recorded when a fault ceased to hold their connection. The client may have
    /// sent them earlier.
    private(set) var heldBack: Set<Int> = []
    /// The notes that a user has restored under another identifier after their deletion. The name stands for two notes
    /// then, of which one device may have the first, and another device the second.
    let restored: Set<Note>
    /// The texts that steps give to each note.
    private(set) var stepTexts: [String: [String]] = [:]

    /// A note of a user.
    struct Note: Hashable {
        let user: String
        let row: String
    }

    init(
        _ scenario: Scenario, _ history: History, exchanges: [History.Exchange], effects: WriteEffects,
        changes: [ExpectationEvaluator.Change], lateness: Lateness
    ) {
        self.scenario = scenario
        self.history = history
        self.exchanges = exchanges
        self.effects = effects
        self.lateness = lateness
        wasAborted = history.wasAborted
        endIndex = history.entries.count
        let accounts = DeviceAccounts(scenario, history)
        self.accounts = accounts
        var (senders, nameless): (Set<String>, Set<String>) = ([], [])
        let writers = Set(scenario.writers.map(\.name))
        for step in scenario.steps {
            guard case (let actor, .send(let request))? = step.action else { continue }
            senders.insert(actor)
            if !writers.contains(actor) || request.rows.isEmpty && request.bodyRows.isEmpty { nameless.insert(actor) }
        }
        (self.senders, self.nameless) = (senders, nameless)
        for step in scenario.steps {
            switch step.action?.action {
            case .create(let row, _, let text?)?, .edit(let row, _, let text?)?, .resolve(let row, _, let text?)?,
                .editStale(let row, _, let text?)?:
                stepTexts[row, default: []].append(text)
            default: continue
            }
        }
        restored = Self.restored(history, exchanges, accounts)
        let restored = restored
        // A change of a user who is signed out at the end is in a store that nothing shows.
        self.changes = changes.filter { change in
            !accounts.changes(of: change.device, after: change.startIndex)
                && accounts.user(of: change.device).map { !restored.contains(Note(user: $0, row: change.row)) } ?? true
        }
        devices = scenario.devices.map { device in
            Device(device: device.replacing(\.user, accounts.user(of: device.name) ?? device.user))
        }
        collect()
        for note in restored {
            for index in devices.indices where devices[index].device.user == note.user {
                devices[index].rows[note.row] = nil
                devices[index].changes.removeAll { $0.name == note.row }
            }
        }
        var held: [Int: Nanoseconds] = [:]
        for (index, exchange) in exchanges.enumerated() {
            if let connection = exchange.connection {
                if let end = held[connection], exchange.sentAt <= end + slack { heldBack.insert(exchange.id) }
                if let end = heldUntil(exchange) { held[connection] = end }
            }
            if !Self.isOnClosedConnection(exchange) {
                if let device = devices.firstIndex(where: { $0.name == exchange.actor }) {
                    devices[device].exchanges.append(index)
                }
            }
            if let note = note(of: exchange), !restored.contains(note) {
                exchangesByNote[note, default: []].append(index)
            }
        }
    }

    /// Whether a request concerns a note that a user has restored under another identifier.
    func isRestored(_ exchange: History.Exchange) -> Bool { note(of: exchange).map { restored.contains($0) } ?? false }

    /// Returns the notes of which an actor has sent a POST after its user has resolved a conflict: the deleted note gets
    /// another identifier.
    private static func restored(
        _ history: History, _ exchanges: [History.Exchange], _ accounts: DeviceAccounts
    ) -> Set<Note> {
        var posts: [Int: History.Exchange] = [:]
        for exchange in exchanges where exchange.method == "POST" && exchange.row != nil {
            posts[exchange.sentIndex] = exchange
        }
        if posts.isEmpty { return [] }
        var resolved: Set<[String]> = []
        var found: Set<Note> = []
        for (index, entry) in history.entries.enumerated() {
            if case .action(let actor, let action) = entry.event {
                if action.kind == .resolve, let row = action.row { resolved.insert([actor, row]) }
            } else if let post = posts[index], let row = post.row, let user = accounts.user(of: post.actor, at: index),
                resolved.contains([post.actor, row])
            {
                found.insert(Note(user: user, row: row))
            }
        }
        return found
    }

    // MARK: Collection

    private mutating func collect() {
        var indices: [String: Int] = [:]
        for (index, device) in devices.enumerated() { indices[device.name] = index }
        // The first view of a process, until it is recorded.
        var isFirst = [Bool](repeating: false, count: devices.count)
        for (index, entry) in history.entries.enumerated() {
            let moment = Moment(index: index, time: entry.time)
            switch entry.event {
            case .device(let name, let state):
                guard let device = indices[name] else { continue }
                devices[device].show(state, at: moment, isFirst: isFirst[device])
                isFirst[device] = false
            case .connectionAttempt(_, let name):
                if let device = indices[name] { devices[device].dials.append(moment) }
            case .action(let name, let action):
                guard let device = indices[name] else { continue }
                devices[device].actions.append(UserAction(moment: moment, action: action))
            case .belief(let name, _): if let device = indices[name] { devices[device].beliefs.append(index) }
            case .commit(let name, _): if let device = indices[name] { devices[device].commits.append(index) }
            case .started(let name):
                guard let device = indices[name] else { continue }
                if !devices[device].stops.isEmpty { devices[device].starts.append(moment) }
                isFirst[device] = true
                devices[device].networkChanged(at: moment) { $0.isRunning = true }
            case .stopped(let name):
                guard let device = indices[name] else { continue }
                devices[device].stops.append(moment)
                // The next process may report a view before its start is recorded.
                isFirst[device] = true
                devices[device].networkChanged(at: moment) { $0.isRunning = false }
            case .network(let name, let link, let isOnline):
                guard let device = indices[name] else { continue }
                let isOpen = !(scenario.conditions(of: name, named: link)?.preventsExchanges ?? false)
                let isFlap = devices[device].device.isFlapping(at: entry.time)
                devices[device].networkChanged(at: moment) {
                    ($0.isOpen, $0.isFlap, $0.isUp) = (isOpen, isFlap, isOnline)
                }
            case .interface(let name, let isUp, let isMetered):
                guard let device = indices[name] else { continue }
                devices[device].networkChanged(at: moment) { ($0.isUp, $0.isMetered) = (isUp, isMetered) }
            case .policy(let name, let policy):
                guard let device = indices[name] else { continue }
                (devices[device].policy, devices[device].hasPolicy) = (policy, true)
            case .world(let facts): world = facts
            case .server(let rows):
                endIndex = index
                // The notes of another server are not read.
                if scenario.server == .builtIn { serverRows = rows }
            case .bytesChanged(let name, _, _):
                if firstBytesChanged == nil { firstBytesChanged = (index, name, entry.event.description) }
            default: continue
            }
        }
    }

    // MARK: Actors

    /// Returns the user of a device or writer.
    ///
    /// - Parameter index: The entry; by default the end.
    func user(of actor: String, at index: Int = .max) -> String? { accounts.user(of: actor, at: index) }

    /// Returns the facts of a device; `nil` for a writer.
    func device(_ name: String) -> Device? { devices.first { $0.name == name } }

    func isDevice(_ actor: String) -> Bool { scenario.devices.contains { $0.name == actor } }

    /// Whether an actor sends requests past its client's queue, so that they are no requests of the client.
    func sendsRequests(_ actor: String) -> Bool { senders.contains(actor) }

    /// Whether any device of a user sends requests past its queue, or a writer one about a note without a name. Requests
    /// of a writer about a note with a name are writes like its others.
    func hasRawRequests(of user: String) -> Bool { nameless.contains { self.user(of: $0) == user } }

    /// The longest time that a client needs without waiting for the network.
    var promptMax: Nanoseconds { world?.isSimulated == true ? .milliseconds(50) : .seconds(1) }

    // MARK: Exchanges

    /// Returns the note that an exchange concerns.
    func note(of exchange: History.Exchange) -> Note? {
        guard let row = exchange.row, let user = accounts.user(of: exchange.actor, at: exchange.sentIndex) else {
            return nil
        }
        return Note(user: user, row: row)
    }

    /// Returns the exchanges that concern a note, in the order of their requests.
    func exchanges(of row: String, _ user: String) -> [History.Exchange] {
        (exchangesByNote[Note(user: user, row: row)] ?? []).map { exchanges[$0] }
    }

    /// Whether an exchange is a write of a note: not of an attachment, and not a read.
    static func isWrite(_ exchange: History.Exchange) -> Bool {
        ExpectationEvaluator.writeMethods.contains(exchange.method) && exchange.contents?.body != .other
    }

    /// Whether the server has executed an exchange: its response is a success.
    static func isExecuted(_ exchange: History.Exchange) -> Bool {
        !exchange.isOnPortal && exchange.serverStatus.map { (200...299).contains($0) } ?? false
    }

    /// Whether the server has executed a write, or may have: its response is not known.
    static func mayBeExecuted(_ exchange: History.Exchange) -> Bool {
        isWrite(exchange) && !exchange.isOnPortal
            && exchange.serverStatus.map { (200...299).contains($0) } ?? (exchange.arrivedAt != nil)
    }

    /// Returns the response that a fault of the scenario gives to an exchange; `nil` if none does.
    func reply(to exchange: History.Exchange) -> FaultResponse? {
        guard let fault = exchange.fault, scenario.faults.indices.contains(fault.index) else { return nil }
        return scenario.faults[fault.index].action.response
    }

    /// Returns the time until which a fault may keep the next request on the connection of an exchange from being
    /// recorded; `nil` if none does. The client ends it by closing the connection.
    func heldUntil(_ exchange: History.Exchange) -> Nanoseconds? {
        guard let fault = exchange.fault, let since = exchange.faultAt, scenario.faults.indices.contains(fault.index)
        else { return nil }
        let closed = exchange.disconnectedAt ?? Nanoseconds(.max)
        switch scenario.faults[fault.index].action {
        case .link(.delay(let time)): return min(since + time, closed)
        case .link(.stall): return closed
        default: return nil
        }
    }

    /// Whether the client had closed the connection when the request was recorded: the client has sent it before, and
    /// something has held it back.
    static func isOnClosedConnection(_ exchange: History.Exchange) -> Bool {
        exchange.disconnectedAt.map { $0 < exchange.sentAt } ?? false
    }

    /// Whether the client has closed the connection when the response arrived, so that it may not have read it.
    func mayBeUnread(_ exchange: History.Exchange) -> Bool {
        guard let end = exchange.end, let closed = exchange.disconnectedAt else { return false }
        return closed <= end.time + slack
    }

    /// The time by which two reports of one connection may be out of order: none in virtual time.
    private var slack: Nanoseconds { world?.isSimulated == true ? .zero : .milliseconds(100) }

    /// Whether the client has received the server's own response.
    func isAnswered(_ exchange: History.Exchange) -> Bool {
        exchange.receivedStatus != nil && !exchange.isOnPortal && reply(to: exchange) == nil
    }

    /// Returns the number of the revision that an executed write has led to; `nil` if it is not known.
    static func resultingRevision(_ exchange: History.Exchange) -> Int? {
        if let revision = exchange.revision { return revision }
        if exchange.method == "POST" { return 1 }
        return exchange.contents?.base?.number.map { $0.addingReportingOverflow(1).partialValue }
    }

    /// Returns a note on the server at the end.
    func finalRow(_ name: String, of user: String) -> History.ServerRow? {
        serverRows?.first { $0.user == user && $0.name == name }
    }

    // MARK: Time

    func time(_ index: Int) -> Nanoseconds {
        history.entries.indices.contains(index) ? history.entries[index].time : history.entries.last?.time ?? .zero
    }

    /// Returns the index of the last entry up to a time.
    func lastIndex(until time: Nanoseconds) -> Int {
        (history.entries.firstIndex { $0.time > time } ?? history.entries.count) - 1
    }

    /// Returns a time as it is printed.
    static func text(_ time: Nanoseconds) -> String { TimeFormat.seconds(time) }

    func text(at index: Int) -> String { TimeFormat.seconds(time(index)) }

    /// Returns the part of a span that the run's own lateness does not explain.
    func span(from: Nanoseconds, to: Nanoseconds) -> Nanoseconds {
        to - from - lateness.delay(from: from, to: to)
    }
}

extension RunFacts.Device {
    /// Records a view: the notes that differ from those of the view before.
    fileprivate mutating func show(_ new: History.DeviceState, at moment: RunFacts.Moment, isFirst: Bool) {
        let old = state?.rows ?? []
        state = new
        func isSame(_ left: RunFacts.Row, _ right: RunFacts.Row) -> Bool {
            left.identity == right.identity || left.name == right.name
        }
        // Mostly, the notes before and after a part of the list are the same ones, in the same order.
        var start = 0
        while start < min(old.count, new.rows.count), isSame(old[start], new.rows[start]) { start += 1 }
        var (oldEnd, newEnd) = (old.count, new.rows.count)
        while min(oldEnd, newEnd) > start, isSame(old[oldEnd - 1], new.rows[newEnd - 1]) {
            oldEnd -= 1
            newEnd -= 1
        }
        var before = Dictionary(old[start..<oldEnd].map { ($0.name, $0) }) { first, _ in first }
        for (index, row) in new.rows.enumerated() {
            let left =
                index < start
                ? old[index]
                : index >= newEnd ? old[index - newEnd + oldEnd] : before.removeValue(forKey: row.name)
            if left?.identity != row.identity, left != row { append(left, row, moment, isFirst, new.outbox) }
        }
        if before.isEmpty { return }
        for row in old[start..<oldEnd] where before.removeValue(forKey: row.name) != nil {
            append(row, nil, moment, isFirst, new.outbox)
        }
    }

    private mutating func append(
        _ before: RunFacts.Row?, _ after: RunFacts.Row?, _ moment: RunFacts.Moment, _ isFirst: Bool, _ outbox: Int
    ) {
        guard let name = (after ?? before)?.name else { return }
        let change = RunFacts.RowChange(
            index: moment.index, time: moment.time, name: name, before: before, after: after, isFirst: isFirst,
            outbox: outbox)
        changes.append(change)
        rows[name, default: []].append(change)
    }

    fileprivate mutating func networkChanged(
        at moment: RunFacts.Moment, _ change: (inout RunFacts.NetworkState) -> Void
    ) {
        let last = network.last
        var state = RunFacts.NetworkState(
            moment: moment, isRunning: last?.isRunning ?? false, isUp: last?.isUp ?? true,
            isMetered: last?.isMetered ?? false, isOpen: last?.isOpen ?? true, isFlap: last?.isFlap ?? false)
        change(&state)
        network.append(state)
    }
}
