internal import NotesContract
internal import Wire

/// The content of a note.
public struct NoteContent: Sendable {
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

    /// Decodes a content.
    public init(_ content: RecordContent) {
        let object = JSONText.parse(content.bytes)?.object
        self.init(title: object?["title"]?.text, text: object?["text"]?.text, date: object?["date"]?.text ?? "")
    }

    init(_ note: Note) { self.init(title: note.title, text: note.text, date: note.date) }

    /// The encoded content.
    public var encoded: RecordContent {
        RecordContent(
            Array(
                JSONText.object([
                    ("date", JSONText.string(date)), ("title", JSONText.string(title)), ("text", JSONText.string(text)),
                ]).utf8))
    }

    /// Returns whether title and text have the same bytes; the date does not count.
    public func hasSameText(as other: NoteContent) -> Bool {
        Self.areEqual(title, other.title) && Self.areEqual(text, other.text)
    }

    private static func areEqual(_ left: String?, _ right: String?) -> Bool {
        switch (left, right) {
        case (nil, nil): true
        case (let left?, let right?): left.hasSameBytes(as: right)
        default: false
        }
    }
}
