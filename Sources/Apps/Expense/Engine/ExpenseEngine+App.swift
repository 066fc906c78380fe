public import Client
public import Determinism
internal import Wire

/// The expense app as an app of a scenario.
extension ExpenseEngine: AppEngine {
    public static let basePath = AppModel.expense.basePath
    public static let markerField = AppModel.expense.markerField

    /// The maximum number of connections of the write queue, and of forms.
    public var connectionsMax: Int { behavior.writesAtOnce }

    /// Creates the engine of an app on what the app has stored.
    public init(
        _ configuration: AppConfiguration, restoring state: AppState, behavior: ExpenseBehavior = ExpenseBehavior()
    ) throws(AppActError) {
        if let contradiction = AppModel.expense.contradiction { throw AppActError(contradiction) }
        self.init(.expense, restoring: try ExpenseState(state), seed: configuration.seed, behavior: behavior)
    }

    public mutating func started(_ interface: NetworkInterface, at now: Instant) {
        started(isInterfaceUp: interface.isUp, at: now)
    }

    public mutating func interfaceChanged(_ interface: NetworkInterface, at now: Instant) {
        interfaceChanged(isUp: interface.isUp, at: now)
    }

    public mutating func perform(_ act: AppAct, at now: Instant) throws(AppActError) {
        do {
            try perform(try Act(act), at: now)
        } catch {
            throw AppActError(error.description)
        }
    }

    public mutating func responseReceived(_ response: AppResponse, to number: Int, at now: Instant) {
        guard let body = response.json else {
            return requestFailed(number, wasSent: true, at: now)
        }
        responseReceived(
            ExpenseEngineResponse(status: response.status, body: body, retryAfterSeconds: response.retryAfterSeconds),
            to: number, at: now)
    }

    public mutating func requestFailed(_ number: Int, _ failure: AppFailure, at now: Instant) {
        requestFailed(number, wasSent: failure.wasSent, at: now)
    }

    public mutating func nextAction() -> AppAction? {
        switch takeAction() {
        case .commit(let change)?: .commit(AppChange(change))
        case .send(let request)?: .send(request.encoded)
        case .cancel(let number)?: .cancel(number)
        case nil: nil
        }
    }
}

extension ExpenseEngine.Act {
    /// Creates the act of the expense app: the text of an expense is its amount.
    init(_ act: AppAct) throws(ExpenseEngine.ActError) {
        func fields(_ given: RecordFields) -> RecordFields {
            var fields = RecordFields()
            fields["title"] = given["title"]
            fields["amount"] = given["text"]
            return fields
        }
        switch act {
        case .create(let key, let given): self = .add(key, fields(given))
        case .edit(let key, let given): self = .update(key, fields(given))
        case .delete(let key): self = .delete(key)
        case .pin(let key): self = .update(key, ["pinned": "true"])
        case .open(let key?): self = .open(.record(key))
        case .open(nil): self = .open(.list)
        case .sync: self = .sync
        case .call(let form, nil, _) where AppModel.expense.form(form) != nil: self = .open(.form(form))
        case .call(let page, nil, _) where AppModel.expense.page(page) != nil: self = .open(.page(page))
        case .call("fill", nil, let fields): self = .fill(fields)
        case .call("submit", nil, _): self = .submit
        case .call("retry", nil, _): self = .retry
        case .call("dismiss", let key?, _): self = .dismiss(key)
        case .call("unpin", let key?, _): self = .update(key, ["pinned": "false"])
        case .call: throw ExpenseEngine.ActError(description: AppActError.unknown.description)
        }
    }
}

extension ExpenseState {
    /// Creates the state from what an app has stored.
    init(_ state: AppState) throws(AppActError) {
        func decoded<Value>(_ prefix: String, _ make: (JSONValue) -> Value?) throws(AppActError) -> [Value] {
            var decoded: [Value] = []
            for (key, bytes) in state.values(under: prefix) {
                guard let json = JSONText.parse(bytes), let value = make(json) else {
                    throw AppActError("the stored value '\(prefix)\(key)' cannot be read")
                }
                decoded.append(value)
            }
            return decoded
        }
        func counter(_ name: String) -> Int {
            if case .integer(let number)? = state.json("counter/\(name)") { Int(number) } else { 0 }
        }
        self.init(
            records: try decoded("record/", StoredRecord.init(stored:)).sorted { $0.key < $1.key },
            writes: try decoded("write/", QueuedWrite.init(stored:)).sorted { $0.sequence < $1.sequence },
            drafts: try decoded("draft/", FormDraft.init(stored:)),
            lastUpdate: counter("update"), lastSequence: counter("sequence"), history: state.json("history")?.text)
    }
}

extension AppChange {
    /// Creates the change of what an app stores.
    init(_ change: ExpenseChange) {
        self.init()
        for (key, record) in change.records { set("record/\(key)", json: record?.stored) }
        for (sequence, write) in change.writes { set("write/\(sequence)", json: write?.stored) }
        for (form, draft) in change.drafts { set("draft/\(form)", json: draft?.stored) }
        if let update = change.lastUpdate { set("counter/update", json: .integer(Int64(update))) }
        if let history = change.history { set("history", json: .text(history)) }
        if let sequence = change.lastSequence { set("counter/sequence", json: .integer(Int64(sequence))) }
    }
}
