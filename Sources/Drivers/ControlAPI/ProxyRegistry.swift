internal import ConfigFiles
internal import Determinism
internal import HTTPSockets
internal import HTTPTypes
internal import LinkModel
internal import Logging
internal import NIOCore
internal import Proxy
internal import Synchronization
internal import Wire

/// The proxies of an ``API``.
///
/// Changes of one proxy run one after the other, and each takes effect completely or not at all. Changes of different
/// proxies run concurrently, since some wait for name lookups.
actor ProxyRegistry {
    /// Resolves a listen address.
    typealias Resolver = @Sendable (String) async throws(ProxyError) -> Endpoint

    var proxies: [ByteKey: ManagedProxy] = [:]
    /// The proxies of the configuration file, as it was applied last.
    var configured: [ByteKey: ProxyRequest] = [:]
    let limits: ServerLimits
    /// The start of timelines that have none of their own.
    let timelineStart: TimelineStart?
    let resolver: Resolver
    let authoritySource: AuthoritySource
    var isClosed = false
    /// The callers that wait for lookups.
    var pendingLookups: [Int: CheckedContinuation<LookupResult, Never>] = [:]
    var lookupCount = 0

    /// The events of changes.
    nonisolated let feed: EventFeed
    /// The last recording of links and faults.
    var recording: LinkRecording?
    /// The proxies to which conditions apply, as the value of a response header; `nil` without any.
    nonisolated let conditionsHeader = Mutex<String?>(nil)
    /// The names of these proxies, sorted.
    var impairedProxies: [ByteKey] = []
    private let seed: UInt64
    private let group: any EventLoopGroup
    let logger: Logger
    /// The waiting changes of each proxy that is being changed.
    private var changes: [ByteKey: [CheckedContinuation<Void, Never>]] = [:]
    /// The number of new proxies that are being created and not yet among ``proxies``.
    private var proxiesBeingCreated = 0

    init(
        seed: UInt64, limits: ServerLimits, timelineStart: TimelineStart? = nil, on group: any EventLoopGroup,
        logger: Logger,
        feed: EventFeed = EventFeed(version: "", dashboard: "on"),
        authority: @escaping AuthoritySource = { () throws(CertificateAuthorityError) in nil },
        resolver: @escaping Resolver = { (text) async throws(ProxyError) in try await ListenAddress.resolve(text) }
    ) {
        self.seed = seed
        self.limits = limits
        self.timelineStart = timelineStart
        self.group = group
        self.logger = logger
        self.resolver = resolver
        authoritySource = authority
        self.feed = feed
    }

    // MARK: Exclusive access

    /// The maximum number of waiting changes of one proxy; further changes get 503.
    static let waitingChangesMax = 64

    /// Runs a change of a proxy after the earlier changes of this proxy, and reports it to the readers of events.
    func withExclusiveAccess<Result>(
        to name: String, by cause: ChangeCause = .api, waitingMax: Int = waitingChangesMax,
        _ change: () async throws(APIError) -> Result
    ) async throws(APIError) -> Result {
        let name = ByteKey(name)
        if let waiting = changes[name] {
            guard waiting.count < waitingMax else {
                throw APIError(
                    .serviceUnavailable, "\(waitingMax) changes of this proxy are waiting already; try again later")
            }
            await withCheckedContinuation { changes[name]?.append($0) }
        } else {
            changes[name] = []
        }
        defer {
            if changes[name]?.isEmpty == false { changes[name]?.removeFirst().resume() } else { changes[name] = nil }
        }
        do throws(APIError) {
            let result = try await change()
            await report(name, by: cause)
            return result
        } catch {
            await report(name, by: cause)
            throw error
        }
    }

    // MARK: Queries

    /// All proxies, sorted by name.
    var all: [ManagedProxy] { proxies.sorted { $0.key < $1.key }.map(\.value) }

    func proxy(named name: String) throws(APIError) -> ManagedProxy {
        guard let proxy = proxies[ByteKey(name)] else { throw .proxyNotFound }
        return proxy
    }

    // MARK: Creation

    func create(_ request: ProxyRequest) async throws(APIError) -> ManagedProxy {
        if proxies[ByteKey(request.name)] != nil { throw .proxyExists }
        let address = try await listenAddress(of: request)
        return try await withExclusiveAccess(to: request.name) { () async throws(APIError) -> ManagedProxy in
            if proxies[ByteKey(request.name)] != nil { throw .proxyExists }
            return try await createOrReplace(request, at: address)
        }
    }

    /// Creates the proxies that do not exist, and replaces those whose listen address or upstream differs.
    ///
    /// - Returns: The proxies up to the first one that failed, and its error.
    func populate(_ requests: [ProxyRequest]) async -> (created: [ManagedProxy], error: APIError?) {
        var created: [ManagedProxy] = []
        do {
            for request in requests { try checkLimits(of: request) }
            for request in requests {
                created.append(try await populate(request))
                // Other callers continue between two proxies.
                await Task.yield()
            }
            return (created, nil)
        } catch {
            return (created, error)
        }
    }

    private func populate(_ request: ProxyRequest) async throws(APIError) -> ManagedProxy {
        let address = try await listenAddress(of: request)
        return try await withExclusiveAccess(to: request.name) { () async throws(APIError) -> ManagedProxy in
            if let existing = proxies[ByteKey(request.name)], request.upstream.hasSameBytes(as: existing.upstream),
                (request.forward == nil) == (existing.forward == nil), existing.hasSameTransport(as: request)
            {
                let moves =
                    address.map { Self.differs($0, from: existing.listen) }
                    ?? !request.listen.hasSameBytes(as: existing.listen)
                if !moves { return try await redefine(request.name, request.forward) }
            }
            return try await createOrReplace(request, at: address)
        }
    }

    /// Creates a proxy, or replaces the one with the same name, which remains if the new one cannot start.
    ///
    /// - Parameter address: The listen address; `nil` for a disabled proxy.
    func createOrReplace(_ request: ProxyRequest, at address: Endpoint?) async throws(APIError) -> ManagedProxy {
        let existing = proxies[ByteKey(request.name)]
        if existing?.isAdopted == true { throw Self.isAdopted }
        guard existing != nil || proxies.count + proxiesBeingCreated < limits.proxiesMax else {
            throw APIError(.badRequest, "the server has at most \(limits.proxiesMax) proxies (--max-proxies)")
        }
        try checkLimits(of: request)
        if let address { try request.forward?.checkAccess(on: address) }
        if existing == nil { proxiesBeingCreated += 1 }
        defer { if existing == nil { proxiesBeingCreated -= 1 } }
        var stream = RandomStream(seed: seed, "proxy/\(request.name)")
        var proxy = ManagedProxy(
            name: request.name, listen: request.listen, upstream: request.upstream,
            link: request.link?.starting(at: timelineStart),
            seed: request.seed ?? stream.next() >> 11, forward: request.forward)
        proxy.tls = request.tls
        proxy.protocols = request.protocols
        // Clients that trust the authority of the replaced proxy go on working.
        proxy.authority = existing?.authority
        proxy.setInterception(request.interception)
        proxy.toxics = request.toxics
        proxy.faults = request.faults
        if let existing { return try await replace(existing, by: proxy, at: address) }
        if let address { try await start(&proxy, at: address) }
        proxies[ByteKey(request.name)] = proxy
        return proxy
    }

    /// Replaces a proxy. If the new one cannot start, the old one continues with its connections. If both use the same
    /// port, the old one must stop first; if the new one fails, it restarts without its connections.
    private func replace(
        _ existing: ManagedProxy, by proxy: ManagedProxy, at address: Endpoint?
    ) async throws(APIError) -> ManagedProxy {
        var (existing, proxy) = (existing, proxy)
        let usesSamePort = existing.running.map { $0.address.port == address?.port } ?? false
        if let address, !usesSamePort { try await start(&proxy, at: address) }
        await stop(&existing)
        if let address, usesSamePort {
            do {
                try await start(&proxy, at: address)
            } catch {
                proxies[ByteKey(existing.name)] = existing
                try? await enable(existing.name)
                throw error
            }
        }
        proxies[ByteKey(proxy.name)] = proxy
        return proxy
    }

    func checkLimits(of request: ProxyRequest) throws(APIError) {
        guard request.toxics.count <= limits.toxicsMax else { throw tooManyToxics }
        try checkLimits(of: request.faults)
    }

    var tooManyToxics: APIError {
        APIError(.badRequest, "a proxy has at most \(limits.toxicsMax) toxics (--max-toxics)")
    }

    // MARK: Changes

    /// Changes the settings that are not `nil`.
    func update(
        _ name: String, listen: String?, upstream: String?, tls: UpstreamTLS? = nil,
        interception: InterceptionRequest? = nil, enabled: Bool?, forward: ForwardRequest? = nil,
        protocols: ForwardedProtocols? = nil
    ) async throws(APIError) -> ManagedProxy {
        var resolved: Endpoint?
        if let listen { resolved = try await listenAddress(listen, isStart: false) }
        return try await withExclusiveAccess(to: name) { () async throws(APIError) -> ManagedProxy in
            var proxy = try self.proxy(named: name)
            if proxy.isAdopted { throw Self.isAdopted }
            if let protocols, protocols != proxy.protocols {
                throw .badBody("the protocol of a proxy is not changed; delete the proxy and create it again")
            }
            if proxy.protocols.contains(.udp), tls != nil {
                throw .badBody("an upstream with TLS is one of TCP; the proxy forwards \(proxy.protocols)")
            }
            try forward?.check(isForward: proxy.forward != nil, upstream: upstream)
            if let forward { try await apply(forward, to: &proxy, listen: resolved) }
            let upstream = proxy.forward == nil ? upstream : nil
            let shouldRun = enabled ?? proxy.isEnabled
            let moves = resolved.map { Self.differs($0, from: proxy.listen) } ?? false
            let changesUpstream =
                upstream.map { !$0.hasSameBytes(as: proxy.upstream) || !Self.isSame(tls, proxy.tls) } ?? false
            var changed = proxy
            if let interception { changed.setInterception(interception) }
            if moves || changesUpstream || changed.interception != proxy.interception {
                await stop(&proxy)
                if let interception { proxy.setInterception(interception) }
                if let resolved { proxy.listen = "\(resolved)" }
                if let upstream { (proxy.upstream, proxy.tls) = (upstream, tls) }
            } else if proxy.isEnabled && !shouldRun {
                await stop(&proxy)
            }
            // If the start fails, the proxy remains, disabled.
            proxies[ByteKey(name)] = proxy
            if shouldRun && !proxy.isEnabled { try await enable(name) }
            proxy = try self.proxy(named: name)
            try checkPort(of: proxy)
            return proxy
        }
    }

    static func isSame(_ left: UpstreamTLS?, _ right: UpstreamTLS?) -> Bool {
        guard let left, let right else { return left == nil && right == nil }
        return left.hasSameSettings(as: right)
    }

    /// Returns whether an address differs from the current listen address. Port 0 always does.
    private static func differs(_ address: Endpoint, from listen: String) -> Bool {
        address.port == 0 || "\(address)" != listen
    }

    func delete(_ name: String) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            var proxy = try self.proxy(named: name)
            if proxy.isAdopted { throw Self.isAdopted }
            await stop(&proxy)
            proxies[ByteKey(name)] = nil
        }
    }

    /// Starts every proxy, removes every toxic and every fault, ends every outage, and restores every initial link and the
    /// initial rules of forward proxies.
    func reset() async throws(APIError) {
        // At the same time: each proxy waits for its own event loop.
        let names = proxies.keys.sorted()
        let errors = await withTaskGroup(of: (index: Int, error: APIError?).self) { group in
            for (index, name) in names.enumerated() {
                group.addTask { (index, await self.errorResetting(name)) }
            }
            var errors: [Int: APIError] = [:]
            for await (index, error) in group { errors[index] = error }
            return errors
        }
        if let first = errors.keys.min(), let error = errors[first] { throw error }
    }

    private func errorResetting(_ name: ByteKey) async -> APIError? {
        do throws(APIError) {
            try await withExclusiveAccess(to: name.text, by: .reset) { () async throws(APIError) in
                if proxies[name]?.isEnabled == false { try await enable(name.text) }
                guard var proxy = proxies[name] else { return }
                if !proxy.toxics.isEmpty { await proxy.running?.removeToxics(proxy.toxics.map(\.name)) }
                proxy.toxics = []
                if !proxy.faults.isEmpty { await proxy.running?.removeFaultRules(proxy.faults.compactMap(\.number)) }
                proxy.faults = []
                await restoreRules(of: &proxy)
                if proxy.outage.up || proxy.outage.down {
                    proxy.outage = PerDirection(up: false, down: false)
                    await proxy.running?.setOutage(proxy.outage)
                }
                if proxy.link != proxy.initialLink || proxy.pausedTimeline != nil {
                    proxy.link = proxy.initialLink
                    proxy.pausedTimeline = nil
                    await apply(proxy.link, to: proxy.running)
                }
                proxy.resetAt = nil
                proxies[name] = proxy
                try checkPort(of: proxy)
            }
            return nil
        } catch {
            return error
        }
    }

    /// Closes every proxy; later starts fail.
    ///
    /// - Parameter grace: The time for transfers that are not complete.
    func closeAll(grace: Nanoseconds = .zero) async {
        isClosed = true
        if grace > .zero {
            await withTaskGroup(of: Void.self) { group in
                for case let running? in proxies.values.map(\.running) {
                    group.addTask { await running.stop(grace: .nanoseconds(grace.count)) }
                }
            }
        }
        feed.close()
        cancelLookups()
        for name in proxies.keys.sorted() {
            try? await withExclusiveAccess(to: name.text, waitingMax: .max) { () async throws(APIError) in
                guard var proxy = proxies[name] else { return }
                await stop(&proxy)
                proxies[name] = proxy
            }
        }
    }

    // MARK: Start and stop

    static let isStopping = APIError(.serviceUnavailable, "the server is stopping")

    /// Starts a stopped proxy.
    private func enable(_ name: String) async throws(APIError) {
        var proxy = try proxy(named: name)
        let address = try await listenAddress(proxy.listen)
        try await start(&proxy, at: address)
        proxies[ByteKey(name)] = proxy
    }

    private func start(_ proxy: inout ManagedProxy, at address: Endpoint) async throws(APIError) {
        try proxy.forward?.checkAccess(on: address)
        proxy.forward?.setAddresses(for: address)
        let running: Proxy
        do {
            var configuration = ProxyConfiguration(
                listen: address, upstream: Endpoint(host: "127.0.0.1", port: 0), connectionsMax: limits.connectionsMax)
            configuration.forward = proxy.forward
            configuration.protocols = proxy.protocols
            configuration.upstreamTLS = proxy.tls
            configuration.interception = try interception(of: &proxy)
            if let tls = proxy.tls {
                configuration.upstream = tls.endpoint
            } else if proxy.forward == nil {
                configuration.upstream = await UpstreamText.endpoint(proxy.upstream)
            }
            configuration.resolvesPerConnection = true
            configuration.unreachableUpstream = proxy.unreachableUpstream
            configuration.toxics = proxy.toxics.map(\.toxic)
            configuration.faultRules = proxy.faults.map(\.rule)
            configuration.seed = proxy.nextStartSeed
            switch proxy.link {
            case .constant(let conditions, _): configuration.conditions = conditions
            case .timeline(let file):
                (configuration.timeline, configuration.timelineStart) = (file.timeline, file.start)
            }
            var logger = logger
            logger[metadataKey: "proxy"] = "\(RequestWarnings.printable(proxy.name, bytesMax: 100))"
            running = try await Proxy.start(configuration, on: group, logger: logger)
        } catch let error as APIError {
            throw error
        } catch let error as ProxyError {
            throw .cannotBind(error)
        } catch {
            throw APIError(.internalServerError, "\(error)")
        }
        if isClosed {
            await running.close()
            throw Self.isStopping
        }
        // The link numbers its first rules from 0.
        for index in proxy.faults.indices { proxy.faults[index].number = index }
        proxy.pausedTimeline = nil
        if proxy.outage.up || proxy.outage.down { await running.setOutage(proxy.outage) }
        proxy.running = running
        proxy.listen = "\(running.address)"
        proxy.isEnabled = true
        proxy.startCount += 1
    }

    /// Closes the port and every connection.
    private func stop(_ proxy: inout ManagedProxy) async {
        proxy.isEnabled = false
        guard let running = proxy.running else { return }
        proxy.running = nil
        if proxy.isAdopted { return }
        for index in proxy.faults.indices { proxy.faults[index].number = nil }
        proxy.earlierTraffic += TrafficCounters(await running.close())
    }

    /// Throws if an enabled proxy has lost its port.
    func checkPort(of proxy: ManagedProxy) throws(APIError) {
        guard let reason = proxy.running?.listenFailure else { return }
        throw APIError(
            .internalServerError, "listen tcp \(proxy.listen): bind: \(reason); the proxy retries every second")
    }
}
