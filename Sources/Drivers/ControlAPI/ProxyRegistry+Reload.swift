internal import Impairment
internal import Proxy
internal import Wire

/// The configuration file, which can be applied again.
extension ProxyRegistry {
    /// Creates the proxies of the first configuration.
    func load(_ requests: [ProxyRequest]) async -> (proxies: [ManagedProxy], error: APIError?) {
        let (created, error) = await populate(requests)
        for (request, _) in zip(requests, created) { configured[ByteKey(request.name)] = request }
        return (created, error)
    }

    /// Makes the proxies of the last configuration those of another one. Proxies that only requests have created remain.
    ///
    /// A proxy whose addresses are the same keeps its connections; its toxics, faults, rules and link become those of the
    /// configuration. Its seed, and the treatment of clients whose server is unreachable, remain.
    ///
    /// - Returns: The proxies up to the first one that failed, and its error.
    func reload(_ requests: [ProxyRequest]) async -> (proxies: [ManagedProxy], error: APIError?) {
        var applied: [ManagedProxy] = []
        do {
            for request in requests { try checkLimits(of: request) }
            let names = Set(requests.map { ByteKey($0.name) })
            for name in configured.keys.sorted() where !names.contains(name) {
                if proxies[name] != nil { try await delete(name.text) }
                configured[name] = nil
            }
            for request in requests {
                applied.append(try await reload(request))
                configured[ByteKey(request.name)] = request
                await Task.yield()
            }
            return (applied, nil)
        } catch {
            return (applied, error)
        }
    }

    private func reload(_ request: ProxyRequest) async throws(APIError) -> ManagedProxy {
        let key = ByteKey(request.name)
        // A proxy on port 0 keeps its port.
        let isMoved = configured[key].map { !$0.listen.hasSameBytes(as: request.listen) } ?? true
        let address = try await listenAddress(of: request)
        return try await withExclusiveAccess(to: request.name) { () async throws(APIError) -> ManagedProxy in
            guard let proxy = proxies[key], !isMoved, proxy.upstream.hasSameBytes(as: request.upstream),
                (proxy.forward == nil) == (request.forward == nil), proxy.isEnabled == request.isEnabled,
                proxy.hasSameTransport(as: request)
            else { return try await createOrReplace(request, at: address) }
            _ = try await redefine(request.name, request.forward)
            proxies[key]?.initialForward = request.forward
            try await setToxics(request.toxics, of: key)
            try await setFaults(request.faults, of: key)
            let link = (request.link ?? .passThrough).starting(at: timelineStart)
            proxies[key]?.initialLink = link
            if link != proxy.link || proxy.pausedTimeline != nil {
                proxies[key]?.link = link
                proxies[key]?.pausedTimeline = nil
                proxies[key]?.resetAt = nil
                await apply(link, to: proxy.running)
            }
            return try self.proxy(named: request.name)
        }
    }

    /// Removes and adds toxics until a proxy has those of a configuration; toxics in both remain.
    private func setToxics(_ toxics: [StoredToxic], of key: ByteKey) async throws(APIError) {
        guard let proxy = proxies[key] else { return }
        let kept = proxy.toxics.filter(toxics.contains)
        let added = toxics.filter { !kept.contains($0) }
        proxies[key]?.toxics = kept + added
        await proxy.running?.removeToxics(proxy.toxics.filter { !kept.contains($0) }.map(\.name))
        for toxic in added { await proxy.running?.add(toxic.toxic) }
    }

    /// The same for faults. The counts of faults in both continue.
    private func setFaults(_ faults: [StoredFault], of key: ByteKey) async throws(APIError) {
        guard let proxy = proxies[key] else { return }
        func isSame(_ left: StoredFault, _ right: StoredFault) -> Bool {
            left.name.hasSameBytes(as: right.name) && left.rule == right.rule
        }
        var kept = proxy.faults.filter { fault in faults.contains { isSame($0, fault) } }
        let removed = proxy.faults.filter { fault in !kept.contains { isSame($0, fault) } }
        await proxy.running?.removeFaultRules(removed.compactMap(\.number))
        proxies[key]?.faults = kept
        for var fault in faults where !kept.contains(where: { isSame($0, fault) }) {
            if let running = proxy.running {
                do throws(FaultRuleError) {
                    fault.number = try await running.addFaultRule(fault.rule)
                } catch {
                    throw .badBody(error.reason)
                }
            }
            kept.append(fault)
            proxies[key]?.faults = kept
        }
    }
}
