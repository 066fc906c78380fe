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
        case .version: return .json(Self.version.json(version))
        case .openAPI: return .json(Self.openAPI)
        case .metrics: return try await metricsResponse(MetricsSelection(proxies: true, process: true), request)
        case .profiles: return .json(Self.profiles.json(()))
        case .proxy: return .json(ProxyView.shape.json(try await view(of: name)))
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
    private static let openAPI = OpenAPIDocument.value.json

    /// The versions, of Slowlane's.
    static let version = JSONShape<String>(
        "Version", [.required("version", { $0 }, .text), .required("toxiproxy", { _ in toxiproxyVersion }, .text)])

    /// The built-in profiles and timelines.
    static let profiles = JSONShape<Void>(
        "Profiles",
        [
            .required(
                "profiles", { ProfileCatalogue.builtIn.map { ($0.id, $0.name, $0.about) } }, .array(of: entry.form)),
            .required(
                "timelines", { ProfileCatalogue.timelines.map { ($0.id, $0.name, $0.about) } }, .array(of: entry.form)),
        ])

    private static let entry = JSONShape<(id: String, name: String, about: String)>(
        "Profile",
        [
            .required("id", { $0.id }, .text), .required("name", { $0.name }, .text),
            .required("about", { $0.about }, .text),
        ])

    /// The proxy with its status.
    func view(of name: String) async throws(APIError) -> ProxyView {
        let proxy = try await registry.proxy(named: name)
        return ProxyView(proxy, await proxy.running?.status())
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
                let resetAfter = try LinkSetting.resetAfter(fields)
                return (try LinkSetting(fields), resetAfter, RequestWarnings.ofLink(fields))
            }
            try await registry.setLink(link, of: name, resetAfter: resetAfter)
            warnings = unknown
        default: return .methodNotAllowed
        }
        return .json(LinkView.shape.json(try await view(of: name).link), warnings: warnings)
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
        return .json(Self.seed.json(try await registry.proxy(named: name).seed), warnings: warnings)
    }

    /// The random seed, in requests too.
    static let seed = JSONShape<UInt64>(
        "Seed",
        [.required("seed", { $0 }, JSONForm(.integer(min: 0, max: .max).with(["format": "int64"])) { "\($0)" })])

    private func connections(of name: String) async throws(APIError) -> String {
        let connections = await (try registry.proxy(named: name)).running?.connections() ?? []
        return try await work.run(bytes: Self.connectionBytes * connections.count) {
            Self.connections.write(connections)
        }
    }

    /// The open connections.
    static let connections = JSONForm<[ConnectionStatus]>.array(of: ConnectionStatus.shape.form)

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
