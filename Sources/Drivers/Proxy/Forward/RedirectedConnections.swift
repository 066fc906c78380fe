public import ForwardProxy
internal import NIOConcurrencyHelpers
internal import NIOCore

/// The destinations of connections that a supervisor has redirected to a forward proxy, by the client's port.
///
/// The supervisor binds the client's socket and records the destination before it connects the socket; the proxy takes
/// the destination when it accepts the connection, which then carries no request for it.
public final class RedirectedConnections: Sendable {
    private let destinations = NIOLockedValueBox<[Int: Destination]>([:])

    /// Creates an empty table.
    public init() {}

    /// Records the destination of the connection from a port of this machine.
    public func record(_ destination: Destination, fromPort port: Int) {
        destinations.withLockedValue { $0[port] = destination }
    }

    /// Removes the destination of a connection that could not be opened.
    public func remove(fromPort port: Int) { destinations.withLockedValue { $0[port] = nil } }

    /// Returns and removes the destination of an accepted connection. A supervisor binds its sockets to 127.0.0.1.
    func take(from client: SocketAddress) -> Destination? {
        guard let port = client.port, LoopDetector.host(client) == "127.0.0.1" else { return nil }
        return destinations.withLockedValue { $0.removeValue(forKey: port) }
    }
}
