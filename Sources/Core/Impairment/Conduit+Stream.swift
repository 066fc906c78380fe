internal import LinkModel
internal import NIOCore

extension Conduit {
    /// The bytes of one direction between two sockets.
    struct Stream {
        /// Bytes that have passed the toxics and have not been written: first those that have arrived, then those on
        /// the link.
        var bytes = ByteQueue()
        /// The number of bytes of the stream passed to the TCP model.
        var bytesSent: Int64 = 0
        /// The number of bytes at the front of ``bytes`` that have arrived and are not yet written to the receiving
        /// socket.
        var arrived = 0
        /// The part of ``arrived`` that bypassed the TCP model.
        var arrivedPassThrough = 0
        /// Whether the FIN has arrived.
        var finHasArrived = false
        /// Whether the FIN has been passed to the receiving socket.
        var isFinished = false
        /// Whether the sender's RST has arrived.
        var resetHasArrived = false
        /// Whether bytes read from the sender's socket are delivered before its RST. A `reset_peer` toxic drops them
        /// instead.
        var deliversBeforeReset = false
        /// Whether the sender's FIN has been read, or its socket is gone.
        var inputIsClosed = false
        /// The toxics that bytes pass before they enter the link; `nil` if there are none.
        var toxics: ToxicChain?
        /// The bytes that wait in the tracker for a fault.
        var faultBytes = 0
        /// The bytes queued in the toxics and in the tracker, as last reported to ``ConnectionBudget``.
        var toxicBytes = 0
        /// Whether the stream accepts no more bytes from its toxics or, without toxics, from its sender.
        var isFull = false { didSet { toxics?.hasRoom = !isFull } }
        /// Whether reading from the sender's socket is paused.
        var isPaused = false
        /// Whether the receiving socket is connected.
        var isConnected = true
        /// Bytes written to the receiving socket since its last ``SocketEvent/drained(_:)``.
        var bytesWritten = 0
        /// Whether writes are paused until the receiving socket has sent everything.
        var awaitsDrain = false

        /// The minimum cost of a write in bytes: a socket keeps a buffer of about this size for a small piece.
        static let pieceCostMin = 512

        /// Whether the receiving socket accepts writes.
        var acceptsWrites: Bool { isConnected && !awaitsDrain }

        /// Whether the FIN may be passed to the receiving socket now.
        var mayFinish: Bool { isConnected && arrived == 0 && finHasArrived && !isFinished }

        /// Counts a piece written to the socket. Returns whether the socket must send everything before the next write.
        mutating func recordWrite(_ bytes: Int, limit: Int) -> Bool {
            bytesWritten += max(bytes, Self.pieceCostMin)
            awaitsDrain = bytesWritten >= limit
            return awaitsDrain
        }

        /// Adds bytes that have entered the link.
        mutating func append(_ buffer: ByteBuffer, isPassThrough: Bool) {
            bytes.append(buffer)
            if isPassThrough {
                arrived += buffer.readableBytes
                arrivedPassThrough += buffer.readableBytes
            } else {
                bytesSent += Int64(buffer.readableBytes)
            }
        }

        /// Drops the last bytes, which the TCP model has not sent.
        mutating func dropUnsent(_ count: Int) {
            precondition(count <= bytes.count - arrived, "more bytes are unsent than are on the link")
            bytes.dropLast(count)
            bytesSent -= Int64(count)
        }

        /// Drops bytes that have arrived for a socket that is gone.
        mutating func dropArrived() {
            bytes.drop(arrived)
            arrived = 0
        }

        /// Discards bytes that have arrived. Returns how many of them passed through the TCP model.
        mutating func discardArrived() -> Int {
            let count = arrived - arrivedPassThrough
            dropArrived()
            arrivedPassThrough = 0
            return count
        }

        /// Writes up to `allowance` bytes that have arrived until the receiving socket accepts no more. Returns how
        /// many of them passed through the TCP model.
        mutating func writeArrived(
            to receiver: Side, limit: Int, allowance: Int, into actions: inout [SocketAction]
        ) -> Int {
            let before = arrived
            var allowance = allowance
            while acceptsWrites, let piece = bytes.takePiece(atMost: min(arrived, limit, allowance)) {
                arrived -= piece.readableBytes
                allowance -= piece.readableBytes
                actions.append(.write(piece, to: receiver))
                if recordWrite(piece.readableBytes, limit: limit) { actions.append(.awaitDrain(receiver)) }
            }
            // The order of both kinds of bytes is not stored. The bytes that bypassed the model are counted first; the
            // totals are exact once all bytes have been written.
            let bytesLeft = before - arrived
            let passThrough = min(bytesLeft, arrivedPassThrough)
            arrivedPassThrough -= passThrough
            return bytesLeft - passThrough
        }

        /// Updates ``isFull`` and returns whether it has changed. A full stream accepts no further read, so it holds at
        /// most its share plus one read.
        mutating func updateIsFull(share: Int, faultShare: Int, passThroughMax: Int, hasSendRoom: Bool) -> Bool {
            if inputIsClosed { return false }
            let held = bytes.count
            let mayTake = arrivedPassThrough < passThroughMax && hasSendRoom && faultBytes < faultShare
            if !isFull, held >= share || !mayTake {
                isFull = true
            } else if isFull, held <= share / 2, mayTake {
                isFull = false
            } else {
                return false
            }
            return true
        }

        /// Updates ``toxicBytes``. Returns the change.
        mutating func updateToxicBytes() -> Int {
            let held = (toxics?.count ?? 0) + faultBytes
            defer { toxicBytes = held }
            return held - toxicBytes
        }

        /// Returns the bytes at an offset of the TCP model's stream; `nil` if some of them have been written to a
        /// socket.
        func payload(at offset: Int64, count: Int) -> ByteBuffer? {
            let fromEnd = Int(bytesSent - offset)
            // Bytes that bypassed the model are among those that have arrived; all later bytes passed through the
            // model.
            guard arrivedPassThrough == 0 || fromEnd <= bytes.count - arrived else { return nil }
            return bytes.copy(at: bytes.count - fromEnd, count: count)
        }
    }
}
