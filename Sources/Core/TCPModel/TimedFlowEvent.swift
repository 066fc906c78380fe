public import Determinism
public import LinkModel

/// An event at one end of a connection.
public enum FlowEvent: Hashable, Sendable {
    /// The handshake is complete at this end.
    case established(Side)
    /// The next bytes of the stream have arrived in order.
    case delivered(bytes: Int, Direction)
    /// The sender's FIN has arrived after the last byte.
    case finished(Direction)
    /// The send buffer of this direction's sender, which was full, has space again.
    case writable(Direction)
    /// The sender's RST has arrived.
    case reset(Direction)
}

/// An event of a connection with its modelled time.
public struct TimedFlowEvent: Hashable, Sendable {
    /// The connection.
    public let flow: FlowID
    /// The event.
    public let event: FlowEvent
    /// The modelled time.
    public let time: Instant
}
