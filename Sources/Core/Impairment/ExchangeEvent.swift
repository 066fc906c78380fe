public import LinkModel
public import Wire

/// The identifier of an exchange (a request and its response) on one link.
public struct ExchangeID: Hashable, Comparable, Sendable {
    /// The number of requests whose heads were read before.
    public let number: Int
    /// The stream of the request, if its connection is HTTP/2.
    public let stream: UInt32?

    init(number: Int, stream: UInt32? = nil) {
        self.number = number
        self.stream = stream
    }

    public static func < (left: ExchangeID, right: ExchangeID) -> Bool { left.number < right.number }
}

/// An event of an exchange.
///
/// The events of an exchange, in order: `requestStarted`, `requested`, `requestRead`, `requestDelivered`,
/// `responseStarted`, `responseSampled`, `before-response`, `responseDelivered` or `interrupted`. If the response begins before
/// the end of its
/// request, its events precede `requestRead`.
public enum ExchangeEvent: Sendable {
    /// The head of the request has been read from the client's socket. With a rule for the points `before-request` or
    /// `mid-request`, none of the request's bytes has entered the link.
    case requestStarted(ExchangeID, HTTPRequestHead)
    /// The request has been read from the client's socket: its head, the first ``ExchangeTracking/bodySampleMax`` bytes
    /// of its body, and its ``ExchangeTracking/subject``, if known. Reported at the end of the request, or at the start
    /// of its response if that comes first. If requests await decisions, a request is reported earlier if its body
    /// exceeds the sample or the memory limit, or if its client expects `100 Continue`.
    case requested(ExchangeID, HTTPRequestHead, body: [UInt8], subject: String?)
    /// The last byte of the request has been read from the client's socket: the number of bytes of the body, without
    /// the framing of chunks.
    case requestRead(ExchangeID, bodyBytes: Int64)
    /// The last byte of the request has been written to the server. Not reported if the whole response has been written
    /// to the client by then.
    case requestDelivered(ExchangeID)
    /// The head of the response has been read from the server. Interim responses (1xx except 101) are not reported.
    case responseStarted(ExchangeID, HTTPResponseHead)
    /// The whole response has been read from the server: the first ``ExchangeTracking/bodySampleMax`` bytes of its body.
    /// Reported with ``ExchangeTracking/samplesResponses`` only.
    case responseSampled(ExchangeID, body: [UInt8])
    /// The whole response has been read from the server; its last bytes have not entered the link yet. The number of
    /// bytes of the body is without the framing of chunks.
    case responseRead(ExchangeID, status: Int, bodyBytes: Int64)
    /// The last byte of the response has been written to the client: the server's response, or that of a
    /// ``FaultAction/respond(_:)``. The client has received the response when it has read the bytes of the connection up
    /// to `end`. The end of the stream counts as one byte; it is a part of a response without a length.
    case responseDelivered(ExchangeID, status: Int, end: Int64)
    /// The connection ended before the response was delivered. If `requested` was not reported before, the connection
    /// ended in the middle of the request.
    case interrupted(ExchangeID)
    /// A fault has fired: the number of its rule, its point, and the number of bytes of the message that had passed the
    /// point: bytes of the request written to the server, or bytes of the response written to the client. On HTTP/2,
    /// bytes of DATA.
    case faultInjected(ExchangeID, rule: Int, point: FaultPoint, offset: Int64)
    /// The connection of faults that send PING has ended: the number of the rule, and the numbers of acknowledged and of sent PING.
    case pings(ExchangeID, rule: Int, acknowledged: UInt32, sent: UInt32)
    /// A fault will not fire, because the exchange did not reach its point.
    case faultMissed(ExchangeID, rule: Int, point: FaultPoint)
    /// The response is a 101, or a 2xx to CONNECT: the bytes that follow it are not HTTP; they pass unchanged and are
    /// not tracked.
    case protocolSwitched(ExchangeID)
    /// The exchanges of the connection are not tracked, for a reason: its bytes are not HTTP, or those before are
    /// unknown. They pass unchanged.
    case notHTTP(String)
    /// The client of the connection has begun a handshake of TLS. ``notHTTP(_:)`` precedes it.
    case tls(ClientHello)
    /// A fault of a rule about handshakes has fired: the number of bytes of the stream that had passed the point.
    case handshakeFault(rule: Int, point: HandshakePoint, serverName: String?, offset: Int64)
    /// A fault of a rule about the bytes of a connection has fired: the sender of the stream, and the number of bytes of it
    /// that had passed the point.
    case streamFault(rule: Int, point: StreamPoint, sender: Side, offset: Int64)
}

