public import HTTPTypes
internal import JSON
internal import NotesContract
internal import Synchronization

extension NotesService {
    /// An answer.
    public struct Response: Sendable {
        /// Status and headers.
        public var head: HTTPResponse
        /// The body.
        public var body: Body
        /// Whether the request was of a user who authenticated.
        public internal(set) var isAuthenticated = false
        /// What a lever does with it.
        public var delivery = Delivery.immediate

        init(_ status: HTTPResponse.Status, _ body: Body = .text("")) {
            head = HTTPResponse(status: status)
            self.body = body
        }

        /// JSON, which most answers are.
        static func json(_ status: HTTPResponse.Status, _ body: String) -> Response { Response(status, .text(body)) }

        /// A JSON object that says why not.
        static func error(_ status: HTTPResponse.Status, _ message: String, key: String = "error") -> Response {
            json(status, JSONText.object([(key, JSONText.string(message))]))
        }

        subscript(_ name: HTTPField.Name) -> String? {
            get { head.headerFields[name] }
            set { head.headerFields[name] = newValue }
        }
    }

    /// A body, whole or piece by piece.
    public enum Body: Sendable {
        /// Whole; empty for none.
        case text(String)
        /// Too long to have at once.
        case pages(Pages)
        /// None, for HEAD: only how long it would be, if that is known.
        case length(Int?)

        /// All of it.
        public var text: String {
            get throws {
                switch self {
                case .text(let text): return text
                case .length: return ""
                case .pages(let pages):
                    var whole = ""
                    while let page = try pages.next() { whole += page }
                    return whole
                }
            }
        }
    }

    /// When an answer goes out.
    public enum Delivery: Sendable {
        case immediate
        /// When the barrier is released.
        case held(ResponseBarrier)
        /// Never: the connection is closed instead.
        case never
    }

    /// A long body, made while it is sent.
    public final class Pages: Sendable {
        private let make: @Sendable () throws -> String?

        init(_ make: @escaping @Sendable () throws -> String?) { self.make = make }

        /// The next piece; `nil` at the end. Blocks while the database works.
        public func next() throws -> String? { try make() }

        /// A first page and the rows after it, each as it is when its turn comes, and once if it was there when the
        /// response began and has not been deleted since.
        ///
        /// - Parameter make: The text of as many of the next rows as make a page, and how many those were (at least one).
        static func of(
            first: String, rows: [Int64], tail: String,
            make: @escaping @Sendable (ArraySlice<Int64>) throws -> (text: String, used: Int)
        ) -> Pages {
            struct State {
                var first: String?
                var rest: ArraySlice<Int64>
                var isDone = false
            }
            let state = Mutex(State(first: first, rest: rows[...]))
            return Pages {
                try state.withLock { state -> String? in
                    if let first = state.first.take() { return first }
                    if state.isDone { return nil }
                    var text = ""
                    while !state.rest.isEmpty && text.utf8.count < pageBytes {
                        let page = try make(state.rest)
                        state.rest = state.rest.dropFirst(page.used)
                        text += page.text
                    }
                    if state.rest.isEmpty {
                        text += tail
                        state.isDone = true
                    }
                    return text
                }
            }
        }

        /// The same with each piece made into another.
        func map(head: String, tail: String, _ transform: @escaping @Sendable (String) -> String) -> Pages {
            let state = Mutex((hasBegun: false, isDone: false))
            return Pages { [self] in
                try state.withLock { state -> String? in
                    if state.isDone { return nil }
                    let begin = state.hasBegun ? "" : head
                    state.hasBegun = true
                    if let piece = try next() { return begin + transform(piece) }
                    state.isDone = true
                    return begin + tail
                }
            }
        }
    }

    /// A page is at least this long, and at most this and a note.
    static let pageBytes = 64 << 10
    /// Rows of a page that one query looks for.
    static let pageRowsMax = 1000
}

/// A request that is not done.
struct HTTPProblem: Error {
    let response: NotesService.Response

    init(_ response: NotesService.Response) { self.response = response }

    init(_ status: HTTPResponse.Status, _ message: String, key: String = "error") {
        response = .error(status, message, key: key)
    }

    /// Nothing there, or nothing of theirs.
    static var notFound: HTTPProblem { HTTPProblem(.notFound, "Not found", key: "detail") }

    /// What is wrong with each field.
    init(fields: [String: String]) {
        let members = fields.sorted { $0.key < $1.key }.map { ($0.key, JSONText.array([JSONText.string($0.value)])) }
        response = .json(.badRequest, JSONText.object(members))
    }
}

extension HTTPField.Name {
    static let marker = known(NotesHTTP.markerName)
    static let idempotencyKey = known(NotesHTTP.idempotencyKeyName)
    static let cursor = known(NotesHTTP.cursorName)
    static let retention = known(NotesHTTP.retentionName)
    static let link = known("Link")
    static let csrfToken = known("X-CSRFToken")
    /// Where a browser says that a request comes from (W3C Fetch Metadata).
    static let secFetchSite = known("Sec-Fetch-Site")

    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("not a header's name") }
        return name
    }
}
