internal import CommandSupport
internal import ControlAPI
internal import Wire

/// Calls of the server, and the arguments that several commands share.
extension ToxiproxyCLI {
    /// A proxy in a response of the server.
    struct ProxyDescription {
        let name, listen, upstream: String
        var isEnabled: Bool
        let toxics: [JSONValue]

        init(_ json: JSONValue) {
            name = json["name"].text ?? ""
            listen = json["listen"].text ?? ""
            upstream = json["upstream"].text ?? ""
            isEnabled = json["enabled"] == .bool(true)
            toxics = json["toxics"].array
        }

        var json: JSONValue {
            .object([
                "name": .text(name), "listen": .text(listen), "upstream": .text(upstream), "enabled": .bool(isEnabled),
            ])
        }

        var state: String { isEnabled ? "enabled" : "disabled" }
    }

    /// Calls the server. An error ends the command with `failure`, a colon and the reason.
    func call(
        _ method: String, _ path: String, _ body: JSONValue? = nil, orFailWith failure: String, _ end: String = "\n"
    ) async throws -> JSONValue {
        guard
            let client = APIClient(
                url: host, token: environment["SLOWLANE_TOKEN"], userAgent: "slowlane/\(SlowlaneVersion.current)")
        else {
            throw Exit(text: "\(failure): '\(host)' is not an HTTP URL such as \(Self.hostDefault)\(end)")
        }
        do {
            return try await client.call(method, path, body)
        } catch let error as APIClient.CallError {
            throw Exit(text: "\(failure): \(Self.reason(error))\(end)")
        }
    }

    private static func reason(_ failure: APIClient.CallError) -> String {
        switch failure {
        case .noConnection(let method, let url, let address, let reason):
            let call = "\(method.prefix(1))\(method.dropFirst().lowercased()) \(GoText.quoted(url))"
            guard let address else { return "fail to request: \(call): dial tcp: \(reason)" }
            return "fail to request: \(call): dial tcp \(address): connect: \(reason.lowercased())"
        case .errorResponse, .unreadable: return "\(failure)"
        }
    }

    func proxy(_ name: String, orFailWith failure: String) async throws -> ProxyDescription {
        ProxyDescription(try await call("GET", APIClient.path("proxies", name), orFailWith: failure))
    }

    static func proxyName(_ flags: GoFlags) throws(Exit) -> String {
        guard let name = flags.rest.first, !name.isEmpty else {
            throw Exit(text: "Proxy name is required as the first argument.\n", showsHelp: true)
        }
        return name
    }

    static func required(_ name: String, _ flags: GoFlags) throws(Exit) -> String {
        let value = flags.text(name)
        if value.isEmpty { throw Exit(text: "Required argument '\(name)' was empty.\n", showsHelp: true) }
        return value
    }
}
