internal import JSON

/// A note as it goes over the wire.
public struct Note: Hashable, Sendable {
    /// Who it is, in lower case.
    public var uuid: String
    /// Which version.
    public var revision: Revision
    /// When the client says it was written: ISO 8601 in UTC.
    public var date: String
    /// Its title.
    public var title: String?
    /// Its text.
    public var text: String?

    /// Creates a note.
    public init(uuid: String, revision: Revision, date: String, title: String?, text: String?) {
        self.uuid = uuid
        self.revision = revision
        self.date = date
        self.title = title
        self.text = text
    }

    /// The note as JSON: uuid, revision, date, title, text, in this order.
    public var json: String {
        "{\"uuid\":\(JSONText.string(uuid)),\"revision\":\(JSONText.string(revision.description)),"
            + "\"date\":\(JSONText.string(date)),\"title\":\(JSONText.string(title)),\"text\":\(JSONText.string(text))}"
    }

    /// Reads a note from JSON; unknown keys are ignored. `nil` if it is not one.
    public init?(json: some Sequence<UInt8>) {
        guard let object = JSONText.parse(json)?.object, let note = Note(object) else { return nil }
        self = note
    }

    /// Reads a note from a JSON object.
    init?(_ object: JSONObject) {
        guard let uuid = object["uuid"]?.text, uuid.utf8.count <= NotesHTTP.nameBytesMax,
            let text = object["revision"]?.text, let revision = Revision(text), let date = object["date"]?.text,
            let title = object["title"].optionalText, let body = object["text"].optionalText
        else { return nil }
        self.init(uuid: uuid.lowercased(), revision: revision, date: date, title: title, text: body)
    }
}

/// One line of the index: which version of a note the server has, or that it is deleted.
public struct IndexEntry: Hashable, Sendable {
    /// Which note.
    public let uuid: String
    /// Its version.
    public let revision: Revision
    /// Whether it is a tombstone.
    public let isDeleted: Bool
    /// Whether its owner has pinned it.
    public let isPinned: Bool

    /// Creates an entry.
    public init(uuid: String, revision: Revision, isDeleted: Bool = false, isPinned: Bool = false) {
        self.uuid = uuid
        self.revision = revision
        self.isDeleted = isDeleted
        self.isPinned = isPinned
    }

    /// The entry as JSON.
    public var json: String {
        "{\"uuid\":\(JSONText.string(uuid)),\"revision\":\(JSONText.string(revision.description))"
            + (isDeleted ? ",\"deleted\":true" : "") + (isPinned ? ",\"pinned\":true}" : "}")
    }

    /// Reads a whole index from JSON; `nil` if any of it is not an entry.
    public static func index(json: some Sequence<UInt8>) -> [IndexEntry]? {
        guard case .array(let array)? = JSONText.parse(json) else { return nil }
        var entries: [IndexEntry] = []
        for element in array {
            guard let object = element.object, let uuid = object["uuid"]?.text,
                uuid.utf8.count <= NotesHTTP.nameBytesMax,
                let text = object["revision"]?.text, let revision = Revision(text)
            else { return nil }
            entries.append(
                IndexEntry(
                    uuid: uuid.lowercased(), revision: revision, isDeleted: object["deleted"] == .bool(true),
                    isPinned: object["pinned"] == .bool(true)))
        }
        return entries
    }
}

/// What a client says of a note it writes.
public struct NoteDraft: Hashable, Sendable {
    /// When it was written: ISO 8601.
    public var date: String
    /// Its title.
    public var title: String?
    /// Its text.
    public var text: String?

    /// Creates a draft.
    public init(date: String, title: String?, text: String?) {
        self.date = date
        self.title = title
        self.text = text
    }

    /// The body of a POST or, with a base revision, of a PUT.
    public func json(uuid: String, base: Revision?) -> String {
        var parts = [("uuid", JSONText.string(uuid))]
        if let base { parts.append(("revision", JSONText.string(base.description))) }
        parts += [
            ("date", JSONText.string(date)), ("title", JSONText.string(title)), ("text", JSONText.string(text)),
        ]
        return JSONText.object(parts)
    }
}

/// Names that both sides use.
public enum NotesHTTP {
    /// Every answer of a notes server carries it, so that a captive portal's does not pass for one.
    public static let markerName = "Slowlane-Notes"
    /// Its value: the version of the contract.
    public static let markerValue = "1"
    /// Where the index ends: what has changed since is asked for with it.
    public static let cursorName = "Slowlane-Cursor"
    /// For how many seconds at least the index tells of what was deleted.
    public static let retentionName = "Slowlane-Tombstone-Retention"
    /// Names the operation, so that doing it twice does it once.
    public static let idempotencyKeyName = "Idempotency-Key"
    /// Bytes of a note's name: 255 characters.
    public static let nameBytesMax = 1020
    /// The notes.
    public static let notesPath = "/api/notes/"
    /// Their revisions.
    public static let indexPath = "/api/notes-uuids/"

    /// The path of one note.
    public static func path(of uuid: String) -> String { "\(notesPath)\(uuid)/" }
}
