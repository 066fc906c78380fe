public import LinkModel
public import NIOCore

/// Names a connection of one machine.
public struct HTTPConnectionID: Hashable, Comparable, Sendable {
    /// Counted from 0.
    public let number: Int

    public static func < (left: HTTPConnectionID, right: HTTPConnectionID) -> Bool { left.number < right.number }
}

/// Names an exchange of one machine.
public struct HTTPExchangeID: Hashable, Comparable, Sendable {
    /// Counted from 0.
    public let number: Int

    public static func < (left: HTTPExchangeID, right: HTTPExchangeID) -> Bool { left.number < right.number }
}

/// A request with its body; `Host` and `Content-Length` are added.
public struct HTTPClientRequest: Sendable {
    /// The method.
    public var method: String
    /// The path and query.
    public var target: String
    /// Further headers.
    public var headers: HTTPHeaders
    /// The body.
    public var body: [UInt8]

    /// Creates a request.
    public init(method: String, target: String, headers: HTTPHeaders = HTTPHeaders(), body: [UInt8] = []) {
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
    }
}

/// A whole answer.
public struct HTTPClientResponse: Sendable {
    /// The head.
    public let head: HTTPResponseHead
    /// The body.
    public let body: [UInt8]
    /// What stood after a chunked body.
    public let trailers: HTTPHeaders
}

/// How long the parts of an exchange may take.
public struct HTTPTimeouts: Hashable, Sendable {
    /// Until a connection is up.
    public var connect = Nanoseconds.seconds(10)
    /// From the request to the answer's first byte.
    public var firstByte = Nanoseconds.seconds(30)
    /// Between bytes of an answer.
    public var idle = Nanoseconds.seconds(20)
    /// The whole exchange, waiting for a connection included.
    public var exchange = Nanoseconds.seconds(90)
    /// How long an unused connection is kept.
    public var idleConnection = Nanoseconds.seconds(15)

    /// The times above.
    public init() {}
}

/// Why a connection could not be had.
public enum HTTPConnectFailure: Hashable, Sendable {
    /// Nobody listens there.
    case refused
    /// There is no way there.
    case unreachable
    /// Nobody answers.
    case timedOut
    /// The name is unknown.
    case nameNotFound
    /// Something else.
    case other(String)
}

/// How a connection came to its end.
public enum HTTPCloseReason: Hashable, Sendable {
    /// By FIN.
    case fin
    /// By RST.
    case reset
    /// By something else.
    case other(String)
}

/// Why there is no answer, and how far the request had got.
public struct HTTPClientFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// How far the exchange had got: what the caller may assume.
    public enum Phase: Hashable, Sendable {
        /// Not a byte of the request can have reached the server.
        case notSent
        /// The server may have got the request, and carried it out, or not.
        case sent
        /// The server has begun to answer.
        case answering
    }

    /// What ran out.
    public enum Timeout: String, Hashable, Sendable {
        /// ``HTTPTimeouts/connect``.
        case connect
        /// ``HTTPTimeouts/firstByte``.
        case firstByte = "first byte"
        /// ``HTTPTimeouts/idle``.
        case idle
        /// ``HTTPTimeouts/exchange``.
        case exchange = "whole exchange"
    }

    /// What happened.
    public enum Reason: Hashable, Sendable {
        /// No connection.
        case connect(HTTPConnectFailure)
        /// A time-out.
        case timedOut(Timeout)
        /// The connection was closed before the answer was whole.
        case closedByPeer(HTTPCloseReason)
        /// The answer, or the request, is not HTTP.
        case malformed(HTTPError)
        /// The answer's body is too large.
        case bodyTooLarge
        /// The caller has cancelled it.
        case cancelled
    }

    /// What happened.
    public let reason: Reason
    /// How far it had got.
    public let phase: Phase
    /// Whether the connection had served an exchange before: then the server may have closed it while the request was
    /// under way.
    public var wasReused = false

    init(_ reason: Reason, _ phase: Phase) {
        self.reason = reason
        self.phase = phase
    }

    public var description: String {
        switch reason {
        case .connect(.refused): "connection refused"
        case .connect(.unreachable): "no route"
        case .connect(.timedOut): "nobody answers"
        case .connect(.nameNotFound): "unknown host"
        case .connect(.other(let text)): "no connection: \(text)"
        case .timedOut(let which): "timed out (\(which.rawValue))"
        case .closedByPeer(.fin): "closed before the answer was whole"
        case .closedByPeer(.reset): "reset before the answer was whole"
        case .closedByPeer(.other(let text)): "connection lost: \(text)"
        case .malformed(let error): "not HTTP: \(error)"
        case .bodyTooLarge: "the answer is too large"
        case .cancelled: "cancelled"
        }
    }
}

/// Something for the driver to do.
public enum HTTPClientAction: Sendable {
    /// Open a connection.
    case connect(HTTPConnectionID)
    /// Write these bytes.
    case write(HTTPConnectionID, ByteBuffer)
    /// Close: with a RST if abortive. Nothing more is said of the connection.
    case close(HTTPConnectionID, isAbortive: Bool)
    /// An exchange is over.
    case finished(HTTPExchangeID, Result<HTTPClientResponse, HTTPClientFailure>)
}
