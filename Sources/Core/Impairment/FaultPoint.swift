/// A point of an exchange at which a fault fires.
///
/// Each point is a byte of the connection: the fault fires when exactly the bytes before it have passed, whatever the
/// pieces in which the bytes arrive. The points are in the order in which an exchange reaches them. The raw values are
/// the names in scenario files.
public enum FaultPoint: String, Hashable, Sendable, CaseIterable, Comparable {
    /// The request has begun to enter the link; none of its bytes has entered.
    case queued
    /// Some bytes of the request have been written to the server, not all of them.
    ///
    /// By default: the head and half of a body of known length; the head and the first byte of a chunked body; half of
    /// the head of a request without a body.
    case partlySent = "partly-sent"
    /// The request except its last byte has been written to the server, so that the server cannot execute it. With a
    /// trickle or a reply, the whole request has, and no byte of its response has been read. A request whose
    /// response begins earlier does not reach this point.
    case received
    /// The whole response has been read from the server; none of its bytes has entered the link. Interim responses
    /// (1xx) have passed.
    case committed
    /// The head of the response has been written to the client, and none of its body.
    case answerStarted = "answer-started"
    /// Some bytes of the response's body have been written to the client, not all of them. By default: half of a body
    /// of known length, the first byte of any other body. A response without a body does not reach this point.
    case partlyAnswered = "partly-answered"
    /// The whole response has been written to the client.
    case answered

    /// The place of the point in the order.
    private var order: Int {
        switch self {
        case .queued: 0
        case .partlySent: 1
        case .received: 2
        case .committed: 3
        case .answerStarted: 4
        case .partlyAnswered: 5
        case .answered: 6
        }
    }

    public static func < (left: FaultPoint, right: FaultPoint) -> Bool { left.order < right.order }

    /// Whether the point is a byte of the request.
    var isInRequest: Bool { self <= .partlySent }

    /// Whether the fault must be known before the first byte of the request enters the link.
    var mustBeKnownBeforeRequest: Bool { self <= .partlySent }

    /// Whether the point is reached by a write to a socket.
    var isAtExit: Bool { self != .queued && self != .committed }
}
