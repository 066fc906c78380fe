/// The client's notes as a user interface would draw them.
public struct NotesView: Hashable, Sendable {
    /// The icon beside a note.
    public enum Icon: String, Hashable, Sendable {
        /// The note is synchronised.
        case none
        /// A change is pending.
        case upload
        /// The note was changed both locally and on the server.
        case conflict
        /// The server rejects the note.
        case error
    }

    /// A note in the list.
    public struct Row: Hashable, Sendable {
        /// The note's identifier.
        public let uuid: String
        /// The title.
        public let title: String?
        /// The text.
        public let text: String?
        /// The icon beside it.
        public let icon: Icon
        /// Whether a deletion is pending.
        public let isDeleted: Bool
        /// The newest revision known to be on the server.
        public let revision: String?
        /// Every text stored for the note: the user's and, in a conflict, the server's and their common base.
        public let kept: [String]
        /// The reason why the server rejects the note.
        public let problem: String?
    }

    /// The notes, oldest first, then by uuid.
    public let rows: [Row]
    /// The number of changes the server has not acknowledged.
    public let outbox: Int
    /// Whether the last exchange succeeded; `nil` before the first.
    public let isReachable: Bool?
}
