internal import Foundation
internal import GRDB
public import HTTPTypes
internal import JSON
internal import NotesContract

/// The notes server's brain: a request and its body in, an answer and its body out.
public final class NotesService: Sendable {
    /// What became of a request, for whoever watches.
    public struct Exchange: Sendable {
        /// Who asked, if they said so rightly.
        public let user: String?
        /// The method.
        public let method: String
        /// The path without query.
        public let path: String
        /// The status of the answer.
        public let status: Int
        /// The operation's name, if it has one.
        public let key: String?
        /// A digest of the body, to compare it with others.
        public let bodyDigest: UInt64
        /// The body's `uuid`, or the path's.
        public let uuid: String?
    }

    /// How much a client may ask for, and for how long things are kept.
    public struct Limits: Hashable, Sendable {
        /// Requests per second of one user, with a second's worth at once; `nil` is any number. Over it is 429.
        public var requestsPerSecond: Double?
        /// For how many seconds tombstones and the results of operations are kept.
        public var retentionSeconds = 30 * 86_400
        /// For how many seconds an access token is valid.
        public var accessSeconds = 3600
        /// For how many seconds a refresh token is valid, and a browser's session.
        public var refreshSeconds = 30 * 86_400
        /// The longest `Idempotency-Key`, in bytes.
        public static let keyBytesMax = 255
        /// The most entries on a page of the index.
        public static let pageEntriesMax = 1000
        /// A body is no longer than this; what carries the service sees to that.
        public static let bodyBytesMax = 1 << 20
        /// The body of a request of somebody who has not authenticated is no longer than this.
        public static let unauthenticatedBodyBytesMax = 8 << 10

        /// The defaults.
        public init() {}
    }

    let store: NotesStore
    let contract: APIContract
    let limits: Limits
    /// Passwords by user.
    let users: [ByteKey: String]
    /// What tests move; `nil` is nothing.
    public let testHooks: TestHooks?
    let makeUUID: @Sendable () -> String
    private let clock: @Sendable () -> Int
    let monotonicNow: @Sendable () -> Int
    private let start: (time: DatabaseUptime, monotonic: Int)
    let health = DatabaseHealth()
    private let rates: RateLimiter?
    private let cleanup = CleanupSchedule()
    private let onExchange: (@Sendable (Exchange) -> Void)?
    private let onLog: (@Sendable (String) -> Void)?

    /// A service over a store, in the store's dialect.
    ///
    /// - Parameters:
    ///   - users: Passwords by user.
    ///   - unauthenticated: The status for who is not known, if not the dialect's own.
    ///   - levers: What tests move; `nil` is nothing.
    ///   - now: Milliseconds since 1970; the clock's unless given.
    ///   - monotonicNow: Milliseconds of a clock that never jumps; the system's unless given.
    ///   - makeUUID: Where random names, revisions and tokens come from; by chance unless given.
    ///   - onExchange: Told of every request after it has been decided; must not block.
    ///   - onLog: Takes lines for the operator: what the database could not do and why; must not block.
    public init(
        store: NotesStore, users: [String: String], unauthenticated: Int? = nil,
        limits: Limits = Limits(), testHooks: TestHooks? = nil, now: (@Sendable () -> Int)? = nil,
        monotonicNow: (@Sendable () -> Int)? = nil, makeUUID: (@Sendable () -> String)? = nil,
        onExchange: (@Sendable (Exchange) -> Void)? = nil, onLog: (@Sendable (String) -> Void)? = nil
    ) {
        self.store = store
        var contract = store.contract
        if let unauthenticated { contract.unauthenticated = .init(code: unauthenticated) }
        self.contract = contract
        self.users = Dictionary(uniqueKeysWithValues: users.map { (ByteKey($0.key), $0.value) })
        self.limits = limits
        self.testHooks = testHooks
        clock = now ?? { Int(Date().timeIntervalSince1970 * 1000) }
        let begin = ContinuousClock.now
        self.monotonicNow = monotonicNow ?? { Int((ContinuousClock.now - begin) / .milliseconds(1)) }
        // What cannot be read is as if there were none: things are kept longer.
        let saved = try? store.savedTime()
        start = (DatabaseUptime(after: saved ?? nil, wall: clock()), self.monotonicNow())
        self.makeUUID = makeUUID ?? { UUID().uuidString.lowercased() }
        rates = limits.requestsPerSecond.map(RateLimiter.init)
        self.onExchange = onExchange
        self.onLog = onLog
    }

