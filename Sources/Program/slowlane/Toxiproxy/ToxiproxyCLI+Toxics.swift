internal import ControlAPI
internal import Wire

/// The commands of the group `toxic`.
extension ToxiproxyCLI {
    private static func toxicsProxyName(_ flags: GoFlags) throws(Exit) -> String {
        guard let name = flags.rest.first, !name.isEmpty else {
            throw Exit(text: "Proxy name is missing.\n", showsHelp: true)
        }
        return name
    }

    private static func toxicity(_ flags: GoFlags) throws(Exit) -> JSONValue {
        let text = flags.text("toxicity")
        if text.isEmpty { return .integer(1) }
        guard let number = GoText.number(text), (0...1).contains(number) else {
            throw Exit(text: "toxicity should be a float between 0 and 1.\n")
        }
        return .number(number)
    }

    /// Returns the attributes given as `k=v`. Values that parse as numbers are numbers; arguments without `=` are
    /// ignored.
    private static func attributes(_ flags: GoFlags, orFailWith failure: String) throws(Exit) -> JSONValue {
        var attributes: JSONObject = [:]
        for pair in flags.list("attribute") {
            guard let equals = pair.firstIndex(of: "=") else { continue }
            let text = String(pair[pair.index(after: equals)...])
            let number = GoText.number(text)
            if let number, !number.isFinite {
                throw Exit(text: "\(failure): json: unsupported value: \(GoText.format(number))\n")
            }
            attributes[String(pair[..<equals])] = number.map { .number($0) } ?? .text(text)
        }
        return .object(attributes)
    }

    @Sendable static func addToxic(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try toxicsProxyName(flags)
        let type = try required("type", flags)
        let isUp = flags.isOn("upstream")
        if isUp && flags.isOn("downstream") {
            throw Exit(text: "Only one should be specified: upstream or downstream.\n")
        }
        let toxicity = try toxicity(flags)
        _ = try await cli.proxy(
            name, orFailWith: "Failed to add toxic: failed to retrieve proxy with name `\(name)`")
        let failure = "Failed to add toxic: failed to add toxic to proxy \(name)"
        let toxic = try await cli.call(
            "POST", APIClient.path("proxies", name, "toxics"),
            .object([
                "name": .text(flags.text("toxicName")), "type": .text(type),
                "stream": .text(isUp ? "upstream" : "downstream"), "toxicity": toxicity,
                "attributes": try attributes(flags, orFailWith: failure),
            ]), orFailWith: "\(failure): AddToxic")
        return
            "Added \(toxic["stream"].displayText) \(toxic["type"].displayText) toxic '\(toxic["name"].displayText)' on proxy '\(name)'\n"
    }

    @Sendable static func updateToxic(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try toxicsProxyName(flags)
        let toxicity = try toxicity(flags)
        _ = try await cli.proxy(
            name, orFailWith: "Failed to update toxic: failed to retrieve proxy with name `\(name)`")
        let toxicName = flags.text("toxicName")
        let failure = "Failed to update toxic: failed to update toxic '\(toxicName)' of proxy '\(name)'"
        let toxic = try await cli.call(
            "PATCH", APIClient.path("proxies", name, "toxics", toxicName),
            .object(["toxicity": toxicity, "attributes": try attributes(flags, orFailWith: failure)]),
            orFailWith: failure)
        return "Updated toxic '\(toxic["name"].displayText)' on proxy '\(name)'\n"
    }

    @Sendable static func removeToxic(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try toxicsProxyName(flags)
        _ = try await cli.proxy(
            name, orFailWith: "Failed to remove toxic: failed to retrieve proxy with name `\(name)`")
        let toxicName = flags.text("toxicName")
        _ = try await cli.call(
            "DELETE", APIClient.path("proxies", name, "toxics", toxicName),
            orFailWith: "Failed to remove toxic: failed to remove toxic '\(toxicName)' from proxy '\(name)'")
        return "Removed toxic '\(toxicName)' on proxy '\(name)'\n"
    }
}
