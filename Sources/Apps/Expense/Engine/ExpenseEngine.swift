//  Expense/Engine: the decisions of a client whose user interface follows offline patterns.
//
//  Owns: the flow chart that assigns a pattern to an operation, the policies of an app (`AppModel`), the write queue and
//  the resolution of conflicts in it, drafts of forms, blocking pages, the looks of records.
//
//  Does not own: connections and the belief about connectivity (Client/App), sockets, files and clocks (drivers), the server
//  (ExpenseService), the notes client (SyncEngine).

public import Client
public import Determinism
internal import Wire

/// The decisions of the expense app. A value without a socket, clock or file: its inputs are events and the time, its outputs are
/// commits and requests.
///
/// A change is committed before anything of it is sent or shown. The writes are sent one after the other in the order of
/// the queue; reads wait until the queue is empty.
public struct ExpenseEngine: Sendable {
    /// An instruction for the driver.
    public enum Action: Sendable {
        /// Commit the change to the store, and report it with ``ExpenseEngine/committed(at:)``.
        case commit(ExpenseChange)
        /// Send the request.
        case send(ExpenseEngineRequest)
        /// Abort the request with this number; its result is not needed.
        case cancel(Int)
    }

    /// The error of an act that is not possible.
    public struct ActError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The reason.
        public let description: String
    }

    /// The screen that the user has opened.
    public enum Screen: Hashable, Sendable {
        case list
        case record(RecordKey)
        case form(String)
        case page(String)
    }

    /// The content of the visible page.
    enum PageState: Hashable, Sendable {
        case loading
        case failed
        case shown(RecordFields)
    }

    /// The delays between attempts of a write or read that fails.
    public static let backoff = Backoff(first: .seconds(1), longest: .seconds(60))
    /// The number of attempts of a write that end in a server error (500) before the write fails.
    public static let serverErrorsMax = 5
    /// The longest random delay of the first request after an interface has come up, so that many clients do not send at
    /// once.
    public static let recoverySpread = Nanoseconds.seconds(1)
    /// The time for which a message that vanishes by itself is shown.
    public static let toastTime = Nanoseconds.seconds(3)
    /// The maximum number of records; further ones of the server are left out.
    public static let recordsMax = 100_000
    /// The maximum number of queued writes; further ones are refused.
    public static let writesMax = 10_000

    let app: AppModel
    let behavior: ExpenseBehavior
    var records: [RecordKey: StoredRecord]
    var writes: [QueuedWrite]
    var drafts: [String: FormDraft]
    var lastUpdate: Int
    var lastSequence: Int
    /// The history of the server's updates; `nil` before the first read.
    var history: String?

    var connectivity = ConnectivityEstimate()
    var screen = Screen.list
    var page = PageState.loading
    /// Whether the visible page is to be read.
    var wantsPage = false
    var toast: (text: String, until: Instant)?
    /// The operation id of the open page that writes; another attempt has the same.
    var pageOperation: String?
    /// The forms that read and are to be sent, and their results.
    var wantedQueries: Set<String> = []
    var queryResults: [String: RecordFields] = [:]
    /// What a form shows beside the messages of a rejection.
    var formErrors: [String: String] = [:]
    /// Whether the updates since the last one are to be read.
    var wantsUpdates = true
    /// A read of all records, because the server has another history: the last update so far, and the records.
    var rereading: (last: Int, keys: Set<RecordKey>)?
    /// The confirmed fields that records had before a write whose response has no record, until the updates are read.
    var unread: [RecordKey: RecordFields?] = [:]
    /// Whether the server rejects the user's credentials: nothing is sent until the user signs in or syncs.
    var needsSignIn = false
    var exchanges: [Int: ExpenseEngineRequest.Activity] = [:]
    /// Failures in a row of the write queue and the reads.
    var failures = 0
    /// The time of the next attempt of the write queue and the reads.
    var retryAt: Instant?
    /// The time before which the server wants no request.
    var notBefore: Instant?
    /// The times of the next questions for the results of submissions, and the failures of earlier ones.
    var statusRetries: [String: (at: Instant, failures: Int)] = [:]
    /// Records that keep the look of a pending one, although the server has accepted their addition.
    var acceptedAdditions: Set<RecordKey> = []

    var commits = CommitSequence<ExpenseChange>()
    private var actions: [Action] = []
    private var nextNumber = 0
    var random: RandomStream
    private var ids: RandomStream

    /// Creates an engine on a stored state.
    ///
    /// - Parameter seed: Determines the delays and the operation ids.
    public init(
        _ app: AppModel = .expense, restoring state: ExpenseState = ExpenseState(), seed: UInt64,
        behavior: ExpenseBehavior = ExpenseBehavior()
    ) {
        self.app = app
        self.behavior = behavior
        records = Dictionary(uniqueKeysWithValues: state.records.map { ($0.key, $0) })
        writes = state.writes.sorted { $0.sequence < $1.sequence }
        drafts = Dictionary(uniqueKeysWithValues: state.drafts.map { ($0.form, $0) })
        lastUpdate = state.lastUpdate
        lastSequence = state.lastSequence
        history = state.history
        random = RandomStream(seed: seed, "patterns/delays")
        ids = RandomStream(seed: seed, "patterns/operations")
        // The request may have left before the process ended.
        for (form, draft) in drafts where draft.submission == .sending {
            var draft = draft
            draft.submission = .unknown
            drafts[form] = draft
            commits.next.drafts[form] = draft
        }
    }

    // MARK: State

    /// Whether the device is offline, as far as the client knows.
    public var isOffline: Bool { connectivity.isOffline }

    /// The number of queued writes.
    public var outbox: Int { writes.count }

    /// Whether nothing is in flight and nothing is ready to be sent or waits for another attempt.
    public var isSettled: Bool {
        exchanges.isEmpty && !commits.isPending
            && (needsSignIn
                || writes.isEmpty && !wantsUpdates && drafts.values.allSatisfy { $0.submission == .editing }
                    && !(wantsPage && !isOffline))
    }

    /// Whether an exchange is in flight or a change is to be committed.
    public var isBusy: Bool { !exchanges.isEmpty || commits.isPending }

    /// The time of the next ``advance(to:)``; `nil` until another input changes it.
    public var nextDeadline: Instant? {
        var next = Instant.never
        if let toast { next = min(next, toast.until) }
        if let commitAt = commits.retryAt { return min(next, commitAt) }
        if !commits.isAwaited, !needsSignIn, !connectivity.isOffline || connectivity.needsProbe {
            if connectivity.needsProbe {
                // An exchange in flight serves as the probe.
                if exchanges.isEmpty, let probe = connectivity.probeAt { next = min(next, probe) }
            } else {
                if let notBefore { next = min(next, notBefore) }
                if let retryAt, hasQueuedWork { next = min(next, retryAt) }
                for (form, retry) in statusRetries where drafts[form]?.submission == .unknown && !sendsForm {
                    next = min(next, max(retry.at, notBefore ?? .start))
                }
            }
        }
        return next == .never ? nil : next
    }

    private var hasQueuedWork: Bool { !writes.isEmpty || wantsUpdates || wantsPage }

    /// Returns the next instruction; `nil` if there is none.
    public mutating func takeAction() -> Action? { actions.isEmpty ? nil : actions.removeFirst() }

    // MARK: Inputs of the device

    /// The client has started.
    public mutating func started(isInterfaceUp: Bool, at now: Instant) {
        connectivity = ConnectivityEstimate(isInterfaceUp: isInterfaceUp)
        pump(at: now)
    }

    /// The interface has come up or gone down.
    public mutating func interfaceChanged(isUp: Bool, at now: Instant) {
        let wasOffline = isOffline
        connectivity.interfaceChanged(isUp: isUp)
        if !isUp {
            // Their connections are lost with the interface, and the outcome of a write is unknown.
            for (number, activity) in exchanges.sorted(by: { $0.key < $1.key }) {
                actions.append(.cancel(number))
                exchanges[number] = nil
                lost(activity, wasSent: true, at: now)
            }
        }
        if wasOffline, !isOffline {
            notBefore = max(notBefore ?? now, now + Nanoseconds(random.integer(below: Self.recoverySpread.count)))
        }
        connectivityChanged(from: wasOffline, at: now)
        pump(at: now)
    }

    /// Advances the time; due at ``nextDeadline``.
    public mutating func advance(to now: Instant) {
        if let until = toast?.until, until <= now { toast = nil }
        if let change = commits.retry(at: now) { actions.append(.commit(change)) }
        if let at = notBefore, at <= now { notBefore = nil }
        if let at = retryAt, at <= now { retryAt = nil }
        pump(at: now)
    }

    // MARK: Commits

    /// The change of the last commit is durable.
    public mutating func committed(at now: Instant) {
        commits.succeeded()
        pump(at: now)
    }

    /// The change could not be made durable; it is committed again after a second.
    public mutating func commitFailed(at now: Instant) { commits.failed(at: now) }

    /// Whether the result of a commit is awaited, or a change has not been committed.
    public var isCommitPending: Bool { commits.isPending }

    // MARK: Sending

    /// Commits what has changed, or sends what can be sent.
    mutating func pump(at now: Instant) {
        if let change = commits.begin() { actions.append(.commit(change)) }
        if commits.isAwaited || needsSignIn { return }
        if connectivity.needsProbe {
            guard exchanges.isEmpty, let at = connectivity.probeAt, at <= now else { return }
            connectivity.probeSent()
            return send(.probe)
        }
        guard !connectivity.isOffline, notBefore.map({ $0 <= now }) ?? true else { return }
        for form in wantedQueries.sorted() where !sendsForm {
            wantedQueries.remove(form)
            send(.query(form: form))
        }
        sendForms(at: now)
        sendQueue(at: now)
    }

    private mutating func sendForms(at now: Instant) {
        for (form, draft) in drafts.sorted(by: { $0.key < $1.key }) {
            guard let operation = draft.operation, !sendsForm else { continue }
            switch draft.submission {
            case .editing: break
            case .sending: send(.submit(form: form, operation: operation))
            case .unknown:
                if let retry = statusRetries[form], retry.at > now { continue }
                // The result of the request sets the next time.
                statusRetries[form]?.at = .never
                send(.status(form: form, operation: operation))
            }
        }
    }

    /// Whether a request about any form is in flight. The next one is sent after the response, which may have a `Retry-After`.
    private var sendsForm: Bool { exchanges.values.contains { $0.form != nil } }

    /// Returns whether a request about a form is in flight.
    func hasFormExchange(_ name: String) -> Bool { exchanges.values.contains { $0.form == name } }

    /// The sequence numbers of the writes in flight.
    var writesInFlight: Set<Int> {
        Set(exchanges.values.compactMap { if case .write(let sequence) = $0 { sequence } else { nil } })
    }

    private mutating func sendQueue(at now: Instant) {
        if let retryAt, retryAt > now { return }
        let isReading = exchanges.values.contains { $0 == .updates }
        if behavior.readsFirst, wantsUpdates, !isReading {
            wantsUpdates = false
            return send(.updates)
        }
        let inFlight = writesInFlight
        let ready = writes.prefix(behavior.writesAtOnce)
        if inFlight.isEmpty || ready.count > 1 {
            // A read in flight ends first.
            guard !isReading, !readsPage else { return }
            for write in ready where !inFlight.contains(write.sequence) {
                guard write.wasTried else {
                    markTried(write)
                    return pump(at: now)
                }
                send(.write(write.sequence))
            }
        }
        guard writes.isEmpty, !isReading else { return }
        if wantsUpdates {
            wantsUpdates = false
            send(.updates)
        } else if wantsPage, case .page(let name) = screen, !readsPage {
            wantsPage = false
            send(.page(name))
        }
    }

    private var readsPage: Bool {
        exchanges.values.contains { if case .page = $0 { true } else { false } }
    }

    /// Records that an attempt is made, before it is made: from now on the write may exist on the server.
    private mutating func markTried(_ write: QueuedWrite) {
        guard let index = writes.firstIndex(where: { $0.sequence == write.sequence }) else { return }
        writes[index].wasTried = true
        commits.next.writes[write.sequence] = writes[index]
    }

    private mutating func send(_ activity: ExpenseEngineRequest.Activity) {
        guard let request = request(for: activity) else { return }
        exchanges[nextNumber] = activity
        nextNumber += 1
        actions.append(.send(request))
    }

    private func request(for activity: ExpenseEngineRequest.Activity) -> ExpenseEngineRequest? {
        func make(_ method: String, _ path: String, operation: String? = nil, _ body: JSONValue? = nil)
            -> ExpenseEngineRequest
        {
            ExpenseEngineRequest(
                number: nextNumber, activity: activity, method: method, target: app.basePath + path,
                operation: operation, body: body)
        }
        switch activity {
        case .write(let sequence):
            guard let write = writes.first(where: { $0.sequence == sequence }) else { return nil }
            let path = "/records/\(write.record)"
            var body: JSONValue = ["fields": write.fields.json]
            switch write.action {
            case .add:
                body = [
                    "kind": .text(write.kind), "parent": write.parent.map { .text($0.text) } ?? .null,
                    "fields": write.fields.json,
                ]
                return make("PUT", path, operation: write.operation, body)
            case .update: return make("PATCH", path, operation: write.operation, body)
            case .delete: return make("DELETE", path, operation: write.operation)
            }
        case .updates: return make("GET", "/updates?since=\(rereading?.last ?? lastUpdate)")
        case .probe: return make("GET", "/")
        case .submit(let form, let operation):
            guard let policy = app.forms.first(where: { $0.name == form }), let draft = drafts[form] else { return nil }
            return make("POST", policy.path, operation: operation, ["fields": draft.fields.json])
        case .status(_, let operation): return make("GET", "/operations/\(operation)")
        case .page(let name):
            guard let policy = app.page(name), case .path(let path) = policy.content else { return nil }
            return policy.isWrite ? make("POST", path, operation: pageOperation, [:]) : make("GET", path)
        case .query(let form):
            guard let policy = app.form(form) else { return nil }
            let query = (drafts[form]?.fields ?? [:]).sorted.map { "\($0.name)=\(Self.percentEncoded($0.value))" }
            return make("GET", policy.path + "?" + query.joined(separator: "&"))
        }
    }

    /// Returns a value of a query (RFC 3986, 2.1).
    private static func percentEncoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        let isPlain: (UInt8) -> Bool = { byte in
            (48...57).contains(byte) || (65...90).contains(byte) || (97...122).contains(byte)
        }
        let bytes = text.utf8.flatMap { byte in
            isPlain(byte) ? [byte] : [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns a new operation id of 32 hexadecimal digits.
    mutating func makeOperation() -> String {
        func digits(_ value: UInt64) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: 16 - text.utf8.count) + text
        }
        return digits(ids.next()) + digits(ids.next())
    }
}
