public import HTTPTypes
internal import Synchronization

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
    public enum BodyError: Error {
        /// The body exceeds its limit.
        case tooLarge
        /// The body arrived more slowly than ``Limits/bodyBytesPerSecondMin``.
        case tooSlow
        /// All bodies together exceed ``Limits/bodiesBytesMax``.
        case budgetExceeded
        /// The body is malformed, or the connection was closed before its end.
        case malformed(String)
    }

    /// One request and its response, as seen by the handler.
    public struct Exchange: Sendable {
        /// The declared length of the body: 0 without a body, `nil` with chunked transfer coding.
        public let declaredBodyBytes: Int?
        private let limits: Limits
        let connection: ConnectionHandle

        init(declaredBodyBytes: Int?, limits: Limits, connection: ConnectionHandle) {
            self.declaredBodyBytes = declaredBodyBytes
            self.limits = limits
            self.connection = connection
        }

        /// Returns the complete request body. A body can be read once.
        ///
        /// - Parameter bytesMax: A limit below ``Limits/bodyBytesMax``.
        public func readBody(bytesMax: Int? = nil) async throws(BodyError) -> [UInt8] {
            if declaredBodyBytes == 0 { return [] }
            let bytesMax = min(bytesMax ?? limits.bodyBytesMax, limits.bodyBytesMax)
            if let declaredBodyBytes, declaredBodyBytes > bytesMax { throw .tooLarge }
            return try await connection.readBody(bytesMax: bytesMax).get()
        }

        /// Marks the connection as authenticated; it then keeps its slot when unauthenticated connections fill the
        /// server.
        public func recordAuthentication() { connection.slot.isAuthenticated.store(true, ordering: .relaxed) }
    }
}
