public import NotesContract

/// An attachment that the client uploads, downloads or deletes, as the store keeps it.
public struct LocalAttachment: Hashable, Sendable, Identifiable {
    /// The direction of a transfer.
    public enum Direction: String, Hashable, Sendable {
        /// To the server.
        case upload
        /// From the server.
        case download
        /// None: the server deletes the attachment, or an upload that is not complete.
        case deletion
    }

    /// The state of a transfer.
    public enum State: Hashable, Sendable {
        /// Nothing was sent yet.
        case waiting
        /// A request may have been sent.
        case sending
        /// All bytes have arrived, and their digest is correct.
        case done
        /// The transfer has stopped for this reason until the user requests it again.
        case parked(String)
    }

    /// The number of the transfer. A later transfer of the same name has a higher one.
    public let id: Int
    /// The record.
    public let record: RecordID
    /// The name.
    public let name: AttachmentName
    /// The direction.
    public let direction: Direction
    /// The size in bytes; `nil` for a download until the server has named it.
    public var size: Int?
    /// The digest; `nil` for a download until the server has named it.
    public var digest: AttachmentDigest?
    /// The entity tag of a download.
    public var entityTag: String?
    /// The state.
    public var state: State

    /// Creates an attachment.
    public init(
        id: Int, record: RecordID, name: AttachmentName, direction: Direction, size: Int? = nil,
        digest: AttachmentDigest? = nil, entityTag: String? = nil, state: State = .waiting
    ) {
        self.id = id
        self.record = record
        self.name = name
        self.direction = direction
        self.size = size
        self.digest = digest
        self.entityTag = entityTag
        self.state = state
    }

    /// Whether the transfer neither is done nor has stopped.
    public var isPending: Bool { state == .waiting || state == .sending }
}

/// The progress of a transfer.
public struct AttachmentProgress: Hashable, Sendable {
    /// The attachment.
    public let attachment: LocalAttachment
    /// The bytes that the receiver has acknowledged or stored.
    public let transferred: Int
}
