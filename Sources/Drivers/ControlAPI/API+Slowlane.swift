internal import ConfigFiles
internal import Determinism
internal import HTTPTypes
internal import Impairment
internal import LinkModel
internal import Proxy
internal import Wire

/// The routes of Slowlane's API, under `/slowlane/v1`.
extension API {
    /// Returns the response to a request; `nil` if the path is unknown.
    func slowlaneResponse(
        _ parts: [String], _ request: HTTPRequest, query: String, body: [UInt8]
    ) async throws(APIError) -> Response? {
        guard parts.first == "v1", let (route, values) = SlowlaneRoute.match(parts.dropFirst()) else { return nil }
        let method = request.method
        guard route.methods.contains(method) else { return .methodNotAllowed(except: route.methods) }
        let name = values.first ?? ""
        switch route {
        case .version:
            return .json(
                JSONText.object([
                    ("version", JSONText.string(version)), ("toxiproxy", JSONText.string(Self.toxiproxyVersion)),
                ]))
        case .openAPI: return .json(Self.openAPI)
        case .metrics: return try await metricsResponse(MetricsSelection(proxies: true, process: true), request)
        case .profiles: return .json(Self.profiles)
        case .proxy: return .json(try await describe(name))
        case .link: return try await respondToLink(of: name, method, body)
        case .timeline: return try await respondToTimeline(of: name, method, body)
        case .outage: return try await respondToOutage(of: name, method, body)
        case .seed: return try await respondToSeed(of: name, method, body)
        case .faults: return try await respondToFaults(of: name, method, body)
        case .fault: return try await respondToFault(values[1], of: name, method)
        case .rules: return try await respondToRules(of: name, method, body)
        case .hosts: return .json(try await hosts(of: name))
        case .connections where method == .get: return .json(try await connections(of: name))
        case .connections:
            try await closeConnections(of: name, query: query)
            return .noContent
        case .connection:
            try await closeConnection(values[1], of: name, query: query)
            return .noContent
        case .events: return try events(request, query: query)
        case .reset:
            try await registry.reset()
            return .noContent
        case .recording: return try await respondToRecording(method, body)
        }
    }

    /// The OpenAPI document of these routes.
    static let openAPI = EmbeddedFile.openAPI

    private static let profiles = JSONText.object([
        ("profiles", JSONText.array(ProfileCatalogue.builtIn.map { entry($0.id, $0.name, $0.about) })),
        ("timelines", JSONText.array(ProfileCatalogue.timelines.map { entry($0.id, $0.name, $0.about) })),
    ])

    private static func entry(_ id: String, _ name: String, _ about: String) -> String {
        JSONText.object([
            ("id", JSONText.string(id)), ("name", JSONText.string(name)), ("about", JSONText.string(about)),
        ])
    }

    private func respondToLink(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        switch method {
        case .get: break
        case .delete: try await registry.setLink(.passThrough, of: name)
        case .put:
            _ = try await registry.proxy(named: name)
            let (link, resetAfter, unknown) = try await decoded(body) { (fields) throws(APIError) in
                let resetAfter = try Self.resetAfter(fields)
                return (try LinkSetting(fields), resetAfter, RequestWarnings.ofLink(fields))
            }
            try await registry.setLink(link, of: name, resetAfter: resetAfter)
            warnings = unknown
        default: return .methodNotAllowed
        }
        let proxy = try await registry.proxy(named: name)
        return .json(Self.link(of: proxy, await proxy.running?.status()), warnings: warnings)
    }

    /// The longest time after which a link may be reset, in milliseconds.
    private static let resetAfterMax = 7.0 * 24 * 3600 * 1000

    private static func resetAfter(_ fields: JSONFields) throws(APIError) -> Nanoseconds? {
        guard let milliseconds = try fields.number("reset_after_ms") else { return nil }
        guard (1...resetAfterMax).contains(milliseconds) else {
            throw .badBody("reset_after_ms must be from 1 to \(JSONText.number(resetAfterMax)) (7 days)")
        }
        return Nanoseconds(Int64(milliseconds * 1e6))
    }

    private func respondToSeed(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        switch method {
        case .get: break
        case .put:
            _ = try await registry.proxy(named: name)
            let (seed, unknown) = try await decoded(body) { (fields) throws(APIError) in
                (try fields.seed(), RequestWarnings.ofSeed(fields))
            }
            guard let seed else { throw .missingField("seed") }
            try await registry.setSeed(seed, of: name)
            warnings = unknown
        default: return .methodNotAllowed
        }
        let seed = try await registry.proxy(named: name).seed
        return .json(JSONText.object([("seed", "\(seed)")]), warnings: warnings)
    }

    private static func link(of proxy: ManagedProxy, _ status: ProxyStatus?) -> String {
        proxy.link.json(now: status?.link.conditions ?? proxy.link.initialConditions, resetAt: proxy.resetAt)
    }

    private static func perDirection(_ value: PerDirection<Int>?) -> String {
        JSONText.object([("up", "\(value?.up ?? 0)"), ("down", "\(value?.down ?? 0)")])
    }

