internal import NIOConcurrencyHelpers
internal import NIOCore
internal import NIOPosix

/// Looks hosts up for all proxies of the process, off their event loops.
///
/// Numeric hosts and `localhost` need no lookup. Concurrent callers of one name share one lookup, so that a name whose server
/// does not answer keeps one thread; when ``lookupsMax`` names do so, a further name fails at once instead of waiting behind them.
final class NameResolver: Sendable {
    /// The process's resolver.
    static let shared = NameResolver()

    /// The most names that are looked up at once.
    static let lookupsMax = 32
    /// How long a caller waits for a lookup unless it says otherwise.
    static let timeMax = TimeAmount.seconds(10)

    typealias Outcome = Result<[SocketAddress], any Error>

    private struct State {
        /// The callers of each name. Names are compared as bytes: a `String` would be normalised for it.
        var waiting: [[UInt8]: [@Sendable (Outcome) -> Void]] = [:]
        var pool: NIOThreadPool?
    }

    private let state = NIOLockedValueBox(State())
    private let resolve: @Sendable (Endpoint) throws -> [SocketAddress]

    /// - Parameter resolve: Gives a host's addresses; may block.
    init(_ resolve: @escaping @Sendable (Endpoint) throws -> [SocketAddress] = NameLookup.addresses(of:)) {
        self.resolve = resolve
    }

    deinit { state.withLockedValue { $0.pool }?.shutdownGracefully { _ in } }

    /// The addresses of a host that needs no lookup; `nil` if it is another name.
    static func immediate(_ endpoint: Endpoint) -> [SocketAddress]? {
        if let address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port) { return [address] }
        // RFC 6761, section 6.3: the loopback addresses, whatever a name server says.
        guard endpoint.host.utf8.count == 9, endpoint.host.lowercased() == "localhost" else { return nil }
        return ["127.0.0.1", "::1"].compactMap { try? SocketAddress(ipAddress: $0, port: endpoint.port) }
    }

    /// Gives all addresses of a host, in the system's order; fails after `time`, whether the lookup has ended or not.
    func addresses(
        of endpoint: Endpoint, within time: TimeAmount = NameResolver.timeMax, on eventLoop: any EventLoop
    ) -> EventLoopFuture<[SocketAddress]> {
        if let addresses = Self.immediate(endpoint) { return eventLoop.makeSucceededFuture(addresses) }
        let promise = eventLoop.makePromise(of: [SocketAddress].self)
        let timer = eventLoop.scheduleTask(in: time) {
            let reason = "no name server has answered within \(time.nanoseconds / 1_000_000) ms"
            promise.fail(ProxyError(code: .cannotResolve, endpoint: endpoint, reason: reason))
        }
        lookUp(endpoint) { outcome in
            timer.cancel()
            promise.completeWith(outcome)
        }
        return promise.futureResult
    }

    /// The same for code that is on no event loop.
    func addresses(of endpoint: Endpoint) async throws -> [SocketAddress] {
        try await addresses(of: endpoint, on: MultiThreadedEventLoopGroup.singleton.any()).get()
    }

    private enum Admission {
        case starts(NIOThreadPool)
        case joins
        case isRefused
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
            if state.waiting[name] != nil {
                state.waiting[name]?.append(withPort)
                return .joins
            }
            guard state.waiting.count < Self.lookupsMax else { return .isRefused }
            state.waiting[name] = [withPort]
            let pool = state.pool ?? NIOThreadPool(numberOfThreads: Self.lookupsMax)
            if state.pool == nil { pool.start() }
            state.pool = pool
            return .starts(pool)
        }
        guard case .starts(let pool) = admission else {
            if case .joins = admission { return }
            let reason = "\(Self.lookupsMax) other names are being looked up, the limit"
            return done(.failure(ProxyError(code: .cannotResolve, endpoint: endpoint, reason: reason)))
        }
        let resolve = resolve
        pool.submit { _ in
            let outcome = Outcome { try resolve(endpoint) }
            let waiting = self.state.withLockedValue { $0.waiting.removeValue(forKey: name) }
            for done in waiting ?? [] { done(outcome) }
        }
    }
}
