internal import Files
internal import HTTPTypes
internal import JSON
internal import LinkModel
internal import Logging
internal import NIOCore
internal import ProxyServer

/// Which proxies there are. Changes are made one after the other, each wholly or not at all.
actor ProxyRegistry {
    private var proxies: [ByteKey: ManagedProxy] = [:]
    private let seed: UInt64
    private let limits: ServerLimits
    private let group: any EventLoopGroup
    private let logger: Logger
    private var isBusy = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    init(seed: UInt64, limits: ServerLimits, on group: any EventLoopGroup, logger: Logger) {
        self.seed = seed
        self.limits = limits
        self.group = group
        self.logger = logger
    }

    /// Lets a change run by itself: what it awaits are event loops, which wait for nobody.
    private func alone<Result>(
        _ body: () async throws(APIFailure) -> Result
    ) async throws(APIFailure) -> Result {
        if isBusy {
            await withCheckedContinuation { waiting.append($0) }
        } else {
            isBusy = true
        }
        defer {
            if waiting.isEmpty { isBusy = false } else { waiting.removeFirst().resume() }
        }
        return try await body()
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
        let address = await asked.resolved()
        return try await alone { () async throws(APIFailure) -> ManagedProxy in
            if proxies[ByteKey(asked.name)] != nil { throw .proxyExists }
            return try await make(asked, at: address)
        }
    }

    private func make(
        _ asked: ProxyRequest, at address: Result<Endpoint, ProxyError>?
    ) async throws(APIFailure) -> ManagedProxy {
        guard proxies[ByteKey(asked.name)] != nil || proxies.count < limits.proxiesMax else {
            throw APIFailure(.badRequest, "there are \(limits.proxiesMax) proxies, the limit (--max-proxies)")
        }
        var stream = RandomStream(seed: seed, "proxy/\(asked.name)")
        var proxy = ManagedProxy(
            name: asked.name, listen: asked.listen, upstream: asked.upstream, link: asked.link ?? .clear,
            seed: asked.seed ?? stream.next() >> 11)
        guard asked.toxics.count <= limits.toxicsMax else { throw tooManyToxics }
        proxy.toxics = asked.toxics
        if let address { try await start(&proxy, at: address) }
        proxies[ByteKey(asked.name)] = proxy
        return proxy
    }

    private var tooManyToxics: APIFailure {
        APIFailure(.badRequest, "a proxy has at most \(limits.toxicsMax) toxics (--max-toxics)")
    }

    /// Binds the port.
    private func start(
        _ proxy: inout ManagedProxy, at address: Result<Endpoint, ProxyError>
    ) async throws(APIFailure) {
        do {
            var configuration = ProxyConfiguration(
                listen: try address.get(), upstream: await ListenAddress.upstream(proxy.upstream),
                connectionsMax: limits.connectionsMax)
            configuration.resolvesEachTime = true
            configuration.toxics = proxy.toxics.map(\.toxic)
            configuration.seed = proxy.seedOfNextStart
            switch proxy.link {
            case .holds(let conditions, _): configuration.conditions = conditions
            case .follows(let file): configuration.timeline = file.timeline
            }
            var logger = logger
            logger[metadataKey: "proxy"] = "\(proxy.name.prefix(100))"
            let running = try await Proxy.start(configuration, on: group, logger: logger)
            proxy.running = running
            proxy.listen = "\(running.address)"
            proxy.isEnabled = true
            proxy.starts += 1
        } catch let error as ProxyError {
            throw .cannotListen(error)
        } catch {
            throw APIFailure(.internalServerError, "\(error)")
        }
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
        if let listen {
            do {
                resolved = try await ListenAddress.resolve(listen)
            } catch {
                throw .cannotListen(error)
            }
        }
        return try await alone { () async throws(APIFailure) -> ManagedProxy in
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
            return try self.proxy(name)
        }
    }

    /// Starts a proxy that does not run.
    private func enable(_ name: String) async throws(APIFailure) {
        var proxy = try proxy(name)
        let address = await Self.address(proxy.listen)
        try await start(&proxy, at: address)
        proxies[ByteKey(name)] = proxy
    }

    private static func address(_ text: String) async -> Result<Endpoint, ProxyError> {
        do {
            return .success(try await ListenAddress.resolve(text))
        } catch {
            return .failure(error)
        }
    }

    /// Any free port is always another one.
    private static func differs(_ address: Endpoint, from listen: String) -> Bool {
        address.port == 0 || "\(address)" != listen
    }

    func delete(_ name: String) async throws(APIFailure) {
        try await alone { () async throws(APIFailure) in
            var proxy = try self.proxy(name)
            await stop(&proxy)
            proxies[ByteKey(name)] = nil
        }
    }

    /// Creates those that are not there, and replaces those that listen or lead elsewhere; the others are left alone. Gives
    /// those done, and what ended the work before all were.
    func populate(_ asked: [ProxyRequest]) async -> (done: [ManagedProxy], failure: APIFailure?) {
        if asked.contains(where: { $0.toxics.count > limits.toxicsMax }) { return ([], tooManyToxics) }
        var addresses: [Result<Endpoint, ProxyError>?] = []
        for request in asked { addresses.append(await request.resolved()) }
        var done: [ManagedProxy] = []
        do {
            try await alone { () async throws(APIFailure) in
                for (request, address) in zip(asked, addresses) {
                    if var present = proxies[ByteKey(request.name)] {
                        let moves =
                            if case .success(let endpoint)? = address {
                                Self.differs(endpoint, from: present.listen)
                            } else {
                                !request.listen.hasSameBytes(as: present.listen)
                            }
                        if !moves && request.upstream.hasSameBytes(as: present.upstream) {
                            done.append(present)
                            continue
                        }
                        await stop(&present)
                        proxies[ByteKey(request.name)] = nil
                    }
                    done.append(try await make(request, at: address))
                }
            }
            return (done, nil)
        } catch {
            return (done, error)
        }
    }

    /// Starts every proxy, removes every toxic, and puts every link back to what its proxy was made with.
    func reset() async throws(APIFailure) {
        try await alone { () async throws(APIFailure) in
            for name in proxies.keys.sorted() {
                if proxies[name]?.isEnabled == false { try await enable(name.text) }
                guard var proxy = proxies[name] else { continue }
                await proxy.running?.removeToxics(proxy.toxics.map(\.name))
                proxy.toxics = []
                if proxy.link != proxy.firstLink {
                    proxy.link = proxy.firstLink
                    await put(proxy.link, on: proxy.running)
                }
                proxies[name] = proxy
            }
        }
    }

    /// Closes everything.
    func closeAll() async {
        try? await alone { () async throws(APIFailure) in
            for name in proxies.keys {
                guard var proxy = proxies[name] else { continue }
                await stop(&proxy)
                proxies[name] = proxy
            }
        }
    }

    // MARK: Toxics

    func addToxic(_ fields: Fields, to name: String) async throws(APIFailure) -> StoredToxic {
        try await alone { () async throws(APIFailure) -> StoredToxic in
            let proxy = try self.proxy(name)
            let toxic = try StoredToxic(fields) { taken in proxy.toxics.contains { $0.name.hasSameBytes(as: taken) } }
            if proxy.toxics.count >= limits.toxicsMax { throw tooManyToxics }
            proxies[ByteKey(name)]?.toxics.append(toxic)
            await proxy.running?.add(toxic.toxic)
            return toxic
        }
    }

    func updateToxic(_ toxicName: String, _ fields: Fields, of name: String) async throws(APIFailure) -> StoredToxic {
        try await alone { () async throws(APIFailure) -> StoredToxic in
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
        try await alone { () async throws(APIFailure) in
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
        try await alone { () async throws(APIFailure) -> ManagedProxy in
            proxies[ByteKey(name)]?.link = link
            let proxy = try self.proxy(name)
            await put(link, on: proxy.running)
            return proxy
        }
    }

    private func put(_ link: LinkSetting, on running: Proxy?) async {
        switch link {
        case .holds(let conditions, _): await running?.setConditions(conditions)
        case .follows(let file): await running?.follow(file.timeline)
        }
    }

    func setSeed(_ seed: UInt64, of name: String) async throws(APIFailure) {
        try await alone { () async throws(APIFailure) in
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

    /// Where it is to listen; `nil` if it is not.
    func resolved() async -> Result<Endpoint, ProxyError>? {
        guard isEnabled else { return nil }
        do {
            return .success(try await ListenAddress.resolve(listen))
        } catch {
            return .failure(error)
        }
    }
}
