internal import ConfigFiles
internal import HTTPTypes
internal import JSON
internal import LinkModel
internal import Logging
internal import NIOCore
internal import ProxyServer

/// Which proxies there are. Changes of one proxy are made one after the other, each wholly or not at all; those of different
/// proxies do not wait for each other, since some of them wait for name servers.
actor ProxyRegistry {
    /// Looks up where a proxy is to listen.
    typealias Resolver = @Sendable (String) async throws(ProxyError) -> Endpoint

    private var proxies: [ByteKey: ManagedProxy] = [:]
    private let seed: UInt64
    private let limits: ServerLimits
    private let group: any EventLoopGroup
    private let logger: Logger
    private let resolver: Resolver
    /// The names of proxies that are being changed, with who waits for that.
    private var changes: [ByteKey: [CheckedContinuation<Void, Never>]] = [:]
    /// Proxies that are being made, and have no place among the others yet.
    private var beingMade = 0
    /// Who waits for look-ups.
    private var lookUps: [Int: CheckedContinuation<LookUp, Never>] = [:]
    private var lookUpCount = 0
    private var isClosed = false

    init(
        seed: UInt64, limits: ServerLimits, on group: any EventLoopGroup, logger: Logger,
        resolver: @escaping Resolver = { (text) async throws(ProxyError) in try await ListenAddress.resolve(text) }
    ) {
        self.seed = seed
        self.limits = limits
        self.group = group
        self.logger = logger
        self.resolver = resolver
    }

    /// Changes of one proxy that may wait for another change of it; further ones are refused (503).
    static let waitingChangesMax = 64

    /// Lets a change of a proxy run when no other one of the same proxy does.
    private func alone<Result>(
        with name: String, waitingMax: Int = waitingChangesMax, _ body: () async throws(APIFailure) -> Result
    ) async throws(APIFailure) -> Result {
        let name = ByteKey(name)
        if let waiting = changes[name] {
            guard waiting.count < waitingMax else {
                throw APIFailure(
                    .serviceUnavailable, "\(waitingMax) changes of this proxy are waiting, the limit; try again later")
            }
            await withCheckedContinuation { changes[name]?.append($0) }
        } else {
            changes[name] = []
        }
        defer {
            if changes[name]?.isEmpty == false { changes[name]?.removeFirst().resume() } else { changes[name] = nil }
        }
        return try await body()
    }

    // MARK: Look-ups

    private enum LookUp {
        case found(Endpoint)
        case failed(reason: String)
    }

    /// The address that a text means.
    private func address(of text: String) async -> LookUp {
        if isClosed { return .failed(reason: Self.isStopping.text) }
        lookUpCount += 1
        let number = lookUpCount
        return await withCheckedContinuation { continuation in
            lookUps[number] = continuation
            // Ends with the look-up. The server may be closed before.
            Task { finishLookUp(number, await Self.result(of: text, resolver)) }
        }
    }

    private func finishLookUp(_ number: Int, _ result: LookUp) {
        lookUps.removeValue(forKey: number)?.resume(returning: result)
    }

    private static func result(of text: String, _ resolver: Resolver) async -> LookUp {
        do {
            return .found(try await resolver(text))
        } catch {
            return .failed(reason: error.reason)
        }
    }

    private static let isStopping = APIFailure(.serviceUnavailable, "the server is stopping")

    /// Where a proxy that is to be made listens; `nil` if it does not.
    private func address(of asked: ProxyRequest) async throws(APIFailure) -> Endpoint? {
        asked.isEnabled ? try await listenAddress(asked.listen) : nil
    }

    /// The address that a text means, or why it cannot be listened on.
    ///
    /// - Parameter isStarting: Whether a proxy is to start there, and not only to be changed: Go's words differ.
    private func listenAddress(_ text: String, isStarting: Bool = true) async throws(APIFailure) -> Endpoint {
        let start = isStarting ? "listen tcp: " : ""
        if let problem = ListenText.problem(with: text) { throw APIFailure(.internalServerError, start + problem) }
        switch await address(of: text) {
        case .found(let endpoint): return endpoint
        case .failed(let reason):
            throw APIFailure(.internalServerError, start + ListenText.problem(with: text, notFound: reason))
        }
    }

    private func proxy(_ name: String) throws(APIFailure) -> ManagedProxy {
        guard let proxy = proxies[ByteKey(name)] else { throw .noProxy }
        return proxy
    }

    // MARK: Asked

    /// All, sorted by name.
    var all: [ManagedProxy] { proxies.sorted { $0.key < $1.key }.map(\.value) }

    func get(_ name: String) throws(APIFailure) -> ManagedProxy { try proxy(name) }

    func toxic(_ name: String, of proxyName: String) throws(APIFailure) -> StoredToxic {
        guard let toxic = try proxy(proxyName).toxics.first(where: { $0.name.hasSameBytes(as: name) }) else {
            throw .noToxic
        }
        return toxic
    }

    // MARK: Proxies

    func create(_ asked: ProxyRequest) async throws(APIFailure) -> ManagedProxy {
        if proxies[ByteKey(asked.name)] != nil { throw .proxyExists }
        let address = try await address(of: asked)
        return try await alone(with: asked.name) { () async throws(APIFailure) -> ManagedProxy in
            if proxies[ByteKey(asked.name)] != nil { throw .proxyExists }
            return try await make(asked, at: address)
        }
    }

    /// Makes a proxy; one of its name that is there is replaced, and lives on if the new one cannot start.
    ///
    /// - Parameter address: Where it listens; `nil` if it does not.
    private func make(_ asked: ProxyRequest, at address: Endpoint?) async throws(APIFailure) -> ManagedProxy {
        let present = proxies[ByteKey(asked.name)]
        guard present != nil || proxies.count + beingMade < limits.proxiesMax else {
            throw APIFailure(.badRequest, "there are \(limits.proxiesMax) proxies, the limit (--max-proxies)")
        }
        guard asked.toxics.count <= limits.toxicsMax else { throw tooManyToxics }
        if present == nil { beingMade += 1 }
        defer { if present == nil { beingMade -= 1 } }
        var stream = RandomStream(seed: seed, "proxy/\(asked.name)")
        var proxy = ManagedProxy(
            name: asked.name, listen: asked.listen, upstream: asked.upstream, link: asked.link,
            seed: asked.seed ?? stream.next() >> 11)
        proxy.toxics = asked.toxics
        if let present { return try await replace(present, by: proxy, at: address) }
        if let address { try await start(&proxy, at: address) }
        proxies[ByteKey(asked.name)] = proxy
        return proxy
    }

    /// Puts `proxy` in the place of `present`. If it cannot start, that one goes on: with its connections, unless both want the same
    /// port, which must be free before it can be taken.
    private func replace(
        _ present: ManagedProxy, by proxy: ManagedProxy, at address: Endpoint?
    ) async throws(APIFailure) -> ManagedProxy {
        var (present, proxy) = (present, proxy)
        let mustMakeRoom = present.running.map { $0.address.port == address?.port } ?? false
        if let address, !mustMakeRoom { try await start(&proxy, at: address) }
        await stop(&present)
        if let address, mustMakeRoom {
            do {
                try await start(&proxy, at: address)
            } catch {
                proxies[ByteKey(present.name)] = present
                try? await enable(present.name)
                throw error
            }
        }
        proxies[ByteKey(proxy.name)] = proxy
        return proxy
    }

    private var tooManyToxics: APIFailure {
        APIFailure(.badRequest, "a proxy has at most \(limits.toxicsMax) toxics (--max-toxics)")
    }

    /// Binds the port.
    private func start(_ proxy: inout ManagedProxy, at address: Endpoint) async throws(APIFailure) {
        let running: Proxy
        do {
            var configuration = ProxyConfiguration(
                listen: address, upstream: await ListenAddress.upstream(proxy.upstream),
                connectionsMax: limits.connectionsMax)
            configuration.resolvesPerConnection = true
            configuration.unreachableUpstream = proxy.unreachableUpstream
            configuration.toxics = proxy.toxics.map(\.toxic)
            configuration.seed = proxy.seedOfNextStart
            switch proxy.link {
            case .holds(let conditions, _): configuration.conditions = conditions
            case .follows(let file): configuration.timeline = file.timeline
            }
            var logger = logger
            logger[metadataKey: "proxy"] = "\(proxy.name.prefix(100))"
            running = try await Proxy.start(configuration, on: group, logger: logger)
        } catch let error as ProxyError {
            throw .cannotListen(error)
        } catch {
            throw APIFailure(.internalServerError, "\(error)")
        }
        if isClosed {
            await running.close()
            throw Self.isStopping
        }
        proxy.running = running
        proxy.listen = "\(running.address)"
        proxy.isEnabled = true
        proxy.starts += 1
    }

    /// Throws if a proxy that is to run has lost its port.
    private func checkPort(of proxy: ManagedProxy) throws(APIFailure) {
        guard let reason = proxy.running?.listenFailure else { return }
        throw APIFailure(.internalServerError, "listen tcp \(proxy.listen): bind: \(reason); trying again every second")
    }

    /// Closes the port and every connection.
    private func stop(_ proxy: inout ManagedProxy) async {
        proxy.isEnabled = false
        guard let running = proxy.running else { return }
        proxy.running = nil
        proxy.past += Traffic(await running.close())
    }

    /// Changes those settings that are given.
    func update(_ name: String, listen: String?, upstream: String?, enabled: Bool?) async throws(APIFailure)
        -> ManagedProxy
    {
        var resolved: Endpoint?
        if let listen { resolved = try await listenAddress(listen, isStarting: false) }
        return try await alone(with: name) { () async throws(APIFailure) -> ManagedProxy in
            var proxy = try self.proxy(name)
            let isToRun = enabled ?? proxy.isEnabled
            let moves = resolved.map { Self.differs($0, from: proxy.listen) } ?? false
            if moves || upstream.map({ !$0.hasSameBytes(as: proxy.upstream) }) ?? false {
                await stop(&proxy)
                if let resolved { proxy.listen = "\(resolved)" }
                if let upstream { proxy.upstream = upstream }
            } else if proxy.isEnabled && !isToRun {
                await stop(&proxy)
            }
            // Whatever becomes of the start, the proxy stays.
            proxies[ByteKey(name)] = proxy
            if isToRun && !proxy.isEnabled { try await enable(name) }
            proxy = try self.proxy(name)
            try checkPort(of: proxy)
            return proxy
        }
    }

    /// Starts a proxy that does not run.
    private func enable(_ name: String) async throws(APIFailure) {
        var proxy = try proxy(name)
        let address = try await listenAddress(proxy.listen)
        try await start(&proxy, at: address)
        proxies[ByteKey(name)] = proxy
    }

    /// Any free port is always another one.
    private static func differs(_ address: Endpoint, from listen: String) -> Bool {
        address.port == 0 || "\(address)" != listen
    }

    func delete(_ name: String) async throws(APIFailure) {
        try await alone(with: name) { () async throws(APIFailure) in
            var proxy = try self.proxy(name)
            await stop(&proxy)
            proxies[ByteKey(name)] = nil
        }
    }

    /// Creates those that are not there, and replaces those that listen or lead elsewhere; the others are left alone. Gives
    /// those done, and what ended the work before all were.
    func populate(_ asked: [ProxyRequest]) async -> (done: [ManagedProxy], failure: APIFailure?) {
        if asked.contains(where: { $0.toxics.count > limits.toxicsMax }) { return ([], tooManyToxics) }
        var done: [ManagedProxy] = []
        do {
            for request in asked { done.append(try await put(request)) }
            return (done, nil)
        } catch {
            return (done, error)
        }
    }

    /// Makes a proxy as it is asked for, or leaves the one alone that is there and listens and leads the same way.
    private func put(_ asked: ProxyRequest) async throws(APIFailure) -> ManagedProxy {
        let address = try await address(of: asked)
        return try await alone(with: asked.name) { () async throws(APIFailure) -> ManagedProxy in
            if let present = proxies[ByteKey(asked.name)], asked.upstream.hasSameBytes(as: present.upstream) {
                let moves =
                    address.map { Self.differs($0, from: present.listen) } ?? !asked.listen.hasSameBytes(
                        as: present.listen)
                if !moves { return present }
            }
            return try await make(asked, at: address)
        }
    }

    /// Starts every proxy, removes every toxic, and puts every link back to what its proxy was made with.
    func reset() async throws(APIFailure) {
        for name in proxies.keys.sorted() {
            try await alone(with: name.text) { () async throws(APIFailure) in
                if proxies[name]?.isEnabled == false { try await enable(name.text) }
                guard var proxy = proxies[name] else { return }
                await proxy.running?.removeToxics(proxy.toxics.map(\.name))
                proxy.toxics = []
                if proxy.link != proxy.firstLink {
                    proxy.link = proxy.firstLink
                    await put(proxy.link, on: proxy.running)
                }
                proxies[name] = proxy
                try checkPort(of: proxy)
            }
        }
    }

    /// Closes everything.
    func closeAll() async {
        isClosed = true
        // Nothing waits for name servers any more.
        for number in lookUps.keys.sorted() { finishLookUp(number, .failed(reason: Self.isStopping.text)) }
        for name in proxies.keys.sorted() {
            try? await alone(with: name.text, waitingMax: .max) { () async throws(APIFailure) in
                guard var proxy = proxies[name] else { return }
                await stop(&proxy)
                proxies[name] = proxy
            }
        }
    }

    // MARK: Toxics

    func addToxic(_ fields: Fields, to name: String) async throws(APIFailure) -> StoredToxic {
        try await alone(with: name) { () async throws(APIFailure) -> StoredToxic in
            let proxy = try self.proxy(name)
            let toxic = try StoredToxic(fields) { taken in proxy.toxics.contains { $0.name.hasSameBytes(as: taken) } }
            if proxy.toxics.count >= limits.toxicsMax { throw tooManyToxics }
            proxies[ByteKey(name)]?.toxics.append(toxic)
            await proxy.running?.add(toxic.toxic)
            return toxic
        }
    }

    func updateToxic(_ toxicName: String, _ fields: Fields, of name: String) async throws(APIFailure) -> StoredToxic {
        try await alone(with: name) { () async throws(APIFailure) -> StoredToxic in
            let proxy = try self.proxy(name)
            guard let place = proxy.toxics.firstIndex(where: { $0.name.hasSameBytes(as: toxicName) }) else {
                throw .noToxic
            }
            let toxic = try proxy.toxics[place].updated(fields)
            proxies[ByteKey(name)]?.toxics[place] = toxic
            await proxy.running?.update(toxic.toxic)
            return toxic
        }
    }

    func removeToxic(_ toxicName: String, of name: String) async throws(APIFailure) {
        try await alone(with: name) { () async throws(APIFailure) in
            let proxy = try self.proxy(name)
            guard let place = proxy.toxics.firstIndex(where: { $0.name.hasSameBytes(as: toxicName) }) else {
                throw .noToxic
            }
            proxies[ByteKey(name)]?.toxics.remove(at: place)
            await proxy.running?.removeToxics([toxicName])
        }
    }

    // MARK: Links, seeds, connections

    func setLink(_ link: LinkSetting, of name: String) async throws(APIFailure) -> ManagedProxy {
        try await alone(with: name) { () async throws(APIFailure) -> ManagedProxy in
            proxies[ByteKey(name)]?.link = link
            let proxy = try self.proxy(name)
            await put(link, on: proxy.running)
            try checkPort(of: proxy)
            return proxy
        }
    }

    private func put(_ link: LinkSetting, on running: Proxy?) async {
        switch link {
        case .holds(let conditions, _): await running?.setConditions(conditions)
        case .follows(let file): await running?.startTimeline(file.timeline)
        }
    }

    func setSeed(_ seed: UInt64, of name: String) async throws(APIFailure) {
        try await alone(with: name) { () async throws(APIFailure) in
            var proxy = try self.proxy(name)
            proxy.seed = seed
            proxy.starts = proxy.isEnabled ? 1 : 0
            proxies[ByteKey(name)] = proxy
            await proxy.running?.reseed(seed)
        }
    }
}

/// A proxy that is to be made.
struct ProxyRequest {
    let name: String
    let listen: String
    let upstream: String
    let isEnabled: Bool
    let toxics: [StoredToxic]
    let link: LinkSetting?
    let seed: UInt64?

    /// Reads an entry of a configuration or the body of a call.
    init(_ fields: Fields) throws(APIFailure) {
        name = try fields.text("name") ?? ""
        listen = try fields.text("listen") ?? ""
        upstream = try fields.text("upstream") ?? ""
        isEnabled = try fields.bool("enabled") ?? true
        let toxics = try fields.array("toxics") ?? []
        link = try fields.object("link").map { (fields) throws(APIFailure) in try LinkSetting(fields) }
        seed = try fields.seed()
        if name.isEmpty { throw .missing("name") }
        if upstream.isEmpty { throw .missing("upstream") }
        var read: [StoredToxic] = []
        for (index, value) in toxics.enumerated() {
            let fields = try Fields(value, "toxic \(index + 1)")
            read.append(try StoredToxic(fields) { taken in read.contains { $0.name.hasSameBytes(as: taken) } })
        }
        self.toxics = read
    }
}
