internal import HTTPTypes
internal import Proxy
internal import Wire

/// The routes of Toxiproxy's API.
extension API {
    /// Returns the response to a request; `nil` if the path is unknown.
    func toxiproxyResponse(
        _ parts: [String], _ request: HTTPRequest, _ body: [UInt8]
    ) async throws(APIError) -> Response? {
        guard let methods = Self.methods(parts) else { return nil }
        guard methods.isEmpty || methods.contains(request.method) else { return .methodNotAllowed }
        // Toxiproxy rejects browsers too, so that web pages cannot use the API.
        if request.headerFields[.userAgent]?.hasPrefix("Mozilla/") == true {
            return .text("User agent not allowed\n", .forbidden)
        }
        let isGet = request.method == .get
        switch (parts[0], parts.count) {
        case ("version", 1):
            return Response(
                status: .ok, type: "application/json;charset=utf-8",
                body: "{\"version\": \"\(Self.toxiproxyVersion)\"}\n")
        case ("metrics", 1):
            guard let metrics else { return .text("404 page not found\n", .notFound) }
            return try await metricsResponse(metrics, request)
        case ("populate", 1): return try await populate(body)
        case ("reset", 1):
            try await registry.reset()
            return .noContent
        case ("proxies", 1) where isGet:
            let proxies = await registry.all
            return try await .json(
                work.run(bytes: Self.bytes(proxies)) { JSONText.object(proxies.map { ($0.name, $0.json) }) })
        case ("proxies", 1): return try await create(body)
        case ("proxies", 2) where isGet: return .json(try await registry.proxy(named: parts[1]).json)
        case ("proxies", 2) where request.method == .delete:
            try await registry.delete(parts[1])
            return .noContent
        case ("proxies", 2): return try await update(parts[1], body)
        case (_, 3) where isGet:
            return .json(JSONText.array(try await registry.proxy(named: parts[1]).orderedToxics.map(\.json)))
        case (_, 3):
            _ = try await registry.proxy(named: parts[1])
            let (fields, warnings) = try await decoded(body) { ($0, RequestWarnings.ofToxic($0)) }
            return await Self.withWarnings(warnings) { () async throws(APIError) in
                .json(try await registry.addToxic(fields, to: parts[1]).json)
            }
        case (_, _) where isGet: return .json(try await registry.toxic(named: parts[3], of: parts[1]).json)
        case (_, _) where request.method == .delete:
            try await registry.removeToxic(parts[3], of: parts[1])
            return .noContent
        default:
            let type = try await registry.toxic(named: parts[3], of: parts[1]).type
            let (fields, warnings) = try await decoded(body) { ($0, RequestWarnings.ofToxic($0, type)) }
            return await Self.withWarnings(warnings) { () async throws(APIError) in
                .json(try await registry.updateToxic(parts[3], fields, of: parts[1]).json)
            }
        }
    }

    /// Returns the methods of a path, or an empty set for any method; `nil` if the path is unknown.
    private static func methods(_ parts: [String]) -> Set<HTTPRequest.Method>? {
        switch (parts.first, parts.count) {
        case ("version", 1): [.get]
        case ("metrics", 1): []
        case ("populate", 1), ("reset", 1): [.post]
        case ("proxies", 1): [.get, .post]
        case ("proxies", 2) where !parts[1].isEmpty: [.get, .post, .patch, .delete]
        case ("proxies", 3) where !parts[1].isEmpty && parts[2] == "toxics": [.get, .post]
        case ("proxies", 4) where !parts[1].isEmpty && parts[2] == "toxics" && !parts[3].isEmpty:
            [.get, .post, .patch, .delete]
        default: nil
        }
    }

    private func create(_ body: [UInt8]) async throws(APIError) -> Response {
        let (request, warnings) = try await decoded(body) { fields in
            (Result { () throws(APIError) in try ProxyRequest(fields) }, RequestWarnings.ofProxy(fields))
        }
        return await Self.withWarnings(warnings) { () async throws(APIError) in
            .json(try await registry.create(try request.get()).json, .created)
        }
    }

