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
    /// A socket has sent everything handed to it before the ``Action/awaitDrain(_:)`` that asked.
    case drained(Side)
}

/// Something to be done to one of the two sockets of a connection.
public enum Action: Sendable {
    /// Write these bytes.
    case write(ByteBuffer, to: Side)
    /// Say ``Input/drained(_:)`` once everything written has been sent; nothing is written before that.
    case awaitDrain(Side)
    /// Close the sending side after everything written (FIN).
    case closeOutput(Side)
    /// Close both ways after everything written.
    case close(Side)
    /// Send what has been written at once, so that nothing written later joins it.
    case flush(Side)
    /// Close with a RST, dropping what is not yet sent.
    case reset(Side)
    /// Close with a RST once the peer has acknowledged everything written, or does not for a while.
    case resetAfterWrites(Side)
    /// Read no more from this socket.
    case pauseReading(Side)
    /// Read again from this socket.
    case resumeReading(Side)
    /// The connection is over; nothing follows. Sockets close by themselves once both directions have ended.
    case ended

    /// The socket it is for.
    var side: Side? {
        switch self {
        case .write(_, to: let side), .awaitDrain(let side), .closeOutput(let side), .close(let side),
            .flush(let side), .reset(let side), .resetAfterWrites(let side), .pauseReading(let side),
            .resumeReading(let side):
            side
        case .ended: nil
        }
    }
}

/// How a link treats a client that wants to connect.
public enum Reachability: Hashable, Sendable {
    /// Its SYN is answered.
    case open
    /// Its SYN is lost, or the answer is: it hears nothing.
    case silent
    /// Its SYN is answered by a RST.
    case refused
}

/// One proxied connection.
///
///     client socket -> [ lane up:   toxics ... entry ... link ... exit ] -> server socket
///     client socket <- [ lane down: exit ... link ... entry ... toxics ] <- server socket
///
/// Keeps the bytes that are in the lanes and what each end has closed. What travels when is the ``LinkModel/TCPLink``'s
/// business: it says how many bytes have arrived, the conduit knows which.
struct Conduit {
    var up = Lane()
    var down = Lane()
    /// What stands in the server's place, if its socket is not wanted.
    var portal: CaptivePortal?
    /// The fault that ended the connection, for captures.
    var faultDone: String?
    /// Follows the exchanges, if anybody watches them.
    var tracker: ExchangeTracker?
    /// Sockets that are gone, or reset by us.
    private var goneEnds = PerDirection(up: false, down: false)
    /// Sockets whose end the other side has been told of, or will be by the link.
    var lostEnds = PerDirection(up: false, down: false)
    /// The direction whose toxic closes both sockets as soon as the upstream is there: it was removed before the connection
    /// came to the link.
    var closesWhenConnected: Direction?
    /// A toxic closes both sockets: nothing is read any more.
    var isClosing = false

    /// The bytes of one direction between two sockets.
    struct Lane {
        var bytes = ByteQueue()
        /// How many bytes of the stream have left ``bytes`` at the front.
        var taken: Int64 = 0
        /// How many of them have arrived at the exit and wait for the socket.
        var arrived = 0
        /// How many of those came past the model, which knows nothing of them.
        var arrivedStraight = 0
        /// The FIN has arrived at the exit.
        var finHasArrived = false
        /// The FIN has been passed on.
        var isFinished = false
        /// The sender's RST has arrived at the exit.
        var resetHasArrived = false
        /// The sender's socket was gone, not reset by us: what had been read of it goes before its RST.
        var passesAllBeforeReset = false
        /// The sender's FIN has been read.
        var inputIsClosed = false
        /// What is done to the bytes before they enter; `nil` is nothing.
        var toxics: ToxicChain?
        /// What waits before them, as far as it is counted.
        var toxicBytes = 0
        /// There is no room for more behind the toxics.
        var isFull = false
        /// The sender's socket is not read.
        var isPaused = false
        /// The receiving socket is there: the upstream's, once it has answered.
        var isConnected = true
        /// What the receiving socket has been given since it was last known to have sent everything.
        var handedOver = 0
        /// Nothing is handed over until the receiving socket has sent everything.
        var awaitsDrain = false

        /// What decides whether there is room.
        var inflow: (isClosed: Bool, isFull: Bool, held: Int, arrivedStraight: Int) {
            (inputIsClosed, isFull, bytes.count, arrivedStraight)
        }

