/// How many bytes a proxy may hold, and how they are shared out.
///
/// A connection's direction may hold an equal share of `bytesMaxTotal`, within the bounds given; when it is full the
/// sender is no longer read. So a client that never reads costs its share, and can take nobody else's.
public struct BufferLimits: Hashable, Sendable {
    /// What all connections of a proxy may hold together, as long as the shares stay above `bytesMinPerDirection`.
    public var bytesMaxTotal: Int
    /// The largest share. It also bounds what is in flight, as `tcp_wmem` does for a kernel.
    public var bytesMaxPerDirection: Int
    /// The smallest share, however many connections there are.
    public var bytesMinPerDirection: Int

    /// How many bytes that came past the model may wait for a receiver that does not take them; the others are bounded by
    /// the modelled window.
    public var straightBytesMax: Int

    /// How many bytes a receiving socket may be given until it has sent them; never more than a share.
    public var socketBytesMax: Int

    /// What may wait before toxics, all connections together, as long as the shares stay above `bytesMinPerDirection`.
    public var toxicBytesMaxTotal = 256 << 20
    /// What may wait before the toxics of one direction: Toxiproxy's 1024 chunks of 32 KiB.
    public var toxicBytesMaxPerDirection = 32 << 20

    /// Creates limits; the defaults are 24 MiB in all, 16 KiB to 4 MiB a direction, and 256 KiB in a receiver's
    /// socket.
    public init(
        bytesMaxTotal: Int = 24 << 20, bytesMaxPerDirection: Int = 4 << 20, bytesMinPerDirection: Int = 16 << 10,
        straightBytesMax: Int = 64 << 10, socketBytesMax: Int = 256 << 10
    ) {
        precondition(0 < bytesMinPerDirection && bytesMinPerDirection <= bytesMaxPerDirection && straightBytesMax > 0)
        self.bytesMaxTotal = bytesMaxTotal
        self.bytesMaxPerDirection = bytesMaxPerDirection
        self.bytesMinPerDirection = bytesMinPerDirection
        self.straightBytesMax = straightBytesMax
        self.socketBytesMax = socketBytesMax
    }

    /// The share of one direction when there are `connections`.
    public func bytesMax(connections: Int) -> Int {
        min(bytesMaxPerDirection, max(bytesMinPerDirection, bytesMaxTotal / (2 * max(1, connections))))
    }

    /// The share of one direction's toxics when there are `connections`.
    public func toxicBytesMax(connections: Int) -> Int {
        min(toxicBytesMaxPerDirection, max(bytesMinPerDirection, toxicBytesMaxTotal / (2 * max(1, connections))))
    }
}
