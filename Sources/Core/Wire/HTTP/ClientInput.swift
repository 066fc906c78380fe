public import NIOCore

/// An input of a client's machine from its connections and its clock.
public enum ClientInput: Sendable {
    /// A connection is open.
    case connected(HTTPConnectionID)
    /// A connection could not be opened.
    case connectFailed(HTTPConnectionID, HTTPConnectError)
    /// Bytes have arrived on a connection.
    case received(ByteBuffer, HTTPConnectionID)
    /// The kernel has accepted bytes of a connection.
    case written(Int, HTTPConnectionID)
    /// A connection was closed by the peer or has failed.
    case closed(HTTPConnectionID, HTTPCloseReason)
    /// The deadline has passed.
    case deadline
}
