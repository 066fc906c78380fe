internal import HTTPTypes
internal import JSON
internal import NotesContract

/// Entity tags (RFC 9110, 8.8.3 and 13.1).
enum EntityTags {
    static func of(_ revision: Revision) -> String { "\"\(revision)\"" }

    /// Whether a list of tags names one; tags without quotes are taken too, as the original does.
    static func matches(_ list: String, _ name: String, weakCounts: Bool) -> Bool {
        parse(list).contains { $0.isAny || (weakCounts || !$0.isWeak) && $0.opaque.hasSameBytes(as: name) }
    }

    /// A member of a list of tags.
    struct Tag {
        /// Without its quotes.
        let opaque: String
        let isWeak: Bool
        /// Whether it is `*` without quotes.
        let isAny: Bool

        /// The form with quotes.
        var text: String { isAny ? "*" : (isWeak ? "W/" : "") + "\"\(opaque)\"" }
    }

    static func parse(_ list: String) -> [Tag] {
        list.split(separator: ",").map { part in
            var tag = part.drop { $0 == " " || $0 == "\t" }
            while tag.last == " " || tag.last == "\t" { tag.removeLast() }
            if tag == "*" { return Tag(opaque: "*", isWeak: false, isAny: true) }
            let isWeak = tag.hasPrefix("W/")
            if isWeak { tag = tag.dropFirst(2) }
            if tag.hasPrefix("\""), tag.hasSuffix("\""), tag.count >= 2 { tag = tag.dropFirst().dropLast() }
            return Tag(opaque: String(tag), isWeak: isWeak, isAny: false)
        }
    }
}

/// What a request demands of the note as it is.
extension NotesService {
    /// Refuses a write whose base is not the current revision.
    ///
    /// - Parameters:
    ///   - field: The revision the request names, in the body or the query.
    ///   - old: What is there.
    func checkBase(_ field: NoteFields.Field, _ request: APIRequest, _ old: StoredNote, _ words: PreconditionMessages) throws {
        let current = old.note.revision.description
        let given: String?
        switch field {
        // One that no revision can be differs from all.
        case .text(let text) where !text.isEmpty: given = text.utf8.count > Revision.lengthMax ? "" : text
        case .wrongType: given = ""  // a number differs from every revision
        default: given = nil
        }
        if contract.features.contains(.ifMatch) {
            let fields = request.http.headerFields
            if let tags = fields[.ifNoneMatch], EntityTags.matches(tags, current, weakCounts: true) {
                throw preconditionFailed(old)
            }
            if let tags = fields[.ifMatch] {
                if let given, !EntityTags.matches(tags, given, weakCounts: false) {
                    throw HTTPProblem(.badRequest, "If-Match and the revision disagree")
                }
                guard EntityTags.matches(tags, current, weakCounts: false) else { throw preconditionFailed(old) }
                if given == nil { return }
            }
        }
        guard let given else {
            throw HTTPProblem(
                contract.update.missingRevision,
                contract.update.missingRevision == .preconditionRequired
                    ? "\(words.missing), or its ETag in If-Match" : words.missing)
        }
        if !given.hasSameBytes(as: current) { throw conflict(words.stale, old) }
    }

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

    /// The answer to a conditional GET if it is not the note itself: 304 or 412.
    func conditionalResponse(_ request: APIRequest, _ note: StoredNote, lastModified: String?) -> Response? {
        let fields = request.http.headerFields
        let current = note.note.revision.description
        if let tags = fields[.ifMatch], !EntityTags.matches(tags, current, weakCounts: false) {
            return preconditionFailed(note).response
        }
        var isKnown = false
        if let tags = fields[.ifNoneMatch] {
            isKnown = EntityTags.matches(tags, current, weakCounts: true)
        } else if contract.features.contains(.validators), lastModified != nil, let text = fields[.ifModifiedSince],
            let since = NoteDate.seconds(httpDate: text)
        {
            isKnown = note.modified / 1000 <= since
        }
        return isKnown ? Response(.notModified) : nil
    }
}
