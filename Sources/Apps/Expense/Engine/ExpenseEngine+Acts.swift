public import Client
public import Determinism

/// Acts of the user.
extension ExpenseEngine {
    /// An act of the user.
    public enum Act: Hashable, Sendable {
        /// Adds a record to the open record.
        case add(RecordKey, RecordFields)
        /// Changes fields of a record.
        case update(RecordKey, RecordFields)
        /// Deletes a record.
        case delete(RecordKey)
        /// Opens a screen.
        case open(Screen)
        /// Fills in inputs of the open form.
        case fill(RecordFields)
        /// Submits the open form.
        case submit
        /// Reads the open page again.
        case retry
        /// Dismisses the error of a record.
        case dismiss(RecordKey)
        /// Requests the updates of the server.
        case sync
    }

    /// Performs an act. An act on a control that is inert has no effect.
    public mutating func perform(_ act: Act, at now: Instant) throws(ActError) {
        switch act {
        case .add(let key, let fields):
            guard case .record(let parent) = screen, let kind = kind(of: parent), app.containers.contains(kind) else {
                throw ActError(
                    description: "a record is added to an open \(app.containers.sorted().joined(separator: " or "))")
            }
            guard !isKnown(key) else { throw ActError(description: "the record \(key) exists already") }
            try enqueue(.add, key, kind: app.addedKind, parent: parent, fields)
        case .update(let key, let fields):
            guard let kind = kind(of: key) else { throw ActError(description: "there is no record \(key)") }
            try change(key, kind, fields)
        case .delete(let key):
            guard let kind = kind(of: key) else { throw ActError(description: "there is no record \(key)") }
            // What could not be added is known to the device only.
            if let record = records[key], record.confirmed == nil, record.failure != nil {
                remove(key)
            } else {
                try enqueue(.delete, key, kind: kind, parent: parent(of: key), [:])
            }
        case .open(let screen): try open(screen)
        case .fill(let fields): try fill(fields)
        case .submit: try submit(at: now)
        case .retry:
            guard case .page = screen, page == .failed, !isOffline else { break }
            page = .loading
            wantsPage = true
        case .dismiss(let key):
            guard var record = records[key], record.failure != nil else {
                throw ActError(description: "the record \(key) has no error")
            }
            record.failure = nil
            if record.confirmed == nil { remove(key) } else { store(record) }
        case .sync:
            wantsUpdates = true
            needsSignIn = false
            retryAt = nil
            connectivity.hurryProbe(at: now)
        }
        pump(at: now)
    }

    // MARK: Records

    /// Returns the kind of a record; `nil` if there is no such record.
    public func kind(of key: RecordKey) -> String? {
        records[key]?.kind ?? writes.last { $0.record == key && $0.action == .add }?.kind
    }

    /// Returns whether there is a record.
    public func isKnown(_ key: RecordKey) -> Bool { kind(of: key) != nil }

    /// Returns the record that contains another; `nil` for one at the root.
    func parent(of key: RecordKey) -> RecordKey? {
        if let record = records[key] { return record.parent }
        return writes.last { $0.record == key && $0.action == .add }?.parent
    }

    mutating func store(_ record: StoredRecord) {
        records[record.key] = record
        commits.next.records[record.key] = record
    }

    mutating func remove(_ key: RecordKey) {
        if records.removeValue(forKey: key) != nil { commits.next.records[key] = .some(nil) }
        if screen == .record(key) { screen = .list }
    }

    mutating func removeWrite(_ sequence: Int) {
        writes.removeAll { $0.sequence == sequence }
        commits.next.writes[sequence] = .some(nil)
    }

    private mutating func change(_ key: RecordKey, _ kind: String, _ fields: RecordFields) throws(ActError) {
        // An edit of a record that could not be added is another attempt to add it.
        if let record = records[key], record.confirmed == nil, let failure = record.failure {
            remove(key)
            return try enqueue(
                .add, key, kind: kind, parent: record.parent, failure.fields.merging(fields))
        }
        try enqueue(.update, key, kind: kind, parent: parent(of: key), fields)
    }

