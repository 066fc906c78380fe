public import HTTPTypes
internal import NotesContract
internal import Synchronization
internal import Wire

extension NotesService {
    /// A response to one request.
    public struct Response: Sendable {
        /// Status and header fields.
        public var head: HTTPResponse
        /// The body.
        public var body: Body
        /// Whether the request was authenticated.
        public internal(set) var isAuthenticated = false
        /// The delivery, as set by a test hook.
        public var delivery = Delivery.immediate

        init(_ status: HTTPResponse.Status, _ body: Body = .text("")) {
            head = HTTPResponse(status: status)
            self.body = body
        }

        static func json(_ status: HTTPResponse.Status, _ body: String) -> Response { Response(status, .text(body)) }

        /// Returns a response with a JSON object that has one member, the message.
        static func error(_ status: HTTPResponse.Status, _ message: String, key: String = "error") -> Response {
            json(status, JSONText.object([(key, JSONText.string(message))]))
        }

        subscript(_ name: HTTPField.Name) -> String? {
            get { head.headerFields.value(of: name) }
            set { head.headerFields[name] = newValue }
        }
    }

    /// A response body.
    public enum Body: Sendable {
        /// A complete body; may be empty.
        case text(String)
        /// A long body, generated while it is sent.
        case pages(Pages)
        /// A body of bytes with a known length, read while it is sent.
        case bytes(Bytes)
        /// No body, in a response to HEAD: the length of the body of a GET, if known.
        case omitted(length: Int?)

        /// The complete text.
        public var text: String {
            get throws {
                switch self {
                case .text(let text): return text
                case .omitted: return ""
                case .pages(let pages):
                    var whole = ""
                    while let page = try pages.next() { whole += page }
                    return whole
                case .bytes(let bytes):
                    var whole: [UInt8] = []
                    while let part = try bytes.next() { whole += part }
                    return String(decoding: whole, as: UTF8.self)
                }
            }
        }
    }

    /// The parts of a body of bytes, each read when the previous one has been sent.
    public final class Bytes: Sendable {
        /// The length of all parts together.
        public let length: Int
        private let make: @Sendable () throws -> [UInt8]?

        init(length: Int, _ make: @escaping @Sendable () throws -> [UInt8]?) {
            self.length = length
            self.make = make
        }

        /// Returns the next part; `nil` at the end. Blocking; call off the event loop.
        public func next() throws -> [UInt8]? { try make() }
    }

    /// The delivery of a response.
    public enum Delivery: Sendable {
        case immediate
        /// The response is sent when the barrier is released.
        case held(ResponseBarrier)
        /// The connection is closed without a response.
        case dropped
    }

    /// The pages of a long body, each made when the previous one has been sent.
    public final class Pages: Sendable {
        private let make: @Sendable () throws -> String?

        init(_ make: @escaping @Sendable () throws -> String?) { self.make = make }

        /// Returns the next page; `nil` at the end. Blocking; call off the event loop.
        public func next() throws -> String? { try make() }

        /// Creates the pages of a list. Each row is read when its page is made; rows deleted since the start of the
        /// response are left out.
        ///
        /// - Parameters:
        ///   - first: The first page.
        ///   - rows: The rows after it.
        ///   - make: Returns the text of the next rows and their number, at least one.
        static func list(
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

        /// Returns the transformed pages between a head and a tail.
        func map(head: String, tail: String, _ transform: @escaping @Sendable (String) -> String) -> Pages {
            let state = Mutex((hasBegun: false, isDone: false))
            return Pages { [self] in
                try state.withLock { state -> String? in
                    if state.isDone { return nil }
                    let prefix = state.hasBegun ? "" : head
                    state.hasBegun = true
                    if let page = try next() { return prefix + transform(page) }
                    state.isDone = true
                    return prefix + tail
                }
            }
        }
    }

    /// The minimum number of bytes of a page; a page exceeds them by at most one note.
    static let pageBytes = 64 << 10
    /// The maximum number of rows of one query for a page.
    static let pageRowsMax = 1000
}

extension HTTPField.Name {
    static let marker = known(NotesHTTP.markerName)
    static let idempotencyKey = known(NotesHTTP.idempotencyKeyName)
    static let history = known(NotesHTTP.historyName)
    static let cursor = known(NotesHTTP.cursorName)
    static let retention = known(NotesHTTP.retentionName)
    static let link = known("Link")
    static let csrfToken = known("X-CSRFToken")
    static let acceptPatch = known("Accept-Patch")
    static let uploadOffset = known(AttachmentHTTP.uploadOffsetName)
    static let uploadComplete = known(AttachmentHTTP.uploadCompleteName)
    static let uploadLength = known(AttachmentHTTP.uploadLengthName)
    static let uploadLimit = known(AttachmentHTTP.uploadLimitName)
    static let reprDigest = known(AttachmentHTTP.digestName)
    /// The relation between the origins of page and server (W3C Fetch Metadata).
    static let secFetchSite = known("Sec-Fetch-Site")

    private static func known(_ name: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(name) else { preconditionFailure("'\(name)' is not a header field name") }
        return name
    }
}
