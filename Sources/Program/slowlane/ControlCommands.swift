internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import ForwardProxy
internal import HTTPSockets
internal import Proxy
internal import Wire

/// A command that calls a running server.
protocol ControlCommand: AsyncParsableCommand {
    var server: ServerOptions { get }
    /// The action, for error messages: `list proxies`.
    var purpose: String { get }
    func run(_ client: APIClient, _ console: Console) async throws
}

extension ControlCommand {
    mutating func run() async throws {
        let console = Console()
        let client = try server.client(console)
        do {
            try await run(client, console)
        } catch let error as APIClient.CallError {
            throw error.exitCode(failedTo: purpose, console)
        }
    }
}

extension APIClient.CallError {
    /// Prints the error and returns its exit status.
    func exitCode(failedTo purpose: String, _ console: Console) -> ExitCode {
        console.error("cannot \(purpose): \(self)")
        if case .noConnection = self { return ExitStatus.unavailable }
        return ExitStatus.failed
    }
}

/// `slowlane list`.
struct ListCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "List the proxies of a server.",
        discussion: """
            Examples:
              slowlane list
              slowlane list --host http://ci-host:8474 --json
            """, aliases: ["l", "li", "ls"])

    @OptionGroup(title: "Server") var server: ServerOptions
    var purpose: String { "list proxies" }

    func run(_ client: APIClient, _ console: Console) async throws {
        let proxies = try await client.call("GET", "/proxies")
        if server.json { return console.print(proxies.json) }
        for line in ProxyText.list(proxies, terminalWidth: Terminal.tableWidth) { console.print(line) }
        if proxies.object?.isEmpty ?? true {
            console.print("no proxies; create one with 'slowlane create NAME --upstream HOST:PORT'", to: .progress)
        }
    }
}

/// `slowlane inspect`.
struct InspectCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "inspect", abstract: "Show the toxics, link and connections of a proxy.",
        discussion: """
            Examples:
              slowlane inspect redis
              slowlane inspect redis --json

            Each line is a toxic, with tab-separated fields. On a terminal, lines about the proxy and its link come first. With \
            --json the proxy has the fields 'link', 'seed' and 'connections_open' in addition to Toxiproxy's.
            """, aliases: ["i", "ins"])

    @Argument(help: "Name of the proxy.") var name: String
    @OptionGroup(title: "Server") var server: ServerOptions
    var purpose: String { "inspect proxy '\(name)'" }

    func run(_ client: APIClient, _ console: Console) async throws {
        let proxy = try await client.call("GET", APIClient.path("proxies", name))
        // A Toxiproxy server has no such path.
        let wantsDetails = server.json || Terminal.isStandardOutput
        let details =
            wantsDetails ? try? await client.call("GET", APIClient.path("slowlane", "v1", "proxies", name)) : nil
        if server.json { return console.print(ProxyText.json(proxy, details: details)) }
        if Terminal.isStandardOutput {
            for line in ProxyText.heading(name, proxy, details: details) { console.print(line) }
        }
        for toxic in proxy["toxics"].array { console.print(ProxyText.toxic(toxic)) }
    }
}

