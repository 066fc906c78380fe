internal import ConfigFiles
internal import HTTPTypes
internal import JSON
internal import LinkModel
internal import ProxyServer

/// Our own calls, under `/slowlane/v1`.
extension API {
    /// Answers a call; `nil` if there is none of that path.
    func respondAsSlowlane(
        _ parts: [String], _ request: HTTPRequest, query: String, body: [UInt8]
    ) async throws(APIFailure) -> Answer? {
        guard parts.first == "v1", parts.count > 1 else { return nil }
        let method = request.method
        switch (parts[1], parts.count) {
        case ("version", 2):
            guard method == .get else { return Self.noSuchMethod }
            return .json(
                JSONText.object([
                    ("version", JSONText.string(version)), ("toxiproxy", JSONText.string(Self.toxiproxyVersion)),
                ]))
        case ("metrics", 2):
            guard method == .get else { return Self.noSuchMethod }
            return await metricsAnswer(MetricsChoice(proxies: true, process: true), request)
        case ("profiles", 2):
            guard method == .get else { return Self.noSuchMethod }
            return .json(Self.profiles)
        case ("proxies", 3):
            guard method == .get else { return Self.noSuchMethod }
            return .json(try await describe(parts[2]))
        case ("proxies", 4) where ["link", "seed", "connections"].contains(parts[3]):
            switch (parts[3], method) {
            case ("link", .get): break
            case ("link", .put):
                _ = try await registry.get(parts[2])
                _ = try await registry.setLink(try LinkSetting(try Fields(body: body)), of: parts[2])
            case ("link", .delete): _ = try await registry.setLink(.clear, of: parts[2])
            case ("seed", .get): return .json(try await seed(of: parts[2]))
            case ("seed", .put):
                _ = try await registry.get(parts[2])
                guard let seed = try Fields(body: body).seed() else { throw .missing("seed") }
                try await registry.setSeed(seed, of: parts[2])
                return .json(try await self.seed(of: parts[2]))
            case ("connections", .get): return .json(try await connections(of: parts[2]))
            default: return Self.noSuchMethod
            }
            return .json(try await link(of: parts[2]))
        case ("proxies", 5) where parts[3] == "connections":
            guard method == .delete else { return Self.noSuchMethod }
            try await cut(parts[4], of: parts[2], query: query)
            return .done
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

    private func seed(of name: String) async throws(APIFailure) -> String {
        JSONText.object([("seed", "\(try await registry.get(name).seed)")])
    }

    private func link(of name: String) async throws(APIFailure) -> String {
        let proxy = try await registry.get(name)
        return proxy.link.json(now: await proxy.running?.status().link.conditions ?? proxy.link.firstConditions)
    }

    private func describe(_ name: String) async throws(APIFailure) -> String {
        let proxy = try await registry.get(name)
        let status = await proxy.running?.status()
        func both(_ value: PerDirection<Int>?) -> String {
            JSONText.object([("up", "\(value?.up ?? 0)"), ("down", "\(value?.down ?? 0)")])
        }
        return JSONText.object([
            ("name", JSONText.string(name)), ("listen", JSONText.string(proxy.listen)),
            ("upstream", JSONText.string(proxy.upstream)), ("enabled", proxy.isListening ? "true" : "false"),
            ("seed", "\(proxy.seed)"),
            ("link", proxy.link.json(now: status?.link.conditions ?? proxy.link.firstConditions)),
            ("connections", "\(status?.connectionsOpen ?? 0)"), ("accepted", "\(status?.connectionsAccepted ?? 0)"),
            ("dialsFailed", "\(status?.dialsFailed ?? 0)"), ("bytes", both(status?.link.bytesCarried)),
            ("held", "\(status?.link.bytesHeld ?? 0)"), ("queue", both(status?.link.queueDepth)),
        ])
    }

    private func connections(of name: String) async throws(APIFailure) -> String {
        let connections = await (try registry.get(name)).running?.connections() ?? []
        return JSONText.array(
            connections.map { connection in
                func both(_ value: PerDirection<Int>) -> String {
                    JSONText.object([("up", "\(value.up)"), ("down", "\(value.down)")])
                }
                return JSONText.object([
                    ("number", "\(connection.number)"), ("client", JSONText.string(connection.client?.description)),
                    ("age", JSONText.number(connection.age.inMilliseconds)), ("bytes", both(connection.bytesRead)),
                    ("held", both(connection.bytesHeld)),
                ])
            })
    }

    private func cut(_ number: String, of name: String, query: String) async throws(APIFailure) {
        let proxy = try await registry.get(name)
        let byReset: Bool
        switch query {
        case "", "how=reset": byReset = true
        case "how=close": byReset = false
        default: throw APIFailure(.badRequest, "expected ?how=reset or ?how=close")
        }
        // Numbers begin again with a new seed: the youngest is meant.
        let meant = await proxy.running?.connections().filter { "\($0.number)" == number }.min { $0.age < $1.age }
        guard let meant, await proxy.running?.closeConnection(meant.id, abortively: byReset) == true else {
            throw APIFailure(.notFound, "connection not found")
        }
    }
}
