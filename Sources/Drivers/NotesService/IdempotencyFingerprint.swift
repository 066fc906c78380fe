internal import Determinism
internal import HTTPTypes
internal import NotesContract
internal import Wire

/// The idempotency fingerprint of a request (draft-ietf-httpapi-idempotency-key-header, section 2.4): a hash over the
/// meaning of the request, so that a retry is recognised in another encoding.
///
/// The fingerprint does not depend on: percent-encoding of path and query, order and spacing of JSON members, the
/// multipart boundary, parameters of the media type, the order of entity tags, the offset of a date, the case of a
/// `uuid`. It leaves out parts without meaning, such as a Content-Type without a body, or the body of a DELETE.
struct IdempotencyFingerprint {
    private var hash = FNV1a()

    /// - Parameter fields: The fields of the body; `nil` if a body has no semantics for the method.
    static func of(_ request: APIRequest, _ fields: Result<NoteFields, any Error>?) -> UInt64 {
        var fingerprint = IdempotencyFingerprint()
        fingerprint.add(request.method.rawValue)
        fingerprint.add(resource: request.resource)
        fingerprint.add(queryOf: request)
        fingerprint.add(tags: request.http.headerFields.value(of: .ifMatch))
        fingerprint.add(tags: request.http.headerFields.value(of: .ifNoneMatch))
        switch fields {
        case nil: fingerprint.add(nil)
        case .success(let fields)?:
            fingerprint.add(request.body.isEmpty ? "" : request.mediaType ?? "application/json")
            fingerprint.add(fields.uuid) { $0.lowercased() }
            fingerprint.add(fields.revision)
            fingerprint.add(fields.date) { NoteDate.normalised($0) ?? $0 }
            fingerprint.add(fields.title)
            fingerprint.add(fields.text)
        case .failure?:
            // A request with an unreadable body never succeeds, so no stored operation matches it.
            fingerprint.add("unreadable")
        }
        return fingerprint.hash.value
    }

    /// Adds a part with its length, so that different lists of parts hash different bytes. The length of `nil` is
    /// 0xFFFF_FFFF.
    private mutating func add(_ text: String?) {
        guard let text else {
            for _ in 0..<4 { hash.add(0xFF) }
            return
        }
        for shift in stride(from: 0, to: 32, by: 8) { hash.add(UInt8(truncatingIfNeeded: text.utf8.count >> shift)) }
        hash.add(contentsOf: text.utf8)
    }

    private mutating func add(_ field: NoteFields.Field, _ normalised: (String) -> String = { $0 }) {
        switch field {
        case .missing: add("missing")
        case .null: add("null")
        case .wrongType: add("other")
        case .text(let text):
            add("text")
            add(normalised(text))
        }
    }

    private mutating func add(resource: APIRequest.Resource) {
        switch resource {
        case .note(let name): add("note \(name.lowercased())")
        case .pin(let name): add("pin \(name.lowercased())")
        // As the text of the case, without reflection.
        case .notes: add("notes")
        default: add("\(resource)")
        }
    }

    /// Adds the decoded parameters sorted by name. Those of one name keep their order, because the first one is used.
    private mutating func add(queryOf request: APIRequest) {
        let pairs = request.queryPairs.enumerated().sorted {
            ($0.element.name, $0.offset) < ($1.element.name, $1.offset)
        }
        add(String(pairs.count))
        for (_, pair) in pairs {
            add(pair.name)
            add(pair.value)
        }
    }

    private mutating func add(tags list: String?) {
        guard let list else { return add(nil) }
        let tags = EntityTags.parse(list).map { Array($0.text.utf8) }.sorted { $0.lexicographicallyPrecedes($1) }
        add(String(tags.count))
        for tag in tags { add(String(decoding: tag, as: UTF8.self)) }
    }
}