    private func describe(_ name: String) async throws(APIError) -> String {
        let proxy = try await registry.proxy(named: name)
        let status = await proxy.running?.status()
        var members = [
            ("name", JSONText.string(name)), ("listen", JSONText.string(proxy.listen)),
            ("upstream", JSONText.string(proxy.upstream)), ("enabled", proxy.isListening ? "true" : "false"),
            ("seed", "\(proxy.seed)"), ("link", Self.link(of: proxy, status)),
            ("connections_open", "\(status?.connectionsOpen ?? 0)"),
            ("connections_accepted", "\(status?.connectionsAccepted ?? 0)"),
            ("dials_failed", "\(status?.dialsFailed ?? 0)"),
            ("sent_bytes", Self.perDirection(status?.link.bytesCarried)),
            ("held_bytes", "\(status?.link.bytesHeld ?? 0)"),
            ("queue_packets", Self.perDirection(status?.link.queueDepth)),
            ("timeline", Self.timeline(of: proxy, status)), ("outage", Self.outage(of: proxy)),
            ("faults", "\(proxy.faults.count)"),
            ("faults_fired", "\(status?.faultRules.reduce(0) { $0 + $1.fired } ?? 0)"),
        ]
        if proxy.protocols != .tcp {
            members.append(("protocol", JSONText.string("\(proxy.protocols)")))
            members.append(("udp", Self.json(status?.datagrams ?? DatagramStatus())))
        }
        if let tls = status?.upstreamTLS {
            members.append(("upstream_tls", Self.json(tls)))
        }
        if let interception = proxy.interceptionJSON(status?.interception) {
            members.append(("intercept", interception))
        }
        if let forward = proxy.forward {
            members += [
                ("forward", "true"), ("allow", JSONText.array(forward.clientsAllowed.map { JSONText.string("\($0)") })),
                ("credentials", forward.credentials == nil ? "false" : "true"),
            ]
        }
        return JSONText.object(members)
    }

    private static func json(_ status: DatagramStatus) -> String {
        let counters = status.counters
        return JSONText.object([
            ("sessions", "\(status.sessions)"), ("sessions_opened", "\(counters.sessionsOpened)"),
            ("sessions_evicted", "\(counters.sessionsEvicted)"), ("received", perDirection(counters.received)),
            ("sent", perDirection(counters.sent)), ("over_mtu", "\(counters.overMTU)"),
            ("blackholed", "\(counters.blackholed)"), ("unreachable", "\(counters.unreachable)"),
            ("discarded", "\(status.discarded)"), ("refuses", status.isRefusing ? "true" : "false"),
        ])
    }

    private static func json(_ tls: UpstreamTLSStatus) -> String {
        let counts = tls.rewritings
        return JSONText.object([
            ("verified", tls.isVerified ? "true" : "false"),
            (
                "rewritten",
                JSONText.object([
                    ("host", "\(counts.hosts)"), ("location", "\(counts.locations)"), ("cookie", "\(counts.cookies)"),
                ])
            ),
        ])
    }

    private func connections(of name: String) async throws(APIError) -> String {
        let connections = await (try registry.proxy(named: name)).running?.connections() ?? []
        return try await work.run(bytes: Self.connectionBytes * connections.count) {
            JSONText.array(
                connections.map { connection in
                    JSONText.object([
                        ("number", "\(connection.number)"), ("client", JSONText.string(connection.client?.description)),
                        ("server_name", JSONText.string(connection.serverName)),
                        ("age_ms", JSONText.number(connection.age.inMilliseconds)),
                        ("received_bytes", Self.perDirection(connection.bytesRead)),
                        ("held_bytes", Self.perDirection(connection.bytesHeld)),
                        ("protocol", JSONText.string(connection.isDatagrams ? "udp" : "tcp")),
                    ])
                })
        }
    }

    /// An estimate of the number of bytes of a connection in a list.
    private static let connectionBytes = 150

    private func closeConnection(_ number: String, of name: String, query: String) async throws(APIError) {
        let proxy = try await registry.proxy(named: name)
        let byReset = try Self.isReset(query)
        // A new seed restarts the numbering, so an older connection may have the same number; the youngest one is
        // closed.
        let youngest = await proxy.running?.connections().filter { "\($0.number)" == number }.min { $0.age < $1.age }
        guard let youngest, await proxy.running?.closeConnection(youngest.id, abortively: byReset) == true else {
            throw APIError(.notFound, "connection not found")
        }
    }

    /// Closes all connections of a proxy. New ones are accepted.
    private func closeConnections(of name: String, query: String) async throws(APIError) {
        let running = try await registry.proxy(named: name).running
        if try Self.isReset(query) {
            await running?.abortConnections()
        } else {
            for connection in await running?.connections() ?? [] {
                _ = await running?.closeConnection(connection.id, abortively: false)
            }
        }
    }

    private static func isReset(_ query: String) throws(APIError) -> Bool {
        switch query {
        case "", "how=reset": return true
        case "how=close": return false
        default: throw APIError(.badRequest, "expected ?how=reset or ?how=close")
        }
    }
}
