/// A point of an exchange at which a fault fires.
///
/// Each point is a byte of the connection: the fault fires when exactly the bytes before it have passed, whatever the
/// pieces in which the bytes arrive. The points are in the order in which an exchange reaches them. The raw values are
/// the names in scenario files.
///
/// The cases describe HTTP/1.1. A stream of HTTP/2 has the same points, at its frames (`docs/reference/http2.md`).
public enum FaultPoint: String, Hashable, Sendable, CaseIterable, Comparable {
    /// The request has begun to enter the link; none of its bytes has entered.
    case beforeRequest = "before-request"
    /// Some bytes of the request have been written to the server, not all of them.
    ///
    /// By default: the head and half of a body of known length; the head and the first byte of a chunked body; half of
    /// the head of a request without a body.
    case midRequest = "mid-request"
    /// The request except its last byte has been written to the server, so that the server cannot execute it. With a
    /// throttle or a response of the rule, the whole request has, and no byte of its response has been read. A request whose
    /// response begins earlier does not reach this point.
    case beforeRequestEnd = "before-request-end"
    /// The whole response has been read from the server; none of its bytes has entered the link. Interim responses
    /// (1xx) have passed.
    case beforeResponse = "before-response"
    /// The head of the response has been written to the client, and none of its body.
    case afterResponseHead = "after-response-head"
    /// Some bytes of the response's body have been written to the client, not all of them. By default: half of a body
    /// of known length, the first byte of any other body. A response without a body does not reach this point.
    case midResponse = "mid-response"
    /// The whole response has been written to the client.
    case afterResponse = "after-response"

    /// The place of the point in the order.
    private var order: Int {
        switch self {
        case .beforeRequest: 0
        case .midRequest: 1
        case .beforeRequestEnd: 2
        case .beforeResponse: 3
        case .afterResponseHead: 4
        case .midResponse: 5
        case .afterResponse: 6
        }
    }

    public static func < (left: FaultPoint, right: FaultPoint) -> Bool { left.order < right.order }

    /// Whether the point is a byte of the request.
    var isInRequest: Bool { self <= .midRequest }

    /// Whether the fault must be known before the first byte of the request enters the link.
    var mustBeKnownBeforeRequest: Bool { self <= .midRequest }

    /// Whether the point is reached by a write to a socket.
    var isAtExit: Bool { self != .beforeRequest && self != .beforeResponse }
}
