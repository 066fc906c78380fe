internal import GRDB
internal import HTTPTypes
internal import NotesContract
internal import Synchronization
internal import Wire

/// `/api/notes/UUID/attachments/`: the attachments of a note, with resumable uploads
/// (draft-ietf-httpbis-resumable-upload-10).
///
/// The resource of an upload is the attachment itself: PUT creates it, PATCH appends, HEAD returns the offset. The
/// content of a name never changes; another content needs a DELETE first. Each request can be repeated, so an
/// `Idempotency-Key` has no effect.
extension NotesService {
    /// The media type of all attachments. The server does not repeat the client's type, because a browser would then
    /// run scripts of an attachment in the origin of the notes.
    static let attachmentType = "application/octet-stream"
    /// The value of `Upload-Limit`.
    static let uploadLimit = "max-size=\(Limits.attachmentBytesMax), max-append-size=\(Limits.bodyBytesMax)"

    func handleAttachments(_ user: String, _ uuid: String) throws -> Response {
        let entries = try store.read { transaction in
            try StoredAttachment.all(transaction, note: noteID(user, uuid, transaction)).map(\.entry.json)
        }
        return .json(.ok, JSONText.array(entries))
    }

    /// - Parameter segment: The percent-encoded name.
    func handleAttachment(_ request: APIRequest, _ user: String, _ uuid: String, _ segment: ByteKey) throws -> Response
    {
        guard let name = AttachmentName(percentEncoded: segment.text) else {
            throw HTTPProblem(
                .badRequest,
                "An attachment's name has 1 to \(AttachmentName.bytesMax) bytes of UTF-8 without '/' and NUL, and is "
                    + "neither '.' nor '..'", key: "detail")
        }
        switch request.method {
        case .put, .patch:
            let upload = Result { try UploadFields(request) }
            return try writeAttachment(request) { transaction in
                let note = try noteID(user, uuid, transaction)
                if request.method == .patch {
                    return try append(upload, find(note, name, transaction), request.body, transaction)
                }
                var response = try create(upload.get(), user, note, name, request.body, transaction)
                if response.head.status.kind == .successful {
                    response[.location] = AttachmentHTTP.path(of: uuid, name)
                }
                return response
            }
        case .delete:
            return try writeAttachment(request) { transaction in
                try find(noteID(user, uuid, transaction), name, transaction).discard(transaction)
                return Response(.noContent)
            }
        default: return try show(request, user, uuid, name)
        }
    }

    /// Returns the row of a user's note. Throws the same 404 for a note of another user and for one that never existed.
    private func noteID(_ user: String, _ uuid: String, _ transaction: StoreTransaction) throws -> Int64 {
        _ = try find(user, uuid, transaction)
        let id = try Int64.fetchOne(
            transaction.database(for: "attachments").cachedStatement(
                sql: "SELECT id FROM note WHERE owner = ? AND uuid = ?"), arguments: [user, uuid])
        guard let id else { throw HTTPProblem.notFound }
        return id
    }

    private func find(_ note: Int64, _ name: AttachmentName, _ transaction: StoreTransaction) throws -> StoredAttachment
    {
        guard let found = try StoredAttachment.find(transaction, note: note, name: name) else {
            throw HTTPProblem.notFound
        }
        return found
    }

    private func writeAttachment(_ request: APIRequest, _ body: (StoreTransaction) throws -> Response) throws
        -> Response
    {
        // The cleanup has a transaction of its own, because a rejected write rolls back.
        if cleanup.takeDue(at: uptimeNow()) { try change(removeExpired) }
        return try change(bytes: request.body.count) { transaction in
            let response = try body(transaction)
            try StoredAttachment.removeDiscarded(transaction)
            return response
        }
    }

    // MARK: Upload

