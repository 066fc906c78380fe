internal import LinkModel
internal import NIOCore

/// Where a proxy's connections go while nothing is in force: to the relays. One of them lets clients in, all carry their bytes
/// past the model. Before something comes in force they give them back.
///
/// Lives and is used on its proxy's event loop only.
final class StraightPath {
    private let eventLoop: any EventLoop
    /// Who lets clients in.
    private let home: Relay
    private let others: [Relay]
    private let order: () -> RelayOrder
    /// The proxy's port at the relays, while it has one.
    private var port: RelayToken?
    /// Who still has it.
    private var holders: [Relay] = []
    /// Set once the port's connections are to come back; says when nothing is read of them any more.
    private var frozen: EventLoopFuture<Void>?
    private weak var listener: Listener?
    /// What was carried at ports that are closed.
    private var past = RelayedTraffic()
    /// Done when everything that has been asked has been answered.
    private var turn: EventLoopFuture<Void>

    /// `nil` if this machine has no relay.
    init?(on eventLoop: any EventLoop, _ order: @escaping () -> RelayOrder) {
        guard let home = Relay.forNextProxy() else { return nil }
        self.home = home
        self.eventLoop = eventLoop
        self.order = order
        others = Relay.all.filter { $0 !== home }
        turn = eventLoop.makeSucceededVoidFuture()
    }

    /// Whether the relays have the proxy's clients.
    var isOpen: Bool { port != nil && frozen == nil }

    /// Whether the relays have connections that are to come back.
    var isDraining: Bool { frozen != nil }

    /// Has a relay let the listener's clients in from now on, if the listener is ready for that.
    func open(_ listener: Listener) {
        guard port == nil, let descriptor = listener.lend() else { return }
        self.listener = listener
        let port = Relay.newPort()
        self.port = port
        holders = [home] + others
        let (order, home) = (order(), home)
        for other in others { other.perform { $0.open(port, order, home: home, listener: nil) } }
        home.perform { $0.open(port, order, home: home, listener: descriptor) }
    }

    /// Has the relays let nobody in and read nothing any more; the connections come back by ``take(_:)``.
    func freeze() -> EventLoopFuture<Void> {
        if port == nil { return eventLoop.makeSucceededVoidFuture() }
        if let frozen { return frozen }
        let done = ask {
            $0.freeze($1)
        } then: { _ in
            self.listener?.takeBack() ?? ()
        }
        frozen = done
        return done
    }

    /// Takes some of the connections back that are to come back, of each relay's the liveliest first.
    func take(_ count: Int) -> EventLoopFuture<[HandedOver]>.Isolated {
        let share = max(1, count / max(1, holders.count))
        return letGo { $0.take($1, share) }
    }

    /// Has the relays let go of everything, some connections at a time; gives those that are to go on elsewhere.
    func close(_ ending: RelayLoop.Ending) -> EventLoopFuture<[HandedOver]>.Isolated {
        letGo { $0.close($1, ending, connectionsMax: Self.connectionsPerJob) }.flatMap { connections in
            if self.port == nil { return self.eventLoop.makeSucceededFuture(connections) }
            return self.close(ending).map { connections + $0 }.nonisolated()
        }
    }

    /// The most connections that a relay closes before its other connections have their turn.
    private static let connectionsPerJob = 64

    private func letGo(
        _ question: @escaping @Sendable (RelayLoop, RelayToken) -> RelayLoop.Left
    ) -> EventLoopFuture<[HandedOver]>.Isolated {
        ask(question) { answers in
            for (relay, left) in answers {
                guard let traffic = left.traffic else { continue }
                self.holders.removeAll { $0 === relay }
                self.past += traffic
            }
            if self.port != nil && self.holders.isEmpty {
                self.port = nil
                self.frozen = nil
                self.listener?.takeBack()
            }
            return answers.flatMap { $0.answer.connections }
        }.assumeIsolated()
    }

    /// There may be a place for a client that waits.
    func placeIsFree() {
        if let port { home.perform { $0.placeIsFree(port) } }
    }

    /// Where a connection that asked goes.
    func dial(_ connection: RelayToken, _ addresses: Result<[SocketAddress], any Error>) {
        Relay.all[connection.relay].perform { $0.dial(connection, addresses) }
    }

