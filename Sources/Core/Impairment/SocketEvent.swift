public import LinkModel
public import NIOCore

/// An event of one of the two sockets of a connection.
public enum SocketEvent: Sendable {
    /// The connection to the upstream is established.
    case connected
    /// Bytes were read from a socket.
    case bytes(ByteBuffer, from: Side)
    /// The peer at a socket has closed its sending side (FIN).
    case inputClosed(Side)
    /// A socket is gone: its peer reset it, it failed, or it could not be connected.
    case gone(Side)
    /// A socket has sent all bytes written before the last ``SocketAction/awaitDrain(_:)``.
    case drained(Side)

    /// Whether the server or its socket has caused the event: bytes, a FIN, a RST.
    public var isFromServer: Bool {
        switch self {
        case .bytes(_, from: .server), .inputClosed(.server), .gone(.server): true
        default: false
        }
    }
}
