/// A local change that the server has not acknowledged.
public struct OutboxEntry: Hashable, Sendable {
    /// The kind of change.
    public enum Kind: Hashable, Sendable {
        case create, update, delete
        /// A kind that this version does not know, by its stored name. The entry is parked.
        case unknown(String)
    }

    /// The operation id, sent as `Idempotency-Key`: the server executes the operation once, however often it arrives.
    public var operation: String
    /// The position in the queue.
    public private(set) var sequence: Int
    /// The record's identifier.
    public let id: RecordID
    /// The kind of change.
    public var kind: Kind
    /// The content to send; unused by a deletion.
    public var content: RecordContent
    /// The value of ``LocalRecord/edits`` that this entry sends.
    public var edits: Int
    /// The base revision of the first attempt; repeated attempts are identical.
    public var base: RecordRevision?
    /// The number of attempts so far. An entry that was attempted is never changed.
    public var attempts: Int
    /// Whether an attempt may have been executed although no response acknowledged it.
    public var mayBeCommitted: Bool
    /// The number of attempts in a row that ended in a server error (500), also those of a fetch that decides about the
    /// entry.
    public var serverErrors: Int
    /// The reason why the entry is not sent until the user decides; `nil` if it is not parked.
    public var parked: String?

    /// Creates an entry.
    public init(
        operation: String, sequence: Int, id: RecordID, kind: Kind, content: RecordContent, edits: Int,
        base: RecordRevision? = nil, attempts: Int = 0, mayBeCommitted: Bool = false, serverErrors: Int = 0,
        parked: String? = nil
    ) {
        self.operation = operation
        self.sequence = sequence
        self.id = id
        self.kind = kind
        self.content = content
        self.edits = edits
        self.base = base
        self.attempts = attempts
        self.mayBeCommitted = mayBeCommitted
        self.serverErrors = serverErrors
        self.parked = parked
    }

    /// Returns the entry at another position.
    public func numbered(_ sequence: Int) -> OutboxEntry {
        var entry = self
        entry.sequence = sequence
        return entry
    }
}
