/// The number of bytes that a proxy may hold, and how connections share them.
///
/// A stream may hold an equal share of `bytesMaxTotal` within the given bounds; reading from its sender pauses when the
/// share is full. A client that never reads therefore occupies only its own share.
public struct BufferLimits: Hashable, Sendable {
    /// The bytes that all connections of a proxy may hold together. With very many connections the sum of the smallest
    /// shares, `bytesMinPerDirection` each, exceeds it.
    public var bytesMaxTotal: Int
    /// The largest share. It also bounds the bytes in flight, as `tcp_wmem` does in a kernel.
    public var bytesMaxPerDirection: Int
    /// The smallest share, for any number of connections.
    public var bytesMinPerDirection: Int

    /// The maximum number of undelivered bytes of a stream that bypassed the TCP model. The modelled receive window
    /// bounds all other bytes.
    public var passThroughBytesMax: Int

    /// Bytes that a receiving socket may hold unsent; never more than a share.
    public var socketBytesMax: Int

    /// The bytes of all connections together that may wait before toxics. With very many connections the sum of the
    /// smallest shares exceeds it, as it does `bytesMaxTotal`.
    public var toxicBytesMaxTotal = 256 << 20
    /// Bytes that may wait before the toxics of one stream: Toxiproxy's 1024 chunks of 32 KiB.
    public var toxicBytesMaxPerDirection = 32 << 20

    /// Creates limits; the defaults are 24 MiB in total, 16 KiB to 4 MiB a stream, and 256 KiB in a receiver's socket.
    public init(
        bytesMaxTotal: Int = 24 << 20, bytesMaxPerDirection: Int = 4 << 20, bytesMinPerDirection: Int = 16 << 10,
        passThroughBytesMax: Int = 64 << 10, socketBytesMax: Int = 256 << 10
    ) {
        precondition(
            0 < bytesMinPerDirection && bytesMinPerDirection <= bytesMaxPerDirection && passThroughBytesMax > 0)
        self.bytesMaxTotal = bytesMaxTotal
        self.bytesMaxPerDirection = bytesMaxPerDirection
        self.bytesMinPerDirection = bytesMinPerDirection
        self.passThroughBytesMax = passThroughBytesMax
        self.socketBytesMax = socketBytesMax
    }

    /// Returns the share of one stream for a number of connections.
    public func bytesMax(connections: Int) -> Int {
        min(bytesMaxPerDirection, max(bytesMinPerDirection, bytesMaxTotal / (2 * max(1, connections))))
    }

    /// Returns the share of one stream's toxics for a number of connections.
    public func toxicBytesMax(connections: Int) -> Int {
        min(toxicBytesMaxPerDirection, max(bytesMinPerDirection, toxicBytesMaxTotal / (2 * max(1, connections))))
    }
}