    private func create(
        _ upload: UploadFields, _ user: String, _ note: Int64, _ name: AttachmentName, _ body: [UInt8],
        _ transaction: StoreTransaction
    ) throws -> Response {
        guard let digest = upload.digest else {
            throw HTTPProblem(
                .badRequest, "\(AttachmentHTTP.digestName): sha-256=:BASE64: of the complete attachment is required",
                key: "detail")
        }
        guard let length = upload.length ?? (upload.isComplete ? body.count : nil) else {
            throw HTTPProblem(
                .badRequest, "\(AttachmentHTTP.uploadLengthName) is required, in bytes", key: "detail")
        }
        if let old = try StoredAttachment.find(transaction, note: note, name: name) {
            guard old.length == length && old.digest == digest else {
                throw uploadConflict("An attachment with this name and other content exists; delete it first", old)
            }
            if old.isComplete { return uploadState(of: old, .json(.ok, old.entry.json)) }
            guard old.received == 0 else {
                throw uploadConflict(
                    "This upload has begun; continue it with PATCH at \(AttachmentHTTP.uploadOffsetName)", old)
            }
            return try append(upload, old, body, transaction) { .json(.ok, $0.entry.json) }
        }
        guard length <= Limits.attachmentBytesMax else {
            var response = Response.error(
                .contentTooLarge, "An attachment has at most \(Limits.attachmentBytesMax) bytes", key: "detail")
            response[.uploadLimit] = NotesService.uploadLimit
            throw HTTPProblem(response)
        }
        guard try StoredAttachment.count(transaction, note: note) < Limits.attachmentsPerNoteMax else {
            throw insufficientStorage("A note has at most \(Limits.attachmentsPerNoteMax) attachments")
        }
        guard try StoredAttachment.bytes(transaction, owner: user) <= Limits.attachmentBytesPerUserMax - length else {
            throw insufficientStorage(
                "The attachments of a user have at most \(Limits.attachmentBytesPerUserMax) bytes together")
        }
        let created = try StoredAttachment.create(
            transaction, note: note, owner: user, name: name, length: length, digest: digest, uptime: uptimeNow())
        guard let created else { throw HTTPProblem.notFound }
        return try append(upload, created, body, transaction) { .json(.created, $0.entry.json) }
    }

    private func insufficientStorage(_ message: String) -> HTTPProblem {
        HTTPProblem(
            .init(code: 507, reasonPhrase: "Insufficient Storage"), "\(message); delete some first", key: "detail")
    }

    private func append(
        _ upload: Result<UploadFields, any Error>, _ stored: StoredAttachment, _ body: [UInt8],
        _ transaction: StoreTransaction
    ) throws -> Response {
        let upload = try upload.get()
        if let digest = upload.digest, digest != stored.digest {
            throw uploadConflict("The upload with this name has another \(AttachmentHTTP.digestName)", stored)
        }
        guard let offset = upload.offset else {
            throw HTTPProblem(.badRequest, "\(AttachmentHTTP.uploadOffsetName) is required", key: "detail")
        }
        guard offset == stored.received else {
            throw uploadConflict("The upload continues at \(AttachmentHTTP.uploadOffsetName)", stored)
        }
        return try append(upload, stored, body, transaction) { _ in Response(.noContent) }
    }

    private func append(
        _ upload: UploadFields, _ stored: StoredAttachment, _ body: [UInt8], _ transaction: StoreTransaction,
        _ respond: (StoredAttachment) -> Response
    ) throws -> Response {
        var stored = stored
        guard upload.length == nil || upload.length == stored.length, body.count <= stored.length - stored.received
        else {
            throw HTTPProblem(
                .badRequest,
                "The upload has \(AttachmentHTTP.uploadLengthName) \(stored.length); this request differs or exceeds it",
                key: "detail")
        }
        if !stored.isComplete {
            try stored.append(body, transaction, uptime: uptimeNow())
            if upload.isComplete, let hasher = stored.hasher {
                guard stored.received == stored.length, AttachmentDigest(of: hasher) == stored.digest else {
                    // The response is returned and not thrown, so that the removal is committed.
                    try stored.discard(transaction)
                    let reason =
                        stored.received == stored.length
                        ? "The bytes do not have the \(AttachmentHTTP.digestName)"
                        : "\(stored.received) bytes have arrived, not \(stored.length)"
                    return .error(.unprocessableContent, "\(reason); the upload was discarded", key: "detail")
                }
                try stored.complete(transaction, uptime: uptimeNow())
            }
        }
        return uploadState(of: stored, respond(stored))
    }

    /// Returns a response with the state and the digest of an attachment. A response with a body of its own lacks the
    /// digest, which would be that of the body (RFC 9530, 3).
    private func attachmentState(of stored: StoredAttachment, _ response: Response) -> Response {
        var response = uploadState(of: stored, response)
        response[.reprDigest] = stored.digest.field
        return response
    }

    /// Returns a response with the state of an upload.
    private func uploadState(of stored: StoredAttachment, _ response: Response) -> Response {
        var response = response
        response[.uploadOffset] = String(stored.received)
        response[.uploadComplete] = AttachmentHTTP.text(stored.isComplete)
        response[.uploadLength] = String(stored.length)
        if stored.isComplete {
            response[.eTag] = "\"\(stored.digest)\""
        } else {
            response[.uploadLimit] = NotesService.uploadLimit
            response[.cacheControl] = "no-store"
        }
        return response
    }

    private func uploadConflict(_ message: String, _ stored: StoredAttachment) -> HTTPProblem {
        HTTPProblem(uploadState(of: stored, .error(.conflict, message)))
    }

    // MARK: Download