    /// Milliseconds since 1970, by the clock or as a lever says: for dates that people read.
    func now() -> Int { testHooks?.clock ?? clock() }

    /// The time for retention: the wall clock's jumps are not in it, those of the lever are.
    func served() -> Int { time().served + fixedTimeOffset }

    /// The time for tokens.
    func tokenTime() -> Int { time().tokens + fixedTimeOffset }

    private func time() -> DatabaseUptime { start.time.later(by: monotonicNow() - start.monotonic, wall: clock()) }

    private var fixedTimeOffset: Int { testHooks?.clock.map { $0 - clock() } ?? 0 }

    /// Answers a request. Blocks while the database works.
    public func respond(to request: HTTPRequest, body: [UInt8]) -> Response {
        var request = APIRequest(request, body: body)
        if let testHooks, request.resource == .testHooks { return withCommonFields(response(testHooks: request, testHooks), request) }
        let hookOutcome = testHooks?.outcome(method: request.method.rawValue, path: request.path)
        var response: Response
        if case .response(let forced)? = hookOutcome {
            response = withCommonFields(forced, request)
        } else {
            response = withCommonFields(mapErrors { try route(&request) }, request)
            if response.head.status.code == 507 { health.recordRefusal(bytes: body.count) }
        }
        switch hookOutcome {
        case .hold(let barrier)?: response.delivery = .held(barrier)
        case .drop?: response.delivery = .never
        case .response?, nil: break
        }
        response.isAuthenticated = request.user != nil
        onExchange?(
            Exchange(
                user: request.user, method: request.method.rawValue, path: request.path, status: response.head.status.code,
                key: request.key, bodyDigest: FNV1a.digest(body), uuid: request.uuid?.lowercased() ?? request.bodyUUID))
        return response
    }

    /// What is known of a request before its body is read.
    public enum Admission: Sendable {
        /// A user has authenticated, or it is a lever's.
        case admitted
        /// Its resource is for everybody: a login, or a refresh of a token.
        case open
        /// Nobody has authenticated; the answer says so whatever the body is.
        case refused
    }

    /// Returns whose request it is. Blocks while the database works.
    public func admission(of request: HTTPRequest) -> Admission {
        let request = APIRequest(request, body: [])
        if testHooks != nil && request.resource == .testHooks { return .admitted }
        switch try? caller(of: request) {
        case .user?, .browser?: return .admitted
        case .nobody?, .refused?, nil: break
        }
        return [.login, .refresh].contains(request.resource) ? .open : .refused
    }

    /// The answer to a request whose body could not be had: too large, too slow.
    public func problem(_ status: HTTPResponse.Status, _ message: String, of request: HTTPRequest) -> Response {
        var response = Response.error(status, message, key: "detail")
        if status == .serviceUnavailable { response[.retryAfter] = "1" }
        return withCommonFields(response, APIRequest(request, body: []))
    }

    func mapErrors(_ body: () throws -> Response) -> Response {
        do { return try body() } catch let problem as HTTPProblem {
            return problem.response
        } catch {
            return record(error).response
        }
    }

    /// Records what the database could not do, and has it logged.
    @discardableResult
    func record(_ error: any Error) -> NotesDatabaseError {
        let problem =
            error as? NotesDatabaseError
            ?? NotesDatabaseError(error, systemError: store.systemError, path: store.name)
        if let line = health.recordProblem(problem, at: monotonicNow()) { onLog?(line) }
        return problem
    }

    /// Changes the database in one transaction.
    ///
    /// - Parameter bytes: How many it writes, if that is known.
    func change<Result>(bytes: Int = 0, _ body: (Database) throws -> Result) throws -> Result {
        let result = try store.queue.write { database in
            if store.hasMoved(database) { throw NotesDatabaseError(moved: store.name) }
            return try body(database)
        }
        if let line = health.recordWrite(to: store.name, bytes: bytes) { onLog?(line) }
        return result
    }

