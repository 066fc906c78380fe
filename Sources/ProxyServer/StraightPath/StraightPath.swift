internal import LinkModel
internal import NIOCore

/// Where a proxy's connections go while nothing is in force: to the relay, which lets clients in and carries their bytes past
/// the model. Before something comes in force it gives them back.
///
/// Lives and is used on its proxy's event loop only.
final class StraightPath {
    private let eventLoop: any EventLoop
    private let relay: Relay
    private let order: (OwnedSocket) -> RelayOrder
    /// The proxy's port at the relay, while it has one.
    private var port: RelayToken?
    /// Set once the port's connections are to come back; says when nothing is read of them any more.
    private var frozen: EventLoopFuture<Void>?
    private weak var listener: Listener?
    /// What was carried at ports that are closed.
    private var past = RelayedTraffic()

    /// `nil` if this machine has no relay.
    ///
    /// - Parameter order: What is asked of the relay, given a descriptor of the listening socket.
    init?(on eventLoop: any EventLoop, _ order: @escaping (OwnedSocket) -> RelayOrder) {
        guard let relay = Relay.shared else { return nil }
        self.relay = relay
        self.eventLoop = eventLoop
        self.order = order
    }

    /// Whether the relay lets the proxy's clients in.
    var isOpen: Bool { port != nil && frozen == nil }

    /// Whether the relay has connections that are to come back.
    var isDraining: Bool { frozen != nil }

    /// Has the relay let the listener's clients in from now on, if the listener is ready for that.
    func open(_ listener: Listener) {
        guard port == nil, let descriptor = listener.lend() else { return }
        self.listener = listener
        let port = relay.newPort()
        self.port = port
        let order = order(descriptor)
        relay.perform { $0.open(port, order) }
    }

    /// Has the relay let nobody in and read nothing any more; its connections come back by ``take(_:)``.
    func freeze() -> EventLoopFuture<Void> {
        guard let port else { return eventLoop.makeSucceededVoidFuture() }
        if let frozen { return frozen }
        let done = relay.ask(on: eventLoop) { $0.freeze(port) }.assumeIsolated()
            .map { _ in self.listener?.takeBack() ?? () }.nonisolated()
        frozen = done
        return done
    }

    /// Takes some of the connections back that are to come back, the liveliest first.
    func take(_ count: Int) -> EventLoopFuture<[HandedOver]>.Isolated {
        (askPort { $0.take($1, count) } ?? eventLoop.makeSucceededFuture(RelayLoop.Left())).assumeIsolated()
            .map { self.take($0) }
    }

    /// Has the relay let go of everything; gives the connections that are to go on elsewhere.
    func close(_ ending: RelayLoop.Ending) -> EventLoopFuture<[HandedOver]>.Isolated {
        (askPort { $0.close($1, ending) } ?? eventLoop.makeSucceededFuture(RelayLoop.Left())).assumeIsolated()
            .map { self.take($0) }
    }

    private func take(_ left: RelayLoop.Left) -> [HandedOver] {
        if let traffic = left.traffic {
            port = nil
            frozen = nil
            past += traffic
            listener?.takeBack()
        }
        return left.connections
    }

    /// There may be a place for a client that waits.
    func placeIsFree() {
        if let port { relay.perform { $0.placeIsFree(port) } }
    }

    /// Where a connection that asked goes.
    func dial(_ connection: RelayToken, _ addresses: Result<[SocketAddress], any Error>) {
        relay.perform { $0.dial(connection, addresses) }
    }

    /// Draws from another seed from the next connection on, which is number 0.
    func reseed(_ seed: UInt64) -> EventLoopFuture<Void> {
        askPort { $0.reseed($1, seed) } ?? eventLoop.makeSucceededVoidFuture()
    }

    /// Cuts every connection with a RST.
    func resetAll() -> EventLoopFuture<Void> {
        askPort { $0.resetAll($1) } ?? eventLoop.makeSucceededVoidFuture()
    }

    /// What has been carried since the start.
    func traffic() -> EventLoopFuture<RelayedTraffic>.Isolated {
        (askPort { $0.traffic($1) } ?? eventLoop.makeSucceededFuture(RelayedTraffic())).assumeIsolated()
            .map { now in
                // Of the moment of the answer: those that had been asked before have been answered.
                var all = self.past
                all += now
                return all
            }
    }

    /// The connections there are.
    func connections() -> EventLoopFuture<[ConnectionStatus]> {
        askPort { $0.statuses($1) } ?? eventLoop.makeSucceededFuture([])
    }

    /// Cuts one connection with a RST; `false` if it is no more.
    func reset(_ connection: RelayToken) -> EventLoopFuture<Bool> {
        relay.ask(on: eventLoop) { $0.reset(connection) }
    }

    /// Has the relay let go of one connection; `nil` if it is no more.
    func handOver(_ connection: RelayToken) -> EventLoopFuture<HandedOver?> {
        relay.ask(on: eventLoop) { $0.handOver(connection) }
    }

    private func askPort<Answer: Sendable>(
        _ question: @escaping @Sendable (RelayLoop, RelayToken) -> Answer
    ) -> EventLoopFuture<Answer>? {
        port.map { port in relay.ask(on: eventLoop) { question($0, port) } }
    }
}
