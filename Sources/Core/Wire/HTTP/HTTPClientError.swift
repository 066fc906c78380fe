/// The reason why an exchange has no response, and how far the exchange had progressed.
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

    /// A timeout.
    public enum Timeout: String, Hashable, Sendable {
        /// ``HTTPTimeouts/connect``.
        case connect
        /// ``HTTPTimeouts/upload``.
        case upload
        /// ``HTTPTimeouts/firstByte``.
        case firstByte = "first byte"
        /// ``HTTPTimeouts/idle``.
        case idle
        /// ``HTTPTimeouts/exchange``.
        case exchange = "whole exchange"
        /// ``HTTPTimeouts/minimumRate``.
        case rate = "minimum rate"
    }

    /// A cause.
    public enum Reason: Hashable, Sendable {
        /// No connection could be established.
        case connect(HTTPConnectError)
        /// A timeout has expired.
        case timedOut(Timeout)
        /// The connection was closed before the response was complete.
        case closedByPeer(HTTPCloseReason)
        /// The peer's first bytes do not begin with `HTTP/`: the peer is not an HTTP/1 server.
        case notHTTP
        /// The request cannot be serialised, or the response begins with `HTTP/` and is malformed.
        case malformed(HTTPError)
        /// The response's body is too large.
        case bodyTooLarge
        /// Too many exchanges wait for a connection.
        case tooManyWaiting
        /// The caller has cancelled the exchange.
        case cancelled
    }

    /// The cause.
    public let reason: Reason
    /// The progress of the exchange.
    public let phase: Phase
    /// Whether the connection had carried an exchange before: the server may have closed it while the request was on
    /// its way.
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
        case .connect(.untrustedCertificate(let text)), .connect(.expiredCertificate(let text)),
            .connect(.wrongName(let text)), .connect(.tlsFailed(let text)):
            text
        case .connect(.other(let text)): "cannot connect: \(text)"
        case .timedOut(let timeout): "timed out (\(timeout.rawValue))"
        case .closedByPeer(.fin): "closed before the response was complete"
        case .closedByPeer(.reset): "reset before the response was complete"
        case .closedByPeer(.other(let text)): "connection lost: \(text)"
        case .notHTTP: "not HTTP: the response does not begin with HTTP/"
        case .malformed(let error): "malformed HTTP message: \(error)"
        case .bodyTooLarge: "response body too large"
        case .tooManyWaiting: "too many exchanges wait for a connection"
        case .cancelled: "cancelled"
        }
    }
}

/// The reason why a connection could not be established.
public enum HTTPConnectError: Hashable, Sendable {
    /// The server refused the connection (ECONNREFUSED).
    case refused
    /// There is no route to the server.
    case unreachable
    /// The server did not respond in time.
    case timedOut
    /// The server's name is unknown.
    case nameNotFound
    /// No trusted authority has signed the certificate of the server; in words.
    case untrustedCertificate(String)
    /// The certificate of the server has expired, or is not valid yet; in words.
    case expiredCertificate(String)
    /// The certificate of the server is for other names; in words.
    case wrongName(String)
    /// The handshake of TLS has failed in another way, such as with a server without TLS; in words.
    case tlsFailed(String)
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
