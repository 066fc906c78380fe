public import HTTPSockets

/// What a client does with its connections and its store, for observers such as tests.
public enum ClientActivity<Change: Sendable>: Sendable {
    /// The state of a connection has changed.
    case connection(ClientChannels.Activity)
    /// The store has committed a change.
    case committed(Change)
    /// Whether the client has nothing to send or fetch. Reported when it changes, and on request.
    case settled(Bool)
    /// Whether an exchange is in flight or a change waits for its commit. Reported when it changes.
    case busy(Bool)
}
