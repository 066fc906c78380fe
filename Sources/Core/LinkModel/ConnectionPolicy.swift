/// The treatment of connections, independent of packet conditions.
///
/// A change of the policy aborts every open connection.
public enum ConnectionPolicy: String, CaseIterable, Hashable, Sendable {
    /// Connections reach the server.
    case open
    /// The interface is down: connections fail at once. A SYN gets a RST.
    case offline
    /// The server's name does not resolve. A client that connects by address gets a RST.
    case dns
    /// A captive portal responds to HTTP requests with its own page.
    case portal

    /// Whether a SYN gets a RST.
    public var refusesConnections: Bool { self == .offline || self == .dns }
}