    /// Draws from another seed from the next connection on, which is number 0.
    func reseed(_ seed: UInt64) -> EventLoopFuture<Void> {
        ask {
            $0.reseed($1, seed)
        } then: { _ in
        }
    }

    /// Aborts every connection that is there now, some at a time.
    func resetAll() -> EventLoopFuture<Void> {
        ask {
            $0.tokens($1)
        } then: {
            $0.map { (relay: $0.relay, connections: $0.answer[...]) }
        }.assumeIsolated().flatMap { self.reset($0) }.nonisolated()
    }

    private func reset(_ left: [(relay: Relay, connections: ArraySlice<RelayToken>)]) -> EventLoopFuture<Void> {
        let left = left.filter { !$0.connections.isEmpty }
        if left.isEmpty { return eventLoop.makeSucceededVoidFuture() }
        let done = inTurn {
            let eventLoop = self.eventLoop
            let resets = left.map { relay, connections in
                relay.ask(on: eventLoop) { loop in
                    for connection in connections.prefix(Self.connectionsPerJob) { _ = loop.reset(connection) }
                }
            }
            return EventLoopFuture.andAllSucceed(resets, on: eventLoop)
        }
        return done.assumeIsolated().flatMap {
            self.reset(left.map { ($0.relay, $0.connections.dropFirst(Self.connectionsPerJob)) })
        }.nonisolated()
    }

    /// What has been carried since the start.
    func traffic() -> EventLoopFuture<RelayedTraffic>.Isolated {
        ask {
            $0.traffic($1)
        } then: {
            $0.reduce(into: self.past) { $0 += $1.answer }
        }.assumeIsolated()
    }

    /// The connections there are.
    func connections() -> EventLoopFuture<[ConnectionStatus]> {
        ask {
            $0.statuses($1)
        } then: {
            $0.flatMap(\.answer)
        }
    }

    /// Cuts one connection with a RST; `false` if it is no more.
    func reset(_ connection: RelayToken) -> EventLoopFuture<Bool> { ask(of: connection) { $0.reset(connection) } }

    /// Has its relay let go of one connection; `nil` if it is no more.
    func handOver(_ connection: RelayToken) -> EventLoopFuture<HandedOver?> {
        ask(of: connection) { $0.handOver(connection) }
    }

    // MARK: Asking

    /// Asks whoever has the port, first of all the one that lets clients in: by then the others know of whomever it has let in
    /// before.
    private func ask<Answer: Sendable, Result: Sendable>(
        _ question: @escaping @Sendable (RelayLoop, RelayToken) -> Answer,
        then body: @escaping ([(relay: Relay, answer: Answer)]) -> Result
    ) -> EventLoopFuture<Result> {
        inTurn {
            let eventLoop = self.eventLoop
            guard let port = self.port else { return eventLoop.makeSucceededFuture(body([])) }
            let ask = { (relay: Relay) in
                relay.ask(on: eventLoop) { question($0, port) }.map { (relay: relay, answer: $0) }
            }
            let first = self.holders.prefix { $0 === self.home }
            let others = self.holders.dropFirst(first.count)
            return EventLoopFuture.whenAllSucceed(first.map(ask), on: eventLoop).assumeIsolated().flatMap { first in
                EventLoopFuture.whenAllSucceed(others.map(ask), on: eventLoop).assumeIsolated()
                    .map { body(first + $0) }.nonisolated()
            }.nonisolated()
        }
    }

    private func ask<Answer: Sendable>(
        of connection: RelayToken, _ question: @escaping @Sendable (RelayLoop) -> Answer
    ) -> EventLoopFuture<Answer> {
        inTurn { Relay.all[connection.relay].ask(on: self.eventLoop, question) }
    }

    /// Asks something when everything before it has been answered: the answers of several relays are of different moments, and
    /// between them no connection may change its place.
    private func inTurn<Answer: Sendable>(
        _ ask: @escaping () -> EventLoopFuture<Answer>
    ) -> EventLoopFuture<Answer> {
        let answer = turn.assumeIsolated().flatMap { ask() }.nonisolated()
        turn = answer.map { _ in }
        return answer
    }
}
