public import NotesContract

/// A local change that the server has not acknowledged.
public struct OutboxEntry: Hashable, Sendable {
    /// The kind of change.
    public enum Kind: String, Hashable, Sendable { case create, update, delete }

    /// The operation id, sent as `Idempotency-Key`: the server executes the operation once, however often it arrives.
    public let operation: String
    /// The position in the queue.
    public let sequence: Int
    /// The note's identifier.
    public var uuid: String
    /// The kind of change.
    public var kind: Kind
    /// The content to send; unused by a deletion.
    public var draft: NoteDraft
    /// The value of ``LocalNote/edits`` that this entry sends.
    public var edits: Int
    /// The base revision of the first attempt; repeated attempts are identical.
    public var base: Revision?
    /// The number of attempts so far.
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
