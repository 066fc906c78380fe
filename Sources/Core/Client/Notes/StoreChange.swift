/// An atomic change of the store. It must be durable before the actions that follow it.
public struct StoreChange: Hashable, Sendable {
    /// Records to insert or replace; `nil` deletes.
    public var records: [RecordID: LocalRecord?] = [:]
    /// Entries to insert or replace, by sequence; `nil` deletes.
    public var entries: [Int: OutboxEntry?] = [:]
    /// Records that cannot be read, with the reason; `nil` deletes.
    public var quarantine: [RecordID: String?] = [:]
    /// The account to store; `.some(nil)` deletes.
    public var account: SyncAccount??
    /// The state of the index to store.
    public var index: IndexState?

    /// Creates an empty change.
    public init() {}

    /// Whether there is nothing to commit.
    public var isEmpty: Bool {
        records.isEmpty && entries.isEmpty && quarantine.isEmpty && account == nil && index == nil
    }

    /// Adds a later change.
    mutating func append(_ later: StoreChange) {
        records.merge(later.records) { $1 }
        entries.merge(later.entries) { $1 }
        quarantine.merge(later.quarantine) { $1 }
        if let account = later.account { self.account = .some(account) }
        index = later.index ?? index
    }
}

/// What the client knows of the server's index.
public struct IndexState: Hashable, Sendable {
    /// The position from which later changes are requested; `nil` requests the whole index.
    public var cursor: String?
    /// The entity tag of the last whole index.
    public var entityTag: String?
    /// Whether the server may be another one than before, as after ``SyncEngine/adopt(at:)``, and no whole index was
    /// read since. Until then, a record that the index lacks is not deleted, but becomes a conflict with a deletion.
    public var isAdopting: Bool

    /// Creates a state, empty by default.
    public init(cursor: String? = nil, entityTag: String? = nil, isAdopting: Bool = false) {
        self.cursor = cursor
        self.entityTag = entityTag
        self.isAdopting = isAdopting
    }
}

/// The content of the store when a client starts.
public struct StoredState: Sendable {
    /// All records.
    public var records: [LocalRecord]
    /// The outbox in order.
    public var entries: [OutboxEntry]
    /// Records that cannot be read, with the reason.
    public var quarantine: [RecordID: String]
    /// The account that the store belongs to; `nil` before the first sync.
    public var account: SyncAccount?
    /// The state of the index.
    public var index: IndexState

    /// Creates a state, empty by default.
    public init(
        records: [LocalRecord] = [], entries: [OutboxEntry] = [], quarantine: [RecordID: String] = [:],
        account: SyncAccount? = nil, index: IndexState = IndexState()
    ) {
        self.records = records
        self.entries = entries
        self.quarantine = quarantine
        self.account = account
        self.index = index
    }
}

/// A record that another process changed in the store, as it is stored now.
public struct ForeignChange: Hashable, Sendable {
    /// The identifier.
    public var id: RecordID
    /// The record; `nil` if it was deleted.
    public var record: LocalRecord?
    /// The record's entries in order.
    public var entries: [OutboxEntry]

    /// Creates a change.
    public init(id: RecordID, record: LocalRecord?, entries: [OutboxEntry]) {
        self.id = id
        self.record = record
        self.entries = entries
    }
}
