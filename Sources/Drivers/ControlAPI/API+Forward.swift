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
                let rules = fields.only(ForwardRequest.ruleFields.names)
                return (try ForwardRequest(rules, known: known), RequestWarnings.ofRules(fields))
            }
            guard request.hasRules else { throw .missingField("to or map") }
            try await registry.setRules(request, of: name)
            warnings = unknown
        }
        let settings = try await registry.forward(of: name)
        return try await .json(
            work.run(bytes: Self.entryBytes * settings.rules.rules.count) {
                ForwardSettings.shape.json(settings)
            }, warnings: warnings)
    }

    /// An estimate of the number of bytes of a rule or host in a list.
    private static let entryBytes = 150

    func hosts(of name: String) async throws(APIError) -> String {
        _ = try await registry.forward(of: name)
        let hosts = await (try registry.proxy(named: name)).running?.hostTraffic() ?? []
        return try await work.run(bytes: Self.entryBytes * hosts.count) {
            Self.hosts.json(hosts)
        }
    }

    /// The destinations that clients have named.
    static let hosts = JSONShape<[HostTraffic]>(
        "Hosts", [.required("hosts", { $0 }, .array(of: HostTraffic.shape.form))])
}

extension HostTraffic {
    fileprivate static let shape = JSONShape<HostTraffic>([
        .required(
            "host", \.destination?.host, .orNull(.text),
            "Null for all destinations beyond the first \(destinationsMax)."),
        .required("port", \.destination?.port, .orNull(.integer(min: 0, max: 65_535))),
        .required("server_name", \.serverName, .orNull(.text), "The name that the client of TLS has sent (SNI)."),
        .required(
            "connections", \.connections, .count, "Connections that were established, the open ones included."),
        .required("connections_failed", \.connectionsFailed, .count),
        .required("bytes", \.bytes, .pair(of: .count)),
    ])
}
