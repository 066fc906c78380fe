/// How much callers may ask for.
public struct ServerLimits: Hashable, Sendable {
    /// Proxies at once.
    public var proxiesMax = 1000
    /// Toxics of one proxy.
    public var toxicsMax = 100
    /// Open connections of one proxy; further ones wait to be accepted.
    public var connectionsMax = 10_000
    /// Bytes of a call's body.
    public var bodyBytesMax = 1 << 20
    /// Bytes of a call's headers.
    public var headerBytesMax = 32 << 10
    /// Connections to the API at once; a further one takes the slot of the idlest, those that showed the token last.
    public var callersMax = 256
    /// A call's body must arrive at this rate, taken over each ``bodyWindowSeconds``.
    public var bodyBytesPerSecondMin = 250
    /// Seconds over which a body's rate is taken.
    public var bodyWindowSeconds = 30.0

    /// The defaults.
    public init() {}
}
