/// Identifier of an exchange of one engine.
public struct SyncExchangeID: Hashable, Sendable, Comparable {
    /// The exchange's number, from 0.
    public let number: Int

    public static func < (left: SyncExchangeID, right: SyncExchangeID) -> Bool { left.number < right.number }
}

/// The parts of a request that its ``SyncResource`` decides.
public struct SyncRequestContent: Sendable {
    /// The method.
    public var method: String
    /// The path and query.
    public var target: String
    /// Headers in addition to those of HTTP framing and authentication.
    public var headers: [(name: String, value: String)]
    /// The body; empty for none.
    public var body: [UInt8]

    /// Creates a request.
    public init(method: String, target: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }
}

/// A request to send.
public struct SyncRequest: Sendable {
    /// A sequence of exchanges, each with its own connection.
    public enum Lane: Int, Hashable, Sendable, CaseIterable {
        /// Reads and small changes.
        case small
        /// Large changes.
        case large
        /// Attachments; the engine starts none of them.
        case attachments
        /// Small changes while a read is in flight on ``small``, so that no change waits for a slow response.
        case bypass
        /// Reads beside one on ``small``, if many records are to be read.
        case read2, read3, read4, read5, read6

        /// The lanes of reads beside the first one.
        static let furtherReads: [Lane] = [.read2, .read3, .read4, .read5, .read6]

        /// The pool of connections. A change beside a read takes a second connection of the same pool, and each further
        /// read one more.
        public var pool: Int {
            switch self {
            case .large, .attachments: rawValue
            case .small, .bypass, .read2, .read3, .read4, .read5, .read6: Lane.small.rawValue
            }
        }
    }

    /// The exchange that the response or failure refers to.
    public let id: SyncExchangeID
    /// The lane.
    public let lane: Lane
    /// The operation.
    public let operation: SyncOperation
    /// The request.
    public let content: SyncRequestContent
}
