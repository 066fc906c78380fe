/// The limits of an ``API`` and its ``APIServer``.
public struct ServerLimits: Hashable, Sendable {
    /// The maximum number of proxies.
    public var proxiesMax = 1000
    /// The maximum number of toxics per proxy.
    public var toxicsMax = 100
    /// The maximum number of faults per proxy, at most 1000.
    public var faultsMax = 100
    /// The maximum number of open connections per proxy; further ones wait in the kernel's accept queue.
    public var connectionsMax = 10_000
    /// The maximum number of bytes of a request body.
    public var bodyBytesMax = 1 << 20
    /// The maximum number of bytes of a request head.
    public var headerBytesMax = 32 << 10
    /// The maximum number of connections to the API. At the limit, a new connection evicts the unauthenticated
    /// connection whose last progress is the oldest; if all connections are authenticated, the idle one whose last
    /// progress is the oldest.
    public var apiConnectionsMax = 256
    /// The maximum number of readers of the stream of events.
    public var eventReadersMax = 32
    /// The minimum rate of a request body, averaged over each ``bodyWindowSeconds``.
    public var bodyBytesPerSecondMin = 250
    /// The seconds over which the rate of a request body is averaged.
    public var bodyWindowSeconds = 30.0

    /// Creates the default limits.
    public init() {}
}
