internal import ForwardProxy
internal import HTTPTypes
internal import LinkModel
internal import Proxy
internal import Wire

/// The rules and hosts of forward proxies.
extension API {
    /// The upstream of a forward proxy in responses.
    public static let forwardUpstream = "any server"

    func respondToRules(
        of name: String, _ method: HTTPRequest.Method, _ body: [UInt8]
    ) async throws(APIError) -> Response {
        var warnings: [String] = []
        switch method {
        case .get: break
        case .delete:
            let none = try JSONFields(["to": [], "map": []], "the body")
            try await registry.setRules(try ForwardRequest(none), of: name)
        default:
            let known = try await registry.forward(of: name).conditions
            let (request, unknown) = try await decoded(body) { (fields) throws(APIError) in
                // Settings of access belong to the proxy.
                let rules = fields.only(ForwardRequest.ruleFields)
                return (try ForwardRequest(rules, known: known), RequestWarnings.ofRules(fields))
            }
            guard request.hasRules else { throw .missingField("to or map") }
            try await registry.setRules(request, of: name)
            warnings = unknown
        }
        let settings = try await registry.forward(of: name)
        return try await .json(
            work.run(bytes: Self.entryBytes * settings.rules.rules.count) { settings.rulesJSON }, warnings: warnings)
    }

    /// An estimate of the number of bytes of a rule or host in a list.
    private static let entryBytes = 150

    func hosts(of name: String) async throws(APIError) -> String {
        _ = try await registry.forward(of: name)
        let hosts = await (try registry.proxy(named: name)).running?.hostTraffic() ?? []
        return try await work.run(bytes: Self.entryBytes * hosts.count) {
            JSONText.object([("hosts", JSONText.array(hosts.map(\.json)))])
        }
    }
}

extension HostTraffic {
    /// The counters as JSON; the host and the port of all destinations beyond the limit are `null`.
    var json: String {
        JSONText.object([
            ("host", JSONText.string(destination?.host)), ("port", destination.map { "\($0.port)" } ?? "null"),
            ("server_name", JSONText.string(serverName)),
            ("connections", "\(connections)"), ("connections_failed", "\(connectionsFailed)"),
            ("bytes", JSONText.object([("up", "\(bytes.up)"), ("down", "\(bytes.down)")])),
        ])
    }
}
