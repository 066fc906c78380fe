internal import ConfigFiles
internal import Determinism
internal import Proxy
internal import Wire

/// Toxics, links and seeds.
extension ProxyRegistry {
    func toxic(named name: String, of proxyName: String) throws(APIError) -> StoredToxic {
        let proxy = try proxy(named: proxyName)
        return proxy.toxics[try Self.index(of: name, in: proxy)]
    }

    private static func index(of toxicName: String, in proxy: ManagedProxy) throws(APIError) -> Int {
        guard let index = proxy.toxics.firstIndex(where: { $0.name.hasSameBytes(as: toxicName) }) else {
            throw .toxicNotFound
        }
        return index
    }

    func addToxic(_ fields: JSONFields, to name: String) async throws(APIError) -> StoredToxic {
        try await withExclusiveAccess(to: name) { () async throws(APIError) -> StoredToxic in
            let proxy = try self.proxy(named: name)
            let toxic = try StoredToxic(fields) { name in proxy.toxics.contains { $0.name.hasSameBytes(as: name) } }
            if proxy.toxics.count >= limits.toxicsMax { throw tooManyToxics }
            proxies[ByteKey(name)]?.toxics.append(toxic)
            await proxy.running?.add(toxic.toxic)
            return toxic
        }
    }

    func updateToxic(
        _ toxicName: String, _ fields: JSONFields, of name: String
    ) async throws(APIError) -> StoredToxic {
        try await withExclusiveAccess(to: name) { () async throws(APIError) -> StoredToxic in
            let proxy = try self.proxy(named: name)
            let index = try Self.index(of: toxicName, in: proxy)
            let toxic = try proxy.toxics[index].updated(fields)
            proxies[ByteKey(name)]?.toxics[index] = toxic
            await proxy.running?.update(toxic.toxic)
            return toxic
        }
    }

    func removeToxic(_ toxicName: String, of name: String) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            let proxy = try self.proxy(named: name)
            let index = try Self.index(of: toxicName, in: proxy)
            proxies[ByteKey(name)]?.toxics.remove(at: index)
            await proxy.running?.removeToxics([toxicName])
        }
    }

    /// Sets the link of a proxy. The conditions apply to open connections when the call returns.
    ///
    /// - Parameter time: The time after which the initial link returns; `nil` means never.
    func setLink(_ link: LinkSetting, of name: String, resetAfter time: Nanoseconds? = nil) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            let link = link.starting(at: timelineStart)
            let resetAt = time.map { ProcessClock.now.addingSaturating($0.count) }
            proxies[ByteKey(name)]?.link = link
            proxies[ByteKey(name)]?.pausedTimeline = nil
            proxies[ByteKey(name)]?.resetAt = resetAt
            if let resetAt, proxies[ByteKey(name)] != nil { scheduleReset(of: name, at: resetAt) }
            let proxy = try self.proxy(named: name)
            await apply(link, to: proxy.running)
            try checkPort(of: proxy)
        }
    }

    func apply(_ link: LinkSetting, to running: Proxy?) async {
        switch link {
        case .constant(let conditions, _): await running?.setConditions(conditions)
        case .timeline(let file): await running?.startTimeline(file.timeline, startingAt: file.start)
        }
    }

    /// Sets the random seed of a proxy and restarts the numbering of its connections.
    func setSeed(_ seed: UInt64, of name: String) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            var proxy = try self.proxy(named: name)
            proxy.seed = seed
            proxy.startCount = proxy.isEnabled ? 1 : 0
            proxies[ByteKey(name)] = proxy
            await proxy.running?.reseed(seed)
        }
    }
}
