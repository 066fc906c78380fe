#if os(Linux)
package import ForwardProxy
internal import HeapModule
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The clients of a forward proxy until their tunnels are established. Clients that do not request a tunnel, and
/// failures, are passed to the proxy.
extension RelayLoop {
    /// Starts a client's negotiation, or requests the addresses of a destination that is known already.
    func startNegotiating(_ connection: RelayedConnection) {
        if let destination = connection.tunnel?.request.redirected { return named(destination, by: connection) }
        let deadline = connection.startedAt + ForwardClient.negotiationTimeMax
        connection.dialTimer = deadline
        timers.insert(Timer(deadline: deadline, token: connection.token))
    }

    /// Reads a client's request for a destination.
    func negotiate(_ connection: RelayedConnection) {
        while true {
            while let step = connection.tunnel?.request.negotiation.next() {
                switch step {
                case .reply(let bytes):
                    // The socket's buffer has room for the few short replies of a negotiation.
                    if !reply(bytes, to: connection) { return close(connection) }
                case .open(let destination): return named(destination, by: connection)
                case .forwardRequests, .associate, .refuse:
                    connection.tunnel?.request.step = step
                    return passToProxy(connection)
                }
            }
            guard connection.sockets.up.isReadable else { return }
            let client = connection.sockets.up.descriptor
            let count = recv(client, buffers.scratch.baseAddress, buffers.scratch.count, 0)
            if count > 0 {
                let bytes = UnsafeRawBufferPointer(rebasing: buffers.scratch[..<count])
                connection.tunnel?.request.negotiation.received(ByteBuffer(bytes: bytes))
            } else if count < 0, errno == EAGAIN {
                return connection.sockets.up.isReadable = false
            } else if count == 0 || errno != EINTR {
                return close(connection)
            }
        }
    }

    private func named(_ destination: Destination, by connection: RelayedConnection) {
        let configuration = connection.port.configuration
        connection.tunnel?.request.destination = destination
        connection.dialTimer = nil
        configuration.tunnels?.resolve(
            RelayedTunnel(
                token: connection.token, destination: destination,
                client: try? SystemSocket.remoteAddress(of: connection.sockets.up.descriptor)))
    }

    /// Handles that the destination is connected: writes the reply, and holds the client's early bytes for the
    /// destination. Returns `false` if the connection is closed.
    func tunnelEstablished(_ connection: RelayedConnection) -> Bool {
        guard var tunnel = connection.tunnel?.request else { return true }
        connection.tunnel = nil
        connection.port.configuration.tunnels?.onEstablished(connection.token)
        if tunnel.redirected == nil, !reply(tunnel.negotiation.established(), to: connection) {
            close(connection, resetting: [.server])
            return false
        }
        connection.holdEarly(tunnel.negotiation.takeRemainder())
        return true
    }

    /// Handles that the destination cannot be connected.
    func tunnelFailed(_ connection: RelayedConnection, _ error: any Error) {
        connection.tunnel?.request.failure = ConnectFailure(dialError: error)
        passToProxy(connection)
    }

    /// Passes a client to the proxy, which serves it or gives it the reason of a failure. Does nothing if it is gone, or
    /// if its port is frozen, so that all connections leave it.
    package func passToProxy(_ token: RelayToken, _ failure: ConnectFailure?) {
        guard let connection = activeConnection(token), connection.tunnel != nil else { return }
        connection.tunnel?.request.failure = failure
        passToProxy(connection)
    }

    private func passToProxy(_ connection: RelayedConnection) {
        let takeOver = connection.port.configuration.tunnels?.takeOver
        if let detached = detach(connection) { takeOver?(detached) }
    }

    private func reply(_ bytes: ByteBuffer, to connection: RelayedConnection) -> Bool {
        let client = connection.sockets.up.descriptor
        return bytes.withUnsafeReadableBytes { bytes in
            send(client, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count
        }
    }
}
#endif
