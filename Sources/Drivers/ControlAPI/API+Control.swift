internal import ConfigFiles
internal import Determinism
internal import HTTPTypes
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// Faults, outages and positions of timelines.
extension API {
    // MARK: Faults

    func respondToFaults(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        switch method {
        case .delete:
            try await registry.removeFaults(nil, of: name)
            return .noContent
        case .post:
            _ = try await registry.proxy(named: name)
            var (definition, warnings) = try await decoded(body) { (fields) throws(APIError) in
                (try StoredFault.Definition(fields), RequestWarnings.ofFault(fields))
            }
            let fault = try await registry.addFault(definition, to: name)
            let status = await (try registry.proxy(named: name)).running?.status()
            if let count = status?.connectionsWithoutFaults, count > 0 {
                warnings.append(
                    "the fault does not apply to \(count) open connection\(count == 1 ? "" : "s"): not HTTP, "
                        + "or open on the fast path before it; add the fault before the client connects, or set "
                        + "conditions (such as the profile 3g)")
            }
            return .json(fault.json(Self.status(of: fault, status)), .created, warnings: warnings)
        default:
            let proxy = try await registry.proxy(named: name)
            let status = await proxy.running?.status()
            return try await .json(
                work.run(bytes: Self.faultBytes * proxy.faults.count) { Self.faults(of: proxy, status) })
        }
    }

    func respondToFault(
        _ faultName: String, of name: String, _ method: HTTPRequest.Method
    ) async throws(APIError) -> Response {
        if method == .delete {
            try await registry.removeFaults(faultName, of: name)
            return .noContent
        }
        let fault = try await registry.fault(named: faultName, of: name)
        let status = await (try registry.proxy(named: name)).running?.status()
        return .json(fault.json(Self.status(of: fault, status)))
    }

    /// An estimate of the number of bytes of a fault in a list.
    private static let faultBytes = 150

    private static func faults(of proxy: ManagedProxy, _ status: ProxyStatus?) -> String {
        let rules = Dictionary(
            (status?.faultRules ?? []).map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first })
        let faults = proxy.faults.map { fault in fault.json(fault.number.flatMap { rules[$0] }) }
        return JSONText.object([
            ("faults", JSONText.array(faults)),
            ("connections_without_faults", "\(status?.connectionsWithoutFaults ?? 0)"),
            ("tls_connections", "\(status?.opaqueTLS.connections ?? 0)"),
            ("tls_server_names", JSONText.array((status?.opaqueTLS.serverNames ?? []).map { JSONText.string($0) })),
        ])
    }

    private static func status(of fault: StoredFault, _ status: ProxyStatus?) -> FaultRuleStatus? {
        status?.faultRules.first { $0.number == fault.number }
    }

    // MARK: Outages

    func respondToOutage(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        switch method {
        case .get: break
        case .delete: try await registry.setOutage(PerDirection(up: false, down: false), of: name)
        default:
            _ = try await registry.proxy(named: name)
            var outage = PerDirection(up: true, down: true)
            if !body.isEmpty {
                let (up, down, unknown) = try await decoded(body) { (fields) throws(APIError) in
                    (try fields.bool("up"), try fields.bool("down"), RequestWarnings.ofOutage(fields))
                }
                if up != nil || down != nil { outage = PerDirection(up: up ?? false, down: down ?? false) }
                warnings = unknown
            }
            try await registry.setOutage(outage, of: name)
        }
        return .json(Self.outage(of: try await registry.proxy(named: name)), warnings: warnings)
    }

    static func outage(of proxy: ManagedProxy) -> String {
        JSONText.object([
            ("up", proxy.outage.up ? "true" : "false"), ("down", proxy.outage.down ? "true" : "false"),
        ])
    }

    // MARK: Timelines

    func respondToTimeline(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        if method == .patch {
            _ = try await registry.proxy(named: name)
            let (paused, position, unknown) = try await decoded(body) { (fields) throws(APIError) in
                (try fields.bool("paused"), try Self.position(fields), RequestWarnings.ofTimeline(fields))
            }
            if paused == nil && position == nil { throw .missingField("paused or position_ms") }
            try await registry.setTimeline(paused: paused, position: position, of: name)
            warnings = unknown
        }
        let proxy = try await registry.proxy(named: name)
        guard case .timeline = proxy.link else {
            throw APIError(.notFound, "no timeline is running; start one with PUT .../link")
        }
        return .json(Self.timeline(of: proxy, await proxy.running?.status()), warnings: warnings)
    }

    private static func position(_ fields: JSONFields) throws(APIError) -> Nanoseconds? {
        guard let number = try fields.number("position_ms") else { return nil }
        guard (0...Timeline.timeMax.inMilliseconds).contains(number) else {
            throw .badBody("position_ms must be from 0 to \(JSONText.number(Timeline.timeMax.inMilliseconds))")
        }
        return Nanoseconds(Int64(number * 1e6))
    }

    /// Returns the position of a proxy's timeline; `null` without a timeline.
    static func timeline(of proxy: ManagedProxy, _ status: ProxyStatus?) -> String {
        guard case .timeline(let file) = proxy.link else { return "null" }
        let position = proxy.pausedTimeline ?? status?.link.timeline
        var next = "null"
        if let name = position?.nextName, let time = position?.nextChange {
            next = JSONText.object([
                ("link", JSONText.string(name)), ("in_ms", JSONText.number(time.inMilliseconds)),
            ])
        }
        let state = proxy.running == nil ? "stopped" : proxy.pausedTimeline == nil ? "running" : "paused"
        return JSONText.object([
            ("timeline", JSONText.string(file.id == "inline" ? file.name : file.id)),
            ("state", JSONText.string(state)),
            ("position_ms", position.map { JSONText.number($0.elapsed.inMilliseconds) } ?? "null"),
            ("round_ms", position.map { JSONText.number($0.time.inMilliseconds) } ?? "null"),
            ("link", JSONText.string(position?.name)),
            ("ramping", position?.isRamping == true ? "true" : "false"), ("next", next),
        ])
    }
}
