/// An atomic change of the store. It must be durable before the actions that follow it.
public struct StoreChange: Hashable, Sendable {
    /// Notes to insert or replace.
    public var notes: [LocalNote] = []
    /// Identifiers of the notes to delete.
    public var deletedNotes: [String] = []
    /// Entries to insert or replace.
    public var entries: [OutboxEntry] = []
    /// Sequence numbers of the entries to delete.
    public var deletedEntries: [Int] = []

    /// Creates an empty change.
    public init() {}

    /// Whether there is nothing to commit.
    public var isEmpty: Bool {
        notes.isEmpty && deletedNotes.isEmpty && entries.isEmpty && deletedEntries.isEmpty
    }
}

/// The content of the store when a client starts.
public struct StoredState: Sendable {
    /// All notes.
    public var notes: [LocalNote]
    /// The outbox in order.
    public var entries: [OutboxEntry]

    /// Creates a state, empty by default.
    public init(notes: [LocalNote] = [], entries: [OutboxEntry] = []) {
        self.notes = notes
        self.entries = entries
    }
}
