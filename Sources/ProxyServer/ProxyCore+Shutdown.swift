internal import NIOCore
internal import SpliceRelay

/// Stopping with a grace period, and closing at once.
extension ProxyCore {
    /// Stops accepting and reading, waits for the bytes in flight, and closes all connections. Returns whether all
    /// bytes arrived.
    func stop(grace: TimeAmount) -> EventLoopFuture<Bool> {
        if let stopResult { return stopResult }
        isStopping = true
        let deadline = NIODeadline.now() + grace
        let promise = eventLoop.makePromise(of: Bool.self)
        stopResult = promise.futureResult
        closeFastPath(.drain).whenSuccess { _ in
            self.closeListener()
            self.drain(until: deadline, promise)
        }
        return promise.futureResult
    }

    private func drain(until deadline: NIODeadline, _ promise: EventLoopPromise<Bool>) {
        let status = linkDriver.status()
        let isSent = sessions.values.allSatisfy { $0.bytesUnsent == 0 }
        if (linkDriver.isQuiet && isSent) || NIODeadline.now() >= deadline {
            let hasArrived = status.bytesHeld == 0 && isSent
            closeSessions().assumeIsolated().whenComplete { _ in
                self.linkDriver.shutDown()
                promise.succeed(hasArrived)
            }
            return
        }
        for session in sessions.values { session.stopReading() }
        eventLoop.assumeIsolated().scheduleTask(in: Self.drainCheckInterval) { self.drain(until: deadline, promise) }
    }

    /// Time between checks for bytes in flight.
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
            // The driver is shut down before the sessions are closed, because the link's reactions to their closing are
            // not needed.
            self.linkDriver.shutDown()
            let fastPathIsClosed = self.closeFastPath(.discard).nonisolated()
            let sessionsAreClosed = self.closeSessions(resettingOnLoss: false)
            let isClosed = self.withTimeout(TurnBudget.waitMax, sessionsAreClosed.and(fastPathIsClosed).map { _ in })
            return isClosed.and(listenerIsClosed).map { _ in }
        }.nonisolated()
    }

    /// Closes the fast path; connections with bytes in flight continue on the link.
    private func closeFastPath(_ ending: RelayCloseMode) -> EventLoopFuture<Void>.Isolated {
        let remaining = fastPath?.close(ending) ?? eventLoop.makeSucceededFuture([]).assumeIsolated()
        return remaining.map { connections in for connection in connections { self.resume(connection) } }
    }

    private func closeSessions(resettingOnLoss: Bool = true) -> EventLoopFuture<Void> {
        let promise = allSessionsEnded ?? eventLoop.makePromise(of: Void.self)
        allSessionsEnded = promise
        if sessions.isEmpty { promise.succeed() }
        close(Array(sessions.values)[...], resettingOnLoss: resettingOnLoss)
        return promise.futureResult
    }

    private func close(_ sessions: ArraySlice<Session>, resettingOnLoss: Bool) {
        for session in sessions.prefix(TurnBudget.connectionsMax) { session.close(resettingOnLoss: resettingOnLoss) }
        let rest = sessions.dropFirst(TurnBudget.connectionsMax)
        if rest.isEmpty { return }
        linkDriver.runLater { _ in self.close(rest, resettingOnLoss: resettingOnLoss) }
    }
}
