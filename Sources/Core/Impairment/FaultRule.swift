/// The sockets that an action affects.
public enum FaultSide: String, Hashable, Sendable, CaseIterable {
    /// The client's socket.
    case client
    /// The server's socket.
    case server
    /// Both sockets.
    case both
}

/// A rule that injects a fault into the exchanges that it matches.
///
/// A request matches if its method, its path and its subject match. The rule applies to the matching requests from
/// number ``nth`` on, to each with the probability ``probability``, and to `times.upperBound` of them at most. If several
/// rules apply to a request, the first one is used, and the others count the request as one of theirs.
public struct FaultRule: Hashable, Sendable {
    /// The method that the rule matches, compared by bytes; `nil` means any.
    public var method: String?
    /// The subject that the rule matches (``ExchangeTracking/subject``), at most 1024 bytes; each `*` stands for any
    /// number of bytes, and `nil` means any.
    public var subject: String?
    /// The path that the rule matches, at most 1024 bytes: the request target without scheme, authority and query. Each
    /// `*` stands for any number of bytes, and `nil` means any.
    public var path: String?
    /// The first matching request that the rule may apply to, from 1.
    public var nth: Int
    /// The number of requests that the rule applies to: its upper bound, at least 1, limits them; its lower bound, at
    /// least 0, is the number that an observer expects (``FaultRuleStatus/isSatisfied``).
    public var times: ClosedRange<Int>
    /// The probability that the rule applies to a matching request, 0 to 1, drawn from the random stream
    /// `LINK/fault/NUMBER`.
    public var probability: Double
    /// The point; `nil` means a point drawn from those at which the action is possible. If the response has no body,
    /// ``FaultPoint/afterResponseHead`` replaces a drawn ``FaultPoint/midResponse``.
    public var point: FaultPoint?
    /// The position of ``FaultPoint/midRequest`` and ``FaultPoint/midResponse``: the number of bytes of the body
    /// that have passed, at least 0; `nil` means the default of the point. It counts the framing of chunks, and is at
    /// most the number of bytes before the last one. Ignored for a request without a body.
    public var bytes: Int64?
    /// The sockets that ``FaultAction/reset``, ``FaultAction/close`` and ``FaultAction/stall`` affect; `nil` means the
    /// default of the action. If only one socket is aborted or closed, the other one stays open, and nothing more is
    /// delivered to it.
    public var side: FaultSide?
    /// The action.
    public var action: FaultAction
    /// The point of a rule about handshakes of TLS; `nil` for a rule about exchanges. Such a rule matches connections by
    /// the name of the server: ``path`` is the pattern of SNI, and `nil` matches connections without a name, too.
    /// ``bytes`` is the number of bytes of ``HandshakePoint/midStream``; ``method``, ``subject`` and ``point`` have no effect.
    public var handshake: HandshakePoint?
    /// What a rule about the bytes of connections matches; `nil` for other rules. ``bytes`` is the number of bytes between the
    /// match and the point; ``method``, ``subject``, ``path`` and ``point`` have no effect.
    public var stream: StreamMatch?

    /// Whether the rule is about requests.
    var isAboutRequests: Bool { handshake == nil && stream == nil }

    /// Creates a rule about the bytes of connections.
    public init(
        stream: StreamMatch, nth: Int = 1, times: ClosedRange<Int> = 1...1, probability: Double = 1,
        bytes: Int64? = nil, side: FaultSide? = nil, action: FaultAction
    ) {
        self.init(nth: nth, times: times, probability: probability, bytes: bytes, side: side, action: action)
        self.stream = stream
    }

    /// Creates a rule about handshakes of TLS.
    ///
    /// - Parameter serverName: The pattern of SNI in lower case; `nil` means any connection.
    public init(
        handshake: HandshakePoint, serverName: String? = nil, nth: Int = 1, times: ClosedRange<Int> = 1...1,
        probability: Double = 1, bytes: Int64? = nil, side: FaultSide? = nil, action: FaultAction
    ) {
        self.init(
            path: serverName, nth: nth, times: times, probability: probability, bytes: bytes, side: side, action: action
        )
        self.handshake = handshake
    }

    /// Creates a rule about exchanges.
    public init(
        method: String? = nil, subject: String? = nil, path: String? = nil, nth: Int = 1,
        times: ClosedRange<Int> = 1...1, probability: Double = 1, point: FaultPoint? = .beforeResponse,
        bytes: Int64? = nil,
        side: FaultSide? = nil, action: FaultAction
    ) {
        self.method = method
        self.subject = subject
        self.path = path
        self.nth = nth
        self.times = times
        self.probability = probability
        self.point = point
        self.bytes = bytes
        self.side = side
        self.action = action
    }

    /// The reason why the rule cannot be used; `nil` if it can.
    public var problem: String? {
        if nth < 1 { return "nth must be at least 1" }
        if times.lowerBound < 0 || times.upperBound < 1 { return "times must be at least 0, its maximum at least 1" }
        if !(0...1).contains(probability) { return "probability must be 0 to 1" }
        if let bytes, bytes < 0 { return "bytes must be at least 0" }
        for pattern in [subject, path].compactMap(\.self) where pattern.utf8.count > FaultPattern.bytesMax {
            return "a pattern must have at most \(FaultPattern.bytesMax) bytes"
        }
        if let problem = action.problem { return problem }
        if let stream { return stream.problem(bytes: bytes) ?? actionProblem(of: "TCP") }
        if let handshake { return problem(at: handshake) }
        if bytes != nil, let point, point != .midRequest, point != .midResponse {
            return "bytes applies to \(FaultPoint.midRequest.rawValue) and \(FaultPoint.midResponse.rawValue) only"
        }
        if side != nil {
            switch action {
            case .reset, .resetStream, .resetConnection, .close, .stall: break
            case .delay, .throttle, .respond, .report, .goAway, .limitStreams, .ignorePings, .ping, .blockWindow,
                .dropTrailers, .truncateHeaders:
                return "side applies to reset, close and stall only"
            }
        }
        return point.flatMap(action.problem(at:))
    }

    /// The reason why the action is not possible outside exchanges.
    private func actionProblem(of protocolName: String) -> String? {
        switch action {
        case .reset, .close, .stall, .delay: break
        case .resetStream, .resetConnection, .throttle, .respond, .report, .goAway, .limitStreams, .ignorePings, .ping,
            .blockWindow, .dropTrailers, .truncateHeaders:
            return "the actions of a fault of \(protocolName) are reset, close, stall and delay"
        }
        if case .delay = action, side != nil { return "side applies to reset, close and stall only" }
        return nil
    }

    private func problem(at handshake: HandshakePoint) -> String? {
        if let problem = actionProblem(of: "TLS") { return problem }
        if (handshake == .midStream) != (bytes != nil) {
            return "bytes applies to \(HandshakePoint.midStream.rawValue), which needs it"
        }
        return nil
    }
}
