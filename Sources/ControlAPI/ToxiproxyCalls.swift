internal import HTTPTypes
internal import JSON
internal import LinkModel

/// Toxiproxy's calls.
extension API {
    /// Answers a call; `nil` if there is none of that path.
    func respondAsToxiproxy(
        _ parts: [String], _ request: HTTPRequest, _ body: [UInt8]
    ) async throws(APIFailure) -> Answer? {
        guard let methods = Self.methods(parts) else { return nil }
        guard methods.isEmpty || methods.contains(request.method) else { return Self.noSuchMethod }
        // Browsers are kept out, so that no page can steer it.
        if request.headerFields[.userAgent]?.hasPrefix("Mozilla/") == true {
            return .text("User agent not allowed\n", .forbidden)
        }
        let isGet = request.method == .get
        switch (parts[0], parts.count) {
        case ("version", 1):
            return Answer(
                status: .ok, type: "application/json;charset=utf-8",
                body: "{\"version\": \"\(Self.toxiproxyVersion)\"}\n")
        case ("metrics", 1):
            guard let metrics else { return .text("404 page not found\n", .notFound) }
            return await metricsAnswer(metrics, request)
        case ("populate", 1): return try await populate(body)
        case ("reset", 1):
            try await registry.reset()
            return .done
        case ("proxies", 1) where isGet:
            return .json(JSONText.object(await registry.all.map { ($0.name, $0.json) }))
        case ("proxies", 1):
            return .json(try await registry.create(try ProxyRequest(try Fields(body: body))).json, .created)
        case ("proxies", 2) where isGet: return .json(try await registry.get(parts[1]).json)
        case ("proxies", 2) where request.method == .delete:
            try await registry.delete(parts[1])
            return .done
        case ("proxies", 2):
            _ = try await registry.get(parts[1])
            let fields = try Fields(body: body)
            let proxy = try await registry.update(
                parts[1], listen: try fields.text("listen"), upstream: try fields.text("upstream"),
                enabled: try fields.bool("enabled"))
            return .json(proxy.json)
        case (_, 3) where isGet:
            let toxics = try await registry.get(parts[1]).toxics
            let ordered = toxics.filter { $0.stream == .up } + toxics.filter { $0.stream == .down }
            return .json(JSONText.array(ordered.map(\.json)))
        case (_, 3):
            _ = try await registry.get(parts[1])
            return .json(try await registry.addToxic(try Fields(body: body), to: parts[1]).json)
        case (_, _) where isGet: return .json(try await registry.toxic(parts[3], of: parts[1]).json)
        case (_, _) where request.method == .delete:
            try await registry.removeToxic(parts[3], of: parts[1])
            return .done
        default:
            _ = try await registry.toxic(parts[3], of: parts[1])
            return .json(try await registry.updateToxic(parts[3], try Fields(body: body), of: parts[1]).json)
        }
    }

    /// The methods of a path, none if it takes any; `nil` if there is no such path.
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

    /// Reads the entries of a configuration; every one is looked at before anything is done.
    static func requests(_ json: [UInt8]) throws(APIFailure) -> [ProxyRequest] {
        guard !json.isEmpty else { throw .badBody("EOF") }
        let entries: [JSONValue]
        switch JSONText.parse(json) {
        case .array(let values)?: entries = values
        // What Go's encoder makes of a list that was never filled.
        case .null?: entries = []
        default: throw .badBody("expected an array of proxies")
        }
        var requests: [ProxyRequest] = []
        for (index, entry) in entries.enumerated() {
            do throws(APIFailure) {
                requests.append(try ProxyRequest(try Fields(entry, "entry \(index + 1)")))
            } catch {
                throw error.text.hasPrefix("missing") ? error.at(proxy: index + 1) : error
            }
        }
        return requests
    }

    private func populate(_ body: [UInt8]) async throws(APIFailure) -> Answer {
        var done: [ManagedProxy] = []
        var failure: APIFailure?
        do {
            (done, failure) = await registry.populate(try Self.requests(body))
        } catch {
            failure = error
        }
        let proxies = ("proxies", JSONText.array(done.map(\.json)))
        guard let failure else { return .json(JSONText.object([proxies]), .created) }
        return .json(
            JSONText.object([("error", JSONText.string(failure.text)), ("status", "\(failure.status.code)"), proxies])
                + "\n", failure.status)
    }
}
