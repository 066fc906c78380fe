public import ForwardProxy
public import LinkModel

/// The settings of a forward proxy, whose clients name the destination of each connection.
public struct ForwardSettings: Sendable {
    /// The treatment of destinations, and the addresses that names stand for.
    public var rules = HostRules()
    /// The conditions that ``rules`` name. A destination with conditions of its own uses a link of its own instead of the
    /// device's.
    public var conditions: [String: Conditions] = [:]
    /// The user and password that clients must give; `nil` for none.
    public var credentials: ProxyCredentials?
    /// The addresses from which clients may connect; empty for all that reach the listening address.
    public var clientsAllowed: [HostPattern] = []
    /// The destinations that are refused.
    public var policy = DestinationPolicy()
    /// The destinations of connections that do not name them; see ``RedirectedConnections``.
    public var redirections: RedirectedConnections?
    /// Whether connections that the firewall has redirected to the port go to their original destinations
    /// (``canBeTransparent``).
    public var isTransparent = false

    /// Whether this system reports the original destinations of redirected connections (Linux).
    public static var canBeTransparent: Bool { OriginalDestination.isAvailable }

    /// The addresses under which clients reach the proxy, for its page and PAC file; empty for the listening address. Port 0
    /// stands for the listening port.
    public var addresses: [Destination] = []

    /// Creates settings without rules.
    public init() {}
}
