internal import ForwardProxy
internal import NIOCore

/// A proxy's fast path: the relays that forward its connections without the model while no conditions apply. One relay
/// accepts, all forward. Before conditions apply, the proxy detaches the connections from the relays.
///
/// Used on its proxy's event loop only.
final class FastPath {
    private let eventLoop: any EventLoop
    /// The relay that accepts the proxy's clients.
    private let acceptor: Relay
    private let others: [Relay]
    private let slots: ConnectionSlots
    private let makeConfiguration: () -> RelayPortConfiguration
    /// The proxy's port at the relays, while it is open.
    private var port: RelayToken?
    /// The relays at which the port is open.
    private var openRelays: [Relay] = []
    /// A future that succeeds when the relays have stopped reading and accepting; `nil` unless connections are to be
    /// detached.
    private var frozen: EventLoopFuture<Void>?
    private weak var listener: Listener?
    /// Whether the port is being closed.
    private var isClosing = false
    /// The traffic of ports that are closed.
    private var closedTraffic = RelayedTraffic()
    /// The traffic when there was no connection, with the number of connections until then.
    private var idleTraffic: (connections: UInt64, traffic: RelayedTraffic)?
    /// Succeeds when every earlier request is complete.
    private var lastRequest: EventLoopFuture<Void>

    /// Creates a closed fast path, or `nil` if this machine has no relays.
    init?(
        on eventLoop: any EventLoop, slots: ConnectionSlots,
        _ makeConfiguration: @escaping () -> RelayPortConfiguration
    ) {
        guard let acceptor = Relay.forNextProxy() else { return nil }
        self.acceptor = acceptor
        self.eventLoop = eventLoop
        self.slots = slots
        self.makeConfiguration = makeConfiguration
        others = Relay.all.filter { $0 !== acceptor }
        lastRequest = eventLoop.makeSucceededVoidFuture()
    }

    /// Whether the relays accept and forward the proxy's connections.
    var isOpen: Bool { port != nil && frozen == nil && !isClosing }

    /// Whether the relays have connections that are to be detached.
    var isDraining: Bool { frozen != nil }

    /// Opens the port: a relay accepts the listener's clients from now on. Does nothing if the port is open or the
    /// listener cannot duplicate its socket.
    func open(_ listener: Listener) {
        guard port == nil, let descriptor = listener.delegateAccepting() else { return }
        self.listener = listener
        let port = Relay.makePortToken()
        self.port = port
        openRelays = [acceptor] + others
        let (configuration, acceptor) = (makeConfiguration(), acceptor)
        for other in others {
            other.perform { $0.open(port, configuration, acceptor: acceptor, listener: nil) }
        }
        acceptor.perform { $0.open(port, configuration, acceptor: acceptor, listener: descriptor) }
    }

    /// Stops the relays from accepting and reading. ``detach(upTo:)`` then detaches the connections.
    func freeze() -> EventLoopFuture<Void> {
        if port == nil { return eventLoop.makeSucceededVoidFuture() }
        if let frozen { return frozen }
        let done = request {
            $0.freeze($1)
        } then: { _ in
            self.listener?.endDelegation() ?? ()
        }
        frozen = done
        return done
    }

    /// Detaches connections of a frozen port, each relay's most recently active first.
    func detach(upTo count: Int) -> EventLoopFuture<[DetachedConnection]>.Isolated {
        let share = max(1, count / max(1, openRelays.count))
        return requestDetachment { $0.detach(from: $1, upTo: share) }
    }

    /// Closes the port and its connections in batches. Returns the detached connections, which continue on the link.
    func close(_ mode: RelayCloseMode) -> EventLoopFuture<[DetachedConnection]>.Isolated {
        isClosing = true
        let batch = requestDetachment { $0.close($1, mode, connectionsMax: Self.connectionsPerRequest) }
        return batch.flatMap { connections in
            if self.port == nil { return self.eventLoop.makeSucceededFuture(connections) }
            return self.close(mode).map { connections + $0 }.nonisolated()
        }
    }

    /// The maximum number of connections that a relay closes in one request, before it handles other events.
    private static let connectionsPerRequest = 64

    private func requestDetachment(
        _ job: @escaping @Sendable (RelayLoop, RelayToken) -> RelayDetachment
    ) -> EventLoopFuture<[DetachedConnection]>.Isolated {
        request(job) { results in
            for (relay, detachment) in results {
                guard let traffic = detachment.finalTraffic else { continue }
                self.openRelays.removeAll { $0 === relay }
                self.closedTraffic += traffic
            }
            if self.port != nil && self.openRelays.isEmpty {
                self.port = nil
                self.frozen = nil
                self.isClosing = false
                self.listener?.endDelegation()
            }
            return results.flatMap { $0.output.connections }
        }.assumeIsolated()
    }

    /// Makes the accepting relay accept waiting clients after a slot was released.
    func slotReleased() {
        if let port { acceptor.perform { $0.slotReleased(port) } }
    }

    /// Makes a relay pass a client without a tunnel to the proxy; see ``RelayLoop/passToProxy(_:_:)``.
    func passToProxy(_ connection: RelayToken, _ failure: ConnectFailure? = nil) {
        Relay.all[connection.relay].perform { $0.passToProxy(connection, failure) }
    }

