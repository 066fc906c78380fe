internal import ArgumentParser
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
        abstract: "Runs proxies that are made and changed over HTTP: Toxiproxy's API, and Slowlane's.",
        discussion: """
            Every Toxiproxy client works with it; GET /version says 2.12.0. Called as 'toxiproxy-server' or 'toxiproxy' it \
            takes that program's flags, and as 'toxiproxy-cli' the flags of that one. Networks, seeds and single connections are under /slowlane/v1 (docs/server.md).

            Examples:
              slowlane server
              slowlane server --config toxiproxy.json --seed 7
              slowlane server --host 0.0.0.0 --token "$TOKEN" --allow-host ci-host

            Then, in another terminal:
              slowlane create redis --listen 127.0.0.1:26379 --upstream 127.0.0.1:6379
              slowlane toxic add -t latency -a latency=1000 redis
              slowlane link redis edge

            Environment: SLOWLANE_NO_TOKEN=1 is --no-token, SLOWLANE_ALLOW_HOST=NAME,NAME is --allow-host; with LOG_LEVEL=error \
            nothing is printed at the start.

            SIGINT and SIGTERM stop it: every connection is closed.
            """)

    @Option(help: "Where to listen; with another than this machine's own address a token is wanted.")
    var host = "localhost"

    @Option(help: "The port, a number or a service's name; 0 takes a free one and prints it.")
    var port = "8474"

    @Option(help: "Proxies to begin with: a JSON file, an array as in the body of POST /populate.")
    var config: String?

    @Option(
        help:
            "Where all chance comes from: the same seed makes the same connections toxic. (default: another each time)")
    var seed: UInt64?

    @Flag(help: "Show the proxies' counters under /metrics, too. (They are always under /slowlane/v1/metrics.)")
    var proxyMetrics = false

    @Flag(help: "Show the process's figures under /metrics, too.")
    var runtimeMetrics = false

    @Option(help: "Callers must send 'Authorization: Bearer TOKEN'.")
    var token: String?

    @Flag(help: "Listen for other machines without a token.")
    var noToken = false

    @Option(
        help: "A name under which callers reach this server, beside its own address; may be given again. '*' is any.")
    var allowHost: [String] = []

    @Option(help: "How many proxies there may be.")
    var maxProxies = ServerLimits().proxiesMax

    @Option(help: "How many toxics a proxy may have.")
    var maxToxics = ServerLimits().toxicsMax

    @Option(
        help:
            "How many connections of a proxy may be open; further ones wait. (default: 10000, or what 'ulimit -n' allows)"
    )
    var maxConnections: Int?

    @Option(help: "How many bytes a call's body may have.")
    var maxBody = ServerLimits().bodyBytesMax

    @Option(help: "How many bytes a call's headers may have.")
    var maxHeaders = ServerLimits().headerBytesMax

    @Option(help: "How many connections to the API may be open; a further one takes the slot of the idlest.")
    var maxCallers = ServerLimits().callersMax

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    /// Whether it stands in for Toxiproxy's server: then it logs as that does, starts although its configuration is broken, and
    /// listens for other machines without a token if it is told to listen there.
    private var isToxiproxy: Bool { ToxiproxyProgram.invoked == .server }

    func validate() throws {
        if token != nil && noToken { throw ValidationError("--token and --no-token: give one") }
        if token?.isEmpty == true { throw ValidationError("--token is empty") }
        for (name, value) in [
            ("--max-proxies", maxProxies), ("--max-toxics", maxToxics), ("--max-connections", maxConnections ?? 1),
            ("--max-body", maxBody), ("--max-headers", maxHeaders), ("--max-callers", maxCallers),
        ] where !(1...1_000_000_000).contains(value) {
            throw ValidationError("\(name) \(value) is not within 1 to 1000000000")
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
        // The original's image listens so; whoever starts it has no token to give.
        let isOpen = try Self.truth(of: "SLOWLANE_NO_TOKEN", environment) || noToken || isToxiproxy
        if isToxiproxy { logger.info("Starting Toxiproxy", metadata: ["version": "\(API.toxiproxyVersion)"]) }
        let address = try await resolvedAddress(console)
        let isReachable = !LocalAddresses.isLoopback(address.host)
        if isReachable && token == nil && !isOpen {
            console.print(
                "error: \(address) can be reached from other machines, and whoever calls may open ports and connections "
                    + "here; set --token TOKEN, or say --no-token (SLOWLANE_NO_TOKEN=1)", to: .progress)
            throw ExitStatus.usage
        }
        let seed = seed ?? UInt64.random(in: 0..<(1 << 53))
        let showsMetrics = proxyMetrics || runtimeMetrics
        let api = API(
            seed: seed, limits: limits,
            metrics: showsMetrics ? .init(proxies: proxyMetrics, process: runtimeMetrics) : nil,
            version: SlowlaneVersion.current, on: MultiThreadedEventLoopGroup.singleton, logger: logger)
        // Signals are caught before anybody can know that we listen.
        let happenings = Happenings()
        let configured = try await load(api, console, logger)
        // The names of whoever started the original without naming any cannot be known.
        let anyHost = isToxiproxy && isReachable && token == nil ? ["*"] : []
        let named = environment["SLOWLANE_ALLOW_HOST"]?.split(separator: ",").map(String.init) ?? []
        let server: APIServer
        do {
            server = try await APIServer.start(
                api, host: address.host, port: address.port,
                requestGuard: RequestGuard(
                    boundTo: address.host, token: token, allowedHosts: allowHost + named + anyHost), logger: logger)
        } catch {
            let problem = "\(error); another server may be running there: stop it, or choose another --port"
            if isToxiproxy { logger.error("\(problem)") } else { console.print("error: \(problem)", to: .progress) }
            await api.close()
            console.flush()
            throw ExitStatus.unavailable
        }
        let bound = Endpoint(host: address.host, port: server.port)
        let warning = "whoever reaches this machine on port \(server.port) can open ports and connections here"
        if isToxiproxy {
            // Third parties wait for these words.
            logger.info(
                "Starting Toxiproxy HTTP server",
                metadata: ["address": "\(bound)", "seed": "\(seed)", "slowlane": "\(SlowlaneVersion.current)"])
            if isReachable && token == nil { logger.warning("\(warning)") }
        } else if logger.logLevel <= .warning || quiet {
            console.print("listening on http://\(bound) (Toxiproxy \(API.toxiproxyVersion)), seed \(seed)\(configured)")
            if isReachable && token == nil { console.print("warning: \(warning)", to: .progress) }
        }
        console.writeLater()
        _ = await happenings.next()
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
        limits.connectionsMax = min(maxConnections ?? limits.connectionsMax, connectionsThatFit())
        limits.bodyBytesMax = maxBody
        limits.headerBytesMax = maxHeaders
        limits.callersMax = maxCallers
        return limits
    }

    /// Where to listen. Brackets around an IPv6 address are taken as well; no host is every interface, and so is Toxiproxy's
    /// `0.0.0.0`, which reaches it by IPv6 as well.
    private func resolvedAddress(_ console: Console) async throws -> Endpoint {
        var name = host
        if name.hasPrefix("["), name.hasSuffix("]") { name = String(name.dropFirst().dropLast()) }
        if isToxiproxy && name == "0.0.0.0" { name = "" }
        do {
            return try await ListenAddress.resolve("\(name.contains(":") ? "[\(name)]" : name):\(port)")
        } catch {
            console.print("error: --host \(host) --port \(port): \(error.reason)", to: .progress)
            throw ExitStatus.usage
        }
    }

    /// Whether an environment variable says yes.
    private static func truth(of name: String, _ environment: [String: String]) throws -> Bool {
        switch environment[name]?.lowercased() {
        case nil, "", "0", "false", "no": return false
        case "1", "true", "yes": return true
        case let text?: throw ValidationError("\(name) is '\(text.prefix(40))', not 0 or 1")
        }
    }

    /// Makes the proxies of the configuration; gives words about them.
    private func load(_ api: API, _ console: Console, _ logger: Logger) async throws -> String {
        guard let config else { return "" }
        let problem: String
        if let data = FileManager.default.contents(atPath: config) {
            let (names, failure) = await api.load(Array(data))
            guard let failure else { return ", proxies \(names.joined(separator: ", "))" }
            problem = failure
        } else {
            problem = "it cannot be read"
        }
        if isToxiproxy {
            logger.error("--config \(config): \(problem)")
            return ""
        }
        console.print("error: --config \(config): \(problem)", to: .progress)
        await api.close()
        throw ExitStatus.invalidFile
    }

    /// A connection takes two open files; some are needed for everything else.
    private func connectionsThatFit() -> Int { max(1, (Terminal.raiseOpenFileLimit() - 64) / 2) }

    private static func level(_ text: String) -> Logger.Level? {
        switch text.lowercased() {
        case "panic", "fatal": .critical
        case "warn": .warning
        default: Logger.Level(rawValue: text.lowercased())
        }
    }
}
