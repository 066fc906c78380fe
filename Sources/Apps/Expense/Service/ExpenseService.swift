//  Expense/Service: the server of the expense app as one function from request to response.
//
//  Owns: reports with expenses, chats with pins, transfers of money, the balance, updates since an id, the results of
//  operations; the contract of docs/explanation/patterns.md.
//
//  Does not own: authentication, sockets, limits of connections (the server on which it is mounted), the client
//  (ExpenseEngine).

internal import Client
internal import Determinism
public import HTTPTypes
internal import Synchronization
internal import Wire

/// The expense service: a synchronous function from a request of a user and its body to a response.
///
/// Its data are in memory and end with the process.
public final class ExpenseService: Sendable {
    /// A response to one request.
    public struct Response: Sendable {
        /// Status and header fields.
        public let head: HTTPResponse
        /// The body, which is JSON.
        public let body: String
    }

    /// The limits of the service.
    public enum Limits {
        /// The longest operation id in bytes.
        public static let operationBytesMax = 255
        /// The maximum number of results of operations that are kept per user; the oldest are dropped.
        public static let resultsMax = 10_000
        /// The maximum number of records per user.
        public static let recordsMax = 10_000
        /// The longest title in bytes.
        public static let titleBytesMax = 100
        /// The greatest amount of an expense, in cents.
        public static let expenseCentsMax = 500_00
        /// The maximum number of updates in a response.
        public static let updatesMax = 500
    }

    /// The path of the service, without a slash at its end.
    public static let basePath = ExpenseEngine.basePath
    /// The header field with the value `1` that each response has.
    public static let markerField = HTTPField.Name(ExpenseEngine.markerField)!
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")!
    static let replayed = HTTPField.Name("Idempotency-Replayed")!

    private struct State: Sendable {
        var accounts: [ByteKey: ExpenseAccount] = [:]
        /// The number of restorations: each begins another history of updates.
        var history = 0
    }

    private let state = Mutex(State())

    /// Creates a service without records.
    public init() {}

    /// Adds a record of a user. Returns whether it is valid: it has a new key, and its parent exists.
    @discardableResult
    public func seed(_ record: ExpenseRecord, owner: String) -> Bool {
        state.withLock { $0.accounts[ByteKey(owner), default: ExpenseAccount()].seed(record) }
    }

    /// The records of a user in the order of their last updates.
    public func records(of user: String) -> [ExpenseRecord] {
        state.withLock { $0.accounts[ByteKey(user)]?.sortedRecords ?? [] }
    }

    /// Changes fields of a record as another client of its user would, or deletes it without fields. Returns whether there
    /// is such a record.
    public func change(_ key: String, fields: [(name: String, value: String)]?, owner: String) -> Bool {
        state.withLock { $0.accounts[ByteKey(owner)]?.change(key, fields: fields) ?? false }
    }

    /// Returns the restoration of everything that the service stores now. A restoration begins another history of updates,
    /// by which clients notice it.
    public func backup() -> @Sendable () -> Void {
        let accounts = state.withLock { $0.accounts }
        return { [self] in
            state.withLock { state in
                state.accounts = accounts
                state.history += 1
            }
        }
    }

    /// Returns whether the service has a path.
    public static func serves(path: some StringProtocol) -> Bool {
        path.utf8.starts(with: "\(basePath)/".utf8)
    }

    /// Returns the response to a request.
    ///
    /// - Parameter user: The authenticated user; `nil` for none.
    public func respond(to http: HTTPRequest, user: String?, body: [UInt8]) -> Response {
        guard let user else { return ExpenseResult(401, error: "sign in with a name and a password").response }
        let request = ExpenseRequest(http, body: body)
        return state.withLock { state in
            let history = state.history
            return state.accounts[ByteKey(user), default: ExpenseAccount()].respond(to: request, history: history)
        }.response
    }
}

/// A record of the service.
public struct ExpenseRecord: Hashable, Sendable {
    /// A kind of record.
    public enum Kind: String, CaseIterable, Hashable, Sendable { case report, expense, chat, transfer }

