internal import Client
public import Determinism
internal import Wire

/// Results of requests.
extension ExpenseEngine {
    /// A response of the service to the request with this number.
    public mutating func responseReceived(_ response: ExpenseEngineResponse, to number: Int, at now: Instant) {
        guard let activity = exchanges.removeValue(forKey: number) else { return }
        let wasOffline = isOffline
        connectivity.responseReceived()
        if let seconds = response.retryAfterSeconds, !(200...299).contains(response.status) {
            notBefore = max(notBefore ?? now, now + .seconds(Int64(seconds)))
        }
        if response.status == 401 { needsSignIn = true }
        switch activity {
        case .write(let sequence): written(sequence, response, at: now)
        case .updates: updated(response, at: now)
        case .probe: break
        case .submit(let form, let operation): submitted(form, operation, response, at: now)
        case .status(let form, let operation): statusReceived(form, operation, response, at: now)
        case .page(let name): pageReceived(name, response)
        case .query(let form): queryReceived(form, response)
        }
        connectivityChanged(from: wasOffline, at: now)
        pump(at: now)
    }

    /// The request with this number has no response of the service.
    ///
    /// - Parameter wasSent: Whether the server may have executed the request.
    public mutating func requestFailed(_ number: Int, wasSent: Bool, at now: Instant) {
        guard let activity = exchanges.removeValue(forKey: number) else { return }
        let wasOffline = isOffline
        connectivity.requestFailed(at: now, random: &random)
        lost(activity, wasSent: wasSent, at: now)
        connectivityChanged(from: wasOffline, at: now)
        pump(at: now)
    }

    /// Applies what follows from a new belief: after an outage the write queue is sent first, then what was missed is read.
    mutating func connectivityChanged(from wasOffline: Bool, at now: Instant) {
        guard wasOffline != isOffline else { return }
        if isOffline {
            // What has not been sent is not sent after the outage by itself.
            for (form, draft) in drafts.sorted(by: { $0.key < $1.key })
            where draft.submission == .sending && !hasFormExchange(form) {
                var draft = draft
                draft.submission = .editing
                formErrors[form] = ExpenseText.notSent
                store(draft)
            }
            for form in wantedQueries { formErrors[form] = ExpenseText.notSent }
            wantedQueries = []
            queryResults = [:]
            if case .page(let name) = screen, let policy = app.page(name), policy.localContent == nil {
                // Content that may be stale is not kept.
                if !behavior.keepsPagesOffline { page = policy.isWrite ? .failed : .loading }
                wantsPage = !policy.isWrite
            }
        } else {
            failures = 0
            retryAt = nil
            statusRetries = [:]
            wantsUpdates = true
        }
    }

    /// Schedules what failed without a result once more.
    mutating func lost(_ activity: ExpenseEngineRequest.Activity, wasSent: Bool, at now: Instant) {
        switch activity {
        case .write: delay(at: now)
        case .updates:
            wantsUpdates = true
            delay(at: now)
        case .probe: break
        case .submit(let form, let operation):
            guard var draft = drafts[form], draft.operation == operation else { return }
            if !wasSent {
                draft.submission = .editing
                formErrors[form] = ExpenseText.notSent
            } else if behavior.repeatsLostForms {
                draft.operation = makeOperation()
                draft.submission = .sending
            } else {
                draft.submission = .unknown
            }
            store(draft)
        case .status(let form, _): delayStatus(of: form, at: now)
        case .page(let name):
            guard screen == .page(name) else { return }
            if isOffline, app.page(name)?.isWrite == false { wantsPage = true } else { page = .failed }
        case .query(let form): formErrors[form] = ExpenseText.failed
        }
    }

    private mutating func delay(at now: Instant) {
        failures += 1
        retryAt = now + Self.backoff.delay(afterFailures: failures, random: &random)
    }

    private mutating func delayStatus(of form: String, at now: Instant) {
        let failures = (statusRetries[form]?.failures ?? 0) + 1
        statusRetries[form] = (now + Self.backoff.delay(afterFailures: failures, random: &random), failures)
    }

    /// Whether a status says nothing about the request itself, so that the request is repeated (RFC 9110, RFC 6585, RFC
    /// 8470).
    private static func isTransient(_ status: Int) -> Bool { [408, 425, 429, 502, 503, 504].contains(status) }

    // MARK: Writes

