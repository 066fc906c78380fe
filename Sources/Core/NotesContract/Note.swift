//  NotesContract: the wire format between notes clients and notes servers.
//
//  Owns: notes, revisions, index entries and dates, in JSON; attachments with their names and digests; names of header
//  fields and paths.
//
//  Does not own: the behaviour of clients and servers.

internal import Wire

/// A note in its wire format.
public struct Note: Hashable, Sendable {
    /// The identifier, as the server names it.
    public var uuid: String
    /// The revision.
    public var revision: Revision
    /// The date set by the client: ISO 8601 in UTC.
    public var date: String
    /// The title.
    public var title: String?
    /// The text.
    public var text: String?

    /// Creates a note.
    public init(uuid: String, revision: Revision, date: String, title: String?, text: String?) {
        self.uuid = uuid
        self.revision = revision
        self.date = date
        self.title = title
        self.text = text
    }

    /// The note as JSON, with the keys in the order uuid, revision, date, title, text.
    public var json: String {
        JSONText.object([
            ("uuid", JSONText.string(uuid)), ("revision", JSONText.string(revision.description)),
            ("date", JSONText.string(date)), ("title", JSONText.string(title)), ("text", JSONText.string(text)),
        ])
    }

    /// Parses a note from JSON and ignores unknown keys; `nil` if it is not a note.
    public init?(json: some Sequence<UInt8>) {
        guard let object = JSONText.parse(json)?.object, let note = Note(object) else { return nil }
        self = note
    }

    /// Takes a note from a JSON object; `nil` if it is not a note.
    init?(_ object: JSONObject) {
        guard let uuid = object["uuid"]?.text, uuid.utf8.count <= NotesHTTP.uuidBytesMax,
            let text = object["revision"]?.text, let revision = Revision(text), let date = object["date"]?.text,
            let title = object["title"].optionalText, let body = object["text"].optionalText
        else { return nil }
        self.init(uuid: uuid, revision: revision, date: date, title: title, text: body)
    }
}

/// An entry of the index: the current revision of a note or tombstone.
public struct IndexEntry: Hashable, Sendable {
    /// The identifier of the note.
    public let uuid: String
    /// The current revision.
    public let revision: Revision
    /// Whether the note was deleted.
    public let isDeleted: Bool
    /// Whether the note is pinned.
    public let isPinned: Bool
    /// The whole note, in a list that has it.
    public let note: Note?

    /// Creates an entry.
    public init(
        uuid: String, revision: Revision, isDeleted: Bool = false, isPinned: Bool = false, note: Note? = nil
    ) {
        self.uuid = uuid
        self.revision = revision
        self.isDeleted = isDeleted
        self.isPinned = isPinned
        self.note = note
    }

    /// The entry as JSON.
    public var json: String {
        "{\"uuid\":\(JSONText.string(uuid)),\"revision\":\(JSONText.string(revision.description))"
            + (isDeleted ? ",\"deleted\":true" : "") + (isPinned ? ",\"pinned\":true}" : "}")
    }

    /// An element of an index that is not an entry.
    public struct Unreadable: Hashable, Sendable {
        /// The identifier, if that can be read.
        public let uuid: String?
        /// The reason.
        public let reason: String
    }

    /// Parses an index from JSON; `nil` if any element is not an entry.
    public static func index(json: some Sequence<UInt8>) -> [IndexEntry]? {
        guard let (entries, unreadable) = readableEntries(json: json), unreadable.isEmpty else { return nil }
        return entries
    }

    /// Parses the elements of an index that can be read; `nil` if it is not an array.
    public static func readableEntries(
        json: some Sequence<UInt8>
    ) -> (entries: [IndexEntry], unreadable: [Unreadable])? {
        guard case .array(let array)? = JSONText.parse(json) else { return nil }
        var entries: [IndexEntry] = []
        var unreadable: [Unreadable] = []
        entries.reserveCapacity(array.count)
        for element in array {
            let uuid = element.object?["uuid"]?.text.flatMap { uuid in
                uuid.isEmpty || uuid.utf8.count > NotesHTTP.uuidBytesMax ? nil : uuid
            }
            guard let object = element.object, let uuid else {
                unreadable.append(Unreadable(uuid: nil, reason: "an entry of the index has no uuid"))
                continue
            }
            guard let revision = object["revision"]?.text.flatMap({ Revision($0) }) else {
                unreadable.append(Unreadable(uuid: uuid, reason: "its entry in the index has no readable revision"))
                continue
            }
            entries.append(
                IndexEntry(
                    uuid: uuid, revision: revision, isDeleted: object["deleted"] == .bool(true),
                    isPinned: object["pinned"] == .bool(true), note: object["date"] == nil ? nil : Note(object)))
        }
        return (entries, unreadable)
    }
}

/// The content of a note in a write request.
public struct NoteDraft: Hashable, Sendable {
    /// The date: ISO 8601.
    public var date: String
    /// The title.
    public var title: String?
    /// The text.
    public var text: String?

    /// Creates a draft.
    public init(date: String, title: String?, text: String?) {
        self.date = date
        self.title = title
        self.text = text
    }

    /// Returns the body of a POST or, with a base revision, of a PUT.
    public func json(uuid: String, base: Revision?) -> String {
        var parts = [("uuid", JSONText.string(uuid))]
        if let base { parts.append(("revision", JSONText.string(base.description))) }
        parts += [
            ("date", JSONText.string(date)), ("title", JSONText.string(title)), ("text", JSONText.string(text)),
        ]
        return JSONText.object(parts)
    }
}

/// Names and limits of the protocol.
public enum NotesHTTP {
    /// The header field of every response of a notes server. A response of a captive portal lacks it.
    public static let markerName = "Slowlane-Notes"
    /// The value of the marker: the version of the protocol.
    public static let markerValue = "1"
    /// The header field that identifies the history of the user's notes. Its value changes if the server's database is
    /// replaced or restored; cursors and base revisions of another history mean nothing.
    public static let historyName = "Slowlane-History"
    /// The header field with the cursor of the index, from which later changes are requested.
    public static let cursorName = "Slowlane-Cursor"
    /// The header field with the minimum number of seconds for which the index lists tombstones.
    public static let retentionName = "Slowlane-Tombstone-Retention"
    /// The header field that identifies an operation, so that a retry has no second effect.
    public static let idempotencyKeyName = "Idempotency-Key"
    /// The longest `uuid` in bytes: 255 characters.
    public static let uuidBytesMax = 1020
    /// The path of the list of notes.
    public static let notesPath = "/api/notes/"
    /// The path of the index.
    public static let indexPath = "/api/notes-uuids/"
    /// The detail of a 403 for a wrong password: the original server has no 401.
    public static let wrongPassword = "Invalid username/password"
    /// The detail of a 403 without credentials.
    public static let noCredentials = "Authentication credentials were not provided."
    /// The path of requests for another access token.
    public static let refreshPath = "/api/tokens/refresh/"

    /// Returns the path of one note.
    public static func path(of uuid: String) -> String { "\(notesPath)\(uuid)/" }
}
