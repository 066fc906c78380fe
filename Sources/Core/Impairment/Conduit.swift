internal import LinkModel
internal import NIOCore
internal import Wire

/// One proxied connection.
///
///     client socket -> [ stream up:   toxics ... entry ... link ... exit ] -> server socket
///     client socket <- [ stream down: exit ... link ... entry ... toxics ] <- server socket
///
/// Holds the bytes of both streams and the state of both sockets. ``TCPModel/TCPLink`` counts bytes and determines when
/// they arrive.
struct Conduit {
    var up = Stream()
    var down = Stream()
    /// Whether the establishment of the connection has still to be reported, and what is missing.
    var establishment: Establishment?
    /// The captive portal that responds instead of the server, if there is one.
    var portal: CaptivePortal?
    /// The injected fault that ended the connection, for captures.
    var faultCause: String?
    /// The tracker of the connection's exchanges, if they are tracked.
    var tracker: ExchangeTracker?
    /// Whether the driver ends the client's TLS.
    var isIntercepted = false
    /// The first message of a client of TLS, once it is known.
    var clientHello: ClientHello?
    /// Sockets that are gone, or that a ``SocketAction/reset(_:)`` has closed.
    private var goneSockets = PerDirection(up: false, down: false)
    /// Sockets whose RST crosses the link, or has crossed it.
    var resetSockets = PerDirection(up: false, down: false)
    /// The stream whose `timeout` toxic was removed while the connection was on the fast path: both sockets are closed
    /// as soon as the upstream is connected.
    var streamClosedOnConnect: Direction?
    /// Whether both sockets are being closed by a toxic or a call. Bytes read in this state are discarded.
    var isClosing = false

    /// An establishment that is not complete.
    struct Establishment {
        /// Whether the modelled handshake is complete for the client.
        var handshakeIsComplete = false
    }

    init() {
        up.isConnected = false
    }

    subscript(direction: Direction) -> Stream {
        get { direction == .up ? up : down }
        _modify {
            switch direction {
            case .up: yield &up
            case .down: yield &down
            }
        }
    }

    /// Returns whether the socket at `side` is gone.
    func isGone(_ side: Side) -> Bool { goneSockets[side.sendDirection] }

    /// Records that a socket is gone. Bytes read from it before may still be in flight.
    mutating func recordGone(_ side: Side) { goneSockets[side.sendDirection] = true }

    /// Records that a socket is gone and that its input has ended.
    mutating func recordGoneAndInputClosed(_ side: Side) {
        goneSockets[side.sendDirection] = true
        self[side.sendDirection].inputIsClosed = true
    }

    /// Returns whether the link has closed the socket at `side`, after all bytes for it.
    func isClosedByLink(_ side: Side) -> Bool { isClosing && self[side.opposite.sendDirection].isFinished }

    /// Whether the actions of the tracker are being executed.
    var isRunningTracker = false

    /// Returns whether a fault withholds the end of a stream: its sender's FIN or RST.
    func withholdsEnd(_ direction: Direction) -> Bool { tracker?.withholdsEnd[direction] == true }

    /// The socket of a connection with a stalled stream that must be aborted, because its peer has no further effect.
    var socketEndedByMute: Side? {
        if withholdsEnd(.down), down.inputIsClosed, up.isFinished || (isGone(.server) && up.finHasArrived) {
            return .client
        }
        if withholdsEnd(.up), isGone(.client), down.inputIsClosed { return .server }
        return nil
    }

    /// Whether the connection is closed after a response that a fault or the portal has sent.
    var isClosedByReply: Bool { tracker?.hasClosed == true || portal?.hasClosed == true }

    /// Whether only the client's FIN is left of a connection that is closed after such a response.
    var awaitsClientsFIN: Bool {
        isClosedByReply && down.isFinished && !down.awaitsDrain && !isGone(.client)
            && (portal != nil || tracker?.discardsFrom.up != nil)
    }

    /// Whether the time for that FIN is limited.
    var isFINTimed = false

    /// Whether further events of both sockets would have no effect.
    var hasEnded: Bool {
        if isClosing { return (isGone(.client) || down.isFinished) && (isGone(.server) || up.isFinished) }
        if isClosedByReply, isGone(.server), up.finHasArrived, down.isFinished { return true }
        return isOver(.client) && isOver(.server)
    }

    /// Whether further events of the socket at `side` would have no effect: it is gone, or both of its streams have ended.
    private func isOver(_ side: Side) -> Bool {
        isGone(side) || (self[side.sendDirection].inputIsClosed && self[side.opposite.sendDirection].isFinished)
    }

    /// Bytes of both streams that have passed the toxics.
    var streamBytes: Int { up.bytes.count + down.bytes.count }

    /// Bytes of both streams, those before toxics included.
    var bytesHeld: Int { streamBytes + up.toxicBytes + down.toxicBytes }

    /// Writes up to `allowance` bytes that have arrived, and then the FIN. Writing pauses when the receiving socket
    /// holds `limit` unsent bytes. Returns how many of the written or discarded bytes passed through the TCP model.
    mutating func deliver(
        _ direction: Direction, limit: Int, allowance: Int, into actions: inout [SocketAction]
    ) -> Int {
        let receiver = direction.receiver
        if isGone(receiver) {
            self[direction].dropArrived()
            return 0
        }
        let bytesLeft: Int
        if tracker?.discardsArrived(direction) == true {
            bytesLeft = self[direction].discardArrived()
            if withholdsEnd(direction) { return bytesLeft }
        } else {
            bytesLeft = self[direction].writeArrived(to: receiver, limit: limit, allowance: allowance, into: &actions)
        }
        // With a tracker the FIN follows by itself, after the faults of the bytes before it.
        if tracker != nil, !actions.isEmpty || tracker?.mayEnd(direction) == false { return bytesLeft }
        if self[direction].mayFinish {
            self[direction].isFinished = true
            actions.append(isClosing ? .close(receiver) : .closeOutput(receiver))
        }
        return bytesLeft
    }
}
