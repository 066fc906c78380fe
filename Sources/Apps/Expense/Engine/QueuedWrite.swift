public import Client

/// The change of a record that a queued write makes.
public enum PendingAction: String, CaseIterable, Hashable, Sendable { case add, update, delete }

/// A request in the write queue. It is stored with everything that a later process needs to send and to undo it.
///
/// Its optimistic data are ``fields``. Its success data are the record that the server responds with. Its failure data are
/// the record as the server has confirmed it last, which optimistic data never replace, and the errors of the response.
public struct QueuedWrite: Hashable, Sendable {
    /// The position in the queue.
    public let sequence: Int
    /// The operation id, sent as `Idempotency-Key` with every attempt.
    public let operation: String
    /// The change.
    public let action: PendingAction
    /// The record.
    public let record: RecordKey
    /// The kind of the record.
    public let kind: String
    /// The record that contains it; `nil` for one at the root.
    public let parent: RecordKey?
    /// The pattern: ``OfflinePattern/optimistic`` or ``OfflinePattern/optimisticWithPendingUI``.
    public let pattern: OfflinePattern
    /// The fields that change.
    public var fields: RecordFields
    /// Whether an attempt may have been made, so that the server may have executed the write.
    public var wasTried = false
    /// The number of attempts that ended in a server error (500).
    public var serverErrors = 0

    /// Creates a write.
    public init(
        sequence: Int, operation: String, action: PendingAction, record: RecordKey, kind: String, parent: RecordKey?,
        pattern: OfflinePattern, fields: RecordFields = [:], wasTried: Bool = false
    ) {
        self.sequence = sequence
        self.operation = operation
        self.action = action
        self.record = record
        self.kind = kind
        self.parent = parent
        self.pattern = pattern
        self.fields = fields
        self.wasTried = wasTried
    }
}

/// What becomes of the queue when a write is added: conflicts between writes of one record are resolved before anything is
/// sent.
public enum QueueDecision: Hashable, Sendable {
    /// The write is added at the end.
    case append
    /// The queued write with this sequence number gets these fields, and the new one is not added.
    case replace(Int, RecordFields)
    /// The queued writes with these sequence numbers are removed. The new write is added if `appends`.
    case remove([Int], appends: Bool)

    /// Decides about a new write. A write that may have reached the server is never changed or removed.
    ///
    /// - Parameters:
    ///   - queue: The queued writes in order.
    ///   - confirmed: The record's fields that the server has confirmed; `nil` if it has none.
    public init(adding write: QueuedWrite, to queue: [QueuedWrite], confirmed: RecordFields?) {
        let unsent = queue.filter { $0.record == write.record && !$0.wasTried }
        let hasTried = queue.contains { $0.record == write.record && $0.wasTried }
        switch write.action {
        case .add: self = .append
        case .update:
            guard let last = unsent.last, last.action != .delete else {
                self = .append
                return
            }
            let fields = last.fields.merging(write.fields)
            // A change and its opposite: what the server has is what the user wants.
            if last.action == .update, !hasTried, unsent.count == 1, let confirmed, fields.isContained(in: confirmed) {
                self = .remove([last.sequence], appends: false)
            } else {
                self = .replace(last.sequence, fields)
            }
        case .delete:
            let sequences = unsent.map(\.sequence)
            // Without a tried write or a confirmed record the server knows nothing of it.
            let isUnknown = unsent.contains { $0.action == .add } && !hasTried
            self = sequences.isEmpty ? .append : .remove(sequences, appends: !isUnknown)
        }
    }
}
