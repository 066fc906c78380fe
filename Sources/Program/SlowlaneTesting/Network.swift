internal import ConfigFiles
internal import Determinism
internal import ForwardProxy
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
    /// The address of the server under test; `nil` in a forward network.
    public let upstream: Endpoint?
    /// The random seed: the same seed loses the same packets of the same connections.
    public let seed: UInt64
    /// The base URL for HTTP: `http://127.0.0.1:49321`.
    public let url: URL
    /// The certificate of the authority that clients of intercepted connections must trust, in PEM form; `nil` if no
    /// connections are intercepted.
    public let authorityCertificate: String?

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
        guard let servers = settings.servers else { throw NetworkError.noUpstream }
        let (upstream, forward) = try await servers.resolved()
        let link = try settings.link?.resolved ?? .conditions(.clear)
        let faults = try settings.faults.map { try $0.rule }
        let seed = settings.seed ?? seedDefault
        let anyPort = Endpoint(host: "127.0.0.1", port: 0)
        var configuration = ProxyConfiguration(listen: anyPort, upstream: upstream ?? anyPort)
        configuration.forward = forward
        configuration.seed = seed
        configuration.faultRules = faults
        configuration.interception = try settings.interception?.resolved()
        switch link {
        case .conditions(let conditions): configuration.conditions = conditions
        case .timeline(let timeline): configuration.timeline = timeline
        }
        let proxy = try await Proxy.start(configuration, on: MultiThreadedEventLoopGroup.singleton)
        guard let url = URL(string: "http://\(proxy.address)") else {
            preconditionFailure("the loopback address \(proxy.address) is not a host of a URL")
        }
        return Network(
            proxy, upstream: upstream, url: url, configuration.interception?.authority.certificatePEM, seed: seed,
            State(link: link, start: .now))
    }

    private init(
        _ proxy: Proxy, upstream: Endpoint?, url: URL, _ authorityCertificate: String?, seed: UInt64, _ state: State
    ) {
        self.proxy = proxy
        self.authorityCertificate = authorityCertificate
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

// MARK: Forward networks

extension Network {
    /// The URL of the forward proxy, `http://127.0.0.1:49321`. Its port also accepts SOCKS 4, 4a and 5.
    ///
    /// Throws a ``NetworkError`` if the network has an upstream.
    public var proxyURL: URL {
        get throws {
            guard upstream == nil else { throw NetworkError.isNotForward }
            return url
        }
    }

    /// Sets a rule, such as `*.cdn.test=wifi`, in place of the one with the same pattern. It applies to connections that
    /// are opened from now on.
    public func to(_ rule: String) async throws {
        let rule = try HostRules.rule(parsing: rule)
        var conditions: Conditions?
        if case .conditions(let name) = rule.treatment { conditions = try ProfileCatalogue.profile(name).conditions }
        try await changeForward { [conditions] settings in settings.set(rule, conditions: conditions) }
    }

    /// Sets the address that is connected in place of a host, such as `api.test=127.0.0.1:8000`.
    public func map(_ map: String) async throws {
        let map = try HostRules.map(parsing: map)
        try await changeForward { settings in
            settings.rules.maps.removeAll { $0.pattern == map.pattern }
            settings.rules.maps.append(map)
        }
    }

    private func changeForward(_ change: @escaping @Sendable (inout ForwardSettings) -> Void) async throws {
        guard await proxy.changeForward(change) != nil else { throw NetworkError.isNotForward }
    }

    /// The destinations that the clients have named, with their connections and bytes; empty in a network with an
    /// upstream.
    public var hosts: [HostTraffic] {
        get async { await proxy.hostTraffic() }
    }
}
