internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import Foundation
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ProxyServer

/// `slowlane server`.
struct ServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server",
        abstract: "Run proxies that are controlled over HTTP (Toxiproxy's API plus Slowlane's extensions).",
        discussion: """
            Examples:
              slowlane server
              slowlane server --config toxiproxy.json --seed 7
              slowlane server --host 0.0.0.0 --token "$TOKEN" --allow-host ci-host

            Then, in another terminal:
              slowlane create redis --upstream 127.0.0.1:6379
              slowlane toxic add -t latency -a latency=1000 redis
              slowlane link redis edge

            The server works with all Toxiproxy clients; GET /version reports 2.12.0. Slowlane's own calls for links, seeds \
            and single connections have paths under /slowlane/v1 (see docs/server.md). A symbolic link to slowlane with the \
            name 'toxiproxy-server', 'toxiproxy' or 'toxiproxy-cli' accepts the flags of that program.

            Environment variables:
              SLOWLANE_NO_TOKEN=1             same as --no-token
              SLOWLANE_ALLOW_HOST=NAME,NAME   same as --allow-host
              LOG_LEVEL=error                 print errors only (default: info)

            SIGINT and SIGTERM stop the server and close all connections.

            Exit status: 0 stopped; 64 wrong arguments; 65 invalid configuration; 69 cannot bind the port.
            """)

    @Option(
        help: ArgumentHelp(
            "Address to listen on; an address other than loopback requires --token or --no-token.", valueName: "host"))
    var host = "localhost"

    @Option(
        help: ArgumentHelp(
            "Port to listen on, a number or a service name; 0 picks a free port and prints it.", valueName: "port"))
    var port = "8474"

    @Option(
        help: ArgumentHelp(
            "JSON file of proxies to create at startup, in the format of POST /populate (see docs/server.md).",
            valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "Random seed; with the same seed, toxics affect the same connections. (default: random)",
            valueName: "number"))
    var seed: UInt64?

    @Flag(help: "Include proxy metrics in /metrics. (/slowlane/v1/metrics always includes them.)")
    var proxyMetrics = false

    @Flag(help: "Include process metrics in /metrics.")
    var runtimeMetrics = false

    @Option(help: ArgumentHelp("Require 'Authorization: Bearer TOKEN' in requests.", valueName: "token"))
    var token: String?

    @Flag(help: "Accept requests from other machines without a token.")
    var noToken = false

    @Option(
        help: ArgumentHelp(
            "Also accept this name in the Host header; '*' accepts any name (repeatable).",
            valueName: "name"))
    var allowHost: [String] = []

    @Option(help: ArgumentHelp("Maximum number of proxies.", valueName: "count"))
    var maxProxies = ServerLimits().proxiesMax

    @Option(help: ArgumentHelp("Maximum number of toxics of a proxy.", valueName: "count"))
    var maxToxics = ServerLimits().toxicsMax

    @Option(
        help: ArgumentHelp(
            "Maximum number of open connections of a proxy; further connections wait. (default: 10000, or what 'ulimit -n' allows)",
            valueName: "count"))
    var maxConnections: Int?

    @Option(help: ArgumentHelp("Maximum size of a request body in bytes.", valueName: "bytes"))
    var maxBody = ServerLimits().bodyBytesMax

    @Option(help: ArgumentHelp("Maximum size of request headers in bytes.", valueName: "bytes"))
    var maxHeaders = ServerLimits().headerBytesMax

    @Option(
        help: ArgumentHelp(
            "Maximum number of open API connections; a further connection replaces the one that has been idle longest.",
            valueName: "count"))
    var maxCallers = ServerLimits().apiConnectionsMax

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    /// Whether the program runs as Toxiproxy's server: it then logs in that server's format, starts despite an invalid
    /// configuration, and accepts requests from other machines without a token.
    private var isToxiproxy: Bool { ToxiproxyProgram.invoked == .server }

    func validate() throws {
        if token != nil && noToken { throw ValidationError("give one of --token and --no-token") }
        if token?.isEmpty == true { throw ValidationError("--token must not be empty") }
        for (name, value) in [
            ("--max-proxies", maxProxies), ("--max-toxics", maxToxics), ("--max-connections", maxConnections ?? 1),
            ("--max-body", maxBody), ("--max-headers", maxHeaders), ("--max-callers", maxCallers),
        ] where !(1...1_000_000_000).contains(value) {
            throw ValidationError("\(name) \(value) must be from 1 to 1000000000")
        }
    }

    func run() async throws {
        let console = Console()
        let environment = ProcessInfo.processInfo.environment
        let levelName = environment["LOG_LEVEL"] ?? ""
        let level = Self.level(levelName)
        let logger = Logger(label: "slowlane") { [isToxiproxy, quiet] _ in
            let level = level ?? (quiet ? .error : .info)
            return isToxiproxy ? JSONLogHandler(console, level: level) : ConsoleLogHandler(console, level: level)
        }
        if level == nil && !levelName.isEmpty { logger.error("unknown LOG_LEVEL value: \"\(levelName.prefix(40))\"") }
        // Toxiproxy has no tokens, and its container image listens on all interfaces.
        let needsNoToken = try Self.boolean("SLOWLANE_NO_TOKEN", environment) || noToken || isToxiproxy
        if isToxiproxy { logger.info("Starting Toxiproxy", metadata: ["version": "\(API.toxiproxyVersion)"]) }
        let address = try await resolvedAddress(console)
        let isReachable = !LocalAddresses.isLoopback(address.host)
        if isReachable && token == nil && !needsNoToken {
            console.error(
                "cannot listen on \(address) without a token: other machines could open ports and connections on this one; "
                    + "add --token TOKEN, or --no-token (SLOWLANE_NO_TOKEN=1) to allow it")
            throw ExitStatus.usage
        }
        let seed = seed ?? UInt64.random(in: 0..<(1 << 53))
        let showsMetrics = proxyMetrics || runtimeMetrics
        let api = API(
            seed: seed, limits: limits,
            metrics: showsMetrics ? .init(proxies: proxyMetrics, process: runtimeMetrics) : nil,
            version: SlowlaneVersion.current, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        // A signal may arrive as soon as the line "listening" is printed.
        let events = ForegroundEvents()
        let configured = try await load(api, console, logger)
        // Toxiproxy has no list of host names, so every name must be accepted.
        let anyHost = isToxiproxy && isReachable && token == nil ? ["*"] : []
        let named = environment["SLOWLANE_ALLOW_HOST"]?.split(separator: ",").map(String.init) ?? []
        let server: APIServer
        do {
            server = try await APIServer.start(
                api, host: address.host, port: address.port,
                requestGuard: RequestGuard(
                    boundTo: address.host, token: token, allowedHosts: allowHost + named + anyHost), logger: logger)
        } catch {
            let problem = "\(error); stop the other server, or choose another --port"
            if isToxiproxy { logger.error("\(problem)") } else { console.error(problem) }
            await api.close()
            console.flush()
            throw ExitStatus.unavailable
        }
        let bound = Endpoint(host: address.host, port: server.port)
        let warning = "other machines can open ports and connections on this one through port \(server.port)"
        if isToxiproxy {
            // Third-party programs wait for this message.
            logger.info(
                "Starting Toxiproxy HTTP server",
                metadata: ["address": "\(bound)", "seed": "\(seed)", "slowlane": "\(SlowlaneVersion.current)"])
            if isReachable && token == nil { logger.warning("\(warning)") }
        } else if logger.logLevel <= .warning || quiet {
            console.print("listening on http://\(bound) (Toxiproxy \(API.toxiproxyVersion)), seed \(seed)\(configured)")
            if isReachable && token == nil { console.print("warning: \(warning)", to: .progress) }
        }
        console.writeAsynchronously()
        _ = await events.next()
        await server.stop()
        await api.close()
        if isToxiproxy {
            logger.info("Shutdown finished")
        } else if !quiet && logger.logLevel <= .warning {
            console.print("stopped", to: .progress)
        }
        console.flush()
    }

    private var limits: ServerLimits {
        var limits = ServerLimits()
        limits.proxiesMax = maxProxies
        limits.toxicsMax = maxToxics
        limits.connectionsMax = min(
            maxConnections ?? limits.connectionsMax,
            Terminal.connections(withOpenFiles: Terminal.raiseOpenFileLimit()))
        limits.bodyBytesMax = maxBody
        limits.headerBytesMax = maxHeaders
        limits.apiConnectionsMax = maxCallers
        return limits
    }

    /// Returns the address to listen on. An IPv6 address may have brackets. No host means all interfaces, and so does
    /// Toxiproxy's `0.0.0.0`, which includes IPv6 there.
    private func resolvedAddress(_ console: Console) async throws -> Endpoint {
        var name = host
        if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
        if isToxiproxy && name == "0.0.0.0" { name = "" }
        do {
            return try await ListenAddress.resolve("\(name.contains(":") ? "[\(name)]" : name):\(port)")
        } catch {
            console.error("--host \(host) --port \(port): \(error.reason)")
            throw ExitStatus.usage
        }
    }

    /// Returns the value of a boolean environment variable.
    private static func boolean(_ name: String, _ environment: [String: String]) throws -> Bool {
        switch environment[name]?.lowercased() {
        case nil, "", "0", "false", "no": return false
        case "1", "true", "yes": return true
        case let text?: throw ValidationError("\(name) '\(text.prefix(40))' must be 0 or 1")
        }
    }

    /// Creates the proxies of the configuration and returns a text about them for the line "listening".
    private func load(_ api: API, _ console: Console, _ logger: Logger) async throws -> String {
        guard let config else { return "" }
        let problem: String
        if let data = FileManager.default.contents(atPath: config) {
            let (names, failure) = await api.load(Array(data))
            guard let failure else { return ", proxies \(names.joined(separator: ", "))" }
            problem = failure
        } else {
            problem = "cannot be read"
        }
        if isToxiproxy {
            logger.error("--config \(config): \(problem)")
            return ""
        }
        console.error("--config \(config): \(problem)")
        await api.close()
        throw ExitStatus.invalidFile
    }

    private static func level(_ text: String) -> Logger.Level? {
        switch text.lowercased() {
        case "panic", "fatal": .critical
        case "warn": .warning
        default: Logger.Level(rawValue: text.lowercased())
        }
    }
}
