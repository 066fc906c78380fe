//  NotesService: the notes server as a function from request to response.
//
//  Owns: the store; the API contracts (APIContract.swift); one file per resource (Resources); test hooks; the OpenAPI
//  document.
//
//  Does not own: sockets, connection limits, timeouts (HTTPSockets/Server, NotesServer).

internal import Foundation
public import HTTPTypes
internal import NotesContract
internal import Synchronization
internal import Wire

/// The notes server's logic: a synchronous function from a request and its body to a response.
public final class NotesService: Sendable {
    /// The limits of the service.
    public struct Limits: Hashable, Sendable {
        /// The maximum number of requests per second of one user, with bursts of one second's worth; `nil` is
        /// unlimited.
        public var requestsPerSecond: Double?
        /// The seconds for which tombstones and the results of operations are kept.
        public var retentionSeconds = 30 * 86_400
        /// The lifetime of an access token in seconds.
        public var accessSeconds = 3600
        /// The lifetime of a refresh token or a browser session in seconds.
        public var refreshSeconds = 30 * 86_400
        /// The longest `Idempotency-Key` in bytes.
        public static let keyBytesMax = 255
        /// The maximum number of entries on a page of the index.
        public static let pageEntriesMax = 1000
        /// The number of bytes after which a page of the index or of the list ends. On a 3G link it takes some 3 s.
        public static let pageBytesMax = 256 << 10
        /// The longest request body in bytes. The server in front of the service enforces it.
        public static let bodyBytesMax = 1 << 20
        /// The longest body of an unauthenticated request in bytes. The server in front of the service enforces it.
        public static let unauthenticatedBodyBytesMax = 8 << 10
        /// The largest attachment in bytes.
        public static let attachmentBytesMax = AttachmentHTTP.bytesMax
        /// The maximum number of attachments of a note.
        public static let attachmentsPerNoteMax = 100
        /// The most bytes of all attachments of a user.
        public static let attachmentBytesPerUserMax = 1 << 30

        /// Creates the default limits.
        public init() {}
    }

    let store: NotesStore
    let contract: APIContract
    let limits: Limits
    /// Passwords by user.
    let users: [ByteKey: String]
    /// The test hooks; `nil` disables them.
    public let testHooks: TestHooks?
    let behavior: Behavior
    let makeUUID: @Sendable () -> String
    private let clock: @Sendable () -> Int
    let monotonicNow: @Sendable () -> Int
    private let start: (uptime: DatabaseUptime, monotonic: Int)
    let health = DatabaseHealth()
    /// The identifiers of the histories of users in the current epoch.
    private let histories = Mutex<(epoch: String, values: [ByteKey: String])>(("", [:]))
    let rateLimiter: RateLimiter?
    let cleanup = CleanupSchedule()
    private let onLog: (@Sendable (String) -> Void)?
    let mounted: MountedService?

    /// Creates a service over a store, with the store's contract.
    ///
    /// - Parameters:
    ///   - users: Passwords by user.
    ///   - unauthenticatedStatus: The status of unauthenticated requests, if it differs from the contract's.
    ///   - testHooks: The test hooks; `nil` disables them.
    ///   - now: Returns milliseconds since 1970; the system's clock by default.
    ///   - monotonicNow: Returns milliseconds of a monotonic clock; the system's by default.
    ///   - makeUUID: Returns UUIDs for notes, revisions and tokens; random by default.
    ///   - behavior: The guarantees for writes.
    ///   - mounted: Another service of the same server.
    ///   - onLog: Receives log lines about database errors; must not block.
    public init(
        store: NotesStore, users: [String: String], unauthenticatedStatus: Int? = nil,
        limits: Limits = Limits(), testHooks: TestHooks? = nil, now: (@Sendable () -> Int)? = nil,
        monotonicNow: (@Sendable () -> Int)? = nil, makeUUID: (@Sendable () -> String)? = nil,
        behavior: Behavior = Behavior(), mounted: MountedService? = nil, onLog: (@Sendable (String) -> Void)? = nil
    ) {
        self.store = store
        var contract = store.contract
        if let unauthenticatedStatus { contract.unauthenticatedStatus = .init(code: unauthenticatedStatus) }
        self.contract = contract
        self.users = Dictionary(uniqueKeysWithValues: users.map { (ByteKey($0.key), $0.value) })
        self.limits = limits
        self.behavior = behavior
        self.testHooks = testHooks
        clock = now ?? { Int(Date().timeIntervalSince1970 * 1000) }
        let begin = ContinuousClock.now
        self.monotonicNow = monotonicNow ?? { Int((ContinuousClock.now - begin) / .milliseconds(1)) }
        // An unreadable time counts as none: tombstones are then kept longer.
        let saved = try? store.savedTime()
        start = (DatabaseUptime(after: saved ?? nil, wallTime: clock()), self.monotonicNow())
        self.makeUUID = makeUUID ?? { UUID().uuidString.lowercased() }
        rateLimiter = limits.requestsPerSecond.map(RateLimiter.init)
        self.mounted = mounted
        self.onLog = onLog
    }

    // MARK: Time

    /// Returns milliseconds since 1970 for dates in responses, by the clock or the test hooks.
    func now() -> Int { testHooks?.fixedTime ?? clock() }

    /// Returns the time for retention. Jumps of the wall clock do not change it; the test hooks do.
    func uptimeNow() -> Int { databaseTime().uptime + fixedTimeOffset }

    /// Returns the time for token lifetimes.
    func tokenTime() -> Int { databaseTime().tokenTime + fixedTimeOffset }

