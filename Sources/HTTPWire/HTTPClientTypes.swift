public import LinkModel
public import NIOCore

/// The identifier of a connection of one machine.
public struct HTTPConnectionID: Hashable, Comparable, Sendable {
    /// The number of connections that were opened before.
    public let number: Int

    public static func < (left: HTTPConnectionID, right: HTTPConnectionID) -> Bool { left.number < right.number }
}

/// The identifier of an exchange of one machine.
public struct HTTPExchangeID: Hashable, Comparable, Sendable {
    /// The number of exchanges that were started before.
    public let number: Int

    public static func < (left: HTTPExchangeID, right: HTTPExchangeID) -> Bool { left.number < right.number }
}

/// A request with its body. The machine adds `Host` and `Content-Length`.
public struct HTTPClientRequest: Sendable {
    /// The method.
    public var method: String
    /// The path and query.
    public var target: String
    /// Further header fields.
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

/// A whole response.
public struct HTTPClientResponse: Sendable {
    /// The head.
    public let head: HTTPResponseHead
    /// The body.
    public let body: [UInt8]
    /// The trailer fields of a chunked body.
    public let trailers: HTTPHeaders
}

/// The time-outs of an exchange and its connection.
public struct HTTPTimeouts: Hashable, Sendable {
    /// The time to establish a connection.
    public var connect = Nanoseconds.seconds(10)
    /// The time from the request to the first byte of the response.
    public var firstByte = Nanoseconds.seconds(30)
    /// The time between bytes of a response.
    public var idle = Nanoseconds.seconds(20)
    /// The time of the whole exchange, including the wait for a connection.
    public var exchange = Nanoseconds.seconds(90)
    /// The time that an unused connection is kept open.
    public var idleConnection = Nanoseconds.seconds(15)

    /// The times above.
    public init() {}
}

/// The reason why a connection could not be established.
public enum HTTPConnectError: Hashable, Sendable {
    /// The server refused the connection (ECONNREFUSED).
    case refused
    /// There is no route to the server.
    case unreachable
    /// The server did not answer in time.
    case timedOut
    /// The server's name is unknown.
    case nameNotFound
    /// Another reason, in words.
    case other(String)
}

/// The way in which a connection ended.
public enum HTTPCloseReason: Hashable, Sendable {
    /// By FIN.
    case fin
    /// By RST.
    case reset
    /// In another way, in words.
    case other(String)
}

/// The reason why an exchange has no response, and its progress.
public struct HTTPClientError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The progress of the exchange: whether the server may have executed the request.
    public enum Phase: Hashable, Sendable {
        /// No byte of the request can have reached the server.
        case notSent
        /// The server may have received and executed the request.
        case sent
        /// The server has begun to respond.
        case responding
    }

    /// A time-out.
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

    /// A cause.
    public enum Reason: Hashable, Sendable {
        /// No connection could be established.
        case connect(HTTPConnectError)
        /// A time-out has expired.
        case timedOut(Timeout)
        /// The connection was closed before the response was complete.
        case closedByPeer(HTTPCloseReason)
        /// The response, or the request, is not HTTP.
        case malformed(HTTPError)
        /// The response's body is too large.
        case bodyTooLarge
        /// The caller has cancelled the exchange.
        case cancelled
    }

    /// The cause.
    public let reason: Reason
    /// The progress of the exchange.
    public let phase: Phase
    /// Whether the connection had carried an exchange before: the server may have closed it while the request was on its way.
    public var wasReused = false

    init(_ reason: Reason, _ phase: Phase) {
        self.reason = reason
        self.phase = phase
    }

    public var description: String {
        switch reason {
        case .connect(.refused): "connection refused"
        case .connect(.unreachable): "no route to host"
        case .connect(.timedOut): "connection timed out"
        case .connect(.nameNotFound): "unknown host"
        case .connect(.other(let text)): "cannot connect: \(text)"
        case .timedOut(let timeout): "timed out (\(timeout.rawValue))"
        case .closedByPeer(.fin): "closed before the response was complete"
        case .closedByPeer(.reset): "reset before the response was complete"
        case .closedByPeer(.other(let text)): "connection lost: \(text)"
        case .malformed(let error): "not HTTP: \(error)"
        case .bodyTooLarge: "response body too large"
        case .cancelled: "cancelled"
        }
    }
}

/// An instruction for the driver.
public enum HTTPClientAction: Sendable {
    /// Open a connection.
    case connect(HTTPConnectionID)
    /// Write these bytes.
    case write(HTTPConnectionID, ByteBuffer)
    /// Close the connection, with a RST if abortive; no further action is for it.
    case close(HTTPConnectionID, isAbortive: Bool)
    /// Report the result of an exchange.
    case finished(HTTPExchangeID, Result<HTTPClientResponse, HTTPClientError>)
}
