public import NotesContract

/// A note as the client stores it.
public struct LocalNote: Hashable, Sendable {
    /// The part of a note that the user sees.
    public struct Content: Hashable, Sendable {
        /// The title.
        public var title: String?
        /// The text.
        public var text: String?
        /// The date of the last change.
        public var date: String

        /// Creates a content.
        public init(title: String?, text: String?, date: String) {
            self.title = title
            self.text = text
            self.date = date
        }

        init(_ note: Note) { self.init(title: note.title, text: note.text, date: note.date) }

        /// Returns whether title and text are equal; the date does not count.
        public func hasSameContent(as other: Content) -> Bool { title == other.title && text == other.text }

        func draft() -> NoteDraft { NoteDraft(date: date, title: title, text: text) }
    }

    /// The server's side of an unresolved conflict.
    public struct Theirs: Hashable, Sendable {
        /// The server's revision; `nil` if the note is deleted there.
        public var revision: Revision?
        /// The server's content; `nil` if the note is deleted there.
        public var content: Content?

        /// Creates the server's side of a conflict.
        public init(revision: Revision?, content: Content?) {
            self.revision = revision
            self.content = content
        }

        /// The note is deleted on the server.
        static let deleted = Theirs(revision: nil, content: nil)
    }

    /// The note's identifier.
    public var uuid: String
    /// The newest revision known to be on the server; `nil` if the server has never had the note.
    public var base: Revision?
    /// The server's content at ``base``.
    public var baseContent: Content?
    /// The content shown to the user.
    public var mine: Content
    /// Whether the user has deleted the note.
    public var isDeleted: Bool
    /// The number of changes the user has made. A response to an older change does not acknowledge a newer one.
    public var edits: Int
    /// The server's side of a conflict; `nil` without a conflict.
    public var theirs: Theirs?
    /// The reason why the server rejects the note; `nil` if it does not.
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

    /// Creates an unchanged copy of the server's note.
    init(_ note: Note) {
        self.init(uuid: note.uuid, base: note.revision, baseContent: Content(note), mine: Content(note))
    }
}
