internal import ControlAPI
internal import Wire

/// The commands that list, inspect, create, toggle and delete proxies.
extension ToxiproxyCLI {
    @Sendable static func list(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let json = try await cli.call("GET", "/proxies", orFailWith: "Failed to retrieve proxies", "")
        let proxies = (json.object ?? [:]).map { ProxyDescription($0.value) }
            .sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        var text = ""
        if cli.isTerminal {
            text += "\(ANSIColor.green)Name\t\t\t\(ANSIColor.blue)Listen\t\t\(ANSIColor.yellow)Upstream\t\t"
            text += "\(ANSIColor.purple)Enabled\t\t\(ANSIColor.red)Toxics\n\(ANSIColor.none)\(ANSIColor.none)"
            text += String(repeating: "=", count: 86) + "\n"
            if proxies.isEmpty {
                return text + "\(ANSIColor.red)no proxies\n\(ANSIColor.none)"
                    + cli.hint("create a proxy with `toxiproxy-cli create`")
            }
        }
        for proxy in proxies {
            let count = proxy.toxics.isEmpty && cli.isTerminal ? "None" : "\(proxy.toxics.count)"
            text += cli.cell(proxy.name, proxy.isEnabled ? .green : .red, tabs: 3)
            text += cli.cell(proxy.listen, .blue, tabs: 2) + cli.cell(proxy.upstream, .yellow, tabs: 3)
            text += cli.cell(proxy.state, .purple, tabs: 2) + cli.colored(count, .red) + "\n"
        }
        return text + cli.hint("inspect toxics with `toxiproxy-cli inspect <proxyName>`")
    }

    @Sendable static func inspect(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        let proxy = try await cli.proxy(name, orFailWith: "Failed to retrieve proxy \(name)")
        guard cli.isTerminal else { return proxy.toxics.map(cli.line).joined() }
        var text =
            "\(cli.colored("Name: ", .purple))\(proxy.name)\t\(cli.colored("Listen: ", .blue))\(proxy.listen)\t"
        text += "\(cli.colored("Upstream: ", .yellow))\(proxy.upstream)\n"
        text += "\(ANSIColor.none)\(String(repeating: "=", count: 70))\n"
        if proxy.toxics.isEmpty {
            text += "\(ANSIColor.red)Proxy has no toxics enabled.\n\(ANSIColor.none)"
        } else {
            let isUp = { (toxic: JSONValue) in toxic["stream"].text == "upstream" }
            text += cli.section("Upstream", proxy.toxics.filter(isUp)) + "\n"
            text += cli.section("Downstream", proxy.toxics.filter { !isUp($0) })
        }
        return text + cli.hint("add a toxic with `toxiproxy-cli toxic add`")
    }

    @Sendable static func create(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        let (listen, upstream) = (try required("listen", flags), try required("upstream", flags))
        let body = JSONValue.object([
            "name": .text(name), "listen": .text(listen), "upstream": .text(upstream), "enabled": .bool(true),
        ])
        _ = try await cli.call("POST", "/proxies", body, orFailWith: "Failed to create proxy: create")
        return "Created new proxy \(name)\n"
    }

    @Sendable static func toggle(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        var proxy = try await cli.proxy(name, orFailWith: "Failed to retrieve proxy \(name)")
        proxy.isEnabled.toggle()
        // Servers older than 2.6 know no PATCH.
        proxy = ProxyDescription(
            try await cli.call(
                "POST", APIClient.path("proxies", name), proxy.json, orFailWith: "Failed to toggle proxy \(name)"))
        let color = proxy.isEnabled ? ANSIColor.green : .red
        return "Proxy \(cli.colored(name, color)) is now \(cli.colored(proxy.state, color))\n"
    }

    @Sendable static func delete(_ cli: ToxiproxyCLI, _ flags: GoFlags) async throws -> String {
        let name = try proxyName(flags)
        _ = try await cli.proxy(name, orFailWith: "Failed to retrieve proxy \(name)")
        _ = try await cli.call(
            "DELETE", APIClient.path("proxies", name), orFailWith: "Failed to delete proxy: Delete")
        return "Deleted proxy \(name)\n"
    }
}
