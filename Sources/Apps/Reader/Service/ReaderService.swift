//  Reader/Service: the server of the network-first reader as one function from request to response.
//
//  Owns: articles with likes, profiles with pictures, recommendations, feedback and accounts, the results of operations;
//  the contract of docs/explanation/reader.md.
//
//  Does not own: authentication, sockets, limits of connections (the server on which it is mounted), the client
//  (ReaderEngine).

public import HTTPTypes
internal import Synchronization
internal import Wire

/// The reader service: a synchronous function from a request of a user and its body to a response.
///
/// Its data are in memory and end with the process.
public final class ReaderService: Sendable {
    /// A response to one request.
    public struct Response: Sendable {
        /// Status and header fields.
        public let head: HTTPResponse
        /// The body, which is JSON; empty with status 304.
        public let body: String
    }

    /// The limits of the service.
    public enum Limits {
        /// The longest operation id in bytes.
        public static let operationBytesMax = 255
        /// The maximum number of results of operations, and of push notices, that are kept per user; the oldest are dropped.
        public static let resultsMax = 1_000
        /// The maximum number of articles and profiles per user.
        public static let recordsMax = 10_000
        /// The longest key of a record in bytes.
        public static let keyBytesMax = 64
        /// The longest value of a record in bytes.
        public static let valueBytesMax = 4_096
        /// The longest message of a feedback in bytes.
        public static let messageBytesMax = 1_000
        /// The longest contact of a feedback in bytes.
        public static let contactBytesMax = 100
        /// The maximum number of feedbacks per user.
        public static let feedbacksMax = 1_000
        /// The longest name of an account in bytes.
        public static let nameBytesMax = 64
        /// The lengths of passwords in bytes; bcrypt uses at most 72.
        public static let passwordBytes = 8...72
        /// The maximum number of accounts per user.
        public static let accountsMax = 100
    }

    /// The path of the service, without a slash at its end.
    public static let basePath = ReaderEngine.basePath
    /// The header field with the value `1` that each response has.
    public static let markerField = HTTPField.Name(ReaderEngine.markerField)!
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
    static let replayed = HTTPField.Name("Idempotency-Replayed")!

    private let shelves = Mutex<[ByteKey: ReaderShelf]>([:])

    /// Creates a service without articles.
    public init() {}

    /// Adds an article or profile for a user. Returns whether it is valid: it has a new key, its values have an allowed
    /// length, and the author of an article exists.
    @discardableResult
    public func seed(_ record: ReaderRecord, owner: String) -> Bool {
        shelves.withLock { $0[ByteKey(owner), default: ReaderShelf()].seed(record) }
    }

    /// What a user has: articles and profiles in the order of their keys, then feedbacks and accounts in the order in
    /// which they were made.
    public func records(of user: String) -> [ReaderRecord] {
        shelves.withLock { $0[ByteKey(user)]?.allRecords ?? [] }
    }

    /// Changes the title or the text of an article or profile as its author would, or deletes it without both. Returns
    /// whether there is such a record.
    public func change(_ key: String, title: String?, text: String?, owner: String) -> Bool {
        shelves.withLock { $0[ByteKey(owner)]?.change(key, title: title, text: text) ?? false }
    }

    /// Returns the text of the push notice about the result of a form that is the key mechanic of the app, a feedback; `nil`
    /// if the operation has no result.
    public func pushNotice(ofOperation operation: String) -> String? {
        shelves.withLock { shelves in shelves.values.lazy.compactMap { $0.notice(of: operation) }.first }
    }

    /// Returns the restoration of everything that the service stores now.
    public func backup() -> @Sendable () -> Void {
        let kept = shelves.withLock { $0 }
        return { [self] in shelves.withLock { $0 = kept } }
    }

    /// Returns the response to a request.
    ///
    /// - Parameter user: The authenticated user; `nil` for none.
    public func respond(to http: HTTPRequest, user: String?, body: [UInt8]) -> Response {
        guard let user else { return ReaderResult(401, error: "sign in with a name and a password").response }
        let request = ReaderServiceRequest(http, body: body)
        return shelves.withLock { $0[ByteKey(user), default: ReaderShelf()].respond(to: request) }.response
    }
}

/// A record of the service.
public struct ReaderRecord: Hashable, Sendable {
    /// A kind of record.
    public enum Kind: String, CaseIterable, Hashable, Sendable { case article, profile, feedback, account }

