internal import Determinism
public import Foundation
public import Impairment
public import LinkModel
internal import NIOPosix
public import Proxy
internal import Synchronization

/// The network of a test: one proxy on a free port of the loopback interface, between the code under test and its
/// server.
public final class Network: Sendable {
    @TaskLocal static var bound: Network?

    /// The network of the current test, in its task and its child tasks.
    public static var current: Network {
        get throws {
            guard let bound else { throw NetworkError.noNetwork }
            return bound
        }
    }

    /// The proxy, for toxics, connections and observation.
    public let proxy: Proxy
    /// The address of the server under test.
    public let upstream: Endpoint
    /// The random seed: the same seed loses the same packets of the same connections.
    public let seed: UInt64
    /// The base URL for HTTP: `http://127.0.0.1:49321`.
    public let url: URL

    private let state: Mutex<State>

    private struct State {
        var link: ResolvedLink
        /// The start of the link, for timelines.
        var start: ContinuousClock.Instant
        /// The number of ``Network/outage(isolation:_:)`` blocks that run.
        var outageBlocks = 0
    }

    /// The host to connect to.
    public var host: String { proxy.address.host }
    /// The port to connect to.
    public var port: Int { proxy.address.port }
    /// The address to connect to: `127.0.0.1:49321`.
    public var address: String { proxy.address.description }

    // MARK: Start and end

    /// The default of the random seed.
    private static let seedDefault: UInt64 = 1

    static func start(_ settings: NetworkSettings) async throws -> Network {
        guard let upstream = settings.upstream else { throw NetworkError.noUpstream }
        let text = try await upstream()
        guard let endpoint = Endpoint(text) else { throw NetworkError.invalidUpstream(text) }
        let link = try settings.link?.resolved ?? .conditions(.clear)
        let faults = try settings.faults.map { try $0.rule }
        let seed = settings.seed ?? seedDefault
        var configuration = ProxyConfiguration(listen: Endpoint(host: "127.0.0.1", port: 0), upstream: endpoint)
        configuration.seed = seed
        configuration.faultRules = faults
        switch link {
        case .conditions(let conditions): configuration.conditions = conditions
        case .timeline(let timeline): configuration.timeline = timeline
        }
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        guard let url = URL(string: "http://\(proxy.address)") else {
            preconditionFailure("the loopback address \(proxy.address) is not a host of a URL")
        }
        return Network(proxy, upstream: endpoint, url: url, seed: seed, State(link: link, start: .now))
    }

    private init(_ proxy: Proxy, upstream: Endpoint, url: URL, seed: UInt64, _ state: State) {
        self.proxy = proxy
        self.upstream = upstream
        self.url = url
        self.seed = seed
        self.state = Mutex(state)
    }

    func close() async { await proxy.close() }

    /// An error for each fault rule that has fired less often than its `times` states.
    var unusedFaults: [NetworkError] {
        get async { await proxy.faultRules().filter { !$0.isSatisfied }.map(NetworkError.unusedFault) }
    }

    // MARK: Conditions

    /// The conditions that apply now; ``outage(isolation:_:)`` does not change them.
    public var conditions: Conditions {
        get async { await proxy.status().link.conditions }
    }

    /// The counters of the proxy.
    public var status: ProxyStatus {
        get async { await proxy.status() }
    }

    /// Replaces the conditions; in effect when the call returns.
    ///
    /// - Parameter changes: Further conditions, with their times from now.
    public func link(_ profile: NetworkProfile, at changes: KeyValuePairs<Duration, NetworkProfile> = [:]) async throws
    {
        guard let plan = LinkPlan(profile, at: changes) else { return }
        await apply(try plan.resolved, startedAt: .now)
    }

    /// Replaces the conditions while a closure runs. A timeline of before has advanced meanwhile.
    public func link<Value>(
        _ profile: NetworkProfile, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async throws -> Value {
        let earlier = state.withLock { ($0.link, $0.start) }
        try await link(profile)
        let value: Value
        do {
            value = try await body()
        } catch {
            await apply(earlier.0, startedAt: earlier.1)
            throw error
        }
        await apply(earlier.0, startedAt: earlier.1)
        return value
    }

    private func apply(_ link: ResolvedLink, startedAt start: ContinuousClock.Instant) async {
        state.withLock {
            $0.link = link
            $0.start = start
        }
        switch link {
        case .conditions(let conditions): await proxy.setConditions(conditions)
        case .timeline(let timeline): await proxy.startTimeline(timeline, from: Nanoseconds(.now - start))
        }
    }

    /// Loses every packet while a closure runs, as in a tunnel: open connections stall, and new ones time out. A
    /// timeline goes on. If several blocks overlap, the network returns when the last one ends.
    ///
    /// A stalled connection continues with its next TCP retransmission, which can be seconds after the block.
    public func outage<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async rethrows -> Value {
        state.withLock { $0.outageBlocks += 1 }
        await proxy.setOutage(PerDirection(up: true, down: true))
        let value: Value
        do {
            value = try await body()
        } catch {
            await endOutage()
            throw error
        }
        await endOutage()
        return value
    }

    private func endOutage() async {
        let isLast = state.withLock { state in
            state.outageBlocks -= 1
            return state.outageBlocks == 0
        }
        if isLast { await proxy.setOutage(PerDirection(up: false, down: false)) }
    }

    /// Takes the network away while a closure runs, as with an interface that is down: open connections are aborted, and
    /// new ones fail at once. A timeline of before has advanced meanwhile.
    public func offline<Value>(
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async throws -> Value {
        try await link(.offline, isolation: isolation, body)
    }

    /// Aborts all open connections with a RST to both sockets. New connections are accepted as before.
    public func disconnect() async { await proxy.abortConnections() }

    // MARK: Faults

    /// Adds a fault of HTTP exchanges on one line, such as `PUT /notes/* before-response reset`. It applies to requests on
    /// connections that are opened from now on, and has to fire before the network ends.
    public func fault(_ rule: String) async throws { try await fault(DeclaredFault.text(rule).rule) }

    /// Adds a fault of HTTP exchanges. It applies to requests on connections that are opened from now on, and has to
    /// fire as often as the rule's `times` states before the network ends.
    public func fault(_ rule: FaultRule) async throws { _ = try await proxy.addFaultRule(rule) }
}