    /// What every answer has.
    private func withCommonFields(_ response: Response, _ request: APIRequest) -> Response {
        var response = response
        for field in Self.commonHeaderFields { response.head.headerFields[field.name] = field.value }
        response[.xContentTypeOptions] = "nosniff"
        if response[.vary] == nil {
            response[.vary] = contract.features.contains(.tokens) ? "Accept, Authorization, Cookie" : "Accept, Cookie"
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
            case .text(let text): response.body = text.isEmpty ? .text("") : .length(text.utf8.count)
            case .pages: response.body = .length(nil)
            case .length: break
            }
        }
        return response
    }

    /// What every answer has, so that it is known to be this server's.
    public static let commonHeaderFields: HTTPFields = [.marker: NotesHTTP.markerValue]

    // MARK: Who and what

    private func route(_ request: inout APIRequest) throws -> Response {
        guard request.resource != .unknown && request.resource != .testHooks && isAvailable(request.resource) else {
            throw HTTPProblem.notFound
        }
        if !request.hasSlash, let response = try handleMissingSlash(request) { return response }
        try rejectForeignOrigins(request)
        switch request.resource {
        case .document: return try handleOpenAPI(request)
        case .health: return try handleHealth(request)
        case .login: return try handleLogin(request)
        case .page: try request.allow([.get, .head])
        case .refresh: return try handleRefresh(request)
        default: break
        }
        let caller = try caller(of: request.http)
        switch caller {
        case .browser(let user, _): request.user = user
        // Pages are for who has logged in.
        case _ where request.resource == .page: return redirectToLogin(request)
        case .user(let user, _): request.user = user
        case .nobody, .refused: throw unauthenticated(caller)
        }
        guard let user = request.user else { throw HTTPProblem.notFound }
        if let seconds = rates?.secondsToWait(user, at: monotonicNow()) {
            var response = Response.error(.tooManyRequests, "Too many requests; wait", key: "detail")
            response[.retryAfter] = String(seconds)
            throw HTTPProblem(response)
        }
        if case .browser(_, let csrf) = caller, !request.isSafe, request.resource != .logout {
            // A cookie comes along whoever's page sends the request; this token does not.
            guard let given = request.http.headerFields[.csrfToken], Secrets.areEqual(csrf, given) else {
                throw HTTPProblem(.forbidden, "CSRF Failed: CSRF token missing or incorrect.", key: "detail")
            }
        }
        if request.resource == .page { return try handleNotesPage(request, user) }
        if request.resource == .logout { return try handleLogout(request) }
        guard let media = request.media(contract.reading.servesHTML ? [.json, .html] : [.json]) else {
            throw HTTPProblem(.notAcceptable, "Could not satisfy the request's Accept header", key: "detail")
        }
        let response = mapErrors { try self.response(request, user, hasPassword: caller.hasPassword) }
        return media == .html ? browsable(response) : response
    }

    private func response(_ request: APIRequest, _ user: String, hasPassword: Bool) throws -> Response {
        let methods = methods(of: request.resource)
        if request.method == .options { return options(request, methods) }
        try request.allow(methods)
        switch request.resource {
        case .notes: return try handleNotes(request, user)
        case .index: return try handleIndex(request, user)
        case .note(let name): return try handleNote(request, user, contract.idFormat == .uuid ? name.lowercased() : name)
        case .pin(let name): return try handlePin(request, user, name.lowercased())
        case .tokens: return try handleTokens(request, user, hasPassword: hasPassword)
        default: return handleRoot(request)
        }
    }

    private func isAvailable(_ resource: APIRequest.Resource) -> Bool {
        switch resource {
        case .tokens, .refresh: contract.features.contains(.tokens)
        case .pin: contract.features.contains(.pins)
        default: true
        }
    }

    private func methods(of resource: APIRequest.Resource) -> [HTTPRequest.Method] {
        switch resource {
        case .notes: [.get, .head, .post, .options]
        case .note: [.get, .head, .put, .patch, .delete, .options]
        case .pin: [.get, .head, .put, .delete, .options]
        case .tokens: [.post, .delete, .options]
        default: [.get, .head, .options]
        }
    }

    /// What a request gets whose path lacks its final slash; `nil` if it is served all the same.
    private func handleMissingSlash(_ request: APIRequest) throws -> Response? {
        switch contract.missingSlash {
        case .unknown: throw HTTPProblem.notFound
        case .redirectedIfSafe where !request.isSafe: return nil
        case .redirected, .redirectedIfSafe:
            var response = Response(.movedPermanently)
            response[.location] = url(request.path + "/" + (request.query.isEmpty ? "" : "?" + request.query), request)
            return response
        }
    }

    /// A whole URL of a path, by the name under which the client called.
    func url(_ path: String, _ request: APIRequest) -> String {
        guard let authority = request.http.authority, !authority.isEmpty else { return path }
        return "http://\(authority)\(path)"
    }

    // MARK: Writing

    /// Does a write and remembers it under its key in one transaction; what has been done before is answered as before.
    ///
    /// - Parameter fields: The fields of the body, where one has a meaning.
    func write(
        _ request: APIRequest, _ user: String, _ fields: Result<NoteFields, any Error>? = nil,
        _ body: (Database) throws -> Response
    ) throws -> Response {
        let key = contract.features.contains(.idempotencyKeys) ? request.key : nil
        if let key, !(1...Limits.keyBytesMax).contains(key.utf8.count) {
            throw HTTPProblem(.badRequest, "An Idempotency-Key has 1 to \(Limits.keyBytesMax) characters", key: "detail")
        }
        // By itself: a write that is refused undoes all it has done.
        if cleanup.isDue(at: served()) { try change(removeExpired) }
        return try change(bytes: request.body.count) { database in
            guard let key else { return try body(database) }
            let digest = Int64(bitPattern: IdempotencyFingerprint.of(request, fields))
            let row = try Row.fetchOne(
                database.cachedStatement(sql: "SELECT * FROM operation WHERE owner = ? AND key = ?"),
                arguments: [user, key])
            if let row {
                guard [digest, Int64(bitPattern: request.digestOfBytes)].contains(row["digest"] as Int64) else {
                    throw HTTPProblem(
                        .unprocessableContent, "This Idempotency-Key was used for another request", key: "detail")
                }
                var response = Response(.init(code: row["status"]), .text(row["body"]))
                response[.eTag] = row["etag"]
                return response
            }
            let response = try body(database)
            // A creation that is asked for again is there already: 200.
            let status = response.head.status == .created ? 200 : response.head.status.code
            try database.cachedStatement(sql: "INSERT INTO operation VALUES (?, ?, ?, ?, ?, ?, ?)").execute(
                arguments: [user, key, digest, status, response[.eTag], response.body.text, served()])
            return response
        }
    }

    /// Forgets what need not be kept any longer.
    private func removeExpired(_ database: Database) throws {
        let moment = served() - limits.retentionSeconds * 1000
        if contract.tombstones != nil { try StoredNote.prune(database, before: moment) }
        try database.execute(sql: "DELETE FROM operation WHERE made < ?", arguments: [moment])
        try database.execute(sql: "DELETE FROM token WHERE expires < ?", arguments: [tokenTime()])
        try NotesStore.save(time(), database)
    }

    // MARK: Notes as they are shown

    /// A note as this dialect writes it.
    func json(of note: Note) -> String {
        guard contract.reading.echoesDates else { return note.json }
        var shown = note
        shown.date = NoteDate.brief(note.date)
        return shown.json
    }

    /// The answer to a write that has been done.
    ///
    /// - Parameter typed: The date as the client wrote it, if it did.
    func written(_ status: HTTPResponse.Status, _ stored: StoredNote, typed: NoteDate.Typed?) -> Response {
        var note = stored.note
        if contract.reading.echoesDates, let typed { note.date = typed.echo }
        var response = Response.json(status, json(of: note))
        guard contract.features.contains(.validators) else { return response }
        response[.eTag] = EntityTags.of(note.revision)
        if status == .created { response[.location] = NotesHTTP.path(of: note.uuid) }
        return response
    }

    /// When a note was last written, as HTTP says it; `nil` within the same second, which may see another write.
    func lastModified(_ note: StoredNote) -> String? {
        let seconds = note.modified / 1000
        guard contract.features.contains(.validators), now() / 1000 > seconds else { return nil }
        return NoteDate.httpDate(secondsSince1970: seconds)
    }

    /// The moment of a date field, and how it was typed.
    func date(_ field: NoteFields.Field, otherwise: String) throws -> (stored: String, typed: NoteDate.Typed?) {
        let isLoose = contract.reading.echoesDates
        switch field {
        case .missing: return (otherwise, nil)
        case .text(let text):
            guard let typed = NoteDate.read(text), let stored = typed.stored(orInBerlin: isLoose) else {
                throw HTTPProblem(fields: [
                    "date": isLoose
                        ? "Datetime has wrong format. Use YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]."
                        : "Expected a date and time with an offset, as 2026-03-01T08:30:00Z."
                ])
            }
            return (stored, typed)
        case .null: throw HTTPProblem(fields: ["date": "This field is required."])
        case .wrongType: throw HTTPProblem(fields: ["date": "Expected a date and time."])
        }
    }
}

extension NoteFields.Field {
    /// The text, or null; what is missing stays as it is.
    func value(_ name: String, otherwise: String?) throws -> String? {
        switch self {
        case .missing: otherwise
        case .null: nil
        case .text(let text): text
        case .wrongType: throw HTTPProblem(fields: [name: "Expected a text or null."])
        }
    }
}
