internal import ConfigFiles
internal import Determinism
internal import HTTPTypes
internal import JSON
internal import LinkModel
internal import ProxyServer

/// The routes of Slowlane's API, under `/slowlane/v1`.
extension API {
    /// Returns the response to a request; `nil` if the path is unknown.
    func slowlaneResponse(
        _ parts: [String], _ request: HTTPRequest, query: String, body: [UInt8]
    ) async throws(APIError) -> Response? {
        guard parts.first == "v1", parts.count > 1 else { return nil }
        let method = request.method
        switch (parts[1], parts.count) {
        case ("version", 2):
            guard method == .get else { return .methodNotAllowed }
            return .json(
                JSONText.object([
                    ("version", JSONText.string(version)), ("toxiproxy", JSONText.string(Self.toxiproxyVersion)),
                ]))
        case ("metrics", 2):
            guard method == .get else { return .methodNotAllowed }
            return await metricsResponse(MetricsSelection(proxies: true, process: true), request)
        case ("profiles", 2):
            guard method == .get else { return .methodNotAllowed }
            return .json(Self.profiles)
        case ("proxies", 3):
            guard method == .get else { return .methodNotAllowed }
            return .json(try await describe(parts[2]))
        case ("proxies", 4) where parts[3] == "link": return try await respondToLink(of: parts[2], method, body)
        case ("proxies", 4) where parts[3] == "seed": return try await respondToSeed(of: parts[2], method, body)
        case ("proxies", 4) where parts[3] == "connections":
            guard method == .get else { return .methodNotAllowed }
            return .json(try await connections(of: parts[2]))
        case ("proxies", 5) where parts[3] == "connections":
            guard method == .delete else { return .methodNotAllowed }
            try await closeConnection(parts[4], of: parts[2], query: query)
            return .noContent
        default: return nil
        }
    }

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
            let fields = try JSONFields(body: body)
            try await registry.setLink(try LinkSetting(fields), of: name)
            warnings = RequestWarnings.ofLink(fields)
        default: return .methodNotAllowed
        }
        let proxy = try await registry.proxy(named: name)
        return .json(Self.link(of: proxy, await proxy.running?.status()), warnings: warnings)
    }

    private func respondToSeed(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        switch method {
        case .get: break
        case .put:
            _ = try await registry.proxy(named: name)
            let fields = try JSONFields(body: body)
            guard let seed = try fields.seed() else { throw .missingField("seed") }
            try await registry.setSeed(seed, of: name)
            warnings = RequestWarnings.ofSeed(fields)
        default: return .methodNotAllowed
        }
        let seed = try await registry.proxy(named: name).seed
        return .json(JSONText.object([("seed", "\(seed)")]), warnings: warnings)
    }

    private static func link(of proxy: ManagedProxy, _ status: ProxyStatus?) -> String {
        proxy.link.json(now: status?.link.conditions ?? proxy.link.initialConditions)
    }

    private static func perDirection(_ value: PerDirection<Int>?) -> String {
        JSONText.object([("up", "\(value?.up ?? 0)"), ("down", "\(value?.down ?? 0)")])
    }

    private func describe(_ name: String) async throws(APIError) -> String {
        let proxy = try await registry.proxy(named: name)
        let status = await proxy.running?.status()
        return JSONText.object([
            ("name", JSONText.string(name)), ("listen", JSONText.string(proxy.listen)),
            ("upstream", JSONText.string(proxy.upstream)), ("enabled", proxy.isListening ? "true" : "false"),
            ("seed", "\(proxy.seed)"), ("link", Self.link(of: proxy, status)),
            ("connections_open", "\(status?.connectionsOpen ?? 0)"),
            ("connections_accepted", "\(status?.connectionsAccepted ?? 0)"),
            ("dials_failed", "\(status?.dialsFailed ?? 0)"),
            ("sent_bytes", Self.perDirection(status?.link.bytesCarried)),
            ("held_bytes", "\(status?.link.bytesHeld ?? 0)"),
            ("queue_packets", Self.perDirection(status?.link.queueDepth)),
        ])
    }

    private func connections(of name: String) async throws(APIError) -> String {
        let connections = await (try registry.proxy(named: name)).running?.connections() ?? []
        return JSONText.array(
            connections.map { connection in
                JSONText.object([
                    ("number", "\(connection.number)"), ("client", JSONText.string(connection.client?.description)),
                    ("age_ms", JSONText.number(connection.age.inMilliseconds)),
                    ("received_bytes", Self.perDirection(connection.bytesRead)),
                    ("held_bytes", Self.perDirection(connection.bytesHeld)),
                ])
            })
    }

    private func closeConnection(_ number: String, of name: String, query: String) async throws(APIError) {
        let proxy = try await registry.proxy(named: name)
        let byReset: Bool
        switch query {
        case "", "how=reset": byReset = true
        case "how=close": byReset = false
        default: throw APIError(.badRequest, "expected ?how=reset or ?how=close")
        }
        // A new seed restarts the numbering, so an older connection may have the same number; the youngest one is
        // closed.
        let youngest = await proxy.running?.connections().filter { "\($0.number)" == number }.min { $0.age < $1.age }
        guard let youngest, await proxy.running?.closeConnection(youngest.id, abortively: byReset) == true else {
            throw APIError(.notFound, "connection not found")
        }
    }
}
