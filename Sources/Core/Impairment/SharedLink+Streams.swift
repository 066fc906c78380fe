internal import LinkModel
internal import NIOCore
internal import TCPModel

/// The path of bytes: from a socket through toxics and tracker into the link, and from the link to the other socket.
extension SharedLink {
    /// Processes an event of one of a connection's sockets. Events of connections that have ended are ignored.
    mutating func process(_ event: SocketEvent, on id: FlowID) {
        guard conduits.contains(id) else { return }
        switch event {
        case .connected:
            // The server's end of the connection has been aborted already.
            if conduits[id].isGone(.server) { return emit(.reset(.server), id) }
            conduits[id].up.isConnected = true
            if let direction = conduits[id].streamClosedOnConnect { return closeBothSockets(id, direction) }
            deliver(id, .up)
            if conduits.contains(id) { reportEstablishment(id) }
        case .drained(let side):
            let direction = side.opposite.sendDirection
            conduits[id, direction].bytesWritten = 0
            conduits[id, direction].awaitsDrain = false
            deliver(id, direction)
        case .bytes(let buffer, from: let side):
            let direction = side.sendDirection
            bytesRead[direction] += buffer.readableBytes
            if conduits[id].isClosing { return }
            if conduits[id, direction].toxics == nil { return enter(buffer, id, direction) }
            conduits[id, direction].toxics?.append(buffer.compact, at: now)
            runToxics(id, direction)
        case .inputClosed(let side):
            let direction = side.sendDirection
            // The tracker reads a server's response to its end also if a reply has ended the stream.
            let isReadOn = side == .server && conduits[id].tracker?.hasClosed == true
            if conduits[id, direction].inputIsClosed && !isReadOn { return }
            if conduits[id, direction].toxics == nil { return closeInput(side, id) }
            conduits[id, direction].toxics?.finish(.finished)
            runToxics(id, direction)
        case .gone(let side):
            socketGone(side, id)
        }
    }

    /// Processes an event of TCP. Events of connections that have ended are ignored.
    mutating func process(_ event: TimedFlowEvent) {
        let id = event.flow
        guard conduits.contains(id) else { return }
        switch event.event {
        case .established(.client):
            conduits[id].establishment?.handshakeIsComplete = true
            reportEstablishment(id)
        case .established(.server): break
        case .writable(let direction): regulateReading(id, direction)
        case .delivered(let bytes, let direction):
            conduits[id, direction].arrived += bytes
            deliver(id, direction)
        case .finished(let direction):
            conduits[id, direction].finHasArrived = true
            deliver(id, direction)
            if conduits.contains(id) { removeIfEnded(id) }
        case .reset(let direction):
            conduits[id, direction].resetHasArrived = true
            passReset(id, direction)
        }
    }

    /// Reports that a connection is established once both the modelled handshake and the upstream's socket are.
    private mutating func reportEstablishment(_ id: FlowID) {
        guard let establishment = conduits[id].establishment, establishment.handshakeIsComplete,
            conduits[id].up.isConnected
        else { return }
        conduits[id].establishment = nil
        conduits[id].down.isConnected = true
        emit(.established, id)
        deliver(id, .down)
    }

    /// Passes bytes to the link, through the tracker if there is one.
    mutating func enter(_ buffer: ByteBuffer, _ id: FlowID, _ direction: Direction) {
        if conduits[id].tracker == nil { return send(buffer, id, direction) }
        let share = budget.toxicShare(connections: tcp.connectionCount)
        conduits[id].tracker?.received(buffer, direction, &recorder.exchanges, at: now, share: share)
        runTracker(id)
    }

