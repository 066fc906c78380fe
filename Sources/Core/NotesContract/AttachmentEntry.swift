internal import Wire

/// An entry in the list of a note's attachments.
public struct AttachmentEntry: Hashable, Sendable {
    /// The name.
    public let name: AttachmentName
    /// The size in bytes; of an incomplete upload, the size that it will have.
    public let size: Int
    /// The digest of the complete attachment.
    public let digest: AttachmentDigest
    /// Whether all bytes have arrived and have the digest.
    public let isComplete: Bool

    /// Creates an entry.
    public init(name: AttachmentName, size: Int, digest: AttachmentDigest, isComplete: Bool) {
        self.name = name
        self.size = size
        self.digest = digest
        self.isComplete = isComplete
    }

    /// The entry as JSON, with the keys in the order name, size, digest, complete.
    public var json: String {
        JSONText.object([
            ("name", JSONText.string(name.description)), ("size", String(size)),
            ("digest", JSONText.string(digest.field)), ("complete", isComplete ? "true" : "false"),
        ])
    }

    /// Parses a list from JSON; `nil` if any element is not an entry.
    public static func list(json: some Sequence<UInt8>) -> [AttachmentEntry]? {
        guard case .array(let array)? = JSONText.parse(json) else { return nil }
        var entries: [AttachmentEntry] = []
        for element in array {
            guard let object = element.object, let name = object["name"]?.text.flatMap({ AttachmentName($0) }),
                case .integer(let size)? = object["size"], size >= 0, let size = Int(exactly: size),
                let digest = object["digest"]?.text.flatMap(AttachmentDigest.init(field:)),
                case .bool(let isComplete)? = object["complete"]
            else { return nil }
            entries.append(AttachmentEntry(name: name, size: size, digest: digest, isComplete: isComplete))
        }
        return entries
    }
}

/// Names, formats and limits of attachments in the protocol. Uploads follow draft-ietf-httpbis-resumable-upload-10,
/// with one resource for the upload and the attachment.
public enum AttachmentHTTP {
    /// The header field with the number of bytes that the server has stored.
    public static let uploadOffsetName = "Upload-Offset"
    /// The header field that states whether the upload is complete: `?1` or `?0`.
    public static let uploadCompleteName = "Upload-Complete"
    /// The header field with the size of the complete attachment in bytes.
    public static let uploadLengthName = "Upload-Length"
    /// The header field with the server's limits.
    public static let uploadLimitName = "Upload-Limit"
    /// The header field with the digest of the complete attachment (RFC 9530).
    public static let digestName = "Repr-Digest"
    /// The media type of the body of a PATCH.
    public static let partialUploadType = "application/partial-upload"
    /// The largest attachment in bytes.
    public static let bytesMax = 64 << 20
    /// The most bytes of one request.
    public static let requestBytesMax = 1 << 20

    /// Returns the path of the list of a note's attachments.
    public static func listPath(of uuid: String) -> String { "\(NotesHTTP.path(of: uuid))attachments/" }

    /// Returns the path of an attachment.
    public static func path(of uuid: String, _ name: AttachmentName) -> String {
        listPath(of: uuid) + name.percentEncoded
    }

    /// Parses a non-negative Integer (RFC 9651, 3.3.1); `nil` if the text is none.
    public static func integer(_ text: String) -> Int? {
        let text = trimmed(text)
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int(text)
    }

    /// Parses a Boolean (RFC 9651, 3.3.6); `nil` if the text is none.
    public static func boolean(_ text: String) -> Bool? {
        let text = trimmed(text)
        if text.hasSameBytes(as: "?1") { return true }
        return text.hasSameBytes(as: "?0") ? false : nil
    }

    /// Returns the text of a Boolean.
    public static func text(_ value: Bool) -> String { value ? "?1" : "?0" }

    private static func trimmed(_ text: String) -> Substring {
        var text = text[...]
        while let first = text.utf8.first, first == 0x20 { text = Substring(text.utf8.dropFirst()) }
        while let last = text.utf8.last, last == 0x20 { text = Substring(text.utf8.dropLast()) }
        return text
    }
}
