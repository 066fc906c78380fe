internal import Determinism
internal import LinkModel
internal import TCPModel

/// The ends of streams and connections: FIN, RST, orphans.
extension SharedLink {
    /// Handles the FIN of the peer at `side`, which follows the bytes over the link and those in the tracker.
    mutating func closeInput(_ side: Side, _ id: FlowID) {
        guard conduits[id].tracker != nil else { return finishInput(side, id) }
        if side == .client { discardAfterReport(id) }
        guard conduits.contains(id) else { return }
        conduits[id].tracker?.ended(side.sendDirection, .finished, &recorder.exchanges, at: now)
        runTracker(id)
    }

    /// Sends the FIN of the peer at `side` over the link.
    mutating func finishInput(_ side: Side, _ id: FlowID) {
        if conduits[id, side.sendDirection].inputIsClosed { return }
        conduits[id, side.sendDirection].inputIsClosed = true
        if conduits[id].withholdsEnd(side.sendDirection) {
            if side == .client { trackOrphan(id) }
        } else {
            tcp.finish(id, side.sendDirection, at: now)
        }
        if conduits.contains(id) { removeIfEnded(id) }
    }

    /// Handles the end of the socket at `side`.
    mutating func socketGone(_ side: Side, _ id: FlowID) {
        if conduits[id].withholdsEnd(side.sendDirection) { return goneMuted(side, id) }
        if conduits[id].isClosedByLink(side) {
            // The other socket is closed separately.
            conduits[id].recordGone(side)
            return removeIfEnded(id)
        }
        let wasHeld = side == .client && conduits[id].tracker?.hold?.isReport == true
        if wasHeld {
            // Nothing more is written to the socket.
            conduits[id].recordGone(side)
            discardAfterReport(id)
        }
        guard conduits.contains(id) else { return }
        if side == .server && conduits[id].isClosedByReply && conduits[id].portal == nil {
            // The client's stream has its end already.
            conduits[id].recordGoneAndInputClosed(.server)
            return deliver(id, .up)
        }
        guard conduits[id, side.sendDirection].toxics?.isHolding == true else { return trackGone(side, id) }
        // The bytes that wait before the toxics are delivered first.
        if conduits[id].isGone(side) && !wasHeld { return }
        conduits[id].recordGone(side)
        conduits[id, side.sendDirection].toxics?.finish(.gone)
        trackOrphan(id)
        if conduits.contains(id) { runToxics(id, side.sendDirection) }
        if conduits.contains(id) { deliver(id, side.opposite.sendDirection) }
    }

    /// Discards what a client has sent beyond the point of a reported fault, because its socket is closed.
    private mutating func discardAfterReport(_ id: FlowID) {
        guard conduits[id].tracker?.hold?.isReport == true else { return }
        conduits[id].tracker?.discardAfterReport(&recorder.exchanges)
        runTracker(id)
    }

    /// Handles the end of a socket whose stream has left the toxics.
    mutating func trackGone(_ side: Side, _ id: FlowID) {
        guard conduits[id].tracker != nil, !conduits[id].resetSockets[side.sendDirection] else {
            return peerGone(side, id)
        }
        conduits[id].tracker?.ended(side.sendDirection, .gone, &recorder.exchanges, at: now)
        let isWaiting = conduits[id].tracker?.waitingEnds[side.sendDirection] != nil
        if isWaiting { conduits[id].recordGone(side) }
        runTracker(id)
        guard isWaiting, conduits.contains(id) else { return }
        trackOrphan(id)
        // Bytes for the socket are dropped.
        if conduits.contains(id) { deliver(id, side.opposite.sendDirection) }
    }

    /// Handles the end of a socket that has left the tracker.
    mutating func goneTracked(_ side: Side, _ id: FlowID) {
        if conduits[id].withholdsEnd(side.sendDirection) { goneMuted(side, id) } else { peerGone(side, id) }
    }

    /// Handles the end of a socket whose stream is stalled: its peer does not learn of it.
    private mutating func goneMuted(_ side: Side, _ id: FlowID) {
        conduits[id].recordGoneAndInputClosed(side)
        if side == .client { trackOrphan(id) }
        guard conduits.contains(id) else { return }
        deliver(id, side.opposite.sendDirection)
    }

    /// Sends the RST of a socket that is gone over the link, after the bytes that were read from that socket.
    ///
    /// - Parameter dropsUnsent: Whether bytes that TCP has not sent are dropped, so that the RST precedes them.
    mutating func peerGone(_ side: Side, _ id: FlowID, dropsUnsent: Bool = false) {
        if conduits[id].resetSockets[side.sendDirection] { return }
        conduits[id].resetSockets[side.sendDirection] = true
        conduits[id].recordGoneAndInputClosed(side)
        dropToxics(id, side.sendDirection)
        let isSending = !dropsUnsent && conduits[id, side.sendDirection].bytes.count > 0
        if side == .client && !tcp.hasReachedServer(id) && (!isSending || hasOutage(.up) || hasOutage(.down)) {
            // The SYN has not reached the modelled server, and either nothing is to be sent or the handshake cannot
            // complete.
            emit(.reset(.server), id)
            return end(id)
        }
        if dropsUnsent {
            let unsent = tcp.bytesUnsent(id, side.sendDirection)
            conduits[id, side.sendDirection].dropUnsent(unsent)
            budget.changeStreamBytes(by: -unsent)
        }
        conduits[id, side.sendDirection].deliversBeforeReset = !dropsUnsent
        tcp.abort(id, from: side, afterSending: !dropsUnsent, at: now)
        deliver(id, side.opposite.sendDirection)
        if conduits.contains(id) { removeIfEnded(id) }
        if conduits.contains(id) { trackOrphan(id) }
    }

