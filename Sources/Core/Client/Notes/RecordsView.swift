/// The state of a record as a user interface would draw it.
public struct RecordRow: Hashable, Sendable {
    /// The icon beside a record.
    public enum Icon: String, Hashable, Sendable {
        /// The record is synchronised.
        case none
        /// A change is pending.
        case upload
        /// The record was changed both locally and on the server.
        case conflict
        /// A change is parked: the server rejects it.
        case error
    }

    /// The record's identifier.
    public let id: RecordID
    /// The content shown to the user.
    public var content: RecordContent
    /// The icon beside it.
    public var icon: Icon
    /// Whether the user has deleted the record and the server has not acknowledged it.
    public let isDeleted: Bool
    /// The newest revision known to be on the server.
    public let revision: String?
    /// Every content stored for the record: the user's and, in a conflict, the server's and their common base.
    public var kept: [RecordContent]
    /// The reason why a change is parked.
    public let problem: String?
    /// The server's content in a conflict (``Icon/conflict``); `nil` if the record was deleted there, and without a conflict.
    public var theirs: RecordContent?
}

/// The records that changed in a view, with the number of pending changes.
public struct ViewChange: Sendable {
    /// Rows that are new or changed.
    public var rows: [RecordRow]
    /// Records that are no longer shown.
    public var removed: [RecordID]
    /// The number of changes that wait to be sent; parked ones do not count.
    public var outbox: Int
    /// The belief about connectivity.
    public var connectivity: Connectivity
}
