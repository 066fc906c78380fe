/// The variables and flags with which programs use a proxy on this machine.
///
/// Which program reads which variable was measured; docs/reference/with.md has the table.
package struct ProxyVariables {
    /// The port of the proxy on 127.0.0.1.
    private let port: Int
    /// Hosts that are connected without the proxy.
    private let bypass: [String]

    /// - Parameter bypass: Hosts that are connected without the proxy. Programs exclude none by themselves then, not even
    ///   localhost, as far as they can be configured.
    package init(port: Int, bypass: [String] = []) {
        self.port = port
        self.bypass = bypass
    }

    /// Returns the variables to set.
    ///
    /// - Parameter javaOptions: The present value of `JAVA_TOOL_OPTIONS`, which is kept.
    package func variables(javaOptions: String? = nil) -> [(name: String, value: String)] {
        let http = "http://127.0.0.1:\(port)"
        let list = bypass.joined(separator: ",")
        let java = [
            "-Dhttp.proxyHost=127.0.0.1", "-Dhttp.proxyPort=\(port)", "-Dhttps.proxyHost=127.0.0.1",
            "-Dhttps.proxyPort=\(port)", "-Dhttp.nonProxyHosts=\(bypass.joined(separator: "|"))",
        ]
        return [
            // curl and wget read http_proxy only in lower case.
            ("http_proxy", http), ("HTTP_PROXY", http), ("https_proxy", http), ("HTTPS_PROXY", http),
            // With a SOCKS URL, httpx refuses to start unless it has its optional SOCKS package.
            ("all_proxy", http), ("ALL_PROXY", http), ("no_proxy", list), ("NO_PROXY", list),
            ("NODE_USE_ENV_PROXY", "1"), ("GLOBAL_AGENT_HTTP_PROXY", http),
            ("npm_config_proxy", http), ("npm_config_https_proxy", http),
            ("CGI_HTTP_PROXY", http), ("SOCKS_SERVER", "127.0.0.1:\(port)"), ("SOCKS_VERSION", "5"),
            ("JAVA_TOOL_OPTIONS", ([javaOptions].compactMap { $0 } + java).joined(separator: " ")),
        ]
    }

    /// Returns the variables to set in connect mode. The resolver of gRPC (c-ares) accepts only responses from the address of
    /// the name server, which those of the proxy do not have; the system's resolver accepts them.
    ///
    /// - Parameter environment: The present variables, which are kept.
    package static func variablesOfRedirection(_ environment: [String: String]) -> [(name: String, value: String)] {
        [("GRPC_DNS_RESOLVER", "native")].filter { environment[$0.0] == nil }
    }

    /// Browsers with Chromium's flags.
    private static let chromiumNames: Set<String> = [
        "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "google-chrome-beta", "chrome",
        "chrome-headless-shell", "headless_shell", "microsoft-edge", "microsoft-edge-stable", "brave-browser",
    ]

    /// Returns whether a program is a browser with Chromium's flags.
    static func isChromium(_ program: String) -> Bool { chromiumNames.contains(name(program)) }

    /// Returns a command with the flags that its program needs: Chromium connects to localhost without a proxy otherwise.
    /// A command with a flag for a proxy is returned as it is.
    package func command(_ command: [String]) -> [String] {
        guard let program = command.first, Self.isChromium(program),
            !command.contains(where: { $0.hasPrefix("--proxy-") || $0 == "--no-proxy-server" })
        else { return command }
        let list = (["<-loopback>"] + bypass).joined(separator: ";")
        return [program, "--proxy-server=http://127.0.0.1:\(port)", "--proxy-bypass-list=\(list)"] + command.dropFirst()
    }

    /// Returns what a command's program does not send through a proxy, in a sentence; `nil` if the program is none of
    /// those that are known for it.
    package static func limitation(of command: [String]) -> String? {
        let program = name(command.first ?? "")
        switch program {
        case "node", "npx", "tsx", "bun", "deno":
            return "Node.js before 22.21 ignores proxy variables"
        case "go":
            return "Go programs connect to localhost without a proxy; --map NAME=127.0.0.1:PORT gives a server a name"
        case "psql", "mysql", "redis-cli", "ssh", "nc", "telnet", "mongosh":
            return "\(program) does not use proxies"
        default:
            return program.hasPrefix("python")
                ? "aiohttp uses the proxy only with trust_env=True, and raw sockets and database drivers do not" : nil
        }
    }

    private static func name(_ program: String) -> String {
        String(program.split(separator: "/", omittingEmptySubsequences: true).last ?? "")
    }
}
