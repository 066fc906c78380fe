internal import HTTPTypes
internal import NotesContract
internal import Wire

/// Preconditions of reads and writes (RFC 9110, 13).
extension NotesService {
    /// Throws unless the base revision of a write is the current one.
    ///
    /// - Parameters:
    ///   - field: The `revision` in the body or the query.
    ///   - old: The stored note.
    func checkBase(
        _ field: NoteFields.Field, _ request: APIRequest, _ old: StoredNote, _ messages: PreconditionMessages
    ) throws {
        let current = old.note.revision.description
        let given: String?
        switch field {
        // A text that is too long, or a number, differs from every revision.
        case .text(let text) where !text.isEmpty: given = text.utf8.count > Revision.lengthMax ? "" : text
        case .wrongType: given = ""
        default: given = nil
        }
        if contract.features.contains(.ifMatch) {
            let fields = request.http.headerFields
            if let tags = fields[.ifNoneMatch], EntityTags.matches(tags, current, allowsWeak: true) {
                throw preconditionFailed(old)
            }
            if let tags = fields[.ifMatch] {
                if let given, !EntityTags.matches(tags, given, allowsWeak: false) {
                    throw HTTPProblem(.badRequest, "If-Match and the revision disagree")
                }
                guard EntityTags.matches(tags, current, allowsWeak: false) else { throw preconditionFailed(old) }
                if given == nil { return }
            }
        }
        guard let given else {
            throw HTTPProblem(
                contract.update.missingRevisionStatus,
                contract.update.missingRevisionStatus == .preconditionRequired
                    ? "\(messages.missing), or its ETag in If-Match" : messages.missing)
        }
        if behavior.comparesRevisions, !given.hasSameBytes(as: current) {
            throw conflict(messages.stale, old)
        }
    }

    /// The messages of the original server.
    struct PreconditionMessages {
        let missing: String
        let stale: String

        static let update = PreconditionMessages(
            missing: "You must specify a 'revision' in the request data",
            stale: "Conflict, you are trying to update an old revision of this object")
        static let delete = PreconditionMessages(
            missing: "You must specify a 'revision' query parameter",
            stale: "Conflict, you are trying to delete an old revision of this object")
    }

    func conflict(_ message: String, _ old: StoredNote, _ status: HTTPResponse.Status = .conflict) -> HTTPProblem {
        guard contract.features.contains(.currentInConflicts) else { return HTTPProblem(status, message) }
        var response = Response.json(
            status,
            JSONText.object([
                ("error", JSONText.string(message)),
                ("current", old.state == .deleted ? old.entry.json : json(of: old.note)),
            ]))
        response[.eTag] = EntityTags.of(old.note.revision)
        return HTTPProblem(response)
    }

    func preconditionFailed(_ old: StoredNote) -> HTTPProblem {
        conflict("Precondition failed: the note has another revision", old, .preconditionFailed)
    }

    /// Returns the 304 or 412 response to a conditional GET; `nil` if the note itself is to be sent.
    func conditionalResponse(_ request: APIRequest, _ note: StoredNote, lastModified: String?) -> Response? {
        let fields = request.http.headerFields
        let current = note.note.revision.description
        if let tags = fields[.ifMatch], !EntityTags.matches(tags, current, allowsWeak: false) {
            return preconditionFailed(note).response
        }
        var isKnown = false
        if let tags = fields[.ifNoneMatch] {
            isKnown = EntityTags.matches(tags, current, allowsWeak: true)
        } else if contract.features.contains(.validators), lastModified != nil, let text = fields[.ifModifiedSince],
            let since = HTTPDate.seconds(text)
        {
            isKnown = note.modified / 1000 <= since
        }
        return isKnown ? Response(.notModified) : nil
    }
}
