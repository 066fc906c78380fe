public import Determinism

/// The actions and conditions of the lane.
extension AttachmentLane {
    /// An action on the store and its files.
    public enum StoreAction: Hashable, Sendable {
        /// Make the states durable, and report the result with ``committed(at:)`` or ``commitFailed(at:)``. A download
        /// that is done has all its bytes written.
        case commit([LocalAttachment])
        /// Read bytes of an upload, and report them with ``bytesRead(_:of:range:at:)`` or
        /// ``readFailed(_:of:range:at:)``.
        case read(LocalAttachment, Range<Int>)
        /// Hash the bytes of a download that are stored, and report them with ``partHashed(_:of:at:)``.
        case hashPart(LocalAttachment)
        /// Write bytes of a download at an offset.
        case write([UInt8], at: Int, LocalAttachment)
        /// Discard the bytes of a download.
        case discard(LocalAttachment)
    }

    /// An action.
    public enum Action: Hashable, Sendable {
        /// Execute the action on the store.
        case store(StoreAction)
        /// Send the request with this number.
        case send(Int, AttachmentRequest)
        /// Cancel the request with this number; its end is not awaited.
        case cancel(Int)
        /// The server rejects the credentials with this status. Nothing is sent until ``Gate/rounds`` changes.
        case credentialsRejected(status: Int)
        /// A response names another history than the store's; the engine checks it.
        case historyDiffers
        /// Report the progress.
        case report(AttachmentProgress)
    }

    /// The conditions of the engine under which attachments are transferred.
    public struct Gate: Hashable, Sendable {
        /// Whether the interface is up and allowed; a request in flight is cancelled otherwise.
        public var isUsable: Bool
        /// Whether requests may start.
        public var isOpen: Bool
        /// The time before which the server wants no request.
        public var floor: Instant?
        /// The number of occasions on which retry delays ended: the user's requests, and interfaces that came up.
        public var rounds: Int
        /// The history that the store belongs to.
        public var history: String?

        /// Creates conditions.
        public init(isUsable: Bool, isOpen: Bool, floor: Instant? = nil, rounds: Int = 0, history: String? = nil) {
            self.isUsable = isUsable
            self.isOpen = isOpen
            self.floor = floor
            self.rounds = rounds
            self.history = history
        }
    }
}
