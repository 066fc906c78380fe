/// Names one connection on a link for as long as it is there; a name is never used twice.
public struct FlowID: Hashable, Sendable, CustomStringConvertible {
    /// The flow's place in the link's table; places are used again.
    public let index: Int
    /// How often the place had been used before.
    public let generation: UInt32

    public var description: String { "\(index).\(generation)" }
}

/// One connection on the link, in counts: what each end still has to send, and what is on its way.
///
///     client                                server
///       | SYN ---------------------------->  |
///       | <------------------------- SYN-ACK |   the client may send from here
///       | ACK, data ---------------------->  |   the server may send from here
///       | FIN, after the last byte           |
///
/// Decides what an end sends next; the ``Link`` decides when.
struct Flow: Sendable {
    var generation: UInt32 = 0
    var isInUse = false
    var up = Stream()
    var down = Stream()
    /// The server's port is closed: a SYN is answered by a RST.
    var isRefused = false
    /// The SYN has reached the server.
    var hasReachedServer = false

    /// What one end of a connection sends.
    struct Stream: Sendable {
        /// The packet of the handshake that is due, if one is.
        var handshake: Packet?
        /// The handshake is complete at this end: it may send data.
        var mayCarryData = false
        /// Bytes taken from the sender and not yet offered to the link.
        var unsent = 0
        var end = End.open
        /// A RST is due.
        var resetIsDue = false
        /// Waits in the pipe's line for a place in the queue, or for the link to heal.
        var isWaiting = false
        /// The sending end's socket is gone: what arrives for it is answered by a RST.
        var senderIsGone = false

        enum End: Sendable { case open, finIsDue, finSent }

        /// Takes the packet that this end would send now.
        mutating func takeNext() -> Packet? {
            if let packet = handshake {
                handshake = nil
                return packet
            }
            if resetIsDue {
                resetIsDue = false
                return .reset
            }
            guard mayCarryData else { return nil }
            if unsent > 0 {
                let bytes = min(unsent, PacketSize.segmentMax)
                unsent -= bytes
                return .data(bytes: bytes)
            }
            if end == .finIsDue {
                end = .finSent
                return .fin
            }
            return nil
        }

        /// Puts a packet back that found no place.
        mutating func putBack(_ packet: Packet) {
            switch packet {
            case .syn, .synAck, .ack: handshake = packet
            case .reset: resetIsDue = true
            case .data(let bytes): unsent += bytes
            case .fin: end = .finIsDue
            }
        }

        /// Forgets everything unsent, as a kernel does when a socket is reset.
        mutating func discard() {
            handshake = nil
            unsent = 0
            if end == .finIsDue { end = .open }
        }
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
}
