/// Names an exchange of this engine's.
public struct SyncExchangeID: Hashable, Sendable, Comparable {
    /// Counted from 0.
    public let number: Int

    public static func < (left: SyncExchangeID, right: SyncExchangeID) -> Bool { left.number < right.number }
}

/// A request to send.
public struct SyncRequest: Hashable, Sendable {
    /// Names it in the answer.
    public let id: SyncExchangeID
    /// `GET`, `POST`, `PUT` or `DELETE`.
    public let method: String
    /// The path and query.
    public let target: String
    /// Headers beside what HTTP and authentication need.
    public let headers: [(name: String, value: String)]
    /// The body; empty for none.
    public let body: String

    public static func == (left: SyncRequest, right: SyncRequest) -> Bool {
        left.id == right.id && left.method == right.method && left.target == right.target && left.body == right.body
            && left.headers.map(\.name) == right.headers.map(\.name)
            && left.headers.map(\.value) == right.headers.map(\.value)
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

/// An answer that has come whole.
public struct SyncAnswer: Sendable {
    /// The status.
    public let status: Int
    /// The headers, names in any case.
    public let headers: [(name: String, value: String)]
    /// The body.
    public let body: [UInt8]

    /// Creates an answer.
    public init(status: Int, headers: [(name: String, value: String)], body: [UInt8]) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    func header(_ name: String) -> String? {
        let name = name.lowercased()
        return headers.first { $0.name.lowercased() == name }?.value
    }
}

/// Why there is no answer.
public enum SyncFailure: Hashable, Sendable {
    /// Not a byte of the request can have arrived.
    case notSent(String)
    /// It may have been carried out, or not.
    case unknown(String)
}
