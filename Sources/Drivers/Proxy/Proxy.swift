public import Determinism
public import Impairment
public import LinkModel
public import Logging
internal import NIOConcurrencyHelpers
public import NIOCore
internal import NIOPosix

/// A proxy of TCP connections and UDP datagrams that impairs traffic according to its ``LinkModel/Conditions``.
///
/// ```swift
/// let proxy = try await Proxy.start(
///     ProxyConfiguration(listen: Endpoint("127.0.0.1:0")!, upstream: Endpoint("127.0.0.1:8000")!),
///     on: MultiThreadedEventLoopGroup.singleton)
/// await proxy.setConditions(.clear)   // in effect when the call returns
/// await proxy.stop()
/// ```
public final class Proxy: Sendable {
    /// The listening address, with the actual port if port 0 was configured.
    public let address: Endpoint
    let eventLoop: any EventLoop
    let core: NIOLoopBound<ProxyCore>
    private let failure: NIOLockedValueBox<String?>

    /// The reason why the proxy cannot listen, for instance because another process has bound the port while
    /// connections were refused; `nil` if it can. The proxy retries every second.
    public var listenFailure: String? { failure.withLockedValue { $0 } }

    private init(
        address: Endpoint, eventLoop: any EventLoop, core: NIOLoopBound<ProxyCore>, failure: NIOLockedValueBox<String?>
    ) {
        self.address = address
        self.failure = failure
        self.eventLoop = eventLoop
        self.core = core
    }

    /// Whether this system has a fast path for connections without conditions (Linux: epoll and splice).
    public static var hasFastPath: Bool { !Relay.all.isEmpty }

    /// Whether this system has the calls for datagrams (Linux).
    public static var canForwardDatagrams: Bool { DatagramPort.isAvailable }

    /// The number of ports that are tried if the system chooses one that is free for one protocol only.
    private static let portsTriedMax = 16