        /// What decides where bytes go that enter: whether there is an end before them, and whether nothing is.
        var entry: (isClosed: Bool, isFree: Bool) { (inputIsClosed, bytes.count == 0 && exitIsOpen) }

        /// When its toxics want to be asked again, whether they have no room, what they hold, and when they will be asked.
        var toxicState: (due: Instant?, isFull: Bool, held: Int, alarm: Instant?)? {
            toxics.map { ($0.nextDue(hasRoom: !isFull), $0.isFull, $0.count, $0.alarm) }
        }

        /// Counts what waits before toxics; gives by how much it has changed.
        mutating func countToxicBytes() -> Int {
            let held = toxics?.count ?? 0
            defer { toxicBytes = held }
            return held - toxicBytes
        }

        var exitIsOpen: Bool { isConnected && !awaitsDrain }

        /// Counts a piece that is handed over; `true` if the socket must send everything first now.
        ///
        /// A piece counts at least ``pieceCostMin``: a socket keeps so much for it, however small it is.
        mutating func handOver(_ bytes: Int, limit: Int) -> Bool {
            handedOver += max(bytes, Self.pieceCostMin)
            awaitsDrain = handedOver >= limit
            return awaitsDrain
        }

        static let pieceCostMin = 512
    }

    init() {
        up.isConnected = false
    }

    subscript(direction: Direction) -> Lane {
        // Lent, not copied: a copy counts the references in it.
        _read {
            switch direction {
            case .up: yield up
            case .down: yield down
            }
        }
        _modify {
            switch direction {
            case .up: yield &up
            case .down: yield &down
            }
        }
    }

    /// Whether the socket at `side` is gone.
    func isGone(_ side: Side) -> Bool { goneEnds[side.sendDirection] }

    /// The socket is gone; what had been read of it may still be on its way.
    mutating func noteGone(_ side: Side) { goneEnds[side.sendDirection] = true }

    mutating func markGone(_ side: Side) {
        goneEnds[side.sendDirection] = true
        self[side.sendDirection].inputIsClosed = true
    }

    /// Whether a toxic has had us close the socket at `side`, after everything for it.
    func isClosedByUs(_ side: Side) -> Bool { isClosing && self[side.opposite.sendDirection].isFinished }

    /// A fault keeps everything from the client, the server's end too.
    var isMuted: Bool { tracker?.isMuted == true }

    /// Muted, and both sides have closed: nobody waits for what could not come.
    var isMutedForGood: Bool {
        isMuted && down.inputIsClosed && (up.isFinished || (isGone(.server) && up.finHasArrived))
    }

    /// Nothing can happen any more.
    var isOver: Bool {
        if isClosing { return (isGone(.client) || down.isFinished) && (isGone(.server) || up.isFinished) }
        return (isGone(.client) && isGone(.server)) || (up.isFinished && down.isFinished)
    }

    /// Passes on what has arrived, as far as the receiving socket takes it: `limit` bytes until it has sent them. Gives how
    /// many of the model's bytes are out.
    mutating func deliver(_ direction: Direction, limit: Int, into actions: inout [Action]) -> Int {
        let receiver = direction.receiver
        let before = self[direction].arrived
        if isGone(receiver) {
            self[direction].bytes.drop(self[direction].arrived)
            self[direction].taken += Int64(self[direction].arrived)
            self[direction].arrived = 0
            return 0
        }
        while self[direction].exitIsOpen,
            let piece = self[direction].bytes.takePiece(atMost: min(self[direction].arrived, limit))
        {
            self[direction].arrived -= piece.readableBytes
            self[direction].taken += Int64(piece.readableBytes)
            actions.append(.write(piece, to: receiver))
            if self[direction].handOver(piece.readableBytes, limit: limit) { actions.append(.awaitDrain(receiver)) }
        }
        if self[direction].isConnected && self[direction].arrived == 0 && self[direction].finHasArrived
            && !self[direction].isFinished
        {
            self[direction].isFinished = true
            actions.append(isClosing ? .close(receiver) : .closeOutput(receiver))
        }
        // Which of them are the model's is not known; sooner or later all of them are counted.
        let out = before - self[direction].arrived
        let straight = min(out, self[direction].arrivedStraight)
        self[direction].arrivedStraight -= straight
        return out - straight
    }
}