/// `slowlane create`.
struct CreateCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "create", abstract: "Create a proxy, which starts to listen at once.",
        discussion: """
            Examples:
              slowlane create redis --listen 127.0.0.1:26379 --upstream 127.0.0.1:6379
              slowlane create api --upstream localhost:8000 --profile edge
              slowlane create shop --upstream https://shop.example.com --profile 3g
              slowlane create slow --upstream localhost:8000 --delay 200ms --loss 2%
              slowlane create dns --protocol udp --upstream 192.0.2.1:53 --loss 10%
              slowlane create phone --forward --profile 3g --to '*.cdn.test=wifi'
              slowlane create app --forward --intercept api.test --upstream-ca ca.pem
            """, aliases: ["c", "new"])

    @Argument(help: "Name of the proxy.") var name: String
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Address to listen on, HOST:PORT; port 0 picks a free port.", valueName: "host:port"))
    var listen = "127.0.0.1:0"
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("Address of the upstream server, HOST:PORT or https://HOST[:PORT].", valueName: "host:port")
    ) var upstream: String?
    @Option(
        name: .customLong("protocol"),
        help: ArgumentHelp(
            "Protocols to forward on the port: tcp, udp or tcp,udp. (default: tcp)", valueName: "protocols"))
    var protocols: String?
    @Flag(help: "Forward proxy: clients name the server of each connection (see docs/reference/forward-proxy.md).")
    var forward = false
    @Option(
        help: ArgumentHelp(
            "Built-in profile to start with ('slowlane profiles' lists them). (default: no conditions)",
            valueName: "name"),
        completion: NameCompletion.builtInProfile)
    var profile: String?
    @OptionGroup(title: "Figures (alone, or in place of a profile's)") var figureOptions: FigureOptions
    @OptionGroup(title: "Forward proxy") var destinations: ForwardOptions
    @OptionGroup(title: "Access to a forward proxy") var access: ForwardAccessOptions
    @OptionGroup(title: "Interception of TLS (default: none)") var interception: InterceptionOptions
    @OptionGroup(title: "Servers with TLS (--upstream https://HOST, --intercept HOST)")
    var certificates: UpstreamCertificateOptions
    @OptionGroup(title: "Servers with TLS (--upstream https://HOST, --intercept HOST)") var tls: UpstreamTLSOptions
    @OptionGroup(title: "Server") var server: ServerOptions
    var purpose: String { "create proxy" }

    func validate() throws {
        try AddressArgument.check(listen, option: "--listen")
        try ForwardArguments.check(upstream: upstream, isForward: forward, destinations, access)
        if let upstream, !UpstreamTLS.isURL(upstream) { try AddressArgument.check(upstream, option: "--upstream") }
        _ = try tls.settings(upstream: upstream, certificates, isIntercepting: interception.isGiven)
    }

    func run(_ client: APIClient, _ console: Console) async throws {
        var body: JSONObject = [
            "name": .text(name), "listen": .text(listen), "enabled": .bool(true),
        ]
        if let upstream { body["upstream"] = .text(upstream) }
        if let protocols { body["protocol"] = .text(protocols) }
        if forward {
            body["forward"] = .bool(true)
            for (key, values) in [("to", destinations.to), ("map", destinations.map), ("allow", access.allow)] {
                body[key] = .array(values.map { .text($0) })
            }
            if let login = try access.login(console) {
                body["user"] = .text(login.user)
                body["password"] = .text(login.password)
            }
        }
        if interception.interceptAll { body["intercept_all"] = .bool(true) }
        if let hosts = try interception.hosts(), !hosts.isAll {
            body["intercept"] = .array(hosts.patterns.map { .text("\($0)") })
        }
        let settings = try upstreamTLS()
        if !settings.isEmpty { body["upstream_tls"] = .object(settings) }
        if profile != nil || figureOptions.isGiven {
            body["link"] = .object(try figureOptions.link(profile: profile))
        }
        let proxy = try await client.call("POST", "/proxies", .object(body))
        if server.json { return console.print(proxy.json) }
        console.print("Created new proxy \(name)")
        if listen.hasSuffix(":0") { console.print("listening on \(proxy["listen"].displayText)") }
    }

    /// Returns the field `upstream_tls` of the request. The files are read here, not by the server.
    private func upstreamTLS() throws -> JSONObject {
        let given = try certificates.certificates()
        func text(_ bytes: [UInt8]) -> JSONValue { .text(String(decoding: bytes, as: UTF8.self)) }
        var settings: JSONObject = [:]
        if let authorities = given.authorities { settings["ca"] = text(authorities) }
        if let identity = given.identity {
            settings["certificate"] = text(identity.certificates)
            settings["key"] = text(identity.key)
        }
        if !given.isVerified { settings["insecure"] = .bool(true) }
        if !tls.rewriteHost { settings["rewrite_host"] = .bool(false) }
        return settings
    }
}

/// `slowlane toggle`.
struct ToggleCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "toggle", abstract: "Disable an enabled proxy, or enable a disabled one.",
        discussion: "Example:\n  slowlane toggle redis", aliases: ["tog"])

    @Argument(help: "Name of the proxy.") var name: String
    @OptionGroup(title: "Server") var server: ServerOptions
    var purpose: String { "toggle proxy '\(name)'" }

    func run(_ client: APIClient, _ console: Console) async throws {
        let path = APIClient.path("proxies", name)
        let isEnabled = try await client.call("GET", path)["enabled"] == .bool(true)
        let proxy = try await client.call("PATCH", path, .object(["enabled": .bool(!isEnabled)]))
        if server.json { return console.print(proxy.json) }
        console.print("Proxy \(name) is now \(isEnabled ? "disabled" : "enabled")")
    }
}

/// `slowlane delete`.
struct DeleteCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Delete a proxy and close its connections.",
        discussion: "Example:\n  slowlane delete redis", aliases: ["d"])

    @Argument(help: "Name of the proxy.") var name: String
    @OptionGroup(title: "Server") var server: ServerOptions
    var purpose: String { "delete proxy '\(name)'" }

    func run(_ client: APIClient, _ console: Console) async throws {
        _ = try await client.call("DELETE", APIClient.path("proxies", name))
        console.print("Deleted proxy \(name)")
    }
}

/// `slowlane reset`.
struct ResetCommand: ControlCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset",
        abstract:
            "Enable all proxies, remove all toxics and faults, and restore the links that proxies were created with.",
        discussion: "Example:\n  slowlane reset")

    @OptionGroup(title: "Server") var server: ServerOptions
    var purpose: String { "reset" }

    func run(_ client: APIClient, _ console: Console) async throws {
        _ = try await client.call("POST", "/reset")
        console.print("Every proxy is enabled, without toxics and faults, and has its first link")
    }
}
