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
        public static let openBodyBytesMax = 8 << 10

        /// The defaults.
        public init() {}
    }

    let store: NotesStore
    let dialect: NotesDialect
    let limits: Limits
    /// Passwords by user.
    let users: [ByteKey: String]
    /// What tests move; `nil` is nothing.
    public let levers: Levers?
    let makeUUID: @Sendable () -> String
    private let clock: @Sendable () -> Int
    let monotonicNow: @Sendable () -> Int
    private let start: (time: ServedTime, monotonic: Int)
    let health = DatabaseHealth()
    private let rates: RateLimiter?
    private let housekeeping = Housekeeping()
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
        limits: Limits = Limits(), levers: Levers? = nil, now: (@Sendable () -> Int)? = nil,
        monotonicNow: (@Sendable () -> Int)? = nil, makeUUID: (@Sendable () -> String)? = nil,
        onExchange: (@Sendable (Exchange) -> Void)? = nil, onLog: (@Sendable (String) -> Void)? = nil
    ) {
        self.store = store
        var dialect = store.dialect
        if let unauthenticated { dialect.unauthenticated = .init(code: unauthenticated) }
        self.dialect = dialect
        self.users = Dictionary(uniqueKeysWithValues: users.map { (ByteKey($0.key), $0.value) })
        self.limits = limits
        self.levers = levers
        clock = now ?? { Int(Date().timeIntervalSince1970 * 1000) }
        let begin = ContinuousClock.now
        self.monotonicNow = monotonicNow ?? { Int((ContinuousClock.now - begin) / .milliseconds(1)) }
        // What cannot be read is as if there were none: things are kept longer.
        let saved = try? store.savedTime()
        start = (ServedTime(after: saved ?? nil, wall: clock()), self.monotonicNow())
        self.makeUUID = makeUUID ?? { UUID().uuidString.lowercased() }
        rates = limits.requestsPerSecond.map(RateLimiter.init)
        self.onExchange = onExchange
        self.onLog = onLog
    }

    /// Milliseconds since 1970, by the clock or as a lever says: for dates that people read.
    func now() -> Int { levers?.clock ?? clock() }

    /// The time for retention: the wall clock's jumps are not in it, those of the lever are.
    func served() -> Int { time().served + leverShift }

    /// The time for tokens.
    func tokenTime() -> Int { time().tokens + leverShift }

    private func time() -> ServedTime { start.time.later(by: monotonicNow() - start.monotonic, wall: clock()) }

    private var leverShift: Int { levers?.clock.map { $0 - clock() } ?? 0 }

    /// Answers a request. Blocks while the database works.
    public func respond(to request: HTTPRequest, body: [UInt8]) -> Answer {
        var call = Call(request, body: body)
        if let levers, call.resource == .lever { return finished(answer(lever: call, levers), call) }
        let pulled = levers?.pull(method: call.method.rawValue, path: call.path)
        var answer: Answer
        if case .answer(let forced)? = pulled {
            answer = finished(forced, call)
        } else {
            answer = finished(attempt { try decide(&call) }, call)
            if answer.head.status.code == 507 { health.recordRefusal(bytes: body.count) }
        }
        switch pulled {
        case .hold(let barrier)?: answer.delivery = .held(barrier)
        case .drop?: answer.delivery = .never
        case .answer?, nil: break
        }
        answer.isOfUser = call.user != nil
        onExchange?(
            Exchange(
                user: call.user, method: call.method.rawValue, path: call.path, status: answer.head.status.code,
                key: call.key, bodyDigest: FNV.digest(body), uuid: call.uuid?.lowercased() ?? call.bodyUUID))
        return answer
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
        let call = Call(request, body: [])
        if levers != nil && call.resource == .lever { return .admitted }
        switch try? caller(of: request) {
        case .user?, .browser?: return .admitted
        case .nobody?, .refused?, nil: break
        }
        return [.login, .refresh].contains(call.resource) ? .open : .refused
    }

    /// The answer to a request whose body could not be had: too large, too slow.
    public func refusal(_ status: HTTPResponse.Status, _ message: String, of request: HTTPRequest) -> Answer {
        var answer = Answer.error(status, message, key: "detail")
        if status == .serviceUnavailable { answer[.retryAfter] = "1" }
        return finished(answer, Call(request, body: []))
    }

    func attempt(_ body: () throws -> Answer) -> Answer {
        do { return try body() } catch let refusal as Refusal {
            return refusal.answer
        } catch {
            return record(error).answer
        }
    }

    /// Records what the database could not do, and has it logged.
    @discardableResult
    func record(_ error: any Error) -> DatabaseProblem {
        let problem =
            error as? DatabaseProblem
            ?? DatabaseProblem(error, systemError: store.systemError, path: store.name)
        if let line = health.recordProblem(problem, at: monotonicNow()) { onLog?(line) }
        return problem
    }

    /// Changes the database in one transaction.
    ///
    /// - Parameter bytes: How many it writes, if that is known.
    func change<Result>(bytes: Int = 0, _ body: (Database) throws -> Result) throws -> Result {
        let result = try store.queue.write { database in
            if store.hasMoved(database) { throw DatabaseProblem(moved: store.name) }
            return try body(database)
        }
        if let line = health.recordWrite(to: store.name, bytes: bytes) { onLog?(line) }
        return result
    }

    /// What every answer has.
    private func finished(_ answer: Answer, _ call: Call) -> Answer {
        var answer = answer
        for field in Self.everyAnswersFields { answer.head.headerFields[field.name] = field.value }
        answer[.xContentTypeOptions] = "nosniff"
        if answer[.vary] == nil {
            answer[.vary] = dialect.features.contains(.tokens) ? "Accept, Authorization, Cookie" : "Accept, Cookie"
        }
        if dialect.features.contains(.validators), answer[.cacheControl] == nil {
            answer[.cacheControl] = "private, no-cache"
        }
        if case .text("") = answer.body {
        } else if answer[.contentType] == nil {
            answer[.contentType] = "application/json"
        }
        if call.method == .head {
            switch answer.body {
            case .text(let text): answer.body = text.isEmpty ? .text("") : .length(text.utf8.count)
            case .pages: answer.body = .length(nil)
            case .length: break
            }
        }
        return answer
    }

    /// What every answer has, so that it is known to be this server's.
    public static let everyAnswersFields: HTTPFields = [.marker: NotesHTTP.markerValue]

    // MARK: Who and what

    private func decide(_ call: inout Call) throws -> Answer {
        guard call.resource != .unknown && call.resource != .lever && isThere(call.resource) else {
            throw Refusal.notFound
        }
        if !call.hasSlash, let answer = try answerWithoutSlash(call) { return answer }
        try refuseOtherOrigins(call)
        switch call.resource {
        case .document: return try answerDocument(call)
        case .health: return try answerHealth(call)
        case .login: return try answerLogin(call)
        case .page: try call.allow([.get, .head])
        case .refresh: return try answerRefresh(call)
        default: break
        }
        let caller = try caller(of: call.request)
        switch caller {
        case .browser(let user, _): call.user = user
        // Pages are for who has logged in.
        case _ where call.resource == .page: return toLogin(call)
        case .user(let user, _): call.user = user
        case .nobody, .refused: throw unauthenticated(caller)
        }
        guard let user = call.user else { throw Refusal.notFound }
        if let seconds = rates?.secondsToWait(user, at: monotonicNow()) {
            var answer = Answer.error(.tooManyRequests, "Too many requests; wait", key: "detail")
            answer[.retryAfter] = String(seconds)
            throw Refusal(answer)
        }
        if case .browser(_, let csrf) = caller, !call.isSafe, call.resource != .logout {
            // A cookie comes along whoever's page sends the request; this token does not.
            guard let given = call.request.headerFields[.csrfToken], Secrets.areSame(csrf, given) else {
                throw Refusal(.forbidden, "CSRF Failed: CSRF token missing or incorrect.", key: "detail")
            }
        }
        if call.resource == .page { return try answerPage(call, user) }
        if call.resource == .logout { return try answerLogout(call) }
        guard let media = call.media(dialect.reading.hasBrowsableHTML ? [.json, .html] : [.json]) else {
            throw Refusal(.notAcceptable, "Could not satisfy the request's Accept header", key: "detail")
        }
        let answer = attempt { try self.answer(call, user, hasPassword: caller.hasPassword) }
        return media == .html ? browsable(answer) : answer
    }

    private func answer(_ call: Call, _ user: String, hasPassword: Bool) throws -> Answer {
        let methods = methods(of: call.resource)
        if call.method == .options { return options(call, methods) }
        try call.allow(methods)
        switch call.resource {
        case .notes: return try answerNotes(call, user)
        case .index: return try answerIndex(call, user)
        case .note(let name): return try answerNote(call, user, dialect.naming == .uuid ? name.lowercased() : name)
        case .pin(let name): return try answerPin(call, user, name.lowercased())
        case .tokens: return try answerTokens(call, user, hasPassword: hasPassword)
        default: return answerRoot(call)
        }
    }

    private func isThere(_ resource: Call.Resource) -> Bool {
        switch resource {
        case .tokens, .refresh: dialect.features.contains(.tokens)
        case .pin: dialect.features.contains(.pins)
        default: true
        }
    }

    private func methods(of resource: Call.Resource) -> [HTTPRequest.Method] {
        switch resource {
        case .notes: [.get, .head, .post, .options]
        case .note: [.get, .head, .put, .patch, .delete, .options]
        case .pin: [.get, .head, .put, .delete, .options]
        case .tokens: [.post, .delete, .options]
        default: [.get, .head, .options]
        }
    }

    /// What a request gets whose path lacks its final slash; `nil` if it is served all the same.
    private func answerWithoutSlash(_ call: Call) throws -> Answer? {
        switch dialect.missingSlash {
        case .unknown: throw Refusal.notFound
        case .redirectedIfSafe where !call.isSafe: return nil
        case .redirected, .redirectedIfSafe:
            var answer = Answer(.movedPermanently)
            answer[.location] = url(call.path + "/" + (call.query.isEmpty ? "" : "?" + call.query), call)
            return answer
        }
    }

    /// A whole URL of a path, by the name under which the client called.
    func url(_ path: String, _ call: Call) -> String {
        guard let authority = call.request.authority, !authority.isEmpty else { return path }
        return "http://\(authority)\(path)"
    }

    // MARK: Writing

    /// Does a write and remembers it under its key in one transaction; what has been done before is answered as before.
    ///
    /// - Parameter fields: The fields of the body, where one has a meaning.
    func write(
        _ call: Call, _ user: String, _ fields: Result<NoteRequest, any Error>? = nil,
        _ body: (Database) throws -> Answer
    ) throws -> Answer {
        let key = dialect.features.contains(.operations) ? call.key : nil
        if let key, !(1...Limits.keyBytesMax).contains(key.utf8.count) {
            throw Refusal(.badRequest, "An Idempotency-Key has 1 to \(Limits.keyBytesMax) characters", key: "detail")
        }
        // By itself: a write that is refused undoes all it has done.
        if housekeeping.isDue(at: served()) { try change(tidy) }
        return try change(bytes: call.body.count) { database in
            guard let key else { return try body(database) }
            let digest = Int64(bitPattern: IdempotencyFingerprint.of(call, fields))
            let row = try Row.fetchOne(
                database.cachedStatement(sql: "SELECT * FROM operation WHERE owner = ? AND key = ?"),
                arguments: [user, key])
            if let row {
                guard [digest, Int64(bitPattern: call.digestOfBytes)].contains(row["digest"] as Int64) else {
                    throw Refusal(
                        .unprocessableContent, "This Idempotency-Key was used for another request", key: "detail")
                }
                var answer = Answer(.init(code: row["status"]), .text(row["body"]))
                answer[.eTag] = row["etag"]
                return answer
            }
            let answer = try body(database)
            // A creation that is asked for again is there already: 200.
            let status = answer.head.status == .created ? 200 : answer.head.status.code
            try database.cachedStatement(sql: "INSERT INTO operation VALUES (?, ?, ?, ?, ?, ?, ?)").execute(
                arguments: [user, key, digest, status, answer[.eTag], answer.body.text, served()])
            return answer
        }
    }

    /// Forgets what need not be kept any longer.
    private func tidy(_ database: Database) throws {
        let moment = served() - limits.retentionSeconds * 1000
        if dialect.tombstones != nil { try StoredNote.prune(database, before: moment) }
        try database.execute(sql: "DELETE FROM operation WHERE made < ?", arguments: [moment])
        try database.execute(sql: "DELETE FROM token WHERE expires < ?", arguments: [tokenTime()])
        try NotesStore.save(time(), database)
    }

    // MARK: Notes as they are shown

    /// A note as this dialect writes it.
    func json(of note: Note) -> String {
        guard dialect.reading.datesAreAsTyped else { return note.json }
        var shown = note
        shown.date = NoteDate.brief(note.date)
        return shown.json
    }

    /// The answer to a write that has been done.
    ///
    /// - Parameter typed: The date as the client wrote it, if it did.
    func written(_ status: HTTPResponse.Status, _ stored: StoredNote, typed: NoteDate.Typed?) -> Answer {
        var note = stored.note
        if dialect.reading.datesAreAsTyped, let typed { note.date = typed.echo }
        var answer = Answer.json(status, json(of: note))
        guard dialect.features.contains(.validators) else { return answer }
        answer[.eTag] = ETags.of(note.revision)
        if status == .created { answer[.location] = NotesHTTP.path(of: note.uuid) }
        return answer
    }

    /// When a note was last written, as HTTP says it; `nil` within the same second, which may see another write.
    func lastModified(_ note: StoredNote) -> String? {
        let seconds = note.modified / 1000
        guard dialect.features.contains(.validators), now() / 1000 > seconds else { return nil }
        return NoteDate.httpDate(secondsSince1970: seconds)
    }

    /// The moment of a date field, and how it was typed.
    func date(_ field: NoteRequest.Field, otherwise: String) throws -> (stored: String, typed: NoteDate.Typed?) {
        let isLoose = dialect.reading.datesAreAsTyped
        switch field {
        case .missing: return (otherwise, nil)
        case .text(let text):
            guard let typed = NoteDate.read(text), let stored = typed.stored(orInBerlin: isLoose) else {
                throw Refusal(fields: [
                    "date": isLoose
                        ? "Datetime has wrong format. Use YYYY-MM-DDThh:mm[:ss[.uuuuuu]][+HH:MM|-HH:MM|Z]."
                        : "Expected a date and time with an offset, as 2026-03-01T08:30:00Z."
                ])
            }
            return (stored, typed)
        case .null: throw Refusal(fields: ["date": "This field is required."])
        case .wrongType: throw Refusal(fields: ["date": "Expected a date and time."])
        }
    }
}

extension NoteRequest.Field {
    /// The text, or null; what is missing stays as it is.
    func value(_ name: String, otherwise: String?) throws -> String? {
        switch self {
        case .missing: otherwise
        case .null: nil
        case .text(let text): text
        case .wrongType: throw Refusal(fields: [name: "Expected a text or null."])
        }
    }
}