    /// Limits the lifetime of a connection with one socket left, because the RST of the other may be lost.
    mutating func trackOrphan(_ id: FlowID) {
        if let oldest = orphans.insert(id, at: now, in: conduits) { resetBothSockets(oldest) }
    }

    /// Limits the time that a client has for its FIN after a response has closed the connection. The server's socket may
    /// remain open meanwhile.
    mutating func limitWaitForFIN(_ id: FlowID) {
        guard conduits[id].awaitsClientsFIN, !conduits[id].isFINTimed else { return }
        conduits[id].isFINTimed = true
        trackOrphan(id)
    }

    /// Passes a RST that has crossed the link to the receiving socket, after the bytes that arrived before it.
    mutating func passReset(_ id: FlowID, _ direction: Direction) {
        let receiver = direction.receiver
        if !conduits[id].isGone(receiver) {
            if conduits[id].withholdsEnd(direction) {
                conduits[id].recordGoneAndInputClosed(direction.sender)
                return removeIfEnded(id)
            }
            if conduits[id].tracker?.mayEnd(direction) == false { return }
            let isInOrder = conduits[id, direction].deliversBeforeReset
            if isInOrder {
                // The socket is not connected, or must send other bytes first.
                if conduits[id, direction].arrived > 0 || conduits[id, direction].awaitsDrain { return }
                if conduits[id, direction].bytesWritten > 0 {
                    conduits[id, direction].awaitsDrain = true
                    return emit(.awaitDrain(receiver), id)
                }
            }
            conduits[id].recordGoneAndInputClosed(receiver)
            emit(isInOrder ? .resetAfterWrites(receiver) : .reset(receiver), id)
        }
        // A RST ends both directions.
        end(id)
    }

    /// Aborts a connection: a RST to both sockets at once, without crossing the link.
    mutating func resetBothSockets(_ id: FlowID) {
        for side in [Side.client, .server] where !conduits[id].isGone(side) {
            conduits[id].recordGoneAndInputClosed(side)
            emit(.reset(side), id)
        }
        end(id)
    }

    /// Closes both sockets for a toxic of `direction`: bytes on the link arrive, then a FIN; nothing more is read.
    /// Bytes queued in the other direction's toxics still pass through them.
    mutating func closeBothSockets(_ id: FlowID, _ direction: Direction) {
        if conduits[id].isClosing { return }
        conduits[id].isClosing = true
        if conduits[id].tracker != nil {
            conduits[id].tracker?.abandon()
            runTracker(id)
            guard conduits.contains(id) else { return }
        }
        dropToxics(id, direction)
        if !conduits[id, direction].inputIsClosed { closeInput(direction.sender, id) }
        guard conduits.contains(id) else { return }
        let opposite = direction.opposite
        if conduits[id, opposite].toxics == nil {
            if !conduits[id, opposite].inputIsClosed { closeInput(opposite.sender, id) }
        } else {
            conduits[id, opposite].toxics?.finish(.finished)
            runToxics(id, opposite)
        }
        if conduits.contains(id), !conduits[id].up.isConnected {
            // The upstream is not connected, so only the client's socket is closed.
            conduits[id].recordGoneAndInputClosed(.server)
            removeIfEnded(id)
        }
    }

    /// Removes a connection if further events of its sockets would have no effect.
    mutating func removeIfEnded(_ id: FlowID) {
        if conduits[id].hasEnded {
            // The server may still be sending a response that is discarded.
            if conduits[id].isClosedByReply, !conduits[id].isGone(.server) { emit(.close(.server), id) }
            if conduits[id].isClosing {
                // If a peer had already sent its FIN, its socket is still open for writing.
                for side in [Side.client, .server] where !conduits[id].isGone(side) { emit(.close(side), id) }
            }
            end(id)
        } else if let side = conduits[id].socketEndedByMute {
            if !conduits[id].isGone(side) { emit(.reset(side), id) }
            end(id)
        }
    }

    /// Removes a connection.
    private mutating func end(_ id: FlowID) {
        recordPackets()
        dropToxics(id, .up)
        dropToxics(id, .down)
        dropFaultBytes(id)
        budget.changeStreamBytes(by: -conduits[id].streamBytes)
        trackEnd(id)
        conduits.remove(id)
        tcp.remove(id)
        emitEnded(id)
        orphans.removeEnded(in: conduits)
    }
}
