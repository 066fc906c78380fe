/// An HTTP exchange in a capture. Times are nanoseconds since 1970.
public struct CapturedExchange: Sendable {
    /// The client's address.
    public let client: TCPSegment.Endpoint
    /// The server's address.
    public let server: TCPSegment.Endpoint
    /// The request's method.
    public let method: String
    /// The request's target.
    public let target: String
    /// The response's status; `nil` if the connection ended before the response.
    public let status: Int?
    /// Bytes of the request, including its head.
    public let requestBytes: Int64
    /// Bytes of the response, including its head.
    public let responseBytes: Int64
    /// The time at which the request's first byte was sent.
    public let start: Int64
    /// The time at which the response's first byte was sent.
    public let firstByte: Int64?
    /// The time at which the response's last byte was sent, or the connection ended.
    public let end: Int64
}

/// An event in a capture. Times are nanoseconds since 1970.
public enum CaptureEvent: Sendable {
    /// A connection was opened (SYN).
    case opened(client: TCPSegment.Endpoint, server: TCPSegment.Endpoint, at: Int64)
    /// A connection ended; `up` and `down` are the payload bytes of each direction.
    case closed(
        client: TCPSegment.Endpoint, server: TCPSegment.Endpoint, up: Int64, down: Int64, isReset: Bool, at: Int64)
    /// An exchange ended.
    case exchange(CapturedExchange)
    /// A connection cannot be parsed as HTTP from here on.
    case unreadable(client: TCPSegment.Endpoint, server: TCPSegment.Endpoint, reason: String, at: Int64)
}
