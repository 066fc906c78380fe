public import Determinism

/// The records of a REST server that a client synchronises: their requests, the meaning of responses, and the equality
/// of contents.
///
/// ``NotesResource`` is the resource of the notes server. ``JSONResource`` describes another one by its paths and names.
public protocol SyncResource: Sendable {
    /// The name stored in the store's file; a store of another resource is rejected.
    var name: String { get }

    /// The name of the server in messages, such as "notes server".
    var serverDescription: String { get }

    /// Whether the server lists records with their contents (``SyncOperation/contents(cursor:)``).
    var listsContents: Bool { get }

    /// The members of a content that the server makes, or that do not matter to the user; they are no reason for a conflict.
    var ignoredMembers: Set<String> { get }

    /// The member with the date of the last change, ISO 8601 or a number, which decides which version is the latest.
    var dateMember: String? { get }

    /// Returns the request of an operation.
    func request(for operation: SyncOperation) -> SyncRequestContent

    /// Returns the meaning of a response to an operation. Only a validated response has a result that changes anything.
    func reply(to operation: SyncOperation, _ response: SyncResponse) -> SyncReply

    /// Returns whether two contents are equal for the user, so that they are no conflict.
    func areEqual(_ left: RecordContent, _ right: RecordContent) -> Bool
}

extension SyncResource {
    public var listsContents: Bool { false }
    public var ignoredMembers: Set<String> { [] }
    public var dateMember: String? { nil }
    public func areEqual(_ left: RecordContent, _ right: RecordContent) -> Bool { left == right }
}

/// An operation on the server.
public enum SyncOperation: Hashable, Sendable {
    /// A cheap request that shows whether the server can be reached.
    case probe
    /// A request for another access token with a refresh token.
    case refresh(token: String)
    /// A page of the index: after a cursor, or from the beginning; with the entity tag of the last whole index.
    case index(cursor: String?, entityTag: String?)
    /// The same page with the contents of the records; requested if the resource lists contents.
    case contents(cursor: String?)
    /// A read of one record.
    case fetch(RecordID)
    /// A creation.
    case create(RecordID, RecordContent, operation: String)
    /// A replacement of the content at a base revision.
    case update(RecordID, RecordContent, base: RecordRevision, operation: String)
    /// A deletion at a base revision.
    case delete(RecordID, base: RecordRevision, operation: String)
}

/// The meaning of a response.
public struct SyncReply: Sendable {
    /// The result.
    public var result: SyncResult
    /// The server's identifier of the history of the user's records; `nil` if it names none.
    public var history: String?
    /// The delay requested by `Retry-After`.
    public var retryAfter: Nanoseconds?

    /// Creates a reply.
    public init(_ result: SyncResult, history: String? = nil, retryAfter: Nanoseconds? = nil) {
        self.result = result
        self.history = history
        self.retryAfter = retryAfter
    }
}

/// The result of an operation.
public enum SyncResult: Hashable, Sendable {
    /// The record as it is stored: created, updated or read.
    case record(RemoteRecord)
    /// A page of the index.
    case index(RemoteIndex)
    /// Another access token.
    case tokens(SyncTokens)
    /// The index has not changed.
    case notModified
    /// The deletion is done, or was done before; the probe succeeded.
    case done
    /// The record does not exist, or no longer.
    case missing
    /// The base revision is not the current one, or the record to create exists.
    case conflict
    /// The changes after the cursor are no longer known.
    case cursorExpired
    /// The credentials are rejected.
    case unauthorized(status: Int)
    /// The request is not allowed to this user.
    case forbidden(status: Int)
    /// The server has failed to execute the request; repeating it may fail again.
    case serverError(status: Int)
    /// The server cannot execute the request now.
    case unavailable(status: Int)
    /// The server rejects the request for good.
    case rejected(status: Int)
    /// The server's response is not what was requested.
    case invalid(String)
    /// A gateway on the way cannot reach the server now.
    case gatewayError(status: Int)
    /// The response is not from the server: a captive portal, a proxy, or another server.
    case foreign(ForeignServerError)
}

/// A page of the index of all records.
public struct RemoteIndex: Hashable, Sendable {
    /// An entry: the current revision of a record or tombstone.
    public struct Entry: Hashable, Sendable {
        /// The record's identifier.
        public var id: RecordID
        /// The current revision.
        public var revision: RecordRevision
        /// Whether the record was deleted.
        public var isDeleted: Bool
        /// The content; `nil` if the index does not have it, so that the record must be read.
        public var content: RecordContent?

        /// Creates an entry.
        public init(id: RecordID, revision: RecordRevision, isDeleted: Bool = false, content: RecordContent? = nil) {
            self.id = id
            self.revision = revision
            self.isDeleted = isDeleted
            self.content = content
        }
    }

    /// The entries.
    public var entries: [Entry]
    /// Identifiers of entries that cannot be read, with the reason; an entry without a readable identifier has an empty
    /// one.
    public var unreadable: [RecordID: String]
    /// The position after this page; `nil` if the server has no cursors, so that the page is the whole index.
    public var cursor: String?
    /// Whether further pages follow.
    public var hasMore: Bool
    /// The entity tag of the whole index; `nil` if there is none.
    public var entityTag: String?

    /// Creates a page.
    public init(
        entries: [Entry], unreadable: [RecordID: String] = [:], cursor: String? = nil, hasMore: Bool = false,
        entityTag: String? = nil
    ) {
        self.entries = entries
        self.unreadable = unreadable
        self.cursor = cursor
        self.hasMore = hasMore
        self.entityTag = entityTag
    }
}
