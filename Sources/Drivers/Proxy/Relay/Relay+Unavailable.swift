#if !os(Linux)
package import ForwardProxy
package import NIOCore

/// The relays of a system without splice(2): there are none, and all connections go through SwiftNIO.
package final class Relay: Sendable {
    package static let all: [Relay] = []

    package static func forNextProxy() -> Relay? { nil }

    package static func makePortToken() -> RelayToken { RelayToken(.listener, relay: 0, index: 0, generation: 0) }

    package func perform(_ job: @escaping @Sendable (RelayLoop) -> Void) {}

    package func submit<Output: Sendable>(
        on eventLoop: any EventLoop, _ job: @escaping @Sendable (RelayLoop) -> Output
    ) -> EventLoopFuture<Output> {
        eventLoop.makeFailedFuture(IOError(errnoCode: 0, reason: "this system has no relays"))
    }
}

/// A relay thread's event loop; without relays it has no instances.
package final class RelayLoop {
    private let never: Never

    private init(_ never: Never) { self.never = never }

    package func open(
        _ token: RelayToken, _ configuration: RelayPortConfiguration, acceptor: Relay, listener: OwnedSocket?
    ) { switch never {} }
    package func freeze(_ token: RelayToken) { switch never {} }
    package func detach(from token: RelayToken, upTo count: Int) -> RelayDetachment { switch never {} }
    package func close(_ token: RelayToken, _ mode: RelayCloseMode, connectionsMax: Int) -> RelayDetachment {
        switch never {}
    }
    package func detach(_ token: RelayToken) -> DetachedConnection? { switch never {} }
    package func abort(_ token: RelayToken) -> Bool { switch never {} }
    package func connectionTokens(of token: RelayToken) -> [RelayToken] { switch never {} }
    package func reseed(_ token: RelayToken, _ seed: UInt64) { switch never {} }
    package func traffic(of token: RelayToken) -> RelayedTraffic { switch never {} }
    package func statuses(of token: RelayToken) -> [RelayedConnectionStatus] { switch never {} }
    package func slotReleased(_ token: RelayToken) { switch never {} }
    package func passToProxy(_ token: RelayToken, _ failure: ConnectFailure?) { switch never {} }
    package func dial(_ token: RelayToken, _ addresses: Result<[SocketAddress], any Error>) { switch never {} }
}
#endif
