/// What a client would draw.
public struct NotesView: Hashable, Sendable {
    /// The mark beside a note.
    public enum Icon: String, Hashable, Sendable {
        /// The server has it as it is here.
        case none
        /// It is not at the server yet.
        case upload
        /// Somebody else has changed it too.
        case conflict
        /// The server will not have it.
        case error
    }

    /// A note in the list.
    public struct Row: Hashable, Sendable {
        /// Which note.
        public let uuid: String
        /// Its title.
        public let title: String?
        /// Its text.
        public let text: String?
        /// The mark beside it.
        public let icon: Icon
        /// Whether it waits to be deleted.
        public let isDeleted: Bool
        /// The last known revision at the server.
        public let revision: String?
        /// Every text held for it: mine, and in a conflict theirs and the one both came from.
        public let kept: [String]
        /// What is wrong with it.
        public let problem: String?
    }

    /// The notes, oldest first; ties by uuid.
    public let rows: [Row]
    /// Changes that the server has not acknowledged.
    public let outbox: Int
    /// Whether the last exchange succeeded; `nil` before the first.
    public let isReachable: Bool?
}