extension ExchangeEvent {
    /// The reason of ``notHTTP(_:)`` for connections with TLS.
    public static let tlsReason = "TLS"

    /// The exchange; `nil` if the event is about the connection.
    public var exchange: ExchangeID? {
        switch self {
        case .requestStarted(let id, _), .requested(let id, _, _, _), .requestRead(let id, _),
            .requestDelivered(let id),
            .responseStarted(let id, _), .responseSampled(let id, _), .responseRead(let id, _, _),
            .responseDelivered(let id, _, _),
            .interrupted(let id),
            .faultInjected(let id, _, _, _), .pings(let id, _, _, _), .faultMissed(let id, _, _),
            .protocolSwitched(let id):
            id
        case .notHTTP, .tls, .handshakeFault, .streamFault: nil
        }
    }

    /// Returns the method and the beginning of the target of a request that starts; `nil` for other events.
    public func requestLine(targetBytesMax: Int) -> String? {
        guard case .requestStarted(let id, let head) = self else { return nil }
        let stream = id.stream.map { " (stream \($0))" } ?? ""
        return "\(head.method) " + String(decoding: head.target.utf8.prefix(targetBytesMax), as: UTF8.self) + stream
    }

    /// Returns the method and the beginning of the path of a request that starts, without the query, as fault rules
    /// compare them; `nil` for other events.
    public func requestPath(bytesMax: Int) -> String? {
        guard case .requestStarted(_, let head) = self else { return nil }
        let path = ExchangeRegistry.path(head.target).utf8.prefix(bytesMax)
        return "\(head.method) " + String(decoding: path, as: UTF8.self)
    }
}

extension ExchangeEvent: CustomStringConvertible {
    /// A short text without bodies and header fields.
    public var description: String {
        switch self {
        case .requestStarted(let id, let head): "\(id.number) request started \(head.method)"
        case .requested(let id, let head, let body, let subject):
            "\(id.number) requested \(head.method) \(subject ?? "?") \(body.count) B"
        case .requestRead(let id, let bodyBytes): "\(id.number) request read \(bodyBytes) B"
        case .requestDelivered(let id): "\(id.number) request delivered"
        case .responseStarted(let id, let head): "\(id.number) response started \(head.status)"
        case .responseSampled(let id, let body): "\(id.number) response sampled \(body.count) B"
        case .responseRead(let id, let status, _): "\(id.number) response read \(status)"
        case .responseDelivered(let id, let status, _): "\(id.number) response delivered \(status)"
        case .interrupted(let id): "\(id.number) interrupted"
        case .faultInjected(let id, let rule, let point, let offset):
            "\(id.number) fault of rule \(rule) at \(point.rawValue) after \(offset) B"
        case .pings(let id, let rule, let acknowledged, let sent):
            "\(id.number) PING of rule \(rule) acknowledged \(acknowledged) of \(sent)"
        case .faultMissed(let id, let rule, let point):
            "\(id.number) fault of rule \(rule) missed \(point.rawValue)"
        case .protocolSwitched(let id): "\(id.number) protocol switched"
        case .notHTTP(let reason): "not HTTP: \(reason)"
        case .tls(let hello): "TLS for \(hello.serverName ?? "no name")"
        case .streamFault(let rule, let point, _, let offset):
            "fault of rule \(rule) at \(point.rawValue) after \(offset) B"
        case .handshakeFault(let rule, let point, _, let offset):
            "fault of rule \(rule) at \(point.rawValue) after \(offset) B"
        }
    }
}
