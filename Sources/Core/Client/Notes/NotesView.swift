internal import Wire

/// A client's notes as a user interface would draw them.
public struct NotesView: Sendable {
    /// A note in the list.
    public struct Row: Sendable {
        /// The icon beside a note.
        public typealias Icon = RecordRow.Icon

        /// The note's identifier.
        public let uuid: String
        /// The title.
        public let title: String?
        /// The text.
        public let text: String?
        /// The date of the last change.
        public let date: String
        /// The icon beside it.
        public let icon: Icon
        /// Whether a deletion is pending.
        public let isDeleted: Bool
        /// The newest revision known to be on the server.
        public let revision: String?
        /// Every text stored for the note: the user's and, in a conflict, the server's and their common base.
        public let kept: [String]
        /// The reason why a change is parked.
        public let problem: String?

        /// Creates a row from a record of ``NotesResource``.
        public init(_ row: RecordRow) {
            let content = NoteContent(row.content)
            uuid = row.id.text
            title = content.title
            text = content.text
            date = content.date
            icon = row.icon
            isDeleted = row.isDeleted
            revision = row.revision
            var texts: [String] = []
            for kept in row.kept {
                // The content itself is mostly the only one.
                if let text = kept == row.content ? content.text : NoteContent(kept).text,
                    !texts.contains(where: { $0.hasSameBytes(as: text) })
                {
                    texts.append(text)
                }
            }
            kept = texts
            problem = row.problem
        }
    }

    /// The notes, oldest first, then by uuid.
    public let rows: [Row]
    /// The number of changes that wait to be sent; parked ones do not count.
    public let outbox: Int
    /// The belief about connectivity.
    public let connectivity: Connectivity

    /// Creates a view from records of ``NotesResource``.
    public init(rows: some Sequence<RecordRow>, outbox: Int, connectivity: Connectivity) {
        self.init(rows: rows.map(Row.init), outbox: outbox, connectivity: connectivity)
    }

    /// Creates a view from rows in any order.
    public init(rows: [Row], outbox: Int, connectivity: Connectivity) {
        self.rows = rows.sorted { left, right in
            left.date.hasSameBytes(as: right.date)
                ? ByteKey(left.uuid) < ByteKey(right.uuid) : ByteKey(left.date) < ByteKey(right.date)
        }
        self.outbox = outbox
        self.connectivity = connectivity
    }
}
