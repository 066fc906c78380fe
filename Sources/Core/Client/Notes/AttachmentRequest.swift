internal import Determinism
internal import NotesContract

/// A request of a transfer.
public struct AttachmentRequest: Hashable, Sendable {
    /// The number of the request, from 0. A response or failure refers to it.
    public let id: Int
    /// `PUT`, `PATCH`, `HEAD`, `GET` or `DELETE`.
    public let method: String
    /// The path.
    public let target: String
    /// The header fields in addition to those of HTTP framing and authentication.
    public let fields: [Field]
    /// The bytes of the attachment that the body contains or a GET requests; empty if there are none.
    public let range: Range<Int>
    /// The body; empty for none.
    public let body: [UInt8]

    /// A header field.
    public struct Field: Hashable, Sendable {
        /// The name.
        public let name: String
        /// The value.
        public let value: String

        /// Creates a header field.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }
}

/// The head of a response.
public struct AttachmentResponse: Hashable, Sendable {
    /// The status.
    public let status: Int
    /// The header fields; names are case-insensitive.
    public let fields: [AttachmentRequest.Field]

    /// Creates a response.
    public init(status: Int, fields: [AttachmentRequest.Field]) {
        self.status = status
        self.fields = fields
    }

    /// Returns the value of a header field.
    func field(_ name: String) -> String? {
        let name = name.lowercased()
        return fields.first { $0.name.lowercased().utf8.elementsEqual(name.utf8) }?.value
    }

    /// Whether the response comes from a notes server and not from an intermediary.
    var isFromNotesServer: Bool {
        field(NotesHTTP.markerName)?.utf8.elementsEqual(NotesHTTP.markerValue.utf8) ?? false
    }

    var offset: Int? { field(AttachmentHTTP.uploadOffsetName).flatMap(AttachmentHTTP.integer) }
    var isComplete: Bool? { field(AttachmentHTTP.uploadCompleteName).flatMap(AttachmentHTTP.boolean) }
    var length: Int? { field(AttachmentHTTP.uploadLengthName).flatMap(AttachmentHTTP.integer) }
    var digest: AttachmentDigest? { field(AttachmentHTTP.digestName).flatMap(AttachmentDigest.init(field:)) }

    /// The largest attachment by the member `max-size` of `Upload-Limit`; `nil` if it is missing.
    var sizeMax: Int? {
        for member in field(AttachmentHTTP.uploadLimitName)?.split(separator: ",") ?? [] {
            let parts = member.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, parts[0].drop(while: { $0 == " " }).utf8.elementsEqual("max-size".utf8) else {
                continue
            }
            return AttachmentHTTP.integer(String(parts[1].prefix { $0 != ";" }))
        }
        return nil
    }

    /// The delay requested by `Retry-After` in seconds; zero without one.
    var retryAfter: Nanoseconds {
        guard let text = field("Retry-After"), let seconds = AttachmentHTTP.integer(text) else { return .zero }
        // The bound keeps the product within 64 bits.
        return .seconds(Int64(min(seconds, 1_000_000_000)))
    }
}

/// The end of a request without a response.
public enum AttachmentRequestFailure: Hashable, Sendable {
    /// No byte of the request can have reached the server.
    case notSent
    /// The server may have executed the request.
    case outcomeUnknown
}

/// The reason why a transfer has stopped. It continues only when the user asks for it.
public enum AttachmentTransferError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The note does not exist, or is deleted.
    case noteMissing
    /// Another attachment or upload has the name.
    case nameTaken
    /// The bytes that arrived do not have the digest, more often than the policy allows.
    case digestMismatch
    /// The server lost the upload, or changed the attachment during its download, more often than the policy allows.
    case uploadLost
    /// The attachment does not exist.
    case attachmentMissing
    /// The upload of the attachment is not complete.
    case uploadIncomplete
    /// The server claims to have bytes that were never sent.
    case offsetBeyondSent(offset: Int, sent: Int)
    /// The local bytes cannot be read, or have changed.
    case unreadable(String)
    /// The credentials are missing or wrong.
    case unauthenticated(status: Int)
    /// The attachment is larger than the server allows.
    case tooLarge(size: Int, limit: Int)
    /// The server rejects the request for another reason.
    case rejected(status: Int)

    public var description: String {
        switch self {
        case .noteMissing: "the note does not exist on the server; create it first"
        case .nameTaken: "another attachment has this name; delete it or use another name"
        case .digestMismatch: "the bytes that arrived do not have the attachment's digest; compute it again, or retry"
        case .uploadLost: "the server lost or changed the attachment repeatedly; try again later"
        case .attachmentMissing: "the attachment does not exist on the server"
        case .uploadIncomplete: "the upload of the attachment is not complete; try again later"
        case .offsetBeyondSent(let offset, let sent):
            "the server claims to have \(offset) bytes, but this client has sent \(sent) bytes; if "
                + "another client uploads the same attachment, try again later"
        case .unreadable(let reason): "the attachment cannot be read: \(reason)"
        case .unauthenticated(let status): "the server rejects the credentials (status \(status)); log in again"
        case .tooLarge(let size, let limit): "the attachment has \(size) bytes, the server allows \(limit) bytes"
        case .rejected(let status): "the server rejects the request (status \(status))"
        }
    }
}
