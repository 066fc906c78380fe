internal import HTTPTypes
internal import NotesContract

/// The idempotency fingerprint of a request (draft-ietf-httpapi-idempotency-key-header, section 2.4): a hash over what it asks
/// for, so that a retry is recognised whoever has re-encoded it.
///
/// Equal are: a path or query with and without percent-encoding, JSON members in any order and form, multipart bodies with
/// any boundary, media types with any parameters, tags in any order, a date at any offset, names in either case. A header that
/// says nothing about this request (a Content-Type without a body, any body of a DELETE) has no part in it.
struct IdempotencyFingerprint {
    private var hash = FNV1a()

    /// - Parameter fields: The fields of the body, where one has a meaning.
    static func of(_ request: APIRequest, _ fields: Result<NoteFields, any Error>?) -> UInt64 {
        var print = IdempotencyFingerprint()
        print.add(request.method.rawValue)
        print.add(resource: request.resource)
        print.add(queryOf: request)
        print.add(tags: request.http.headerFields[.ifMatch])
        print.add(tags: request.http.headerFields[.ifNoneMatch])
        switch fields {
        case nil: print.add(nil)
        case .success(let fields)?:
            print.add(request.body.isEmpty ? "" : request.mediaType ?? "application/json")
            print.add(fields.uuid) { $0.lowercased() }
            print.add(fields.revision)
            print.add(fields.date) { NoteDate.normalised($0) ?? $0 }
            print.add(fields.title)
            print.add(fields.text)
        case .failure?:
            // Such a request is never done, so it is equal to none that was.
            print.add("unreadable")
        }
        return print.hash.value
    }

    /// Each part with its length, which is never that of `nil`: no two lists of parts have the same bytes.
    private mutating func add(_ text: String?) {
        guard let text else {
            for _ in 0..<4 { hash.add(0xFF) }
            return
        }
        for shift in stride(from: 0, to: 32, by: 8) { hash.add(UInt8(truncatingIfNeeded: text.utf8.count >> shift)) }
        for byte in text.utf8 { hash.add(byte) }
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
        default: add("\(resource)")
        }
    }

    /// The decoded pairs by name; those of one name keep their order, for the first counts.
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

/// FNV-1a of 64 bits, to tell requests apart; nothing secret depends on it.
struct FNV1a {
    private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ byte: UInt8) { value = (value ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }

    static func digest(_ bytes: [UInt8]) -> UInt64 {
        var hash = FNV1a()
        for byte in bytes { hash.add(byte) }
        return hash.value
    }
}
