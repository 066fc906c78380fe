public import HTTPTypes
internal import Synchronization
public import Wire

extension HTTPServer {
    /// A response to one request.
    public struct Response: Sendable {
        /// Status and header fields.
        public var head: HTTPResponse
        /// The body.
        public var body: Body

        /// Creates a response.
        public init(_ head: HTTPResponse, _ body: Body) {
            self.head = head
            self.body = body
        }

        /// A response body; it is never sent in a response to HEAD.
        public enum Body: Sendable {
            /// A complete body; may be empty.
            case text(String)
            /// A body in parts, each produced when the previous one is written; `nil` ends it. An error aborts the
            /// connection.
            case stream(@Sendable () async throws -> String?)
            /// A body of a known length in parts, like ``stream(_:)``. The connection is aborted if the parts end before
            /// that length, or exceed it.
            case bytes(length: Int, @Sendable () async throws -> [UInt8]?)
            /// No body, in a response to HEAD: the length of the body of a GET, if known.
            case omitted(length: Int?)
            /// No response at all: the connection is closed.
            case closeConnection
        }
    }

    /// A request body that cannot be read.
    public typealias BodyError = HTTPServerBodyError

    /// One request and its response, as seen by the handler.
    public struct Exchange: Sendable {
        private let request: HTTPServerRequest
        private let limits: HTTPServerLimits
        let connection: ConnectionHandle

        init(request: HTTPServerRequest, limits: HTTPServerLimits, connection: ConnectionHandle) {
            self.request = request
            self.limits = limits
            self.connection = connection
        }

        /// The declared length of the body: 0 without a body, `nil` with chunked transfer coding.
        public var declaredBodyBytes: Int? { request.declaredBodyBytes }

        /// Returns the complete request body. A body can be read once.
        ///
        /// - Parameter bytesMax: A limit below ``Wire/HTTPServerLimits/bodyBytesMax``.
        public func readBody(bytesMax: Int? = nil) async throws(BodyError) -> [UInt8] {
            if let result = request.bodyKnownFromHead(bytesMax: bytesMax, limits) { return try result.get() }
            return try await connection.readBody(bytesMax: bytesMax).get()
        }

        /// Marks the connection as authenticated; it then keeps its slot when unauthenticated connections fill the
        /// server.
        public func recordAuthentication() { connection.slot.isAuthenticated.store(true, ordering: .relaxed) }
    }
}