    private func show(_ request: APIRequest, _ user: String, _ uuid: String, _ name: AttachmentName) throws -> Response
    {
        try store.read { transaction in
            let stored = try find(noteID(user, uuid, transaction), name, transaction)
            guard stored.isComplete else {
                if request.method == .head { return attachmentState(of: stored, Response(.noContent)) }
                throw uploadConflict("The upload of this attachment is not complete", stored)
            }
            let fields = request.http.headerFields
            let tag = stored.digest.description
            if let tags = fields[.ifMatch], !EntityTags.matches(tags, tag, allowsWeak: false) {
                throw HTTPProblem(.preconditionFailed, "Precondition failed: the attachment has another ETag")
            }
            var response = Response(.ok)
            if let tags = fields[.ifNoneMatch], EntityTags.matches(tags, tag, allowsWeak: true) {
                response.head.status = .notModified
                return attachmentState(of: stored, response)
            }
            response[.acceptRanges] = "bytes"
            // If-Range needs a strong match; a date never matches, because attachments have none.
            let isCurrent = fields[.ifRange].map { $0.hasSameBytes(as: "\"\(tag)\"") } ?? true
            let field = request.method == .get && isCurrent ? fields[.range] : nil
            var range = 0..<stored.length
            switch ByteRange(field: field, length: stored.length) {
            case .whole: break
            case .part(let part):
                range = part
                response.head.status = .partialContent
                response[.contentRange] = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(stored.length)"
            case .unsatisfiable:
                response = .error(
                    .rangeNotSatisfiable, "The attachment has \(stored.length) bytes", key: "detail")
                response[.contentRange] = "bytes */\(stored.length)"
                return response
            }
            response[.contentType] = NotesService.attachmentType
            response[.contentDisposition] = "attachment"
            response.body = try body(of: stored.id, range, transaction, isHead: request.method == .head)
            return attachmentState(of: stored, response)
        }
    }

    /// Returns a range of an attachment's bytes. Pieces after the first are read while the response is sent.
    private func body(of id: Int64, _ range: Range<Int>, _ transaction: StoreTransaction, isHead: Bool) throws -> Body {
        let size = StoredAttachment.pieceBytes
        @Sendable func part(at offset: Int, _ transaction: StoreTransaction) throws -> [UInt8] {
            let start = offset / size * size
            let bytes = try StoredAttachment.piece(transaction, id, offset / size) ?? []
            let some = bytes.prefix(max(0, range.upperBound - start)).dropFirst(offset - start)
            // A DELETE during the download removes the pieces.
            guard !some.isEmpty else { throw AttachmentRemoved() }
            return Array(some)
        }
        // The first part is read now, so that an error of the store gets its status.
        let first = isHead || range.isEmpty ? nil : try part(at: range.lowerBound, transaction)
        let state = Mutex((offset: range.lowerBound, first: first))
        return .bytes(
            Bytes(length: range.count) { [self] in
                try state.withLock { state -> [UInt8]? in
                    guard state.offset < range.upperBound else { return nil }
                    let offset = state.offset
                    let bytes: [UInt8]
                    if let first = state.first.take() {
                        bytes = first
                    } else {
                        do {
                            bytes = try store.read { try part(at: offset, $0) }
                        } catch let error as DatabaseError {
                            // The status has been sent already, so the connection is aborted.
                            recordDatabaseError(error)
                            throw error
                        }
                    }
                    state.offset += bytes.count
                    return bytes
                }
            })
    }
}

/// The end of a download whose attachment was removed.
private struct AttachmentRemoved: Error {}

/// The header fields of an upload.
private struct UploadFields {
    let isComplete: Bool
    let offset: Int?
    let length: Int?
    let digest: AttachmentDigest?

    init(_ request: APIRequest) throws {
        let fields = request.http.headerFields
        if request.method == .patch, request.mediaType != AttachmentHTTP.partialUploadType {
            throw HTTPProblem(
                .unsupportedMediaType,
                "A PATCH of an attachment has the media type \(AttachmentHTTP.partialUploadType)",
                key: "detail")
        }
        guard let complete = fields[.uploadComplete].flatMap(AttachmentHTTP.boolean) else {
            throw HTTPProblem(
                .badRequest,
                "\(AttachmentHTTP.uploadCompleteName) is required: ?1 if this request has the last byte, otherwise ?0",
                key: "detail")
        }
        isComplete = complete
        offset = try Self.integer(.uploadOffset, fields)
        length = try Self.integer(.uploadLength, fields)
        digest = try fields[.reprDigest].map { field in
            guard let digest = AttachmentDigest(field: field) else {
                throw HTTPProblem(
                    .badRequest, "\(AttachmentHTTP.digestName) has no valid member sha-256=:BASE64:", key: "detail")
            }
            return digest
        }
    }

    private static func integer(_ name: HTTPField.Name, _ fields: HTTPFields) throws -> Int? {
        try fields[name].map { field in
            guard let number = AttachmentHTTP.integer(field) else {
                throw HTTPProblem(.badRequest, "\(name) is not a number of bytes", key: "detail")
            }
            return number
        }
    }
}
