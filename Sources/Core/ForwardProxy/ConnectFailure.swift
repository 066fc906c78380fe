/// The reason why a destination could not be connected.
public enum ConnectFailure: Error, Hashable, Sendable, CaseIterable {
    /// The name does not exist (NXDOMAIN).
    case nameNotFound
    /// The name server failed (SERVFAIL).
    case nameServerFailure
    /// No name server responded.
    case lookupTimeout
    /// The destination refused the connection (RST).
    case connectionRefused
    /// The destination did not respond.
    case connectionTimeout
    /// There is no route to the destination.
    case unreachable
    /// A rule of the proxy refuses the host.
    case refusedByRule
    /// The proxy does not connect such destinations.
    case notAllowed
    /// The destination is the proxy itself.
    case loop
}
