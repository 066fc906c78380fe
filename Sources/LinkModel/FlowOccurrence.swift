/// What became true at an end of a connection.
public enum FlowEvent: Hashable, Sendable {
    /// The handshake is complete at this end.
    case established(Side)
    /// Bytes in order, next after those delivered before.
    case delivered(bytes: Int, Direction)
    /// The sender's FIN: no byte will follow.
    case finished(Direction)
    /// The kernel of the end that sends in this direction takes bytes again, after it had no room.
    case room(Direction)
    /// The sender's RST.
    case reset(Direction)
}

/// An event of a connection with the time it has in the model.
public struct FlowOccurrence: Hashable, Sendable {
    /// The connection.
    public let flow: FlowID
    /// What happened.
    public let event: FlowEvent
    /// When, in the model.
    public let time: Instant
}
