internal import Determinism
internal import Impairment
internal import NIOCore

/// Observers of a running proxy.
extension ProxyCore {
    /// Attaches an observer. Connections leave the fast path first if the link must record their events.
    ///
    /// - Parameter onTermination: Called with the observer when its stream is no longer read.
    func observe(
        _ set: ObservationSet, bufferedEventsMax: Int, statusInterval: Nanoseconds,
        onTermination: @escaping @Sendable (NIOLoopBound<ProxyObserver>) -> Void
    ) -> EventLoopFuture<ProxyObservation> {
        let (events, continuation) = AsyncStream.makeStream(
            of: ProxyEvent.self, bufferingPolicy: .bufferingOldest(max(1, bufferedEventsMax)))
        let droppedTotal = ProxyObservation.DropCounter()
        let observer = ProxyObserver(set, statusInterval: statusInterval, continuation, droppedTotal)
        let bound = NIOLoopBound(observer, eventLoop: eventLoop)
        continuation.onTermination = { _ in onTermination(bound) }
        if isStopping { observer.finish() }
        let usesLink = !set.link.isEmpty
        let relayed =
            (usesLink ? fastPath?.connections().map(\.count) : nil) ?? eventLoop.makeSucceededFuture(0)
        return relayed.assumeIsolated().flatMap { connectionsMoved in
            self.change(impairs: usesLink) { $0.attach(observer) }.assumeIsolated().map {
                for driver in self.linkDriver.otherLinks { driver.attach(observer) }
                if set.contains(.status) { self.sendStatus(to: observer) }
                return ProxyObservation(
                    events: events, connectionsMoved: connectionsMoved,
                    startUnixNanoseconds: self.linkDriver.startUnixNanoseconds, droppedTotal: droppedTotal)
            }.nonisolated()
        }.nonisolated()
    }

    /// Detaches an observer. New connections may use the fast path again if nothing else prevents it.
    func detach(_ observer: ProxyObserver) {
        for driver in linkDriver.otherLinks { driver.detach(observer) }
        guard !isStopping else { return linkDriver.detach(observer) }
        change(impairs: false) { $0.detach(observer) }.whenFailure { _ in }
    }

    private func sendStatus(to observer: ProxyObserver) {
        guard linkDriver.isObserved(by: observer), !isStopping else { return }
        status().assumeIsolated().whenSuccess { status in
            let interval = TimeAmount.nanoseconds(observer.send(status).count)
            TimerQueue.current(on: self.eventLoop).runTogether(every: interval, number: UInt64(self.proxyNumber)) {
                self.sendStatus(to: observer)
            }
        }
    }
}
