public import Client

/// A record as the client stores it.
public struct StoredRecord: Hashable, Sendable {
    /// The change that the server has rejected for good, and that the user has not dismissed.
    public struct Failure: Hashable, Sendable {
        /// The change.
        public var action: PendingAction
        /// The fields of a record that could not be added; otherwise empty.
        public var fields: RecordFields
        /// The messages by field; the field without a name is the record.
        public var errors: RecordFields

        /// Creates a failure.
        public init(action: PendingAction, fields: RecordFields, errors: RecordFields) {
            self.action = action
            self.fields = fields
            self.errors = errors
        }
    }

    /// The identifier.
    public let key: RecordKey
    /// The kind, such as `report`.
    public let kind: String
    /// The record that contains it; `nil` for one at the root.
    public let parent: RecordKey?
    /// The fields that the server has confirmed last; `nil` if it has confirmed none.
    public var confirmed: RecordFields?
    /// The number of the server's update that has set them.
    public var update: Int
    /// The rejected change.
    public var failure: Failure?

    /// Creates a record.
    public init(
        key: RecordKey, kind: String, parent: RecordKey?, confirmed: RecordFields?, update: Int = 0,
        failure: Failure? = nil
    ) {
        self.key = key
        self.kind = kind
        self.parent = parent
        self.confirmed = confirmed
        self.update = update
        self.failure = failure
    }

    /// Creates the record of a write, without confirmed fields.
    init(_ write: QueuedWrite) {
        self.init(key: write.record, kind: write.kind, parent: write.parent, confirmed: nil)
    }
}

/// The inputs of a form, and the state of its submission.
public struct FormDraft: Hashable, Sendable {
    /// The state of a submission that has no result.
    public enum Submission: String, CaseIterable, Hashable, Sendable {
        /// No request is under way. The operation id of an earlier submission is kept, because the server may still
        /// execute it.
        case editing
        /// The request may have been sent.
        case sending
        /// The request was sent, and its response was lost.
        case unknown
    }

    /// The name of the form.
    public let form: String
    /// The inputs.
    public var fields: RecordFields
    /// The operation id of the submission; `nil` before the first one, and after each result.
    public var operation: String?
    /// The state of the submission.
    public var submission: Submission
    /// The messages of the last rejection by field.
    public var errors: RecordFields

    /// Creates a draft.
    public init(
        form: String, fields: RecordFields = [:], operation: String? = nil, submission: Submission = .editing,
        errors: RecordFields = [:]
    ) {
        self.form = form
        self.fields = fields
        self.operation = operation
        self.submission = submission
        self.errors = errors
    }
}

/// All that a client stores.
public struct ExpenseState: Hashable, Sendable {
    /// The records in the order of their keys.
    public var records: [StoredRecord]
    /// The queued writes in order.
    public var writes: [QueuedWrite]
    /// The drafts in the order of their forms.
    public var drafts: [FormDraft]
    /// The number of the last update of the server that the client has; 0 for none.
    public var lastUpdate: Int
    /// The greatest sequence number of a write so far.
    public var lastSequence: Int
    /// The history of the server's updates, which numbers them; `nil` before the first read.
    public var history: String?

    /// Creates a state; empty by default.
    public init(
        records: [StoredRecord] = [], writes: [QueuedWrite] = [], drafts: [FormDraft] = [], lastUpdate: Int = 0,
        lastSequence: Int = 0, history: String? = nil
    ) {
        self.records = records
        self.writes = writes
        self.drafts = drafts
        self.lastUpdate = lastUpdate
        self.lastSequence = lastSequence
        self.history = history
    }
}

/// A change of the store, to be committed as a whole.
public struct ExpenseChange: Committable, Hashable, Sendable {
    /// Changed records; `nil` removes one.
    public var records: [RecordKey: StoredRecord?] = [:]
    /// Changed writes by sequence number; `nil` removes one.
    public var writes: [Int: QueuedWrite?] = [:]
    /// Changed drafts by form; `nil` removes one.
    public var drafts: [String: FormDraft?] = [:]
    /// The number of the last update; `nil` if it has not changed.
    public var lastUpdate: Int?
    /// The greatest sequence number of a write; `nil` if it has not changed.
    public var lastSequence: Int?
    /// The history of the server's updates; `nil` if it has not changed.
    public var history: String?

    /// Creates an empty change.
    public init() {}

    /// Whether nothing changes.
    public var isEmpty: Bool {
        records.isEmpty && writes.isEmpty && drafts.isEmpty && lastUpdate == nil && lastSequence == nil
            && history == nil
    }
}
