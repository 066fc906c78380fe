internal import Determinism
internal import NotesContract
internal import Wire

/// The notes of a notes server. A content is a ``NoteContent``.
public struct NotesResource: SyncResource {
    /// The number of entries in a page of the index.
    private static let pageEntries = 1000

    /// Creates the resource.
    public init() {}

    public var name: String { "notes" }
    public var serverDescription: String { "notes server" }
    public var listsContents: Bool { true }
    public var ignoredMembers: Set<String> { ["date"] }
    public var dateMember: String? { "date" }

    public func areEqual(_ left: RecordContent, _ right: RecordContent) -> Bool {
        left == right || NoteContent(left).hasSameText(as: NoteContent(right))
    }

    public func request(for operation: SyncOperation) -> SyncRequestContent {
        switch operation {
        case .probe: return SyncRequestContent(method: "GET", target: "/api/")
        case .refresh(let token): return SyncRequestContent(refresh: token, path: NotesHTTP.refreshPath)
        case .contents(let cursor):
            // A server without cursors ignores the parameters and lists all notes.
            return SyncRequestContent(method: "GET", target: NotesHTTP.notesPath + Self.page(after: cursor))
        case .index(let cursor, let entityTag):
            return SyncRequestContent(
                method: "GET", target: NotesHTTP.indexPath + Self.page(after: cursor),
                headers: entityTag.map { [(name: "If-None-Match", value: $0)] } ?? [])
        case .fetch(let id): return SyncRequestContent(method: "GET", target: Self.path(of: id))
        case .create(let id, let content, let operation):
            return write("POST", NotesHTTP.notesPath, operation, draft(content).json(uuid: id.text, base: nil))
        case .update(let id, let content, let base, let operation):
            return write("PUT", Self.path(of: id), operation, draft(content).json(uuid: id.text, base: base.note))
        case .delete(let id, let base, let operation):
            return SyncRequestContent(
                method: "DELETE", target: "\(Self.path(of: id))?revision=\(PercentEncoding.encode(base.description))",
                headers: [(name: NotesHTTP.idempotencyKeyName, value: operation)])
        }
    }

    private static func page(after cursor: String?) -> String {
        "?since=\(cursor.map(PercentEncoding.encode) ?? "")&limit=\(pageEntries)"
    }

    private func draft(_ content: RecordContent) -> NoteDraft {
        let note = NoteContent(content)
        return NoteDraft(date: note.date, title: note.title, text: note.text)
    }

    private func write(_ method: String, _ target: String, _ operation: String, _ json: String) -> SyncRequestContent {
        SyncRequestContent(
            method: method, target: target,
            headers: [
                (name: NotesHTTP.idempotencyKeyName, value: operation),
                (name: "Content-Type", value: "application/json"),
            ], body: Array(json.utf8))
    }

    /// Returns the path of a note. Segments of dots are encoded, too, because clients and servers remove them.
    static func path(of id: RecordID) -> String {
        let isDots = id.text == "." || id.text == ".."
        let segment = isDots ? id.text.utf8.map { _ in "%2E" }.joined() : PercentEncoding.encode(id.text)
        return "\(NotesHTTP.notesPath)\(segment)/"
    }

    // MARK: Replies

    public func reply(to operation: SyncOperation, _ response: SyncResponse) -> SyncReply {
        SyncReply(
            result(of: response, to: operation), history: response.header(NotesHTTP.historyName),
            retryAfter: [429, 503].contains(response.status) ? response.retryAfter : nil)
    }

    /// Whether the response comes from a notes server and not from an intermediary.
    private func isFromServer(_ response: SyncResponse) -> Bool {
        guard response.header(NotesHTTP.markerName) == NotesHTTP.markerValue else { return false }
        return response.status == 204 || response.status == 304 || response.isJSON
    }

    private func result(of response: SyncResponse, to operation: SyncOperation) -> SyncResult {
        let status = response.status
        guard isFromServer(response) else {
            if [408, 425, 429, 502, 503, 504].contains(status) { return .gatewayError(status: status) }
            return .foreign(
                ForeignServerError(
                    status: status, contentType: response.header("Content-Type"), expected: serverDescription))
        }
        if status == 403, rejectsCredentials(response) { return .unauthorized(status: status) }
        if let result = SyncResult(status: status, of: operation) { return result }
        switch (operation, status) {
        case (.probe, 200): return .done
        case (.index, 200), (.contents, 200): return index(response)
        case (.refresh(let token), 200):
            return SyncTokens(json: response.body, sent: token).map(SyncResult.tokens)
                ?? .invalid("the response has no access token")
        case (.index, 304): return .notModified
        case (.fetch, 200), (.create, 200), (.create, 201), (.update, 200):
            guard let note = Note(json: response.body) else { return .invalid("the response is not a note") }
            return .record(
                RemoteRecord(
                    id: RecordID(note.uuid), revision: RecordRevision(note.revision),
                    content: NoteContent(note).encoded))
        case (.delete, 204): return .done
        // A cursor of another server, or of another version of it.
        case (.index(.some, _), 400), (.contents(.some), 400): return .cursorExpired
        // The original server rejects the creation of an existing note with 400.
        case (.create, 400): return .conflict
        case (_, 400..<500): return .rejected(status: status)
        default: return .invalid("the response has the status \(status)")
        }
    }

    private func rejectsCredentials(_ response: SyncResponse) -> Bool {
        let detail = JSONText.parse(response.body)?.object?["detail"]?.text
        return detail == NotesHTTP.wrongPassword || detail == NotesHTTP.noCredentials
    }

    private func index(_ response: SyncResponse) -> SyncResult {
        guard let (entries, unreadable) = IndexEntry.readableEntries(json: response.body) else {
            return .invalid("the response is not an index")
        }
        let cursor = response.header(NotesHTTP.cursorName)
        return .index(
            RemoteIndex(
                entries: entries.map {
                    RemoteIndex.Entry(
                        id: RecordID($0.uuid), revision: RecordRevision($0.revision), isDeleted: $0.isDeleted,
                        content: $0.note.map { NoteContent($0).encoded })
                },
                unreadable: Dictionary(
                    unreadable.map { (RecordID($0.uuid ?? ""), $0.reason) }, uniquingKeysWith: { first, _ in first }),
                cursor: cursor, hasMore: cursor != nil && response.header("Link")?.contains("rel=\"next\"") ?? false,
                entityTag: cursor == nil ? response.header("ETag") : nil))
    }
}

extension RecordRevision {
    init(_ revision: Revision) { self.init(revision.description, number: revision.number) }

    fileprivate var note: Revision? { Revision(description) }
}