    /// The identifier.
    public let key: String
    /// The kind.
    public let kind: Kind
    /// The report that contains it; `nil` for none.
    public let parent: String?
    /// The fields.
    var fields: JSONObject
    /// The number of the update that has changed it last.
    public internal(set) var update = 0
    /// The number of its changes.
    public internal(set) var revision = 1

    /// Creates a record.
    public init(key: String, kind: Kind, parent: String? = nil, fields: [(name: String, value: String)]) {
        self.key = key
        self.kind = kind
        self.parent = parent
        self.fields = JSONObject()
        for (name, value) in fields { self.fields[name] = .text(value) }
    }

    /// Returns the value of a field.
    public func text(_ name: String) -> String? { fields[name]?.text }

    var json: JSONValue {
        [
            "key": .text(key), "kind": .text(kind.rawValue), "parent": parent.map { .text($0) } ?? .null,
            "fields": .object(fields), "update": .integer(Int64(update)),
        ]
    }
}

/// The result of a request: a status and a JSON body.
struct ExpenseResult: Sendable {
    let status: Int
    let body: JSONValue
    var isReplayed = false
    /// The entity tag of the record that a write has changed: the number of its changes, and that of the update.
    var entityTag: String?

    init(_ status: Int, _ body: JSONValue) {
        self.status = status
        self.body = body
    }

    init(_ status: Int, error: String) { self.init(status, ["error": .text(error)]) }

    /// The rejection of a request whose operation id belongs to another one (RFC 9457).
    static var keyReused: ExpenseResult {
        ExpenseResult(
            422,
            ["type": "urn:slowlane:idempotency-key-reused", "error": "the operation id belongs to another request"])
    }

    /// A rejection with messages by field.
    static func rejection(_ errors: [(field: String, message: String)]) -> ExpenseResult {
        var object = JSONObject()
        for error in errors { object[error.field] = .text(error.message) }
        return ExpenseResult(422, ["errors": .object(object)])
    }

    var response: ExpenseService.Response {
        var head = HTTPResponse(status: .init(code: status))
        head.headerFields[ExpenseService.markerField] = "1"
        head.headerFields[.contentType] = "application/json"
        head.headerFields[.cacheControl] = "no-store"
        head.headerFields[.eTag] = entityTag
        if isReplayed { head.headerFields[ExpenseService.replayed] = "true" }
        if status == 401 { head.headerFields[.wwwAuthenticate] = "Basic realm=\"expense\"" }
        return ExpenseService.Response(head: head, body: body.json)
    }
}

/// A request with its decoded parts.
struct ExpenseRequest {
    let method: String
    /// The segments of the path after that of the service.
    let segments: [String]
    /// The parameter `since`; `nil` if it is missing or not a number.
    let since: Int?
    /// The parameter `title`, decoded; `nil` if it is missing.
    let title: String?
    /// The operation id without quotes; `nil` if it is missing or too long.
    let operation: String?
    let body: [UInt8]
    /// A digest of what the request asks for.
    let fingerprint: UInt64

    init(_ http: HTTPRequest, body: [UInt8]) {
        method = http.method.rawValue
        let path = http.path ?? ""
        let parts = path.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        segments = parts[0].split(separator: "/").dropFirst().map(String.init)
        let query = parts.count == 2 ? parts[1].split(separator: "&") : []
        since = query.first { $0.hasPrefix("since=") }.flatMap { Int($0.dropFirst("since=".count)) }
        title = query.first { $0.hasPrefix("title=") }.map {
            String(decoding: PercentEncoding.decode($0.utf8.dropFirst("title=".count)), as: UTF8.self)
        }
        let key = http.headerFields[ExpenseService.idempotencyKey].map { text in
            text.hasPrefix("\"") && text.hasSuffix("\"") && text.utf8.count >= 2
                ? String(text.dropFirst().dropLast()) : text
        }
        operation = key.flatMap { (1...ExpenseService.Limits.operationBytesMax).contains($0.utf8.count) ? $0 : nil }
        self.body = body
        // The meaning of a JSON body does not depend on spaces and the order of members.
        let content = JSONText.parse(body)?.json ?? String(decoding: body, as: UTF8.self)
        fingerprint = FNV1a.digest("\(method) \(path)\n\(content)".utf8)
    }
}