    /// Dials the addresses that a connection has requested.
    func dial(_ connection: RelayToken, _ addresses: Result<[SocketAddress], any Error>) {
        Relay.all[connection.relay].perform { $0.dial(connection, addresses) }
    }

    /// Sets the random seed of later connections and restarts their numbers at 0.
    func reseed(_ seed: UInt64) -> EventLoopFuture<Void> {
        request {
            $0.reseed($1, seed)
        } then: { _ in
        }
    }

    /// Aborts every connection that exists now, in batches.
    func abortAll() -> EventLoopFuture<Void> {
        request {
            $0.connectionTokens(of: $1)
        } then: {
            $0.map { (relay: $0.relay, connections: $0.output[...]) }
        }.assumeIsolated().flatMap { self.abort($0) }.nonisolated()
    }

    private func abort(_ remaining: [(relay: Relay, connections: ArraySlice<RelayToken>)]) -> EventLoopFuture<Void> {
        let remaining = remaining.filter { !$0.connections.isEmpty }
        if remaining.isEmpty { return eventLoop.makeSucceededVoidFuture() }
        let done = afterEarlierRequests {
            let eventLoop = self.eventLoop
            let aborts = remaining.map { relay, connections in
                relay.submit(on: eventLoop) { loop in
                    for connection in connections.prefix(Self.connectionsPerRequest) { _ = loop.abort(connection) }
                }
            }
            return EventLoopFuture.andAllSucceed(aborts, on: eventLoop)
        }
        return done.assumeIsolated().flatMap {
            self.abort(remaining.map { ($0.relay, $0.connections.dropFirst(Self.connectionsPerRequest)) })
        }.nonisolated()
    }

    /// Returns the traffic since the proxy's start. The relays have to reply only if there was a connection since the
    /// last time.
    func traffic() -> EventLoopFuture<RelayedTraffic>.Isolated {
        let connections = slots.total
        if let idleTraffic, idleTraffic.connections == connections {
            return eventLoop.makeSucceededFuture(idleTraffic.traffic).assumeIsolated()
        }
        let isIdle = slots.count == 0
        return request {
            $0.traffic(of: $1)
        } then: {
            let traffic = $0.reduce(into: self.closedTraffic) { $0 += $1.output }
            if isIdle { self.idleTraffic = (connections, traffic) }
            return traffic
        }.assumeIsolated()
    }

    /// Returns the status of each connection.
    func connections() -> EventLoopFuture<[ConnectionStatus]> {
        request {
            $0.statuses(of: $1)
        } then: {
            $0.flatMap { $0.output.map(ConnectionStatus.init(_:)) }
        }
    }

    /// Returns the number of connections of which bytes have been forwarded.
    func midStreamConnectionCount() -> EventLoopFuture<Int> {
        request {
            $0.statuses(of: $1).count { $0.hasForwardedBytes }
        } then: {
            $0.reduce(0) { $0 + $1.output }
        }
    }

    /// Aborts one connection; `false` if it is gone.
    func abort(_ connection: RelayToken) -> EventLoopFuture<Bool> {
        request(about: connection) { $0.abort(connection) }
    }

    /// Detaches one connection; `nil` if it is gone.
    func detach(_ connection: RelayToken) -> EventLoopFuture<DetachedConnection?> {
        request(about: connection) { $0.detach(connection) }
    }

    // MARK: Requests

    /// Runs a job at every relay where the port is open. The accepting relay runs it first, so that the connections
    /// that it has handed over have reached the other relays before they run it.
    private func request<Output: Sendable, Result: Sendable>(
        _ job: @escaping @Sendable (RelayLoop, RelayToken) -> Output,
        then body: @escaping ([(relay: Relay, output: Output)]) -> Result
    ) -> EventLoopFuture<Result> {
        afterEarlierRequests {
            let eventLoop = self.eventLoop
            guard let port = self.port else { return eventLoop.makeSucceededFuture(body([])) }
            let submit = { (relay: Relay) in
                relay.submit(on: eventLoop) { job($0, port) }.map { (relay: relay, output: $0) }
            }
            let first = self.openRelays.prefix { $0 === self.acceptor }
            let others = self.openRelays.dropFirst(first.count)
            return EventLoopFuture.whenAllSucceed(first.map(submit), on: eventLoop).assumeIsolated().flatMap { first in
                EventLoopFuture.whenAllSucceed(others.map(submit), on: eventLoop).assumeIsolated()
                    .map { body(first + $0) }.nonisolated()
            }.nonisolated()
        }
    }

    private func request<Output: Sendable>(
        about connection: RelayToken, _ job: @escaping @Sendable (RelayLoop) -> Output
    ) -> EventLoopFuture<Output> {
        afterEarlierRequests { Relay.all[connection.relay].submit(on: self.eventLoop, job) }
    }

    /// Runs requests one after the other. The relays reply at different times, and no connection may move between a
    /// relay and the link until all have replied.
    private func afterEarlierRequests<Output: Sendable>(
        _ request: @escaping () -> EventLoopFuture<Output>
    ) -> EventLoopFuture<Output> {
        let output = lastRequest.assumeIsolated().flatMap { request() }.nonisolated()
        lastRequest = output.map { _ in }
        return output
    }
}