    /// Sends bytes over the link.
    mutating func send(_ buffer: ByteBuffer, _ id: FlowID, _ direction: Direction) {
        let count = buffer.readableBytes
        if count == 0 || conduits[id, direction].inputIsClosed { return }
        let isPassThrough = tcp.canBypassModel(id, direction, at: now)
        if isPassThrough {
            let receiver = direction.receiver
            if conduits[id, direction].bytes.count == 0 && conduits[id, direction].acceptsWrites
                && !conduits[id].isGone(receiver)
                && conduits[id].tracker?.allowance(direction, at: now) ?? .max >= count
            {
                bytesCarried[direction] += count
                emit(.write(buffer.compact, to: receiver), id)
                let limit = budget.socketShare(connections: tcp.connectionCount)
                if conduits[id, direction].recordWrite(count, limit: limit) { emit(.awaitDrain(receiver), id) }
                if conduits[id].tracker != nil {
                    conduits[id].tracker?.wrote(count, direction, &recorder.exchanges, at: now)
                    runTracker(id)
                }
                return
            }
        } else {
            tcp.send(count, on: id, direction, at: now)
        }
        budget.changeStreamBytes(by: count)
        conduits[id, direction].append(buffer, isPassThrough: isPassThrough)
        if isPassThrough { deliver(id, direction) }
        if conduits.contains(id) { regulateReading(id, direction) }
    }

    /// Writes bytes that have arrived to the receiving socket, and then the FIN or the RST.
    mutating func deliver(_ id: FlowID, _ direction: Direction) {
        while true {
            let written = deliverOnce(id, direction)
            guard conduits[id].tracker != nil, written > 0 else { break }
            conduits[id].tracker?.wrote(written, direction, &recorder.exchanges, at: now)
            runTracker(id)
            guard conduits.contains(id) else { return }
        }
        if conduits[id].tracker != nil { setFaultTimer(id) }
        limitWaitForFIN(id)
        guard conduits.contains(id) else { return }
        if conduits[id, direction].resetHasArrived { return passReset(id, direction) }
        regulateReading(id, direction)
        removeIfEnded(id)
    }

    /// Writes bytes that have arrived and may leave now. Returns their number.
    private mutating func deliverOnce(_ id: FlowID, _ direction: Direction) -> Int {
        let before = conduits[id, direction].bytes.count
        let limit = budget.socketShare(connections: tcp.connectionCount)
        let allowance =
            conduits[id, direction].arrived > 0 ? conduits[id].tracker?.allowance(direction, at: now) ?? .max : 0
        let bytesOfModel = conduits[id].deliver(
            direction, limit: limit, allowance: allowance, into: &deliveryActions)
        var written = 0
        for action in deliveryActions {
            if case .write(let piece, to: _) = action { written += piece.readableBytes }
            emit(action, id)
        }
        bytesCarried[direction] += written
        deliveryActions.removeAll(keepingCapacity: true)
        budget.changeStreamBytes(by: conduits[id, direction].bytes.count - before)
        // Bytes written to the socket count as read by the application, which opens the receive window.
        if bytesOfModel > 0 { tcp.read(bytesOfModel, on: id, direction, at: now) }
        return written
    }

    /// Pauses or resumes reading, so that a stream holds at most its share plus one read.
    mutating func regulateReading(_ id: FlowID, _ direction: Direction) {
        let share = budget.streamShare(connections: tcp.connectionCount)
        let hasSendRoom = tcp.sendBufferSpace(id, direction) > 0
        let passThroughMax = budget.limits.passThroughBytesMax
        let faultShare =
            conduits[id, direction].faultBytes > 0 ? budget.toxicShare(connections: tcp.connectionCount) : .max
        guard
            conduits[id, direction].updateIsFull(
                share: share, faultShare: faultShare, passThroughMax: passThroughMax, hasSendRoom: hasSendRoom)
        else { return }
        let isFull = conduits[id, direction].isFull
        if conduits[id, direction].toxics == nil {
            setPaused(isFull, id, direction)
        } else if !isFull {
            runToxics(id, direction)
        }
    }

    /// Pauses or resumes reading from the sender's socket.
    mutating func setPaused(_ isPaused: Bool, _ id: FlowID, _ direction: Direction) {
        if conduits[id, direction].isPaused == isPaused { return }
        conduits[id, direction].isPaused = isPaused
        if isPaused { readPauses[direction] += 1 }
        emit(isPaused ? .pauseReading(direction.sender) : .resumeReading(direction.sender), id)
    }
}
