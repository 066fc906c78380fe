public import Determinism
internal import LinkModel
internal import TCPModel

extension SharedLink {
    /// The number of pieces that the toxics of one stream pass on before other events run.
    private static let toxicPiecesMax = 256

    /// Adds a toxic to open and new connections, as the last one before the link. Its name must not be in use.
    public mutating func add(_ toxic: Toxic, at time: Instant) {
        advance(to: time)
        toxicList.add(toxic)
        for id in conduits.openConnections where conduits.contains(id) {
            apply(toxic, to: id)
            runToxics(id, toxic.stream)
        }
        advance(to: now)
    }

    /// Changes the settings of the toxic with the same name; its stream stays the same.
    public mutating func update(_ toxic: Toxic, at time: Instant) {
        advance(to: time)
        guard toxicList.update(toxic) else { return }
        for id in conduits.openConnections where conduits.contains(id) {
            conduits[id, toxic.stream].toxics?.update(toxic, at: now)
            updateLosses(id, toxic.stream)
            runToxics(id, toxic.stream)
        }
        advance(to: now)
    }

    /// Removes a toxic: bytes that wait before it pass at once, and connections from which a `timeout` has discarded
    /// bytes are closed.
    public mutating func removeToxic(_ name: String, at time: Instant) {
        advance(to: time)
        guard let toxic = toxicList.remove(name, at: now) else { return }
        for id in conduits.openConnections where conduits.contains(id) { removeToxic(toxic, from: id) }
        advance(to: now)
    }

    private mutating func removeToxic(_ toxic: Toxic, from id: FlowID) {
        let stream = toxic.stream
        let mustClose = conduits[id, stream].toxics?.remove(toxic.name, at: now) == true
        updateLosses(id, stream)
        runToxics(id, stream)
        guard conduits.contains(id) else { return }
        if conduits[id, stream].toxics?.isEmpty == true {
            conduits[id, stream].toxics = nil
            setPaused(conduits[id, stream].isFull, id, stream)
        }
        if mustClose { closeBothSockets(id, stream) }
    }

    /// Adds a toxic to one connection.
    mutating func apply(_ toxic: Toxic, to id: FlowID) {
        let random = toxicList.random(for: toxic, connection: tcp.number(of: id))
        if conduits[id, toxic.stream].toxics == nil {
            conduits[id, toxic.stream].toxics = ToxicChain(hasRoom: !conduits[id, toxic.stream].isFull)
        }
        conduits[id, toxic.stream].toxics?.add(toxic, random: random, at: now)
        updateLosses(id, toxic.stream)
    }

    private mutating func updateLosses(_ id: FlowID, _ direction: Direction) {
        tcp.setLosses(conduits[id, direction].toxics?.losses ?? [], on: id, direction)
    }

    /// Drops a stream's toxics and the bytes before them.
    mutating func dropToxics(_ id: FlowID, _ direction: Direction) {
        guard conduits[id, direction].toxics != nil else { return }
        conduits[id, direction].toxics = nil
        budget.changeToxicBytes(by: conduits[id, direction].updateToxicBytes())
    }

    /// Runs a stream's toxics until they have no more output or have passed on ``toxicPiecesMax`` pieces, and sets the
    /// timer for their next deadline.
    mutating func runToxics(_ id: FlowID, _ direction: Direction) {
        var piecesLeft = Self.toxicPiecesMax
        conduits[id, direction].toxics?.advance(to: now)
        while conduits.contains(id), piecesLeft > 0 || conduits[id, direction].toxics?.hasReleasedActions == true,
            let action = conduits[id, direction].toxics?.takeAction()
        {
            piecesLeft = max(0, piecesLeft - 1)
            process(action, id, direction)
        }
        toxicPieces += Self.toxicPiecesMax - piecesLeft
        guard conduits.contains(id) else { return }
        budget.changeToxicBytes(by: conduits[id, direction].updateToxicBytes())
        guard let isFull = conduits[id, direction].toxics?.isFull else { return }
        let share = budget.toxicShare(connections: tcp.connectionCount)
        setPaused(isFull || conduits[id, direction].toxicBytes >= share, id, direction)
        // If pieces remain, other events that are due now run before them.
        let deadline = piecesLeft == 0 ? now : conduits[id, direction].toxics?.nextDeadline
        if let deadline { setToxicTimer(id, direction, at: deadline) }
    }

    private mutating func process(_ action: ToxicChain.Action, _ id: FlowID, _ direction: Direction) {
        let sender = direction.sender
        switch action {
        case .bytes(let bytes, let isAlone):
            enter(bytes, id, direction)
            if isAlone && conduits.contains(id) { emit(.flush(direction.receiver), id) }
        // The socket may have gone after its FIN.
        case .end(.finished) where conduits[id].isGone(sender): trackGone(sender, id)
        case .end(.finished): closeInput(sender, id)
        case .end(.gone): trackGone(sender, id)
        case .end(.closed): closeBothSockets(id, direction)
        case .reset:
            emit(.reset(sender), id)
            peerGone(sender, id, dropsUnsent: true)
        }
    }

    private mutating func setToxicTimer(_ id: FlowID, _ direction: Direction, at deadline: Instant) {
        if let timer = conduits[id, direction].toxics?.timer, timer <= deadline { return }
        conduits[id, direction].toxics?.timer = deadline
        timers.removeStale(in: conduits, connections: tcp.connectionCount)
        timers.schedule(id, .toxics(direction), at: deadline)
    }
}
