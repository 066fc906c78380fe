#if os(Linux)
internal import CRelay
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension RelayLoop {
    /// Closes both sockets with a FIN, or a RST where requested, and releases the connection's slot.
    func close(_ connection: RelayedConnection, resetting sides: [Side] = []) {
        for side in sides where connection.sockets[side.sendDirection].descriptor >= 0 {
            ResetOnClose.arm(connection.sockets[side.sendDirection].descriptor)
        }
        // The records are withdrawn before the local port can be reused.
        connection.dialRecords = []
        for direction in Direction.allCases {
            if connection.sockets[direction].descriptor >= 0 {
                SystemSocket.close(connection.sockets[direction].descriptor)
            }
            connection.discardHeldBytes(direction, buffers.pipes)
        }
        connection.closeEarlierDials()
        remove(connection)
        let (port, token) = (connection.port, connection.port.token)
        let wasFull = port.configuration.slots.release()
        // After the release, because the proxy may accept a client then.
        port.configuration.onClosed?(
            connection.token,
            PerDirection(up: connection.streams.up.bytesRead, down: connection.streams.down.bytesRead))
        if port.isWaitingForSlot {
            yielded.append(token)
        } else if wasFull && port.acceptor !== relay {
            port.acceptor.perform { $0.slotReleased(token) }
        }
    }

    /// Removes a connection, which continues elsewhere. If a peer is gone, closes the connection and returns `nil`.
    func detach(_ connection: RelayedConnection) -> DetachedConnection? {
        if connection.abortDeadline != nil {
            close(connection, resetting: [.client, .server])
            return nil
        }
        if connection.isDialling, !connection.earlierDials.isEmpty { _ = connection.selectEstablishedDial() }
        let server = connection.sockets.down.descriptor
        // A dial may be established before its event is handled. It is kept, so that the server gets one
        // connection.
        let isDialling = connection.isDialling && (try? SystemSocket.remoteAddress(of: server)) == nil
        if !isDialling, !tunnelEstablished(connection) { return nil }
        let status = connection.status
        for direction in Direction.allCases where connection.sockets[direction].descriptor >= 0 {
            _ = crelay_epoll_remove(epoll, connection.sockets[direction].descriptor)
        }
        connection.closeEarlierDials()
        if isDialling && server >= 0 { SystemSocket.close(server) }
        let pending = connection.takeHeldBytes(buffers.pipes)
        remove(connection)
        // These bytes are counted again where the connection continues.
        connection.port.traffic.bytesRead.up -= pending.up.readableBytes
        connection.port.traffic.bytesRead.down -= pending.down.readableBytes
        return DetachedConnection(
            status: status, seed: connection.seed,
            client: OwnedSocket(connection.sockets.up.descriptor),
            server: isDialling ? nil : OwnedSocket(server), pending: pending,
            isFinished: PerDirection(
                up: connection.streams.up.hasForwardedFIN, down: connection.streams.down.hasForwardedFIN),
            proxiesPassed: connection.proxiesPassed, dialRecords: isDialling ? [] : connection.dialRecords,
            tunnel: connection.tunnel?.request)
    }

    private func remove(_ connection: RelayedConnection) {
        let index = connection.token.index
        precondition(connections[index] === connection, "a relayed connection was removed twice")
        connections[index] = nil
        freeIndices.append(index)
        connection.port.connections.remove(index)
        relay.connectionClosed()
    }
}
#endif
