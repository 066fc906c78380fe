public import Determinism

/// The timeouts of an exchange and its connection.
///
/// They limit the time without progress. Only a small exchange has a limit on its total time; a large one must keep a
/// minimum rate instead, so that it completes on any link that is fast enough. The values are the published policy of
/// the sync client.
public struct HTTPTimeouts: Hashable, Sendable {
    /// The time to establish a connection. With an initial retransmission timeout of 1 s that doubles (RFC 6298), the
    /// SYN is repeated after 1, 3 and 7 s.
    public var connect = Nanoseconds.seconds(10)
    /// The time between bytes of the request that the kernel accepts. Until the whole request is accepted, bytes of an
    /// early response count, too.
    public var upload = Nanoseconds.seconds(30)
    /// The time from the acceptance of the request's last byte to the first byte of the response.
    ///
    /// Accepted bytes may still be in the send buffer. After a request of more than
    /// ``HTTPClientMachine/writeBytesMax`` bytes, the timeout is longer by the time that
    /// min(request, ``sendBufferBytesMax``) bytes take at ``minimumRate``.
    public var firstByte = Nanoseconds.seconds(30)
    /// The time between bytes of a response after the whole request was accepted. If the response began before that,
    /// the timeout does not expire before ``firstByte`` would.
    public var idle = Nanoseconds.seconds(20)
    /// The total time of a small exchange, including the wait for a connection.
    public var exchange = Nanoseconds.seconds(90)
    /// The size from which an exchange is large, in bytes: its whole request, and of its response the bytes received
    /// or, if there are more, those that Content-Length announces.
    public var largeExchangeBytes: Int64 = 64 << 10
    /// The minimum average rate of a large exchange in each ``rateWindow``, in bytes per second of both directions
    /// together. 0 switches the rule off.
    public var minimumRate: Int64 = 1_000
    /// The windows in which ``minimumRate`` is measured. They are consecutive and start when bytes begin to flow: with
    /// the request's first write, until its last byte is accepted, and again with the next byte of the response. The
    /// length is the default of curl's `--speed-time`.
    public var rateWindow = Nanoseconds.seconds(30)
    /// The number of accepted bytes that are assumed not to have left the host. Linux grows the send buffer with the
    /// congestion window (`net.ipv4.tcp_wmem`: 16 KiB at first, at most 4 MiB), so that a slow link fills a part of it.
    public var sendBufferBytesMax: Int64 = 192 << 10
    /// The time that an unused connection is kept open.
    public var idleConnection = Nanoseconds.seconds(15)

    /// Creates the default timeouts.
    public init() {}
}
