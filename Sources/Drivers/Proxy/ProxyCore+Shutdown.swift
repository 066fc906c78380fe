internal import Impairment
internal import NIOCore

/// Stopping with a grace period, and closing at once.
extension ProxyCore {
    /// Stops accepting, and closes each connection as soon as it has no traffic left. At the end of the grace period the
    /// others are aborted (RST). A further call can only shorten that period. Returns whether no connection was aborted.
    func stop(grace: TimeAmount) -> EventLoopFuture<Bool> {
        drainDeadline = min(drainDeadline, .now() + grace)
        if let stopResult { return stopResult }
        isStopping = true
        datagramPort?.stopReading()
        forwardDatagrams?.stopReading()
        let promise = eventLoop.makePromise(of: Bool.self)
        stopResult = promise.futureResult
        closeFastPath(.drain(idleTimeMin: configuration.idleTimeMin)).whenSuccess { _ in
            self.closeListener()
            self.drain(promise)
        }
        return promise.futureResult
    }

    private func drain(_ promise: EventLoopPromise<Bool>, haveAllArrived: Bool = true) {
        let now = NIODeadline.now()
        var haveAllArrived = haveAllArrived
        var closingsLeft = TurnBudget.connectionsMax
        for session in sessions.values where !session.isClosed {
            let traffic = session.remainingTraffic(at: now, idleTimeMin: configuration.idleTimeMin)
            if traffic == .pending && now < drainDeadline { continue }
            if closingsLeft == 0 { break }
            closingsLeft -= 1
            session.close(abortively: traffic != .none)
            if traffic != .none { haveAllArrived = false }
        }
        // A lookup may be under way for a client with a session to come.
        for client in forwardClients.values where !client.hasSessions || now >= drainDeadline { client.close() }
        let haveDatagramsArrived = linkDriver.link.datagramsInFlight == 0
        if sessions.isEmpty && forwardClients.values.allSatisfy({ !$0.hasSessions || now >= drainDeadline })
            && (haveDatagramsArrived || now >= drainDeadline)
        {
            if !haveDatagramsArrived { haveAllArrived = false }
            closeDatagrams()
            names.stop()
            linkDriver.shutDown()
            return promise.succeed(haveAllArrived)
        }
        let continuation = { [haveAllArrived] in self.drain(promise, haveAllArrived: haveAllArrived) }
        if closingsLeft == 0 { return linkDriver.runLater { _ in continuation() } }
        eventLoop.assumeIsolated().scheduleTask(in: Self.drainCheckInterval, continuation)
    }

    /// Time between checks for traffic.
    private static let drainCheckInterval = TimeAmount.milliseconds(10)

    /// Closes the port, and all connections with a FIN, a limited number per turn.
    func close() -> EventLoopFuture<Void> {
        isStopping = true
        isClosed = true
        let isFrozen = fastPath?.freeze() ?? eventLoop.makeSucceededVoidFuture()
        return isFrozen.assumeIsolated().flatMap {
            self.recordPortClosed()
            let listenerIsClosed = self.listener?.close() ?? self.eventLoop.makeSucceededVoidFuture()
            self.listener = nil
            self.closeDatagrams()
            // The driver is shut down before the sessions are closed, because the link's reactions to their closing are
            // not needed.
            self.names.stop()
            self.linkDriver.shutDown()
            let fastPathIsClosed = self.closeFastPath(.discard).nonisolated()
            let sessionsAreClosed = self.closeSessions()
            let isClosed = self.withTimeout(TurnBudget.waitMax, sessionsAreClosed.and(fastPathIsClosed).map { _ in })
            return isClosed.and(listenerIsClosed).map { _ in }
        }.nonisolated()
    }

    /// Closes the fast path; connections that are not idle continue on the link.
    private func closeFastPath(_ ending: RelayCloseMode) -> EventLoopFuture<Void>.Isolated {
        let remaining = fastPath?.close(ending) ?? eventLoop.makeSucceededFuture([]).assumeIsolated()
        return remaining.map { connections in for connection in connections { self.resume(connection) } }
    }

    /// Closes all connections with a FIN.
    private func closeSessions() -> EventLoopFuture<Void> {
        let promise = allSessionsEnded ?? eventLoop.makePromise(of: Void.self)
        allSessionsEnded = promise
        if sessions.isEmpty { promise.succeed() }
        for client in forwardClients.values { client.close() }
        close(Array(sessions.values)[...])
        return promise.futureResult
    }

    private func close(_ sessions: ArraySlice<Session>) {
        for session in sessions.prefix(TurnBudget.connectionsMax) { session.close(abortively: false) }
        let rest = sessions.dropFirst(TurnBudget.connectionsMax)
        if rest.isEmpty { return }
        linkDriver.runLater { _ in self.close(rest) }
    }
}