    private mutating func enqueue(
        _ action: PendingAction, _ key: RecordKey, kind: String, parent: RecordKey?, _ fields: RecordFields
    ) throws(ActError) {
        guard let pattern = app.pattern(of: action, kind: kind) else {
            throw ActError(description: "a record of the kind '\(kind)' has no '\(action.rawValue)'")
        }
        guard writes.count < Self.writesMax else {
            throw ActError(description: "\(Self.writesMax) writes wait to be sent")
        }
        // The new change stands for what was rejected.
        if var record = records[key], record.failure != nil {
            record.failure = nil
            store(record)
        }
        lastSequence += 1
        let write = QueuedWrite(
            sequence: lastSequence, operation: makeOperation(), action: action, record: key, kind: kind, parent: parent,
            pattern: pattern, fields: fields)
        commits.next.lastSequence = lastSequence
        switch QueueDecision(adding: write, to: writes, confirmed: records[key]?.confirmed) {
        case .append: append(write)
        case .replace(let sequence, let fields):
            guard let index = writes.firstIndex(where: { $0.sequence == sequence }) else { return append(write) }
            writes[index].fields = fields
            commits.next.writes[sequence] = writes[index]
        case .remove(let sequences, let appends):
            for sequence in sequences { removeWrite(sequence) }
            if appends { append(write) }
        }
    }

    private mutating func append(_ write: QueuedWrite) {
        writes.append(write)
        commits.next.writes[write.sequence] = write
    }

    // MARK: Screens

    private mutating func open(_ screen: Screen) throws(ActError) {
        switch screen {
        case .list: break
        case .record(let key):
            guard isKnown(key) else { throw ActError(description: "there is no record \(key)") }
        case .form(let name):
            guard app.forms.contains(where: { $0.name == name }) else {
                throw ActError(description: "there is no form '\(name)'")
            }
        case .page(let name):
            guard app.pages.contains(where: { $0.name == name }) else {
                throw ActError(description: "there is no page '\(name)'")
            }
        }
        self.screen = screen
        formErrors = [:]
        page = .loading
        wantsPage = false
        queryResults = [:]
        guard case .page(let name) = screen, let policy = app.page(name) else { return }
        if let content = policy.localContent {
            page = .shown(content)
        } else if policy.isWrite {
            // What is not sent now is not sent by itself later.
            pageOperation = makeOperation()
            if isOffline { page = .failed } else { wantsPage = true }
        } else {
            wantsPage = true
        }
    }

    private mutating func fill(_ fields: RecordFields) throws(ActError) {
        guard case .form(let form) = screen, let policy = app.forms.first(where: { $0.name == form }) else {
            throw ActError(description: "no form is open")
        }
        if let unknown = fields.sorted.first(where: { !policy.fields.contains($0.name) }) {
            throw ActError(
                description: "the form '\(form)' has no input '\(unknown.name)' (known: "
                    + "\(policy.fields.joined(separator: ", ")))")
        }
        var draft = drafts[form] ?? FormDraft(form: form)
        // The inputs are locked until the submission has a result.
        guard draft.submission == .editing, !isQuerying(form) else { return }
        draft.fields = draft.fields.merging(fields)
        for (name, _) in fields.sorted { draft.errors[name] = nil }
        store(draft)
    }

    private mutating func submit(at now: Instant) throws(ActError) {
        guard case .form(let form) = screen else { throw ActError(description: "no form is open") }
        var draft = drafts[form] ?? FormDraft(form: form)
        guard draft.submission == .editing, !isOffline || behavior.keepsFormsOffline, !isQuerying(form) else { return }
        guard app.form(form)?.questions.access == .write else {
            // A read is sent once for each tap; nothing of it is stored.
            wantedQueries.insert(form)
            queryResults[form] = nil
            formErrors[form] = nil
            return
        }
        // The operation id of a submission without a result is used again: the server executes it once.
        draft.operation = draft.operation ?? makeOperation()
        draft.submission = .sending
        draft.errors = [:]
        formErrors[form] = nil
        store(draft)
    }

    /// Whether a form that reads waits for its result.
    func isQuerying(_ form: String) -> Bool { wantedQueries.contains(form) || hasFormExchange(form) }

    mutating func store(_ draft: FormDraft) {
        drafts[draft.form] = draft
        commits.next.drafts[draft.form] = draft
    }
}
