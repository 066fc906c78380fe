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
    /// Connections to the API at once; further ones wait to be accepted.
    public var callersMax = 256
    /// How many seconds a call's body may take to arrive.
    public var bodySecondsMax = 15.0

    /// The defaults.
    public init() {}
}
