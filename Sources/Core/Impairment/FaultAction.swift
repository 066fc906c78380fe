public import Determinism

/// The action of a fault.
public enum FaultAction: Hashable, Sendable {
    /// Abort the connection: a RST to both sockets, at the socket next to the point at once, at the other one over the
    /// link. Bytes beyond the point are discarded.
    case abort
    /// Close the connection: a FIN to both sockets, at the socket next to the point at once, at the other one over the
    /// link. Bytes beyond the point are discarded.
    case close
    /// Deliver nothing more in the direction of the message, and keep the connection open: to the server at the points
    /// `queued` and `partlySent`, to the client at the others. Bytes of that direction are read and discarded, and its
    /// FIN or RST is not delivered.
    case mute
    /// Deliver nothing in both directions for a time of at least 1 ns, and then continue. A request or response that is
    /// read meanwhile waits within the memory limits of the link.
    case hold(Nanoseconds)
    /// Deliver the rest of the message in the direction of the point with this number of bytes per second, at least 1:
    /// the request at the points `queued` and `partlySent`, the response at the others.
    case trickle(bytesPerSecond: Int64)
    /// Send a response to the client instead of the server's, which is discarded. At the point `queued` the server does
    /// not receive the request; at the point `partlySent` it receives all of it.
    case reply(FaultReply)
    /// Only report the fault, for an observer that kills the client. The connection is held for the given time, at
    /// least 1 ns; if the client has closed its socket by then, the bytes that the client sent beyond the point are
    /// discarded. With a time greater than 0, the last byte of the response is held at the point `answered`, because a
    /// client that has it may act on the response before it is killed.
    case report(hold: Nanoseconds = .zero)

    /// The greatest time of a hold: 365 days.
    public static let holdMax = Nanoseconds.seconds(365 * 86_400)

    /// Returns the reason why the action is not possible at a point; `nil` if it is possible.
    public func problem(at point: FaultPoint) -> String? {
        switch self {
        case .reply where point >= .answerStarted:
            "reply is not possible at \(point.rawValue): the client has received the head of the server's response"
        case .trickle where point == .answered:
            "trickle is not possible at \(point.rawValue): no byte of the response is left"
        default: nil
        }
    }

    /// The reason why the action's values are out of range; `nil` if they are in range.
    public var problem: String? {
        switch self {
        case .hold(let time):
            return (1...Self.holdMax.count).contains(time.count) ? nil : "hold must last 1 ns to 365 days"
        case .report(let time):
            return (0...Self.holdMax.count).contains(time.count) ? nil : "report must hold for 0 ns to 365 days"
        case .trickle(let rate):
            return rate >= 1 ? nil : "trickle needs a rate of at least 1 byte per second"
        case .reply(let reply): return reply.problem
        case .abort, .close, .mute: return nil
        }
    }

    /// The points at which the action is possible.
    var points: [FaultPoint] { FaultPoint.allCases.filter { problem(at: $0) == nil } }

    /// Whether the fault fires before the last byte of the message: at `received`, so that the server cannot execute the
    /// request, and at `answered`, so that a client that is killed cannot act on the response.
    func holdsLastByte(at point: FaultPoint) -> Bool {
        switch (point, self) {
        case (.received, .report(let time)), (.answered, .report(let time)): time > .zero
        case (.received, .abort), (.received, .close), (.received, .mute), (.received, .hold): true
        default: false
        }
    }

    /// Whether a response is discarded if the fault fires at the point `committed`.
    var discardsResponse: Bool {
        switch self {
        case .abort, .close, .mute, .reply: true
        case .hold, .trickle, .report: false
        }
    }
}
