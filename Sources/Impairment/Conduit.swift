public import LinkModel
public import NIOCore

/// A fact about one of the two sockets of a connection.
public enum Input: Sendable {
    /// The upstream has answered the dial.
    case connected
    /// Bytes were read from a socket.
    case bytes(ByteBuffer, from: Side)
    /// The peer at a socket has closed its sending side (FIN).
    case inputClosed(Side)
    /// A socket is gone: reset by its peer, or failed, or never connected.
    case gone(Side)
    /// A socket can take more, or cannot for now.
    case writable(Side, Bool)
}

/// Something to be done to one of the two sockets of a connection.
public enum Action: Sendable {
    /// Write these bytes.
    case write(ByteBuffer, to: Side)
    /// Close the sending side after everything written (FIN).
    case closeOutput(Side)
    /// Close with a RST, dropping what is not yet sent.
    case reset(Side)
    /// Read no more from this socket.
    case pauseReading(Side)
    /// Read again from this socket.
    case resumeReading(Side)
    /// The connection is over; nothing follows. Sockets close by themselves once both directions have ended.
    case ended
}

/// One proxied connection.
///
///     client socket -> [ lane up:   entry ... link ... exit ] -> server socket
///     client socket <- [ lane down: exit  ... link ... entry ] <- server socket
///
/// Keeps the bytes that are in the lanes and what each end has closed. What travels when is the ``LinkModel/Link``'s
/// business: it says how many bytes have arrived, the conduit knows which.
struct Conduit {
    private(set) var up = Lane()
    private(set) var down = Lane()
    /// Sockets that are gone, or reset by us.
    private var goneEnds = PerDirection(up: false, down: false)

    /// The bytes of one direction between two sockets.
    struct Lane {
        var bytes = ByteQueue()
        /// How many of them have arrived at the exit and wait for the socket.
        var arrived = 0
        /// The FIN has arrived at the exit.
        var finHasArrived = false
        /// The FIN has been passed on.
        var isFinished = false
        /// The sender's FIN has been read.
        var inputIsClosed = false
        var isPaused = false
        /// The receiving socket can take bytes.
        var exitIsOpen = true
    }

    init() {
        up.exitIsOpen = false  // until the upstream answers
    }

    subscript(direction: Direction) -> Lane {
        get { direction == .up ? up : down }
        _modify {
            switch direction {
            case .up: yield &up
            case .down: yield &down
            }
        }
    }

    /// Whether the socket at `side` is gone.
    func isGone(_ side: Side) -> Bool { goneEnds[side.sends] }

    mutating func markGone(_ side: Side) {
        goneEnds[side.sends] = true
        self[side.sends].inputIsClosed = true
    }

    /// Nothing can happen any more.
    var isOver: Bool {
        (isGone(.client) && isGone(.server)) || (up.isFinished && down.isFinished)
    }

    /// Passes on what has arrived, as far as the receiving socket takes it.
    mutating func deliver(_ direction: Direction, into actions: inout [Action]) {
        let receiver = direction.receiver
        if isGone(receiver) {
            self[direction].bytes.drop(self[direction].arrived)
            self[direction].arrived = 0
            return
        }
        guard self[direction].exitIsOpen else { return }
        while let piece = self[direction].bytes.takePiece(atMost: self[direction].arrived) {
            self[direction].arrived -= piece.readableBytes
            actions.append(.write(piece, to: receiver))
        }
        if self[direction].finHasArrived && !self[direction].isFinished {
            self[direction].isFinished = true
            actions.append(.closeOutput(receiver))
        }
    }
}
