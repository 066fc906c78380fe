public import Determinism

/// The timeouts of an exchange and its connection.
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

    /// Creates the default timeouts.
    public init() {}
}
