internal import ConfigFiles
internal import Determinism
internal import HTTPTypes
internal import Impairment
internal import LinkModel
internal import Logging
internal import Proxy
internal import Wire

/// Faults, outages and positions of timelines.
extension ProxyRegistry {
    /// The maximum number of bytes of all replies of a proxy's faults.
    static let replyBytesMax = 1 << 20

    // MARK: Faults

    func addFault(_ definition: StoredFault.Definition, to name: String) async throws(APIError) -> StoredFault {
        try await withExclusiveAccess(to: name) { () async throws(APIError) -> StoredFault in
            let proxy = try self.proxy(named: name)
            guard proxy.faults.count < limits.faultsMax else { throw tooManyFaults }
            var fault = try StoredFault(definition, names: proxy.faults.map(\.name))
            try checkLimits(of: proxy.faults + [fault])
            if let running = proxy.running {
                do throws(FaultRuleError) {
                    fault.number = try await running.addFaultRule(fault.rule)
                } catch {
                    throw .badBody(error.reason)
                }
            }
            proxies[ByteKey(name)]?.faults.append(fault)
            log("fault '\(fault.name)' added: \(fault.rule.text(bodyBytesMax: 40))", proxy)
            return fault
        }
    }

    private var tooManyFaults: APIError {
        APIError(.badRequest, "a proxy has at most \(limits.faultsMax) faults (--max-faults)")
    }

    /// Throws if a proxy may not have these faults.
    func checkLimits(of faults: [StoredFault]) throws(APIError) {
        guard faults.count <= limits.faultsMax else { throw tooManyFaults }
        guard faults.reduce(0, { $0 + $1.replyBytes }) <= Self.replyBytesMax else {
            throw APIError(
                .badRequest, "the replies of a proxy's faults have at most \(Self.replyBytesMax) bytes in total")
        }
    }

    func fault(named faultName: String, of name: String) throws(APIError) -> StoredFault {
        let proxy = try proxy(named: name)
        guard let fault = proxy.faults.first(where: { $0.name.hasSameBytes(as: faultName) }) else {
            throw APIError(.notFound, "fault not found")
        }
        return fault
    }

    /// Removes a fault, or all faults without a name.
    func removeFaults(_ faultName: String?, of name: String) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            let proxy = try self.proxy(named: name)
            var removed = proxy.faults
            if let faultName { removed = [try fault(named: faultName, of: name)] }
            if removed.isEmpty { return }
            await proxy.running?.removeFaultRules(removed.compactMap(\.number))
            proxies[ByteKey(name)]?.faults.removeAll { fault in
                removed.contains { $0.name.hasSameBytes(as: fault.name) }
            }
            for fault in removed { log("fault '\(fault.name)' removed", proxy) }
        }
    }

    // MARK: Outages

    /// Starts or ends an outage in each direction, independently of the link.
    func setOutage(_ outage: PerDirection<Bool>, of name: String) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            let proxy = try self.proxy(named: name)
            proxies[ByteKey(name)]?.outage = outage
            await proxy.running?.setOutage(outage)
            if proxy.outage == outage { return }
            log("outage: up \(outage.up ? "yes" : "no"), down \(outage.down ? "yes" : "no")", proxy)
        }
    }

    // MARK: Timelines

    /// Pauses or continues the timeline of a proxy, and sets its position. `nil` means no change.
    func setTimeline(paused: Bool?, position: Nanoseconds?, of name: String) async throws(APIError) {
        try await withExclusiveAccess(to: name) { () async throws(APIError) in
            let proxy = try self.proxy(named: name)
            guard case .timeline(let file) = proxy.link else {
                throw APIError(.conflict, "no timeline is running; start one with PUT .../link")
            }
            guard let running = proxy.running else { throw APIError(.conflict, "the proxy is disabled") }
            var elapsed = position ?? proxy.pausedTimeline?.elapsed
            if elapsed == nil { elapsed = await running.status().link.timeline?.elapsed }
            let from = elapsed ?? .zero
            let pauses = paused ?? (proxy.pausedTimeline != nil)
            if position != nil || !pauses { await running.startTimeline(file.timeline, from: from) }
            var stopped = proxy.pausedTimeline
            if !pauses {
                stopped = nil
            } else if position != nil || stopped == nil {
                let status = await running.status()
                stopped = status.link.timeline
                await running.setConditions(status.link.conditions)
            }
            proxies[ByteKey(name)]?.pausedTimeline = stopped
            log("timeline \(pauses ? "paused" : "continues") at \(from.count / 1_000_000) ms", proxy)
        }
    }

    func log(_ message: String, _ proxy: ManagedProxy) {
        var logger = logger
        logger[metadataKey: "proxy"] = "\(RequestWarnings.printable(proxy.name, bytesMax: 100))"
        logger.info("\(RequestWarnings.printable(message, bytesMax: 400))")
    }
}
