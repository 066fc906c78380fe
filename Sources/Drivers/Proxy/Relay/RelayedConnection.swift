#if os(Linux)
internal import LinkModel
internal import NIOCore

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A connection that a relay forwards: the client's and the server's socket, and the bytes held between them.
final class RelayedConnection {
    /// The state of a socket.
    struct Socket {
        var descriptor: CInt
        var isReadable = false
        var isWritable = false
        /// Whether the peer has sent a FIN or a RST, or the socket has failed; a read distinguishes the cases.
        var hasHangup = false
        /// Whether the kernel has reported an error; bytes received before it can still be read.
        var hasError = false
        /// Whether the peer is gone, so that writes fail; bytes received before can still be read.
        var isPeerGone = false
        /// Whether urgent data (TCP's URG) have arrived: a read stops before them although more bytes follow.
        var hasUrgentData = false
    }

    /// One direction of the connection.
    struct Stream {
        /// Holds the bytes that were spliced.
        var pipe: Pipe?
        /// Holds the bytes that were copied, from `bufferOffset` on.
        var buffer: UnsafeMutableRawPointer?
        var bufferOffset = 0
        /// The number of bytes in `pipe` or in `buffer`.
        var bytesHeld = 0
        var bytesRead = 0
        /// Whether the next read goes through a pipe, because the last one filled the buffer.
        var usesPipe = false
        /// Whether the sender's FIN or RST was read.
        var isAtEnd = false
        var hasForwardedFIN = false
    }

    /// The state of a client without a tunnel; a class, because most connections have none and it is larger than they are.
    final class Tunnel {
        var request: TunnelRequest

        init(_ request: TunnelRequest) { self.request = request }
    }

    let port: RelayPort
    let token: RelayToken
    /// -1 until the server of a client that names its destination is dialled.
    var number: Int
    var seed: UInt64
    let startedAt: NIODeadline
    /// The sockets by the direction in which they send: the client's is `up`.
    var sockets: PerDirection<Socket>
    var streams = PerDirection(up: Stream(), down: Stream())
    /// The state of a client that names its destination, until its tunnel is established.
    var tunnel: Tunnel?
    /// Whether the server is not connected.
    var isDialling = true
    /// Upstream addresses not dialled yet.
    var remainingAddresses: ArraySlice<SocketAddress> = []
    /// Pending dials to earlier addresses; the first that is established is used.
    var earlierDials: [CInt] = []
    let proxiesPassed: [Int]
    var dialRecords: [DialRecord] = []
    /// The round in which a dial was last closed; later events of that round may belong to it.
    var dialsClosedInRound: UInt64?
    /// Whether the connection continues in the relay's next round.
    var isYielded = false
    /// The time at which the next address is dialled or the connection attempt fails; timers with another deadline
    /// are obsolete.
    var dialTimer: NIODeadline?
    /// The time at which the connection attempt fails unless a dial is established.
    var connectDeadline: NIODeadline
    /// The relay's round of the last event.
    var lastActiveRound: UInt64 = 0
    /// The time of the last event.
    var lastActive: NIODeadline
    /// The deadline of the abort, once one peer is gone.
    var abortDeadline: NIODeadline?
    /// Whether a timer is pending that checks if the connection can be aborted.
    var hasAbortTimer = false
    /// The time in which the remaining peer must acknowledge the bytes received before the other one was gone:
    /// enough for TCP's retransmissions on a lossy network, and a bound for a receiver that does not read.
    static let abortDelayMax = TimeAmount.seconds(5)

    init(_ accepted: AcceptedConnection, token: RelayToken, port: RelayPort) {
        self.port = port
        self.token = token
        number = accepted.number
        seed = accepted.seed
        startedAt = accepted.startedAt
        lastActive = accepted.startedAt
        tunnel = accepted.tunnel.map(Tunnel.init)
        connectDeadline = startedAt + port.configuration.connectTimeout
        proxiesPassed = accepted.proxiesPassed
        let client = accepted.client.take()
        precondition(client >= 0, "an accepted connection was given to two relays")
        sockets = PerDirection(up: Socket(descriptor: client), down: Socket(descriptor: -1))
    }

    /// Whether the client has not named its destination.
    var isNegotiating: Bool { tunnel.map { $0.request.destination == nil } ?? false }

    /// Whether a peer is gone.
    var hasPeerGone: Bool { sockets.up.isPeerGone || sockets.down.isPeerGone }

    /// Returns whether no byte has passed for a time, and nothing is outstanding: no bytes are held or unread, and no
    /// client awaits its tunnel, and no client that has sent its FIN awaits the server's.
    func isIdle(for time: TimeAmount, at now: NIODeadline) -> Bool {
        now - lastActive >= time && (tunnel == nil || isNegotiating)
            && (!streams.up.isAtEnd || streams.down.isAtEnd)
            && Direction.allCases.allSatisfy { streams[$0].bytesHeld == 0 && !sockets[$0].isReadable }
    }

    /// Returns whether a peer has not acknowledged all bytes written to its socket.
    func hasUnacknowledgedBytes(to side: Side) -> Bool {
        SystemSocket.unacknowledgedBytes(of: sockets[side.sendDirection].descriptor) > 0
    }

    /// The state now.
    var status: RelayedConnectionStatus {
        RelayedConnectionStatus(
            token: token, number: number, client: try? SystemSocket.remoteAddress(of: sockets.up.descriptor),
            startedAt: startedAt, lastActive: lastActive,
            bytesRead: PerDirection(up: streams.up.bytesRead, down: streams.down.bytesRead),
            bytesHeld: PerDirection(up: streams.up.bytesHeld, down: streams.down.bytesHeld))
    }
}
#endif
