/// Identifier of an exchange of one engine.
public struct SyncExchangeID: Hashable, Sendable, Comparable {
    /// The exchange's number, from 0.
    public let number: Int

    public static func < (left: SyncExchangeID, right: SyncExchangeID) -> Bool { left.number < right.number }
}

/// A request to send.
public struct SyncRequest: Hashable, Sendable {
    /// The exchange that the response or failure refers to.
    public let id: SyncExchangeID
    /// `GET`, `POST`, `PUT` or `DELETE`.
    public let method: String
    /// The path and query.
    public let target: String
    /// Headers in addition to those of HTTP framing and authentication.
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
