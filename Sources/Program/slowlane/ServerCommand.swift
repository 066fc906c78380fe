internal import ArgumentParser
internal import CommandSupport
internal import ControlAPI
internal import Determinism
internal import Foundation

/// `slowlane server`.
struct ServerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "server",
        abstract: "Run proxies that are controlled over HTTP (Toxiproxy's API plus Slowlane's extensions).",
        discussion: """
            Examples:
              slowlane server
              slowlane server --config toxiproxy.json --seed 7
              slowlane server --port 0 --ready-file ready.json --exit-with-parent
              slowlane server --host 0.0.0.0 --token "$TOKEN" --allow-host ci-host

            In the file of --config, a proxy can have toxics, faults (rules as for 'slowlane proxy --fault'), a link and a seed:
              [{"name": "api", "listen": "127.0.0.1:9000", "upstream": "127.0.0.1:8000",
                "faults": ["POST * nth 3 before-response stall"],
                "link": {"profile": "edge"}}]

            Then, in another terminal:
              slowlane create redis --upstream 127.0.0.1:6379
              slowlane toxic add -t latency -a latency=1000 redis
              slowlane link redis edge

            The server implements the API of Toxiproxy 2.12.0, which GET /version reports. \
            Slowlane's own tests run one of Toxiproxy's client libraries, toxiproxy-python. Slowlane's calls for links, \
            seeds and single connections have paths under /slowlane/v1 (see docs/reference/server.md). A symbolic link to slowlane with the \
            name 'toxiproxy-server', 'toxiproxy' or 'toxiproxy-cli' accepts the flags of that program.

            Environment variables:
              SLOWLANE_NO_TOKEN=1             same as --no-token
              SLOWLANE_ALLOW_HOST=NAME,NAME   same as --allow-host
              LOG_LEVEL=error                 print errors only (default: info)
              SLOWLANE_DASHBOARD_FILES=DIR    read the files of the dashboard from a folder

            SIGINT and SIGTERM stop the server and close all connections; with --exit-with-parent also the end of the \
            parent process. SIGHUP (with --watch-config also a change of the file) applies the file of --config again: \
            proxies whose addresses are the same keep their \
            connections, and proxies that are no longer in the file are deleted.

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
            "JSON file of proxies to create at startup, in the format of POST /populate (see docs/reference/server.md).",
            valueName: "file"))
    var config: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Random seed; with the same seed, toxics affect the same connections. (default: random)",
            valueName: "number"),
        transform: SeedArgument.parse)
    var seed: UInt64?

    @OptionGroup var timelineStart: TimelineStartOption

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

    @Option(help: ArgumentHelp("Maximum number of faults of a proxy, up to 1000.", valueName: "count"))
    var maxFaults = ServerLimits().faultsMax

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
            "Maximum number of open API connections; a further connection replaces one without a token or an idle one.",
            valueName: "count"))
    var maxCallers = ServerLimits().apiConnectionsMax

    @Option(
        help: ArgumentHelp(
            "The dashboard at '/': on, view (browsers change nothing) or off.", valueName: "mode"))
    var dashboard = "on"

    @Flag(help: "Stop when the parent process has ended.")
    var exitWithParent = false

    @Flag(help: "Apply the file of --config again when it changes, within a second or two.")
    var watchConfig = false

    @Option(
        help: ArgumentHelp(
            "At SIGINT or SIGTERM, wait up to this time for transfers; idle connections are closed at once.",
            valueName: "seconds"))
    var grace = 0.0

    @Option(
        help: ArgumentHelp(
            "Write a JSON file with the address, the process and the proxies once they are ready; removed at the end.",
            valueName: "file"))
    var readyFile: String?

    @Flag(name: .shortAndLong, help: "Print results only.")
    var quiet = false

    func validate() throws {
        if token != nil && noToken { throw ValidationError("give one of --token and --no-token") }
        guard Dashboard.Mode(rawValue: dashboard) != nil else {
            throw ValidationError("--dashboard '\(dashboard.prefix(20))' must be on, view or off")
        }
        if watchConfig && config == nil { throw ValidationError("--watch-config needs --config FILE") }
        guard grace >= 0, grace <= 3600 else { throw ValidationError("--grace must be from 0 to 3600 seconds") }
        if token?.isEmpty == true { throw ValidationError("--token must not be empty") }
        guard (1...1000).contains(maxFaults) else {
            throw ValidationError("--max-faults \(maxFaults) must be from 1 to 1000")
        }
        for (name, value) in [
            ("--max-proxies", maxProxies), ("--max-toxics", maxToxics), ("--max-connections", maxConnections ?? 1),
            ("--max-body", maxBody), ("--max-headers", maxHeaders), ("--max-callers", maxCallers),
        ] where !(1...1_000_000_000).contains(value) {
            throw ValidationError("\(name) \(value) must be from 1 to 1000000000")
        }
    }

    func run() async throws {
        let environment = ProcessInfo.processInfo.environment
        var server = ForegroundServer(host: host, port: port)
        if ToxiproxyProgram.invoked == .server { server.style = .toxiproxy }
        server.configurationPath = config
        if let seed { server.seed = seed }
        server.timelineStart = timelineStart.timelineStart
        let console = Console()
        server.limits = try limits(console)
        if proxyMetrics || runtimeMetrics { server.metrics = .init(proxies: proxyMetrics, process: runtimeMetrics) }
        server.token = token
        server.dashboard = Dashboard(
            mode: Dashboard.Mode(rawValue: dashboard) ?? .on, folder: environment["SLOWLANE_DASHBOARD_FILES"])
        do {
            server.needsNoToken = try EnvironmentVariable.boolean("SLOWLANE_NO_TOKEN", in: environment) || noToken
        } catch {
            throw ValidationError("\(error)")
        }
        let named = environment["SLOWLANE_ALLOW_HOST"]?.split(separator: ",").map(String.init) ?? []
        server.allowedHosts = allowHost + named
        server.logLevel = environment["LOG_LEVEL"] ?? ""
        server.isQuiet = quiet
        server.stopsWithParent = exitWithParent
        server.readyPath = readyFile
        server.watchesConfiguration = watchConfig
        server.grace = Nanoseconds(Int64(grace * 1e9))
        do throws(ForegroundServer.StartError) {
            try await server.run(console)
        } catch {
            switch error {
            case .unsuitableAddress: throw ExitStatus.usage
            case .invalidConfiguration: throw ExitStatus.invalidFile
            case .unavailable: throw ExitStatus.unavailable
            }
        }
    }

    private func limits(_ console: Console) throws -> ServerLimits {
        var limits = ServerLimits()
        limits.proxiesMax = maxProxies
        limits.toxicsMax = maxToxics
        limits.faultsMax = maxFaults
        limits.connectionsMax = try ConnectionLimit.connectionsMax(
            maxConnections, default: limits.connectionsMax, console)
        limits.bodyBytesMax = maxBody
        limits.headerBytesMax = maxHeaders
        limits.apiConnectionsMax = maxCallers
        return limits
    }
}
