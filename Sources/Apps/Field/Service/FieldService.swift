//  Field/Service: the server of the field app as one function from request to response.
//
//  Owns: questions and answers by submission period, issues with notes and photos, files, the payload, uploads that can be
//  resumed, the events of changes; the contract of docs/explanation/field.md.
//
//  Does not own: authentication, sockets, limits of connections (the server on which it is mounted), the client
//  (FieldEngine).

internal import Determinism
public import HTTPTypes
internal import NotesContract
internal import Synchronization
internal import Wire

/// The field service: a synchronous function from a request of a user, its body and the time to a response.
///
/// Its data are in memory and end with the process.
public final class FieldService: Sendable {
    /// A response to one request.
    public struct Response: Sendable {
        /// Status and header fields.
        public let head: HTTPResponse
        /// The body.
        public let body: [UInt8]
    }

    /// The limits of the service.
    public enum Limits {
        /// The maximum number of records per user.
        public static let recordsMax = 10_000
        /// The longest title in bytes.
        public static let titleBytesMax = 100
        /// The longest text in bytes.
        public static let textBytesMax = 1000
        /// The longest key in bytes.
        public static let keyBytesMax = 64
        /// The maximum number of records in a request.
        public static let batchMax = 500
        /// The maximum number of bytes of a photo.
        public static let photoBytesMax = 4 << 20
        /// The maximum number of bytes of all photos of a user.
        public static let photosBytesMax = 64 << 20
        /// The maximum number of bytes of a file.
        public static let fileBytesMax = 16 << 20
        /// The greatest length of a submission period and of its grace, in milliseconds: a year.
        public static let periodMillisecondsMax = 366 * 86_400_000
    }

    /// The path of the service, without a slash at its end.
    public static let basePath = FieldEngine.basePath
    /// The header field with the value `1` that each response has.
    public static let markerField = HTTPField.Name(FieldEngine.markerField)!
    /// The header field with the milliseconds since 1970 of the server's clock that each response has.
    public static let timeField = HTTPField.Name("Slowlane-Field-Time")!
    /// The delay before a client asks for events again, in milliseconds.
    public static let eventsRetryMilliseconds = 30_000

    private struct State: Sendable {
        var accounts: [ByteKey: FieldAccount] = [:]
        /// The number of restorations, which the entity tags of payloads have.
        var history = 0
    }

    private let state = Mutex(State())

    /// Creates a service without records.
    public init() {}

    /// Adds a record of a user. Returns whether it is valid: it has a new key, and its values are within the limits.
    @discardableResult
    public func seed(_ record: FieldSeed, owner: String) -> Bool {
        state.withLock { $0.accounts[ByteKey(owner), default: FieldAccount()].seed(record) }
    }

    /// The records of a user in the order in which they were created.
    public func records(of user: String) -> [FieldServerRecord] {
        state.withLock { $0.accounts[ByteKey(user)]?.shownRecords ?? [] }
    }

    /// Changes a section, a question, an issue or a file as its author would, or deletes it without a title and a text. The text of a
    /// file is its size in bytes. Returns whether there is such a record.
    public func change(_ key: String, title: String?, text: String?, owner: String) -> Bool {
        state.withLock { $0.accounts[ByteKey(owner)]?.change(key, title: title, text: text) ?? false }
    }

    /// Returns the restoration of everything that the service stores now.
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
    public static func serves(path: some StringProtocol) -> Bool { path.utf8.starts(with: "\(basePath)/".utf8) }

    /// Returns the response to a request.
    ///
    /// - Parameters:
    ///   - user: The authenticated user; `nil` for none.
    ///   - milliseconds: The milliseconds since 1970 of the server's clock.
    public func respond(to http: HTTPRequest, user: String?, body: [UInt8], milliseconds: Int) -> Response {
        guard let user else {
            return FieldResult(401, error: "sign in with a name and a password").response(milliseconds)
        }
        let request = FieldRequest(http, body: body, milliseconds: milliseconds)
        return state.withLock { state in
            let history = state.history
            return state.accounts[ByteKey(user), default: FieldAccount()].respond(to: request, history: history)
        }.response(milliseconds)
    }
}

/// A record that the service has at the start.
public enum FieldSeed: Hashable, Sendable {
    /// A project, an activity or a topic.
    case section(kind: FieldServerRecord.Kind, key: String, title: String)
    /// The record that contains an earlier one: a project has activities, an activity topics, a topic questions and issues;
    /// a file can be in each of them.
    case place(key: String, parent: String)
    /// The title of an earlier record in another language.
    case translation(key: String, language: String, title: String)
    /// A question.
    ///
    /// - choices: The possible answers; empty for any text.
    case question(key: String, title: String, choices: [String])
    /// An issue with a first note.
    case issue(key: String, title: String, text: String)
    /// A file whose bytes are generated from its title.
    case file(key: String, title: String, bytes: Int)
    /// The length of submission periods, and the time after the end of one in which its answers are accepted, in
    /// milliseconds; and the calendar of the place.
    case schedule(length: Int, grace: Int, calendar: FieldCalendar = .utc)
}

/// A record of the service as its user sees it.
public struct FieldServerRecord: Hashable, Sendable {
    /// A kind of record.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        case project, activity, topic, question, answer, issue, photo, file

        /// The kinds of sections, each in the one before it.
        public static let sections: [Kind] = [.project, .activity, .topic]

        /// The kinds of the records that can contain it.
        public var parents: [Kind] {
            switch self {
            case .activity: [.project]
            case .topic: [.activity]
            case .question, .issue: [.topic]
            case .file: Kind.sections + [.question, .issue]
            case .project, .answer, .photo: []
            }
        }

        /// The kinds of a payload's records in it, besides files.
        var children: [Kind] { [.activity, .topic, .question, .issue].filter { $0.parents.contains(self) } }

        /// The member of a payload's object with records of the kind.
        var member: String { self == .activity ? "activities" : "\(rawValue)s" }
    }

    /// The identifier.
    public let key: String
    /// The kind.
    public let kind: Kind
    /// The title; of an answer the date of the beginning of its period.
    public let title: String
    /// The text of an answer, the state of an issue (`open` or `resolved`), the size of a photo, `available` for a file;
    /// `nil` for a section and a question.
    public let text: String?
    /// The number of its changes.
    public let revision: Int
}

/// The result of a request.
struct FieldResult: Sendable {
    let status: Int
    var body: [UInt8] = []
    var type: String?
    var fields: [(name: String, value: String)] = []

    init(_ status: Int) { self.status = status }

    init(_ status: Int, _ body: JSONValue) {
        self.status = status
        self.body = Array(body.json.utf8)
        type = "application/json"
    }

    init(_ status: Int, error: String) { self.init(status, ["error": .text(error)]) }

    func with(_ name: String, _ value: String) -> FieldResult {
        var result = self
        result.fields.append((name, value))
        return result
    }

    func response(_ milliseconds: Int) -> FieldService.Response {
        var head = HTTPResponse(status: .init(code: status))
        head.headerFields[FieldService.markerField] = "1"
        head.headerFields[FieldService.timeField] = String(milliseconds)
        head.headerFields[.contentType] = type
        head.headerFields[.cacheControl] = "no-store"
        if status == 401 { head.headerFields[.wwwAuthenticate] = "Basic realm=\"field\"" }
        for field in fields {
            if let name = HTTPField.Name(field.name) { head.headerFields[name] = field.value }
        }
        return FieldService.Response(head: head, body: body)
    }
}
