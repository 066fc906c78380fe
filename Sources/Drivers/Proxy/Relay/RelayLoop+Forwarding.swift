#if os(Linux)
internal import CRelay
internal import HeapModule
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension RelayLoop {
    /// The time between checks for unacknowledged bytes before a connection is aborted.
    private static let drainCheckInterval = TimeAmount.milliseconds(10)

    /// Handles one epoll event.
    func handle(_ events: UInt32, of token: RelayToken) {
        switch token.kind {
        case .wakeup:
            for job in relay.takeJobs() { job(self) }
        case .listener:
            if let port = ports[token] { accept(port) }
        case .client, .server:
            if let connection = activeConnection(token) { handle(events, of: connection, token.kind) }
        }
    }

    private func handle(_ reported: UInt32, of connection: RelayedConnection, _ kind: RelayToken.Kind) {
        var events = reported
        let direction: Direction = kind == .client ? .up : .down
        // All dials of a connection have the same token: the event may belong to one that was closed in this round.
        if kind == .server, connection.dialsClosedInRound == round {
            events = SystemSocket.events(of: connection.sockets.down.descriptor)
        }
        let hasHangup = events & (CRELAY_EPOLLRDHUP | CRELAY_EPOLLHUP | CRELAY_EPOLLERR) != 0
        if hasHangup { connection.sockets[direction].hasHangup = true }
        if events & CRELAY_EPOLLPRI != 0 { connection.sockets[direction].hasUrgentData = true }
        if hasHangup || events & (CRELAY_EPOLLIN | CRELAY_EPOLLPRI) != 0 {
            connection.sockets[direction].isReadable = true
        }
        if events & (CRELAY_EPOLLOUT | CRELAY_EPOLLHUP | CRELAY_EPOLLERR) != 0 {
            connection.sockets[direction].isWritable = true
        }
        if events & CRELAY_EPOLLERR != 0 { connection.sockets[direction].hasError = true }
        connection.lastActiveRound = round
        connection.lastActive = .now()
        if connection.isDialling {
            if kind == .client {
                // The client reset the connection; the server gets a RST instead of a connection without a client.
                if connection.sockets.up.hasError {
                    close(connection, resetting: [.server])
                } else if connection.isNegotiating {
                    negotiate(connection)
                }
                return
            }
            guard dialIsEstablished(connection), tunnelEstablished(connection) else { return }
        }
        forward(connection, first: direction)
    }

    /// Forwards both directions until each is blocked, ended or has used up its turn.
    func forward(_ connection: RelayedConnection, first: Direction) {
        guard forward(connection, first), forward(connection, first.opposite) else { return }
        // If the second direction has found that a peer is gone, the first one runs again to discard its bytes, or
        // to read what that peer sent before.
        if connection.hasPeerGone, !forward(connection, first) { return }
        if connection.isYielded { return }
        // While the receiver is full, no read reports that the sender is gone.
        let hasError = Direction.allCases.contains { connection.sockets[$0].hasError }
        if hasError || connection.hasPeerGone { abortWhenDrained(connection) }
    }

    /// Forwards one direction; `false` if the connection is closed.
    private func forward(_ connection: RelayedConnection, _ direction: Direction) -> Bool {
        switch connection.forward(direction, buffers) {
        case .blocked, .peerGone: return true
        case .yielded:
            if !connection.isYielded {
                connection.isYielded = true
                yielded.append(connection.token)
            }
            return true
        case .finished:
            close(connection)
            return false
        }
    }

    /// Aborts a connection with one peer left: sends a RST to that peer when it has acknowledged everything
    /// received before, or after ``RelayedConnection/abortDelayMax``.
    private func abortWhenDrained(_ connection: RelayedConnection) {
        let now = NIODeadline.now()
        let deadline = connection.abortDeadline ?? now + RelayedConnection.abortDelayMax
        let survivors = [Side.client, .server].filter {
            !connection.sockets[$0.sendDirection].isPeerGone && !connection.sockets[$0.sendDirection].hasError
        }
        let isDrained = survivors.allSatisfy { side in
            let stream = connection.streams[side.opposite.sendDirection]
            return stream.isAtEnd && stream.bytesHeld == 0 && !connection.hasUnacknowledgedBytes(to: side)
        }
        if isDrained || deadline <= now { return close(connection, resetting: survivors) }
        connection.abortDeadline = deadline
        if connection.hasAbortTimer { return }
        connection.hasAbortTimer = true
        timers.insert(Timer(deadline: min(deadline, now + Self.drainCheckInterval), token: connection.token))
    }
}
#endif
