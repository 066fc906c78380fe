/// What the peers of a connection receive when a fault fires: every action at every point, for one exchange with a
/// request and a response that have bodies.
///
/// The tests of the link and of the proxy compare each row with the bytes and the ends at both peers.
public struct FaultTable {
    /// The part of a message that reaches its receiver.
    public enum Part: String, Sendable {
        case none, head, half, all
        /// Everything except the last byte.
        case most
        /// The fault's own response.
        case reply
    }

    /// What becomes of a peer's connection.
    public enum End: String, Sendable {
        case open, closed, reset
        /// Closed or reset.
        case ended
        /// The peer itself has been killed.
        case killed
    }

    /// A row.
    public struct Row: Sendable, CustomStringConvertible {
        public let point: String
        public let action: String
        public let request: Part
        public let response: Part
        public let server: End
        public let client: End

        public var description: String { "\(action) at \(point)" }
    }

    public static let requestHead = Array("PUT /notes/n1 HTTP/1.1\r\nHost: h\r\nContent-Length: 40\r\n\r\n".utf8)
    public static let responseHead = Array("HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n".utf8)
    public static let requestBody = (0..<40).map { UInt8(97 + $0 % 26) }
    public static let responseBody = (0..<60).map { UInt8(65 + $0 % 26) }
    public static let replyBytes = Array("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nlater".utf8)

    public static var request: [UInt8] { requestHead + requestBody }
    public static var response: [UInt8] { responseHead + responseBody }

    /// Returns the bytes of a part of the request or the response.
    public static func bytes(_ part: Part, isRequest: Bool) -> [UInt8] {
        let (head, body) = isRequest ? (requestHead, requestBody) : (responseHead, responseBody)
        return switch part {
        case .none: []
        case .head: head
        case .half: head + body.prefix(body.count / 2)
        case .most: head + body.dropLast()
        case .all: head + body
        case .reply: replyBytes
        }
    }

    /// The table. A client that is killed at `after-response` has all of the response except its last byte, so that it cannot
    /// have stored the result. At `stored`, the exchange is over.
    public static let rows: [Row] = """
        point               action   request  response  server  client
        before-request      reset    none     none      reset   reset
        before-request      close    none     none      closed  closed
        before-request      stall    none     none      open    open
        before-request      delay    all      all       open    open
        before-request      throttle all      all       open    open
        before-request      respond  none     reply     open    open
        before-request      kill     none     none      ended   killed
        mid-request         reset    half     none      reset   reset
        mid-request         close    half     none      closed  closed
        mid-request         stall    half     none      open    open
        mid-request         delay    all      all       open    open
        mid-request         throttle all      all       open    open
        mid-request         respond  all      reply     open    open
        mid-request         kill     half     none      ended   killed
        before-request-end  reset    most     none      reset   reset
        before-request-end  close    most     none      closed  closed
        before-request-end  stall    most     none      open    open
        before-request-end  delay    all      all       open    open
        before-request-end  throttle all      all       open    open
        before-request-end  respond  all      reply     open    open
        before-request-end  kill     most     none      ended   killed
        before-response     reset    all      none      reset   reset
        before-response     close    all      none      closed  closed
        before-response     stall    all      none      open    open
        before-response     delay    all      all       open    open
        before-response     throttle all      all       open    open
        before-response     respond  all      reply     open    open
        before-response     kill     all      none      ended   killed
        after-response-head reset    all      head      reset   reset
        after-response-head close    all      head      closed  closed
        after-response-head stall    all      head      open    open
        after-response-head delay    all      all       open    open
        after-response-head throttle all      all       open    open
        after-response-head kill     all      head      ended   killed
        mid-response        reset    all      half      reset   reset
        mid-response        close    all      half      closed  closed
        mid-response        stall    all      half      open    open
        mid-response        delay    all      all       open    open
        mid-response        throttle all      all       open    open
        mid-response        kill     all      half      ended   killed
        after-response      reset    all      all       reset   reset
        after-response      close    all      all       closed  closed
        after-response      stall    all      all       open    open
        after-response      delay    all      all       open    open
        after-response      kill     all      most      ended   killed
        stored              reset    all      all       reset   reset
        stored              close    all      all       closed  closed
        stored              kill     all      all       ended   killed
        """.split(separator: "\n").dropFirst().map { line in
            let fields = line.split(separator: " ").map(String.init)
            guard fields.count == 6, let request = Part(rawValue: fields[2]), let response = Part(rawValue: fields[3]),
                let server = End(rawValue: fields[4]), let client = End(rawValue: fields[5])
            else { preconditionFailure("\(line)") }
            return Row(
                point: fields[0], action: fields[1], request: request, response: response, server: server,
                client: client)
        }
}