    /// Starts a proxy on one event loop of `group`. Throws a ``ProxyError``.
    public static func start(
        _ configuration: ProxyConfiguration, on group: any EventLoopGroup,
        logger: Logger = Logger(label: "slowlane.proxy") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> Proxy {
        for _ in 1..<portsTriedMax where configuration.protocols == [.tcp, .udp] && configuration.listen.port == 0 {
            do {
                return try await startOnce(configuration, on: group, logger: logger)
            } catch let error as ProxyError where error.errnoName == "EADDRINUSE" {}
        }
        return try await startOnce(configuration, on: group, logger: logger)
    }

    private static func startOnce(
        _ configuration: ProxyConfiguration, on group: any EventLoopGroup, logger: Logger
    ) async throws -> Proxy {
        // The upstream's name is looked up now, so that a misspelt one fails the start and not the first connection.
        let isFixed = configuration.forward == nil && !configuration.resolvesPerConnection
        let upstream = isFixed ? try await addresses(of: configuration.upstream) : []
        let listen: SocketAddress
        do {
            listen = try await addresses(of: configuration.listen)[0]
        } catch let error as ProxyError {
            throw ProxyError(code: .cannotBind, endpoint: configuration.listen, reason: error.reason)
        }
        if upstream.contains(where: { reaches(listen, from: $0) }) {
            throw ProxyError(code: .upstreamIsProxy, endpoint: configuration.upstream, reason: "")
        }
        let eventLoop = group.next()
        let core = try await eventLoop.submit {
            let addresses = UpstreamAddresses(configuration.upstream, upstream)
            let core = ProxyCore(configuration, upstream: addresses, on: eventLoop, logger: logger)
            return NIOLoopBound(core, eventLoop: eventLoop)
        }.get()
        do {
            let failure = NIOLockedValueBox<String?>(nil)
            let port = try await eventLoop.flatSubmit {
                core.value.listen(on: listen) { reason in failure.withLockedValue { $0 = reason } }
            }.get()
            let host = configuration.resolvesPerConnection ? listen.ipAddress : configuration.listen.host
            let address = Endpoint(host: host ?? configuration.listen.host, port: port)
            return Proxy(address: address, eventLoop: eventLoop, core: core, failure: failure)
        } catch {
            try? await eventLoop.submit {
                core.value.closeListener()
                core.value.closeDatagrams()
                core.value.linkDriver.shutDown()
            }.get()
            throw ProxyError.cannotBind(configuration.listen, error)
        }
    }

    // MARK: Changes, in effect when the call returns

    /// Starts a timeline at `offset`, or at the position that an absolute start gives. It changes the conditions from
    /// then on.
    public func startTimeline(
        _ timeline: Timeline, from offset: Nanoseconds = .zero, startingAt start: TimelineStart? = nil
    ) async {
        await change { $0.startTimeline(timeline, from: offset, startingAt: start) }
    }

    /// Sets the conditions for packets that enter the link from now on, and ends a running timeline.
    public func setConditions(_ conditions: Conditions) async {
        let impairs = !conditions.isClear || conditions.connectionPolicy != .open
        await change(impairs: impairs) { $0.setConditions(conditions) }
    }

    /// Starts or ends an outage in each direction, independently of the conditions.
    public func setOutage(_ outage: PerDirection<Bool>) async {
        await change(impairs: outage.up || outage.down) { $0.setOutage(outage) }
    }

    /// Adds a toxic, closest to the link, to all present and future connections. The name must not be in use.
    public func add(_ toxic: Toxic) async {
        await change { $0.add(toxic) }
    }

    /// Replaces the settings of the toxic with the same name.
    public func update(_ toxic: Toxic) async {
        await change(impairs: false) { $0.update(toxic) }
    }

    /// Removes toxics. Bytes that they hold are released at once; connections that a `timeout` toxic holds are closed.
    public func removeToxics(_ names: [String]) async {
        await change(impairs: false) { link in
            for name in names { link.removeToxic(name) }
        }
    }

    /// Withdraws the faults of ``ProxyConfiguration/exchangeController`` that have not begun to apply.
    public func withdrawFaults() async {
        await change(impairs: false) { $0.withdrawFaults() }
    }

    /// Adds a fault rule and returns its number. The rule applies to requests whose head is complete from now on, on new
    /// connections and on open ones of which the link has read every byte. It does not apply to connections of which the
    /// fast path has forwarded bytes, because the start of their next request is unknown, and to those that are not
    /// HTTP; ``ProxyStatus/connectionsWithoutFaults`` counts both. No connection is closed. Each fault is logged.
    ///
    /// Throws if the rule cannot be used, or if the proxy has ``Impairment/SharedLink/faultRulesMax`` rules.
    @discardableResult
    public func addFaultRule(_ rule: FaultRule) async throws(FaultRuleError) -> Int {
        if let problem = rule.problem { throw FaultRuleError(reason: problem) }
        let result = NIOLockedValueBox(
            Result<Int, FaultRuleError>.failure(FaultRuleError(reason: "the proxy has stopped")))
        await change { link in
            let added = link.addFaultRule(rule)
            result.withLockedValue { $0 = added }
        }
        return try result.withLockedValue { $0 }.get()
    }

    /// Removes fault rules; unknown numbers are ignored. What a fault holds continues; bytes that it has discarded stay
    /// discarded.
    public func removeFaultRules(_ numbers: [Int]) async {
        await change(impairs: false) { $0.removeFaultRules(numbers) }
    }

    /// Returns the fault rules with their counts, also after the proxy has stopped.
    public func faultRules() async -> [FaultRuleStatus] {
        await query { $0.eventLoop.makeSucceededFuture($0.linkDriver.faultRules) }
    }

    /// Returns the connections into which the rules about requests cannot see, also after the proxy has stopped.
    public func opaqueTLS() async -> OpaqueTLS {
        await query { $0.eventLoop.makeSucceededFuture($0.opaqueTLS) }
    }

    /// Returns the state of the interception of TLS, also after the proxy has stopped.
    public func interception() async -> InterceptionStatus {
        await query { $0.eventLoop.makeSucceededFuture($0.interception) }
    }

    /// Sets the random seed; the next connection is number 0.
    public func reseed(_ seed: UInt64) async {
        await query { $0.reseed(seed) }
    }

    // MARK: Connections

    /// Returns the open connections.
    public func connections() async -> [ConnectionStatus] {
        await query { $0.connections() }
    }

    /// Closes one connection: aborts it (RST to both sockets), or sends a FIN after the bytes that have arrived.
    /// Returns `false` if it is closed already.
    public func closeConnection(_ id: ConnectionID, abortively: Bool) async -> Bool {
        await query { $0.closeConnection(id, abortively: abortively) }
    }

    /// Aborts all connections with a RST to both sockets. New connections are accepted as before.
    public func abortConnections() async {
        await query { $0.abortConnections() }
    }

    /// Returns the proxy's status.
    public func status() async -> ProxyStatus {
        await query { $0.status() }
    }

    // MARK: Forward proxy

    /// Changes the settings of a forward proxy, for connections that are opened from now on; changed conditions of a rule
    /// apply to its open connections, too. Returns the settings; `nil` if the proxy has an upstream. If the change throws,
    /// it has no effect.
    @discardableResult
    public func changeForward<Failure: Error>(
        _ change: @escaping @Sendable (inout ForwardSettings) throws(Failure) -> Void
    ) async throws(Failure) -> ForwardSettings? {
        let result: Result<ForwardSettings?, Failure> = await query { core in
            guard var settings = core.forward else { return core.eventLoop.makeSucceededFuture(.success(nil)) }
            do throws(Failure) {
                try change(&settings)
            } catch {
                return core.eventLoop.makeSucceededFuture(.failure(error))
            }
            core.setForward(settings)
            return core.eventLoop.makeSucceededFuture(.success(settings))
        }
        return try result.get()
    }

    /// Returns the settings of a forward proxy; `nil` if the proxy has an upstream.
    public func forwardSettings() async -> ForwardSettings? {
        await query { $0.eventLoop.makeSucceededFuture($0.forward) }
    }

    /// Returns the counters of a forward proxy's destinations, in the order in which clients first named them.
    public func hostTraffic() async -> [HostTraffic] {
        await query { $0.eventLoop.makeSucceededFuture($0.trafficByHost()) }
    }

    // MARK: Observation

    /// Starts an observation of the running proxy. Observing exchanges or packets moves all connections off the fast
    /// path, and keeps new ones off it until the observation ends.
    ///
    /// - Parameter bufferedEventsMax: The maximum number of events that wait to be read; further ones are dropped and
    ///   counted.
    /// - Parameter statusInterval: The time between two status events.
    public func observe(
        _ set: ObservationSet, bufferedEventsMax: Int = ProxyObservation.bufferedEventsMaxDefault,
        statusInterval: Nanoseconds = ProxyObservation.statusInterval
    ) async -> ProxyObservation {
        let (core, eventLoop) = (core, eventLoop)
        return await query { proxy in
            proxy.observe(
                set, bufferedEventsMax: bufferedEventsMax, statusInterval: max(statusInterval, .milliseconds(10))
            ) { observer in
                eventLoop.execute { core.value.detach(observer.value) }
            }
        }
    }

    // MARK: Stopping

    /// Stops accepting, and closes each connection with a FIN as soon as it has no traffic left: no byte is in flight,
    /// and every request has its response; if its exchanges are not tracked, no byte has passed for a second. After
    /// `grace` the others are aborted (RST), and so are those whose bytes an outage keeps from arriving. Returns when all
    /// sockets are closed. A call during another one can only shorten its grace period.
    ///
    /// - Returns: Whether no connection was aborted.
    @discardableResult
    public func stop(grace: TimeAmount = .seconds(5)) async -> Bool {
        let core = core
        let done = eventLoop.flatSubmit { core.value.stop(grace: grace) }
        return (try? await done.get()) ?? false
    }

    /// Closes the port and all connections at once, with a FIN after the bytes in the kernel's send buffer; bytes in
    /// flight on the link are dropped. Returns the last status when all sockets are closed.
    @discardableResult
    public func close() async -> ProxyStatus {
        let core = core
        let last = await status()
        let done = eventLoop.flatSubmit { core.value.close() }
        try? await done.get()
        return last
    }

    private func change(impairs: Bool = true, _ body: @escaping @Sendable (LinkDriver) -> Void) async {
        let core = core
        let done = eventLoop.flatSubmit { core.value.change(impairs: impairs, body) }
        // A failure to bind the port again is logged and retried by the listener.
        try? await done.get()
    }

    func query<Value: Sendable>(
        _ body: @escaping @Sendable (ProxyCore) -> EventLoopFuture<Value>
    ) async -> Value {
        let core = core
        do {
            return try await eventLoop.flatSubmit { body(core.value) }.get()
        } catch {
            preconditionFailure("the event loop of a proxy was shut down before the proxy: \(error)")
        }
    }

    // MARK: Addresses

    private static func addresses(of endpoint: Endpoint) async throws -> [SocketAddress] {
        return try await NameResolver.shared.addresses(of: endpoint)
    }

    /// Returns whether a dial to `address` reaches a listener on `listen`. ``LoopDetector`` finds the loops that
    /// addresses do not show.
    static func reaches(_ listen: SocketAddress, from address: SocketAddress) -> Bool {
        guard listen.port == address.port, var host = LoopDetector.host(address), let own = LoopDetector.host(listen)
        else { return false }
        // The kernel routes a dial to the wildcard address to the loopback interface.
        if host == "0.0.0.0" { host = "127.0.0.1" }
        if host == "::" { host = "::1" }
        if host == own { return true }
        guard own == "0.0.0.0" || own == "::" else { return false }
        return LoopDetector.isLoopback(host) || ownAddresses.contains(host)
    }

    /// Returns whether an address is a loopback or wildcard address or one of this machine's.
    static func isOnThisMachine(_ address: SocketAddress) -> Bool {
        guard let host = LoopDetector.host(address) else { return false }
        return LoopDetector.isLoopback(host) || host == "0.0.0.0" || host == "::" || ownAddresses.contains(host)
    }

    /// The addresses of this machine's interfaces at the start of the process.
    private static let ownAddresses = Set((try? System.enumerateDevices())?.compactMap { $0.address?.ipAddress } ?? [])
}