    private mutating func written(_ sequence: Int, _ response: ExpenseEngineResponse, at now: Instant) {
        guard let index = writes.firstIndex(where: { $0.sequence == sequence }) else { return }
        let write = writes[index]
        // The queue waits until the user has signed in.
        if response.status == 401 { return }
        if Self.isTransient(response.status) || response.status == 403 && behavior.repeatsForbiddenWrites {
            return delay(at: now)
        }
        // Another server error (5xx) may follow from this request.
        if response.status >= 500 {
            writes[index].serverErrors += 1
            commits.next.writes[sequence] = writes[index]
            guard writes[index].serverErrors >= Self.serverErrorsMax else { return delay(at: now) }
            reject(write, ["": ExpenseText.generic])
        } else if (200...299).contains(response.status) {
            accept(write, response.body)
        } else if write.action == .delete, [404, 410].contains(response.status) {
            removeWrite(sequence)
            remove(write.record)
        } else if response.isKeyReused {
            // The operation has been executed with other content, which the server sends with its updates.
            reject(write, ["": ExpenseText.generic])
            wantsUpdates = true
        } else {
            let errors = RecordFields(response.body["errors"]) ?? [:]
            reject(write, errors.isEmpty ? ["": ExpenseText.generic] : errors)
        }
        failures = 0
        retryAt = nil
    }

    private mutating func accept(_ write: QueuedWrite, _ body: JSONValue) {
        removeWrite(write.sequence)
        if !behavior.endsPendingAdditions, write.action == .add { acceptedAdditions.insert(write.record) }
        if write.action == .delete {
            remove(write.record)
        } else if let record = StoredRecord(body["record"]), record.key == write.record {
            apply(record)
        } else {
            // The server has executed the write: what was sent is shown until the record is read.
            apply(sent: write)
            wantsUpdates = true
        }
        guard case .integer(let update) = body["update"], case .integer(let previous) = body["previous"] else { return }
        if Int(previous) == lastUpdate {
            lastUpdate = Int(update)
            commits.next.lastUpdate = lastUpdate
        } else {
            // Updates of other clients lie between, or the server has another history.
            wantsUpdates = true
        }
    }

    /// Applies the fields of an executed write whose response has no record.
    private mutating func apply(sent write: QueuedWrite) {
        guard var record = records[write.record] ?? (records.count < Self.recordsMax ? StoredRecord(write) : nil) else {
            return
        }
        if unread[write.record] == nil { unread[write.record] = .some(record.confirmed) }
        record.confirmed = (record.confirmed ?? [:]).merging(write.fields)
        store(record)
    }

    /// All updates were read: a write that is in none of them was not executed.
    private mutating func endUnread() {
        for (key, confirmed) in unread.sorted(by: { $0.key < $1.key }) {
            guard var record = records[key] else { continue }
            record.confirmed = confirmed
            if confirmed == nil, record.failure == nil { remove(key) } else { store(record) }
        }
        unread = [:]
    }

    /// Applies a record of the server, unless the client has a later one.
    private mutating func apply(_ record: StoredRecord) {
        if let known = records[record.key] {
            if known.update > record.update, rereading == nil { return }
        } else if records.count >= Self.recordsMax {
            return
        }
        var record = record
        record.failure = records[record.key]?.failure
        unread[record.key] = nil
        store(record)
    }

    /// Applies the failure data of a write that the server has rejected for good.
    private mutating func reject(_ write: QueuedWrite, _ errors: RecordFields) {
        removeWrite(write.sequence)
        // Without feedback, the confirmed value is all that is shown from now on.
        guard write.pattern == .optimisticWithPendingUI else { return }
        var record = records[write.record] ?? StoredRecord(write)
        if write.action == .update, let confirmed = record.confirmed {
            record.confirmed = behavior.confirmedAfterRejection(confirmed, write.fields)
        }
        var fields: RecordFields = record.confirmed == nil ? write.fields : [:]
        if write.action == .add {
            // What depends on the record is not sent either.
            for later in writes where later.record == write.record {
                fields = fields.merging(later.fields)
                removeWrite(later.sequence)
                if later.action == .delete { return remove(write.record) }
            }
        }
        record.failure = StoredRecord.Failure(action: write.action, fields: fields, errors: errors)
        store(record)
    }

    // MARK: Reads

