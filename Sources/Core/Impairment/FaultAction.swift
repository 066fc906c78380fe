public import Determinism
public import Wire

/// The action of a fault.
public enum FaultAction: Hashable, Sendable {
    /// Abort the connection: a RST to both sockets, at the socket next to the point at once, at the other one over the
    /// link. Bytes beyond the point are discarded.
    ///
    /// On a stream of HTTP/2: RST_STREAM to both peers, with INTERNAL_ERROR to the client and CANCEL to the server.
    case reset
    /// Reset the stream of HTTP/2 with a code to both peers. On HTTP/1.1 as ``reset``.
    case resetStream(HTTP2ErrorCode)
    /// As ``reset`` on HTTP/1.1, also on HTTP/2.
    case resetConnection
    /// Close the connection: a FIN to both sockets, at the socket next to the point at once, at the other one over the
    /// link. Bytes beyond the point are discarded.
    case close
    /// Deliver nothing more in the direction of the message, and keep the connection open: to the server at the points
    /// `beforeRequest` and `midRequest`, to the client at the others. Bytes of that direction are read and discarded, and its
    /// FIN or RST is not delivered.
    case stall
    /// Deliver nothing in both directions for a time of at least 1 ns, and then continue. A request or response that is
    /// read meanwhile waits within the memory limits of the link.
    case delay(Nanoseconds)
    /// Deliver the rest of the message in the direction of the point with this number of bytes per second, at least 1:
    /// the request at the points `beforeRequest` and `midRequest`, the response at the others.
    case throttle(bytesPerSecond: Int64)
    /// Send a response to the client instead of the server's, which is discarded. At the point `beforeRequest` the server does
    /// not receive the request; at the point `midRequest` it receives all of it.
    case respond(FaultResponse)
    /// Only report the fault, for an observer that kills the client. The connection is held for the given time, at
    /// least 1 ns; if the client has closed its socket by then, the bytes that the client sent beyond the point are
    /// discarded. With a time greater than 0, the last byte of the response is held at the point `afterResponse`, because a
    /// client that has it may act on the response before it is killed.
    case report(hold: Nanoseconds = .zero)
    /// Send GOAWAY to a client of HTTP/2, and ignore its later streams. At the point `beforeRequest` the stream is one of
    /// those; at the others it is not.
    case goAway
    /// Send SETTINGS_MAX_CONCURRENT_STREAMS to a client of HTTP/2.
    case limitStreams(Int)
    /// Discard PING of a client of HTTP/2 from now on, so that they get no response.
    case ignorePings
    /// Send PING to a client of HTTP/2, now and after each later frame of the response, and count the acknowledgements.
    case ping
    /// Withhold WINDOW_UPDATE of HTTP/2 from the sender of the message from now on, so that its window does not open again:
    /// those of the stream, with `connection` also those of the connection.
    case blockWindow(connection: Bool)
    /// Deliver END_STREAM of a response of HTTP/2 without its trailers.
    case dropTrailers
    /// Deliver half of the header block at the point, and nothing more in that direction of the connection of HTTP/2.
    case truncateHeaders

    /// Whether the action is possible on HTTP/2 only.
    public var isForHTTP2: Bool {
        switch self {
        case .goAway, .limitStreams, .ignorePings, .ping, .blockWindow, .dropTrailers, .truncateHeaders: true
        default: false
        }
    }

    /// The greatest time of a delay: 365 days.
    public static let delayMax = Nanoseconds.seconds(365 * 86_400)
    /// The greatest number of streams of ``limitStreams(_:)``.
    public static let streamsMax = Int(HTTP2Frame.streamMax)

    /// Returns the reason why the action is not possible at a point; `nil` if it is possible.
    public func problem(at point: FaultPoint) -> String? {
        switch self {
        case .respond where point >= .afterResponseHead:
            "respond is not possible at \(point.rawValue): the client has received the head of the server's response"
        case .throttle where point == .afterResponse:
            "throttle is not possible at \(point.rawValue): no byte of the response is left"
        case .blockWindow where point == .afterResponse:
            "block-window is not possible at \(point.rawValue): no byte of the response is left"
        case .dropTrailers where point == .afterResponse:
            "drop-trailers is not possible at \(point.rawValue): the client has the trailers"
        case .truncateHeaders where point != .beforeRequest && point != .beforeResponse:
            "truncate-headers is possible at before-request and before-response only"
        default: nil
        }
    }

    /// The reason why the action's values are out of range; `nil` if they are in range.
    public var problem: String? {
        switch self {
        case .delay(let time):
            return (1...Self.delayMax.count).contains(time.count) ? nil : "delay must last 1 ns to 365 days"
        case .report(let time):
            return (0...Self.delayMax.count).contains(time.count) ? nil : "report must hold for 0 ns to 365 days"
        case .throttle(let rate):
            return rate >= 1 ? nil : "throttle needs a rate of at least 1 byte per second"
        case .respond(let reply): return reply.problem
        case .limitStreams(let count):
            return (0...Self.streamsMax).contains(count) ? nil : "limit-streams must be 0 to \(Self.streamsMax)"
        case .reset, .resetStream, .resetConnection, .close, .stall, .goAway, .ignorePings, .ping, .blockWindow,
            .dropTrailers, .truncateHeaders:
            return nil
        }
    }

    /// The points at which the action is possible.
    var points: [FaultPoint] { FaultPoint.allCases.filter { problem(at: $0) == nil } }

    /// Whether the fault fires before the last byte of the message: at `beforeRequestEnd`, so that the server cannot execute the
    /// request, and at `afterResponse`, so that a client that is killed cannot act on the response.
    func holdsLastByte(at point: FaultPoint) -> Bool {
        switch (point, self) {
        case (.beforeRequestEnd, .report(let time)), (.afterResponse, .report(let time)): time > .zero
        case (.beforeRequestEnd, .reset), (.beforeRequestEnd, .resetStream), (.beforeRequestEnd, .resetConnection),
            (.beforeRequestEnd, .close), (.beforeRequestEnd, .stall),
            (.beforeRequestEnd, .delay):
            true
        default: false
        }
    }

    /// Whether a response is discarded if the fault fires at the point `beforeResponse`.
    var discardsResponse: Bool {
        switch self {
        case .reset, .resetStream, .resetConnection, .close, .stall, .respond: true
        case .delay, .throttle, .report, .goAway, .limitStreams, .ignorePings, .ping, .blockWindow, .dropTrailers,
            .truncateHeaders:
            false
        }
    }
}
