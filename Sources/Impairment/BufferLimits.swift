/// How many bytes a proxy may hold, and how they are shared out.
///
/// A connection's direction may hold an equal share of `bytesMaxTotal`, within the bounds given; when it is full the
/// sender is no longer read. So a client that never reads costs its share, and can take nobody else's.
public struct BufferLimits: Hashable, Sendable {
    /// What all connections of a proxy may hold together, as long as the shares stay above `bytesMinPerDirection`.
    public var bytesMaxTotal: Int
    /// The largest share. It also bounds what is in flight, as a TCP window does: with a delay of 500 ms and no cap
    /// a stream is carried at 1 MiB per 500 ms, some 17 Mbit/s.
    public var bytesMaxPerDirection: Int
    /// The smallest share, however many connections there are.
    public var bytesMinPerDirection: Int

    /// How many bytes that have crossed the link may wait for a receiver that does not take them.
    public var arrivedBytesMax: Int

    /// How many bytes a receiving socket may be given until it has sent them; never more than a share.
    public var socketBytesMax: Int

    /// Creates limits; the defaults are 24 MiB in all, 16 KiB to 1 MiB a direction, 64 KiB waiting for a receiver and
    /// 256 KiB in its socket.
    public init(
        bytesMaxTotal: Int = 24 << 20, bytesMaxPerDirection: Int = 1 << 20, bytesMinPerDirection: Int = 16 << 10,
        arrivedBytesMax: Int = 64 << 10, socketBytesMax: Int = 256 << 10
    ) {
        precondition(0 < bytesMinPerDirection && bytesMinPerDirection <= bytesMaxPerDirection && arrivedBytesMax > 0)
        self.bytesMaxTotal = bytesMaxTotal
        self.bytesMaxPerDirection = bytesMaxPerDirection
        self.bytesMinPerDirection = bytesMinPerDirection
        self.arrivedBytesMax = arrivedBytesMax
        self.socketBytesMax = socketBytesMax
    }

    /// The share of one direction when there are `connections`.
    public func bytesMax(connections: Int) -> Int {
        min(bytesMaxPerDirection, max(bytesMinPerDirection, bytesMaxTotal / (2 * max(1, connections))))
    }
}