    func databaseTime() -> DatabaseUptime {
        start.uptime.advanced(by: monotonicNow() - start.monotonic, wallTime: clock())
    }

    private var fixedTimeOffset: Int { testHooks?.fixedTime.map { $0 - clock() } ?? 0 }

    // MARK: Requests

    /// Returns the response to a request. Blocking; call off the event loop.
    public func respond(to http: HTTPRequest, body: [UInt8]) -> Response {
        if let response = mountedResponse(to: http, body: body) { return response }
        var request = APIRequest(http, body: body)
        if let testHooks, request.resource == .testHooks {
            return withCommonFields(handleTestHooks(request, testHooks), request)
        }
        let effect = testHooks?.recordRequest(method: request.method.rawValue, path: request.path)
        var response: Response
        if case .respond(let forced)? = effect {
            response = withCommonFields(forced, request)
        } else {
            response = withCommonFields(mapErrors { try route(&request) }, request)
            // Read after the notes: while a snapshot is restored, the response may have the new history with the old
            // notes, but not the reverse.
            if let user = request.user { response[.history] = history(of: user, request.resource) }
            if response.head.status.code == 507 { health.recordRejectedWrite(bytes: body.count) }
        }
        switch effect {
        case .hold(let barrier)?: response.delivery = .held(barrier)
        case .drop?: response.delivery = .dropped
        case .respond?, nil: break
        }
        response.isAuthenticated = request.user != nil
        return response
    }

    /// The admission of a request before its body is read.
    public enum Admission: Sendable {
        /// The request is authenticated, or goes to the test hooks.
        case authenticated
        /// The resource needs no authentication: a login, or the refresh of a token.
        case publicResource
        /// The request is not authenticated; its response does not depend on the body.
        case unauthenticated
    }

    /// Returns the admission of a request. Blocking; call off the event loop.
    public func admission(of http: HTTPRequest) -> Admission {
        let request = APIRequest(http, body: [])
        if testHooks != nil && request.resource == .testHooks { return .authenticated }
        switch try? authentication(of: http) {
        case .user?, .session?: return .authenticated
        case .anonymous?, .rejected?, nil: break
        }
        return [.login, .refresh].contains(request.resource) ? .publicResource : .unauthenticated
    }

    /// Returns an error response to a request whose body could not be read.
    public func errorResponse(_ status: HTTPResponse.Status, _ message: String, to http: HTTPRequest) -> Response {
        var response = Response.error(status, message, key: "detail")
        if status == .serviceUnavailable { response[.retryAfter] = "1" }
        return withCommonFields(response, APIRequest(http, body: []))
    }

    /// Returns the response that `body` returns, or the error response for the error that it throws.
    func mapErrors(_ body: () throws -> Response) -> Response {
        do { return try body() } catch let problem as HTTPProblem {
            return problem.response
        } catch {
            return recordDatabaseError(error).response
        }
    }

    /// Header fields of every response, by which clients recognise a notes server.
    public static let commonHeaderFields: HTTPFields = [.marker: NotesHTTP.markerValue]

    /// Returns the identifier of the history of a user's notes in this database; `nil` if the contract has none, or if
    /// the resource is not part of the API.
    private func history(of user: String, _ resource: APIRequest.Resource) -> String? {
        guard contract.features.contains(.cursors), ![.page, .logout].contains(resource) else { return nil }
        let epoch = store.epoch
        return histories.withLock { known in
            if !known.epoch.hasSameBytes(as: epoch) { known = (epoch, [:]) }
            if let history = known.values[ByteKey(user)] { return history }
            let history = String(SHA256.hexadecimal(Array("slowlane history\n\(epoch)\n\(user)".utf8)).prefix(16))
            known.values[ByteKey(user)] = history
            return history
        }
    }

    private func withCommonFields(_ response: Response, _ request: APIRequest) -> Response {
        var response = response
        for field in Self.commonHeaderFields { response.head.headerFields[field.name] = field.value }
        response[.xContentTypeOptions] = "nosniff"
        if response[.vary] == nil {
            response[.vary] =
                contract.features.contains(.tokens) ? "Accept, Authorization, Cookie" : "Accept, Cookie"
        }
        if contract.features.contains(.validators), response[.cacheControl] == nil {
            response[.cacheControl] = "private, no-cache"
        }
        if case .text("") = response.body {
        } else if response[.contentType] == nil {
            response[.contentType] = "application/json"
        }
        if request.method == .head {
            switch response.body {
            case .text(let text): response.body = text.isEmpty ? .text("") : .omitted(length: text.utf8.count)
            case .pages: response.body = .omitted(length: nil)
            case .bytes(let bytes): response.body = .omitted(length: bytes.length)
            case .omitted: break
            }
        }
        return response
    }

    // MARK: The database

    /// Records and logs a database error.
    @discardableResult
    func recordDatabaseError(_ error: any Error) -> NotesDatabaseError {
        let error =
            error as? NotesDatabaseError
            ?? NotesDatabaseError(error, systemError: store.systemError, path: store.name)
        if let line = health.recordError(error, at: monotonicNow()) { onLog?(line) }
        return error
    }

    /// Runs a write in one transaction.
    ///
    /// - Parameter bytes: The size of the write, if known.
    func change<Result>(bytes: Int = 0, _ body: (StoreTransaction) throws -> Result) throws -> Result {
        let result = try store.write { transaction in
            if store.hasMoved(transaction) { throw NotesDatabaseError(moved: store.name) }
            return try body(transaction)
        }
        if let line = health.recordWrite(to: store.name, bytes: bytes) { onLog?(line) }
        return result
    }
}
