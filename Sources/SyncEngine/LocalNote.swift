public import NotesContract

/// A note as the client holds it.
public struct LocalNote: Hashable, Sendable {
    /// What the user sees of it.
    public struct Content: Hashable, Sendable {
        /// Its title.
        public var title: String?
        /// Its text.
        public var text: String?
        /// When it was written.
        public var date: String

        /// Creates a content.
        public init(title: String?, text: String?, date: String) {
            self.title = title
            self.text = text
            self.date = date
        }

        init(_ note: Note) { self.init(title: note.title, text: note.text, date: note.date) }

        /// Whether a reader would see the same.
        public func saysTheSame(as other: Content) -> Bool { title == other.title && text == other.text }

        func draft() -> NoteDraft { NoteDraft(date: date, title: title, text: text) }
    }

    /// What the server has and the user has not decided about.
    public struct Theirs: Hashable, Sendable {
        /// The server's revision; `nil` if the note is gone there.
        public var revision: Revision?
        /// What it says; `nil` if the note is gone there.
        public var content: Content?

        /// Creates the other side of a conflict.
        public init(revision: Revision?, content: Content?) {
            self.revision = revision
            self.content = content
        }
    }

    /// Which note.
    public var uuid: String
    /// The last version that the server is known to have had, and what it said; `nil` before the first.
    public var base: Revision?
    /// What the server said at ``base``.
    public var baseContent: Content?
    /// What the user sees.
    public var mine: Content
    /// Whether the user has deleted it.
    public var isDeleted: Bool
    /// Counts the user's changes, so that an answer to an older one does not pass for an answer to the newest.
    public var edits: Int
    /// The other side of a conflict.
    public var theirs: Theirs?
    /// Why the server will not have it.
    public var problem: String?

    /// Creates a note.
    public init(
        uuid: String, base: Revision? = nil, baseContent: Content? = nil, mine: Content, isDeleted: Bool = false,
        edits: Int = 0, theirs: Theirs? = nil, problem: String? = nil
    ) {
        self.uuid = uuid
        self.base = base
        self.baseContent = baseContent
        self.mine = mine
        self.isDeleted = isDeleted
        self.edits = edits
        self.theirs = theirs
        self.problem = problem
    }

    /// A note as the server has it.
    init(_ note: Note) {
        self.init(uuid: note.uuid, base: note.revision, baseContent: Content(note), mine: Content(note))
    }
}