    /// The identifier.
    public let key: String
    /// The kind.
    public let kind: Kind
    /// The author of an article, the key of a profile.
    public let author: String?
    /// The title of an article, or the name of a profile or account.
    public internal(set) var title: String
    /// The text of an article or feedback, or what a profile says about itself.
    public internal(set) var text: String?
    /// The birthday of a profile.
    public let birthday: String?
    /// The picture of a profile.
    public let picture: String?
    /// Whether the user likes an article.
    public internal(set) var isLiked = false
    /// The number of changes.
    public internal(set) var revision = 1

    /// Creates a record.
    public init(
        key: String, kind: Kind, author: String? = nil, title: String, text: String? = nil, birthday: String? = nil,
        picture: String? = nil
    ) {
        self.key = key
        self.kind = kind
        self.author = author
        self.title = title
        self.text = text
        self.birthday = birthday
        self.picture = picture
    }
}

/// The result of a request: a status and a JSON body.
struct ReaderResult: Sendable {
    let status: Int
    let body: JSONValue
    var isReplayed = false
    var entityTag: String?
    var allowed: [String] = []

    init(_ status: Int, _ body: JSONValue) {
        self.status = status
        self.body = body
    }

    init(_ status: Int, error: String) { self.init(status, ["error": .text(error)]) }

    /// The result for a method that a resource does not have.
    static func methodNotAllowed(_ allowed: [String]) -> ReaderResult {
        var result = ReaderResult(405, error: "the resource does not have this method")
        result.allowed = allowed
        return result
    }

    /// The rejection of a form whose operation id belongs to another one (RFC 9457).
    static var keyReused: ReaderResult {
        ReaderResult(
            422, ["type": "urn:slowlane:idempotency-key-reused", "error": "the operation id belongs to another form"])
    }

    /// A rejection with messages by field.
    static func rejection(_ errors: [(field: String, message: String)]) -> ReaderResult {
        var object = JSONObject()
        for error in errors { object[error.field] = .text(error.message) }
        return ReaderResult(422, ["errors": .object(object)])
    }

    var response: ReaderService.Response {
        var head = HTTPResponse(status: .init(code: status))
        head.headerFields[ReaderService.markerField] = "1"
        if status != 304 { head.headerFields[.contentType] = "application/json" }
        head.headerFields[.cacheControl] = entityTag == nil || status == 201 ? "no-store" : "private, no-cache"
        head.headerFields[.eTag] = entityTag
        if !allowed.isEmpty { head.headerFields[.allow] = allowed.joined(separator: ", ") }
        if isReplayed { head.headerFields[ReaderService.replayed] = "true" }
        if status == 401 { head.headerFields[.wwwAuthenticate] = "Basic realm=\"reader\"" }
        return ReaderService.Response(head: head, body: status == 304 ? "" : body.json)
    }
}

/// A request with its decoded parts.
struct ReaderServiceRequest {
    let method: String
    /// The segments of the path after that of the service.
    let segments: [String]
    /// The entity tags of `If-None-Match`.
    let knownTags: [String]
    /// The operation id without quotes; `nil` if it is missing or too long.
    let operation: String?
    let body: [UInt8]

    init(_ http: HTTPRequest, body: [UInt8]) {
        method = http.method.rawValue
        let path = (http.path ?? "").split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)[0]
        segments = path.split(separator: "/").dropFirst().map(String.init)
        knownTags = (http.headerFields[.ifNoneMatch] ?? "").split(separator: ",").map { tag in
            let tag = tag.drop { $0 == " " }
            return String(tag.hasPrefix("W/") ? tag.dropFirst(2) : tag).trimmed
        }
        let key = http.headerFields[ReaderService.idempotencyKey].map { text in
            text.hasPrefix("\"") && text.hasSuffix("\"") && text.utf8.count >= 2
                ? String(text.dropFirst().dropLast()) : text
        }
        operation = key.flatMap { (1...ReaderService.Limits.operationBytesMax).contains($0.utf8.count) ? $0 : nil }
        self.body = body
    }
}

extension String {
    /// The text without spaces at its end.
    fileprivate var trimmed: String {
        var text = self[...]
        while text.last == " " { text = text.dropLast() }
        return String(text)
    }
}
