/// The limits of an ``API`` and its ``APIServer``.
public struct ServerLimits: Hashable, Sendable {
    /// Proxies.
    public var proxiesMax = 1000
    /// Toxics per proxy.
    public var toxicsMax = 100
    /// Open connections per proxy; further ones wait in the kernel's accept queue.
    public var connectionsMax = 10_000
    /// Bytes of a request body.
    public var bodyBytesMax = 1 << 20
    /// Bytes of a request head.
    public var headerBytesMax = 32 << 10
    /// Connections to the API. A further one takes the slot of the longest-idle one, authenticated connections last.
    public var callersMax = 256
    /// The slowest rate of a request body, averaged over each ``bodyWindowSeconds``.
    public var bodyBytesPerSecondMin = 250
    /// The seconds over which the rate of a request body is averaged.
    public var bodyWindowSeconds = 30.0

    /// The defaults.
    public init() {}
}
