internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOPosix

/// The name resolver of all proxies of the process, on threads of its own.
///
/// Numeric hosts and `localhost` need no lookup. Concurrent callers of one name share one lookup, so that a name whose
/// server does not respond blocks one thread. While ``lookupsMax`` lookups are under way, the lookup of a further name
/// fails at once.
final class NameResolver: Sendable {
    /// The resolver of the process.
    static let shared = NameResolver()

    /// The maximum number of concurrent lookups.
    static let lookupsMax = 32
    /// The default time limit of a call.
    static let timeMax = TimeAmount.seconds(10)

    typealias Outcome = Result<[SocketAddress], any Error>

    private struct State {
        /// The callers of each name. Names are compared as bytes, because comparing strings would normalise them.
        var callers: [[UInt8]: [@Sendable (Outcome) -> Void]] = [:]
        var pool: NIOThreadPool?
    }

    private let state = NIOLockedValueBox(State())
    private let resolve: @Sendable (Endpoint) throws -> [SocketAddress]

    /// - Parameter resolve: Returns a host's addresses; may block.
    init(_ resolve: @escaping @Sendable (Endpoint) throws -> [SocketAddress] = NameLookup.addresses(of:)) {
        self.resolve = resolve
    }

    deinit { state.withLockedValue { $0.pool }?.shutdownGracefully { _ in } }

    /// Returns the addresses of a host that needs no lookup; `nil` for other names.
    static func immediate(_ endpoint: Endpoint) -> [SocketAddress]? {
        if let address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port) { return [address] }
        // RFC 6761, section 6.3: localhost always resolves to the loopback addresses.
        guard endpoint.host.utf8.count == 9, endpoint.host.lowercased() == "localhost" else { return nil }
        return ["127.0.0.1", "::1"].compactMap { try? SocketAddress(ipAddress: $0, port: endpoint.port) }
    }

    /// Returns all addresses of a host, in the system's order; fails after `time` even if the lookup is still under
    /// way.
    func addresses(
        of endpoint: Endpoint, within time: TimeAmount = NameResolver.timeMax, on eventLoop: any EventLoop
    ) -> EventLoopFuture<[SocketAddress]> {
        if let addresses = Self.immediate(endpoint) { return eventLoop.makeSucceededFuture(addresses) }
        let promise = eventLoop.makePromise(of: [SocketAddress].self)
        let timer = eventLoop.scheduleTask(in: time) {
            let reason = "no response from a name server within \(time.nanoseconds / 1_000_000) ms"
            promise.fail(
                ProxyError(code: .cannotResolve, endpoint: endpoint, reason: reason, lookupFailure: .timeout))
        }
        lookUp(endpoint) { outcome in
            timer.cancel()
            promise.completeWith(outcome)
        }
        return promise.futureResult
    }

    /// Returns all addresses of a host; callable outside event loops.
    func addresses(of endpoint: Endpoint) async throws -> [SocketAddress] {
        try await addresses(of: endpoint, on: MultiThreadedEventLoopGroup.singleton.any()).get()
    }

    private enum Admission {
        case newLookup(NIOThreadPool)
        case sharedLookup
        case limitReached
    }

    private func lookUp(_ endpoint: Endpoint, _ done: @escaping @Sendable (Outcome) -> Void) {
        let name = Array(endpoint.host.utf8)
        let withPort: @Sendable (Outcome) -> Void = { outcome in
            done(
                outcome.map { addresses in
                    addresses.map { address in
                        var address = address
                        address.port = endpoint.port
                        return address
                    }
                })
        }
        let admission: Admission = state.withLockedValue { state in
            if state.callers[name] != nil {
                state.callers[name]?.append(withPort)
                return .sharedLookup
            }
            guard state.callers.count < Self.lookupsMax else { return .limitReached }
            state.callers[name] = [withPort]
            let pool = state.pool ?? NIOThreadPool(numberOfThreads: Self.lookupsMax)
            if state.pool == nil { pool.start() }
            state.pool = pool
            return .newLookup(pool)
        }
        guard case .newLookup(let pool) = admission else {
            if case .sharedLookup = admission { return }
            let reason = "\(Self.lookupsMax) other lookups are under way (the limit)"
            return done(.failure(ProxyError(code: .cannotResolve, endpoint: endpoint, reason: reason)))
        }
        let resolve = resolve
        pool.submit { _ in
            let outcome = Outcome { try resolve(endpoint) }
            let callers = self.state.withLockedValue { $0.callers.removeValue(forKey: name) }
            for done in callers ?? [] { done(outcome) }
        }
    }
}
