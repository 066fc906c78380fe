public import Client
public import Wire

/// What a client does with its connections and its store, for observers such as tests: finer than ``SyncEvent``.
public enum SyncClientActivity: Sendable {
    /// The client has started to open a connection.
    case connectionAttempted(HTTPConnectionID)
    /// The connection is established from this port of the client.
    case connected(HTTPConnectionID, localPort: Int)
    /// The client has read bytes from the connection; the end of the stream counts as one.
    case read(HTTPConnectionID, bytes: Int)
    /// The attempt has failed, or the client's socket is closed, by the client or by its peer.
    case connectionEnded(HTTPConnectionID)
    /// The store has committed a change.
    case committed(StoreChange)
    /// Whether the client has nothing to send or fetch. Reported when it changes, and by
    /// ``SyncClient/reportActivity()``.
    case settled(Bool)
    /// Whether an exchange is in flight or a change waits for its commit. Reported when it changes.
    case busy(Bool)
}
