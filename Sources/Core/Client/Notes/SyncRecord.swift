internal import Wire

/// The identifier of a record. Identifiers are compared byte by byte.
public struct RecordID: Hashable, Comparable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    private let key: ByteKey

    /// Creates an identifier.
    public init(_ text: String) { key = ByteKey(text) }

    public init(stringLiteral text: String) { self.init(text) }

    /// The text.
    public var text: String { key.text }

    public var description: String { text }

    public static func < (left: RecordID, right: RecordID) -> Bool { left.key < right.key }
}

/// A revision of a record, as the server names it. Revisions are compared byte by byte.
public struct RecordRevision: Hashable, Sendable, CustomStringConvertible {
    private let key: ByteKey
    /// The number that grows with each write; `nil` if the server's revisions have no order.
    public let number: Int?

    /// Creates a revision.
    public init(_ text: String, number: Int? = nil) {
        key = ByteKey(text)
        self.number = number
    }

    public var description: String { key.text }

    public static func == (left: RecordRevision, right: RecordRevision) -> Bool { left.key == right.key }

    public func hash(into hasher: inout Hasher) { hasher.combine(key) }

    /// Returns whether the server wrote this revision before another one; `false` if the order is unknown.
    func precedes(_ other: RecordRevision) -> Bool {
        guard let number, let otherNumber = other.number else { return false }
        return number < otherNumber
    }
}

/// The content of a record in the encoding of its ``SyncResource``.
public struct RecordContent: Hashable, Sendable {
    /// The encoded content.
    public let bytes: [UInt8]

    /// Creates a content from its encoding.
    public init(_ bytes: [UInt8]) { self.bytes = bytes }
}

/// A record in a response of the server.
public struct RemoteRecord: Hashable, Sendable {
    /// The identifier.
    public var id: RecordID
    /// The revision.
    public var revision: RecordRevision
    /// The content.
    public var content: RecordContent

    /// Creates a record.
    public init(id: RecordID, revision: RecordRevision, content: RecordContent) {
        self.id = id
        self.revision = revision
        self.content = content
    }
}

/// A record as the client stores it.
public struct LocalRecord: Hashable, Sendable {
    /// The server's side of an unresolved conflict.
    public struct Theirs: Hashable, Sendable {
        /// The server's revision; `nil` if the record is deleted there.
        public var revision: RecordRevision?
        /// The server's content; `nil` if the record is deleted there.
        public var content: RecordContent?

        /// Creates the server's side of a conflict.
        public init(revision: RecordRevision?, content: RecordContent?) {
            self.revision = revision
            self.content = content
        }

        /// The record is deleted on the server.
        static let deleted = Theirs(revision: nil, content: nil)
    }

    /// The identifier.
    public var id: RecordID
    /// The newest revision known to be on the server; `nil` if the server is not known to have the record.
    public var base: RecordRevision?
    /// The server's content at ``base``.
    public var baseContent: RecordContent?
    /// The content shown to the user.
    public var mine: RecordContent
    /// Whether the user has deleted the record.
    public var isDeleted: Bool
    /// The number of changes the user has made. A response to an older change does not acknowledge a newer one.
    public var edits: Int
    /// The server's side of a conflict; `nil` without a conflict.
    public var theirs: Theirs?

    /// Creates a record.
    public init(
        id: RecordID, base: RecordRevision? = nil, baseContent: RecordContent? = nil, mine: RecordContent,
        isDeleted: Bool = false, edits: Int = 0, theirs: Theirs? = nil
    ) {
        self.id = id
        self.base = base
        self.baseContent = baseContent
        self.mine = mine
        self.isDeleted = isDeleted
        self.edits = edits
        self.theirs = theirs
    }

    /// Creates an unchanged copy of the server's record.
    init(_ remote: RemoteRecord) {
        self.init(id: remote.id, base: remote.revision, baseContent: remote.content, mine: remote.content)
    }
}
