internal import DequeModule
internal import Determinism
internal import LinkModel
internal import NIOCore
internal import Wire

/// A stream of an HTTP/2 connection: the exchange of one request.
///
/// A reference to the state, which its tracker finds several times for each frame.
final class TrackedStream {
    /// One direction of a stream.
    struct Half {
        /// What happens to the frames that are read.
        var gate = Gate.open
        /// The rule whose fault has set the gate; `nil` for an injected fault.
        var gateRule: Int?
        /// The frames that wait at the entry.
        var held = Deque<StreamItem>()
        /// The bytes of the body that have been read, and those that have been passed on.
        var (bodyRead, bodyPassed) = (Int64(0), Int64(0))
        /// The length of the body, if the head gives it.
        var length: Int64?
        /// Whether END_STREAM or RST_STREAM has been read, and whether it has been passed on.
        var (hasEnded, endHasPassed) = (false, false)
        /// The first bytes of the body, if they are to be reported.
        var sample: [UInt8]?
        /// Whether a fault withholds WINDOW_UPDATE from the sender.
        var blocksWindow = false

        var isOpen: Bool { if case .open = gate { true } else { false } }
        var discards: Bool { if case .discard = gate { true } else { false } }
        var isUndecided: Bool { if case .undecided = gate { true } else { false } }
    }

    /// What happens to the frames of one direction of a stream.
    enum Gate {
        case open
        /// They are discarded, and their sender gets the credit for flow control.
        case discard
        /// They wait for the driver's decision on the faults of the request.
        case undecided
        /// They wait until a time.
        case hold(Instant)
        /// They pass slowly.
        case throttle(ExchangeTracker.Throttle)
    }

    /// The identifier that the client has chosen.
    let id: UInt32
    /// The identifier on the server's side; `nil` while no frame of the stream has been passed to the server.
    var serverID: UInt32?
    /// The exchange; `nil` if the request is not one, or if it follows a GOAWAY.
    let exchange: ExchangeID?
    /// The method; empty if there is no exchange.
    let method: String
    /// The head of the request, until ``ExchangeEvent/requested(_:_:body:subject:)`` has been reported.
    var head: HTTPRequestHead?
    /// The bytes of the head's fields.
    var headBytes = 0
    /// Whether the decision on the faults of the request does not wait for its body.
    var isDecidedAtHead = false
    /// The fault that has not fired.
    var fault: ExchangeFault?
    var up = Half()
    var down = Half()
    /// The status of the final response, once its head has been read.
    var status: Int?
    /// Whether ``ExchangeEvent/requested(_:_:body:subject:)`` has been reported.
    var isRequested = false
    /// Whether the end of the exchange has been recorded.
    var isOver = false
    /// Whether a fault has fired, so that late frames must find the state of the stream.
    var isTouched = false
    var isRetired = false
    /// Whether the stream is a tunnel: a CONNECT with a 2xx response, such as WebSocket (RFC 8441).
    var isTunnel = false
    /// Whether a fault has reset the stream for the client only, because the rest of the response is to be sampled.
    var awaitsResponse = false
    /// Whether a fault leaves out the trailers of the response.
    var dropsTrailers = false
    /// The number of PING that may still follow the frames of the response.
    var pingsLeft = 0
    /// The change of the client's window for the stream since its beginning.
    var windowChange: Int64 = 0
    /// The part of a response of a fault that waits for the client's windows.
    var reply: ArraySlice<UInt8>?

    init(id: UInt32, exchange: ExchangeID? = nil, method: String = "", head: HTTPRequestHead? = nil) {
        (self.id, self.exchange, self.method, self.head) = (id, exchange, method, head)
    }

    subscript(direction: Direction) -> Half {
        get { direction == .up ? up : down }
        _modify {
            switch direction {
            case .up: yield &up
            case .down: yield &down
            }
        }
    }

    /// Whether nothing of the stream waits in the tracker.
    var isIdle: Bool { up.held.isEmpty && down.held.isEmpty && reply == nil }
}

/// A frame of a stream, or a part of one.
enum StreamItem {
    /// The part of a header block in its exchange.
    enum Role { case head, interim, trailers }

    /// A part of a body; `original` is the frame that consists of nothing else. `credit` counts for flow control.
    case data(ByteBuffer, endsStream: Bool, credit: Int, original: HTTP2Frame?)
    case block(HTTP2Frame, [HTTP2Field], Role)
    case other(HTTP2Frame)

    var endsStream: Bool {
        switch self {
        case .data(_, let endsStream, _, _): endsStream
        case .block(let frame, _, _), .other(let frame): frame.endsStream
        }
    }

    /// The bytes that count for flow control.
    var credit: Int { if case .data(_, _, let credit, _) = self { credit } else { 0 } }

    /// The bytes that the frame takes in memory.
    var bytesHeld: Int {
        switch self {
        case .data(let content, _, _, _): content.readableBytes + HTTP2Frame.headerBytes
        // A short block may refer to long fields of a table.
        case .block(let frame, let fields, _): max(frame.bytes.readableBytes, fields.tableBytes)
        case .other(let frame): frame.bytes.readableBytes
        }
    }

    /// Returns the parts before and after a number of bytes of the body, and the bytes of padding, which neither has.
    func split(at count: Int) -> (first: StreamItem?, rest: StreamItem?, padding: Int) {
        guard case .data(let content, let endsStream, let credit, _) = self, count <= content.readableBytes else {
            return (nil, self, 0)
        }
        var rest = content
        let first = rest.readSlice(length: count) ?? ByteBuffer()
        let hasRest = rest.readableBytes > 0 || endsStream
        if !hasRest { return (self, nil, 0) }
        if count == 0 { return (nil, self, 0) }
        return (
            .data(first, endsStream: false, credit: count, original: nil),
            .data(rest, endsStream: endsStream, credit: rest.readableBytes, original: nil),
            credit - content.readableBytes
        )
    }
}
