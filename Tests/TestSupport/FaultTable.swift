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

    /// The table. A client that is killed at `answered` has all of the response except its last byte, so that it cannot
    /// have stored the result. At `stored`, the exchange is over.
    public static let rows: [Row] = """
        point            action   request  response  server  client
        queued           cut      none     none      reset   reset
        queued           close    none     none      closed  closed
        queued           mute     none     none      open    open
        queued           hold     all      all       open    open
        queued           trickle  all      all       open    open
        queued           reply    none     reply     open    open
        queued           kill     none     none      ended   killed
        partly-sent      cut      half     none      reset   reset
        partly-sent      close    half     none      closed  closed
        partly-sent      mute     half     none      open    open
        partly-sent      hold     all      all       open    open
        partly-sent      trickle  all      all       open    open
        partly-sent      reply    all      reply     open    open
        partly-sent      kill     half     none      ended   killed
        received         cut      most     none      reset   reset
        received         close    most     none      closed  closed
        received         mute     most     none      open    open
        received         hold     all      all       open    open
        received         trickle  all      all       open    open
        received         reply    all      reply     open    open
        received         kill     most     none      ended   killed
        committed        cut      all      none      reset   reset
        committed        close    all      none      closed  closed
        committed        mute     all      none      open    open
        committed        hold     all      all       open    open
        committed        trickle  all      all       open    open
        committed        reply    all      reply     open    open
        committed        kill     all      none      ended   killed
        answer-started   cut      all      head      reset   reset
        answer-started   close    all      head      closed  closed
        answer-started   mute     all      head      open    open
        answer-started   hold     all      all       open    open
        answer-started   trickle  all      all       open    open
        answer-started   kill     all      head      ended   killed
        partly-answered  cut      all      half      reset   reset
        partly-answered  close    all      half      closed  closed
        partly-answered  mute     all      half      open    open
        partly-answered  hold     all      all       open    open
        partly-answered  trickle  all      all       open    open
        partly-answered  kill     all      half      ended   killed
        answered         cut      all      all       reset   reset
        answered         close    all      all       closed  closed
        answered         mute     all      all       open    open
        answered         hold     all      all       open    open
        answered         kill     all      most      ended   killed
        stored           cut      all      all       reset   reset
        stored           close    all      all       closed  closed
        stored           kill     all      all       ended   killed
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
