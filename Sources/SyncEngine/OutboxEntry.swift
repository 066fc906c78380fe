public import NotesContract

/// A change of the user's that the server has not acknowledged.
public struct OutboxEntry: Hashable, Sendable {
    /// What it does.
    public enum Kind: String, Hashable, Sendable { case create, update, delete }

    /// Names the operation at the server, so that sending it twice does it once.
    public let operation: String
    /// Its place in the queue.
    public let sequence: Int
    /// Which note.
    public var uuid: String
    /// What it does.
    public var kind: Kind
    /// What it says; what a deletion says is not sent.
    public var draft: NoteDraft
    /// The user's change that it carries.
    public var edits: Int
    /// The revision it was first sent on; what has been sent once is sent again as it was.
    public var base: Revision?
    /// How often it has been sent.
    public var attempts: Int

    /// Creates an entry.
    public init(
        operation: String, sequence: Int, uuid: String, kind: Kind, draft: NoteDraft, edits: Int, base: Revision? = nil,
        attempts: Int = 0
    ) {
        self.operation = operation
        self.sequence = sequence
        self.uuid = uuid
        self.kind = kind
        self.draft = draft
        self.edits = edits
        self.base = base
        self.attempts = attempts
    }
}

/// What has to be durable before anything else happens: whole, or not at all.
public struct StoreChange: Hashable, Sendable {
    /// Notes to write.
    public var notes: [LocalNote] = []
    /// Notes to forget.
    public var forgottenNotes: [String] = []
    /// Entries to write.
    public var entries: [OutboxEntry] = []
    /// Entries to forget, by their place.
    public var forgottenEntries: [Int] = []

    /// Creates a change that does nothing yet.
    public init() {}

    /// Whether there is nothing to do.
    public var isEmpty: Bool {
        notes.isEmpty && forgottenNotes.isEmpty && entries.isEmpty && forgottenEntries.isEmpty
    }
}

/// What was durable when the client was last there.
public struct StoredState: Sendable {
    /// All notes.
    public var notes: [LocalNote]
    /// The outbox in order.
    public var entries: [OutboxEntry]

    /// Creates a state; nothing at all unless given.
    public init(notes: [LocalNote] = [], entries: [OutboxEntry] = []) {
        self.notes = notes
        self.entries = entries
    }
}
