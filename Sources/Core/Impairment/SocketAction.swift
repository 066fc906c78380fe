public import LinkModel
public import NIOCore

/// An instruction for one of the two sockets of a connection.
public enum SocketAction: Sendable {
    /// Write these bytes.
    case write(ByteBuffer, to: Side)
    /// Report ``SocketEvent/drained(_:)`` when all bytes written so far have been sent. No write follows before that
    /// event.
    case awaitDrain(Side)
    /// Close the sending side after all bytes written (FIN).
    case closeOutput(Side)
    /// Close both directions after all bytes written.
    case close(Side)
    /// Send all bytes written so far now, so that later writes do not share a packet with them.
    case flush(Side)
    /// Abort (RST); unsent bytes are dropped.
    case reset(Side)
    /// Abort (RST) when the peer has acknowledged all bytes written, or after a timeout.
    case resetAfterWrites(Side)
    /// The connection to the upstream is established for the client: both the modelled handshake and the connection of
    /// the socket are complete. Only after ``SharedLink/open(at:seed:isEstablished:openedAt:isMidStream:reportsEstablishment:looksUpName:)``
    /// with `reportsEstablishment`, and before the first byte for the client.
    case established
    /// Pause reading from this socket.
    case pauseReading(Side)
    /// Resume reading from this socket.
    case resumeReading(Side)
    /// The connection has ended; no action follows. A socket closes by itself when both of its directions have ended.
    case ended

    /// Whether a peer notices the action only when its socket is flushed, if at all.
    public var waitsForFlush: Bool {
        switch self {
        case .write, .pauseReading, .resumeReading: true
        case .awaitDrain, .closeOutput, .close, .flush, .reset, .resetAfterWrites, .established, .ended: false
        }
    }

    /// The socket that the action is for.
    var side: Side? {
        switch self {
        case .write(_, to: let side), .awaitDrain(let side), .closeOutput(let side), .close(let side),
            .flush(let side), .reset(let side), .resetAfterWrites(let side), .pauseReading(let side),
            .resumeReading(let side):
            side
        case .established: .client
        case .ended: nil
        }
    }
}