    private mutating func updated(_ response: ExpenseEngineResponse, at now: Instant) {
        guard response.status == 200, case .integer(let last) = response.body["last"] else {
            wantsUpdates = true
            return response.status == 401 ? () : delay(at: now)
        }
        let found = response.body["history"].text
        if behavior.comparesHistories, let found, found != history {
            if history != nil, rereading == nil {
                // The numbers of the updates mean something else: all records are read.
                rereading = (0, [])
                wantsUpdates = true
                return
            }
            if rereading == nil { setHistory(found) }
        }
        for update in response.body["updates"].array {
            if let record = StoredRecord(update["record"]) {
                rereading?.keys.insert(record.key)
                apply(record)
            } else if let key = update["deleted"].text.flatMap({ RecordKey($0) }) {
                remove(key)
            }
        }
        if let rereading {
            let hasAdvanced = Int(last) > rereading.last
            if response.body["more"] == .bool(true) {
                self.rereading?.last = Int(last)
                wantsUpdates = true
                return hasAdvanced ? () : delay(at: now)
            }
            endRereading(found)
        }
        let hasAdvanced = Int(last) > lastUpdate
        if Int(last) != lastUpdate {
            lastUpdate = Int(last)
            commits.next.lastUpdate = lastUpdate
        }
        if response.body["more"] == .bool(true) {
            wantsUpdates = true
            // A server that repeats itself is not asked again at once.
            if !hasAdvanced { return delay(at: now) }
        }
        // A write may have ended during this read.
        if !wantsUpdates { endUnread() }
        failures = 0
        retryAt = nil
    }

    private mutating func setHistory(_ history: String) {
        self.history = history
        commits.next.history = history
    }

    /// All records of the server were read: those that it does not have are removed. What waits to be sent stays.
    private mutating func endRereading(_ history: String?) {
        guard let keys = rereading?.keys else { return }
        rereading = nil
        if let history { setHistory(history) }
        for key in records.keys.sorted() where !keys.contains(key) && records[key]?.confirmed != nil { remove(key) }
    }

    private mutating func pageReceived(_ name: String, _ response: ExpenseEngineResponse) {
        // The user has left the page.
        guard screen == .page(name) else { return }
        guard (200...299).contains(response.status), let fields = RecordFields(response.body["content"]) else {
            page = .failed
            return
        }
        page = .shown(fields)
    }

    private mutating func queryReceived(_ form: String, _ response: ExpenseEngineResponse) {
        // The user has left the form.
        guard screen == .form(form) else { return }
        guard response.status == 200, let fields = RecordFields(response.body["content"]) else {
            formErrors[form] = ExpenseText.failed
            return
        }
        queryResults[form] = fields
    }

    // MARK: Forms

    private mutating func submitted(
        _ form: String, _ operation: String, _ response: ExpenseEngineResponse, at now: Instant
    ) {
        guard var draft = drafts[form], draft.operation == operation else { return }
        switch response.status {
        case 200...299: return finish(form, at: now)
        case _ where response.isKeyReused:
            // An earlier submission with other inputs was executed.
            draft.submission = .unknown
        case 500...599, 408, 425, 429:
            draft.submission = .editing
            formErrors[form] = ExpenseText.failed
        default:
            draft.submission = .editing
            draft.operation = nil
            draft.errors = RecordFields(response.body["errors"]) ?? [:]
            if draft.errors.isEmpty { formErrors[form] = ExpenseText.failed }
        }
        store(draft)
    }

    private mutating func statusReceived(
        _ form: String, _ operation: String, _ response: ExpenseEngineResponse, at now: Instant
    ) {
        guard var draft = drafts[form], draft.operation == operation else { return }
        if response.status == 200 {
            finish(form, at: now)
        } else if response.status == 404 {
            // The request may still arrive, so that its operation id is kept.
            statusRetries[form] = nil
            draft.submission = .editing
            formErrors[form] = ExpenseText.notSent
            store(draft)
        } else {
            delayStatus(of: form, at: now)
        }
    }

    private mutating func finish(_ form: String, at now: Instant) {
        drafts[form] = nil
        commits.next.drafts[form] = .some(nil)
        statusRetries[form] = nil
        if screen == .form(form) { screen = .list }
        toast = (ExpenseText.sent, now + Self.toastTime)
        wantsUpdates = true
    }
}

extension StoredRecord {
    /// Creates a record from JSON; `nil` if it is none.
    init?(_ json: JSONValue) {
        guard let key = json["key"].text.flatMap({ RecordKey($0) }), let kind = json["kind"].text,
            let fields = RecordFields(json["fields"]), case .integer(let update) = json["update"], update >= 0
        else { return nil }
        self.init(
            key: key, kind: kind, parent: json["parent"].text.flatMap { RecordKey($0) }, confirmed: fields,
            update: Int(update))
    }
}