    private func update(_ name: String, _ body: [UInt8]) async throws(APIError) -> Response {
        let forward = try await registry.proxy(named: name).forward
        let (fields, tls, interception, warnings) = try await decoded(body) { [isForward = forward != nil] fields in
            let tls = Result { () throws(APIError) in
                isForward ? nil : try UpstreamText.tls(try fields.text("upstream") ?? "", fields)
            }
            let interception = Result { () throws(APIError) in try InterceptionRequest(fields) }
            return (fields, tls, interception, RequestWarnings.ofProxy(fields, isForward: isForward))
        }
        return await Self.withWarnings(warnings) { () async throws(APIError) in
            let upstream = try fields.text("upstream")
            let tls = try tls.get()
            if let upstream, forward == nil, tls == nil { try UpstreamText.check(upstream) }
            let proxy = try await registry.update(
                name, listen: try fields.text("listen"), upstream: upstream, tls: tls,
                interception: try interception.get(), enabled: try fields.bool("enabled"),
                forward: try ForwardRequest(fields, known: forward?.conditions ?? [:]),
                protocols: try ProxyRequest.protocols(fields))
            return .json(proxy.json)
        }
    }

    /// Adds warnings to a response, or to the response of a thrown error: an unknown field is often the cause of the
    /// error.
    private static func withWarnings(
        _ warnings: [String], _ respond: () async throws(APIError) -> Response
    ) async -> Response {
        var response: Response
        do {
            response = try await respond()
        } catch {
            response = .error(error)
        }
        response.warnings = warnings
        return response
    }

    private func populate(_ body: [UInt8]) async throws(APIError) -> Response {
        let configuration = try await work.run(bytes: body.count) {
            Result { () throws(APIError) in try Self.configuration(body) }
        }
        var created: [ManagedProxy] = []
        var error: APIError?
        var warnings: [String] = []
        do {
            let configuration = try configuration.get()
            warnings = configuration.warnings
            (created, error) = await registry.populate(try configuration.requests.get())
        } catch let invalid {
            error = invalid
        }
        let proxies = try await work.run(bytes: Self.bytes(created)) { [created] in
            ("proxies", JSONText.array(created.map(\.json)))
        }
        guard let error else { return .json(JSONText.object([proxies]), .created, warnings: warnings) }
        let status = ("status", "\(error.status.code)")
        return .json(
            JSONText.object([("error", JSONText.string(error.text)), status, proxies]) + "\n", error.status,
            warnings: warnings)
    }

    /// Returns an estimate of the number of bytes of a list of proxies.
    private static func bytes(_ proxies: [ManagedProxy]) -> Int {
        proxies.reduce(0) { $0 + 150 * (1 + $1.toxics.count) }
    }

    /// Reads a configuration: its proxies, and the warnings about it. If one of the entries is invalid, none takes effect.
    static func configuration(
        _ json: [UInt8]
    ) throws(APIError) -> (requests: Result<[ProxyRequest], APIError>, warnings: [String]) {
        guard !json.isEmpty else { throw .badBody("EOF") }
        let entries: [JSONValue]
        switch JSONText.parse(json) {
        case .array(let values)?: entries = values
        // Go encodes a nil slice as null.
        case .null?: entries = []
        default: throw .badBody("expected an array of proxies")
        }
        let requests = Result { () throws(APIError) in try proxyRequests(entries) }
        return (requests, RequestWarnings.ofProxies(entries))
    }

    private static func proxyRequests(_ entries: [JSONValue]) throws(APIError) -> [ProxyRequest] {
        var requests: [ProxyRequest] = []
        for (index, entry) in entries.enumerated() {
            do throws(APIError) {
                requests.append(try ProxyRequest(try JSONFields(entry, "entry \(index + 1)")))
            } catch {
                throw error.text.hasPrefix("missing") || error.text.hasPrefix("the upstream")
                    ? error.atProxy(index + 1) : error
            }
        }
        return requests
    }
}
